"""Reads the settings of a broker from the environment of its container, by the rules of the images.

Most images, Apache's and Confluent's among them, make ``min.insync.replicas`` of KAFKA_MIN_INSYNC_REPLICAS (two
underscores are one, three a dash); Bitnami's takes KAFKA_CFG_MIN_INSYNC_REPLICAS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from harness.assess.cluster_files.evidence import DECIDING, ClusterEvidence, Entered, Layer, written_in
from harness.assess.cluster_files.servers import number_of

_PREFIX: Final = "KAFKA_"
_OF_BITNAMI: Final = "KAFKA_CFG_"
#: Variables of a broker's scripts, its JVM and its image: they are no settings.
_OF_SCRIPTS: Final = re.compile(
    r"KAFKA_(?:.*OPTS|JMX_.*|LOG4J_.*|LOG4J2_.*|TOOLS_LOG4J_.*|CREATE_TOPICS|VERSION|DEBUG|HOME|CLUSTER_ID|"
    r"KRAFT_CLUSTER_ID|ENABLE_KRAFT|MOUNTED_CONF_DIR|VOLUME_DIR|CONF_DIR|CLIENT_.*|ZOOKEEPER_(?:PROTOCOL|USER|PASSWORD)|"
    r"INTER_BROKER_(?:USER|PASSWORD)|CONTROLLER_(?:USER|PASSWORD)|CERTIFICATE_PASSWORD|TLS_.*|KRAFT_.*BOOTSTRAP.*)"
)
#: Variables without which no broker begins: a container with one of them is a broker or a controller.
_OF_BROKERS: Final = re.compile(
    r"KAFKA_(?:CFG_)?(?:ADVERTISED_LISTENERS|LISTENERS|ZOOKEEPER_CONNECT|BROKER_ID|NODE_ID|PROCESS_ROLES|LOG_DIRS|"
    r"CONTROLLER_QUORUM_VOTERS|CONTROLLER_QUORUM_BOOTSTRAP_SERVERS|MIN_INSYNC_REPLICAS|DEFAULT_REPLICATION_FACTOR|"
    r"UNCLEAN_LEADER_ELECTION_ENABLE|OFFSETS_TOPIC_REPLICATION_FACTOR)"
)
_IDENTITY: Final = frozenset({"KAFKA_BROKER_ID", "KAFKA_NODE_ID"})
#: The directory in which Kafka's scripts write the words of a process, not its records.
_NO_SETTING: Final = frozenset({"LOG_DIR"})
_LINE: Final = re.compile(r"(?:export\s+)?(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>.*)")
_OVERRIDE: Final = re.compile(r"--override[ =]+[\"']?([\w.-]+)=([^\s\"']*)")


class Variable(NamedTuple):
    """A variable of a container. ``why``: its value is not there, or YAML makes something else of it."""

    name: str
    value: str
    where: str
    why: str = ""


class Container(NamedTuple):
    """A container: where it is written, its image, its variables, and the words that start it."""

    source: str
    image: str
    variables: Sequence[Variable]
    command: str = ""


def is_environment(text: str) -> bool:
    """True if the text as a whole is an environment of a broker, as ``env_file`` names one."""
    lines = [line.strip() for line in text.splitlines()]
    entries = [_LINE.fullmatch(line) for line in lines if line and not line.startswith("#")]
    return all(entries) and is_broker([Variable(entry["name"], "", "") for entry in entries if entry])


def of_environment(text: str, file: str) -> Container:
    """The container of such a text."""
    variables = [
        Variable(entry["name"], entry["value"], f"{file}, line {number}")
        for number, line in enumerate(text.splitlines(), 1)
        if (entry := _LINE.fullmatch(line.strip()))
    ]
    return Container(file, "", variables)


def is_broker(variables: Iterable[Variable]) -> bool:
    """True if the container runs a broker or a controller."""
    return any(_OF_BROKERS.fullmatch(variable.name) for variable in variables)


def read_container(container: Container, evidence: ClusterEvidence) -> None:
    """Take over the settings of a broker or a controller in a container.

    Raises:
        PlanError: they contradict those of another file for the same node.
    """
    bitnami = "bitnami" in container.image or any(each.name.startswith(_OF_BITNAMI) for each in container.variables)
    prefix = _OF_BITNAMI if bitnami else _PREFIX
    named = [(_setting(each.name, prefix), each) for each in container.variables]
    number = number_of([Entered(name, each.value, "") for name, each in named if name])
    node = evidence.node(number or container.source)
    node.whole = True
    for name, each in named:
        if name:
            evidence.put(node.layers[Layer.FILE], Entered(name, each.value, each.where, each.why))
        elif meaning := _near(each.name):
            why = f"this image takes settings from variables that begin with {prefix}"
            evidence.put(node.layers[Layer.FILE], Entered(meaning, each.value, each.where, why))
    where = f"{container.source}, its command"
    for match in _OVERRIDE.finditer(container.command):
        evidence.put(node.layers[Layer.RUNNING], Entered(match[1], match[2], where))
    for name, value in written_in(_OVERRIDE.sub("", container.command)):
        why = "the command may write it into the broker's file, which is not read; write it as a variable"
        evidence.put(node.layers[Layer.RUNNING], Entered(name, value, where, why))


def _setting(variable: str, prefix: str) -> str:
    """The setting that an image makes of a variable; empty where it makes none."""
    if variable in _IDENTITY:
        return _dotted(variable.removeprefix(_PREFIX))
    if not variable.startswith(prefix) or _OF_SCRIPTS.fullmatch(variable):
        return ""
    return _dotted(variable.removeprefix(prefix), underscores=prefix == _PREFIX)


def _dotted(variable: str, *, underscores: bool = True) -> str:
    if not underscores:
        return variable.replace("_", ".").lower()
    return re.sub("_{1,3}", lambda match: "._-"[len(match[0]) - 1], variable).lower()


def _near(variable: str) -> str:
    """The setting that a variable names which the image does not take; empty where it names none that decides."""
    name = f".{_dotted(variable)}"
    if variable in _NO_SETTING or _OF_SCRIPTS.fullmatch(variable):
        return ""
    return max((each for each in DECIDING["broker"] if name.endswith(f".{each}")), key=len, default="")
