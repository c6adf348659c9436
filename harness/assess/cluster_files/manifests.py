"""Reads clusters from YAML and JSON of operators and of containers: Strimzi, Kubernetes, compose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.assess.cluster_files.environments import Container, Variable, is_broker, read_container
from harness.assess.cluster_files.evidence import (
    EVERY_NODE,
    ClusterEvidence,
    Declared,
    Entered,
    Layer,
    Slots,
    written_in,
)
from harness.assess.cluster_files.servers import Server, is_properties, of_properties, read_server
from harness.assess.cluster_files.yaml_texts import Scalar, scalars
from harness.assess.configuration import NotUnderstood
from harness.ground.errors import PlanError

_STRIMZI: Final = "kafka.strimzi.io/"
_CONFLUENT: Final = "platform.confluent.io/"
_WORKLOADS: Final = frozenset({"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})
_CHANGED: Final = "without quotes, YAML may make something else of it; put it into quotes"
#: Places where images look for files of settings, as volumes name them; other files there are of no matter.
_MOUNTED: Final = re.compile(r"\.properties|/mnt/shared/config|/etc/kafka\b|/kafka/config\b", re.IGNORECASE)
_NO_SETTINGS: Final = re.compile(r"log4j|jaas|secret|cert|\.(?:jks|p12|pem)\b", re.IGNORECASE)
_ELSEWHERE: Final = (
    "settings of this broker are in another file; name the file, or what kafka-configs.sh --describe says"
)
Table = Mapping[str, Any]


def read_manifests(documents: list[object], file: str, evidence: ClusterEvidence) -> None:
    """Take over the clusters, topics and brokers in documents of YAML.

    Raises:
        ValueError: they have no cluster; the words say what there is, and what to give instead.
        PlanError: they contradict another file.
    """
    resources = [resource for document in documents for resource in _resources(document)]
    taken = [_take(resource, file, evidence) for resource in resources]
    if not any(taken):
        raise ValueError(_what_else(resources))


def _resources(document: object) -> Iterator[Table]:
    """The resources of a document; those of a list one by one."""
    if isinstance(document, list):
        for each in document:
            yield from _resources(each)
    elif isinstance(document, dict):
        if isinstance(document.get("items"), list) and str(document.get("kind", "List")).endswith("List"):
            yield from _resources(document["items"])
        else:
            yield document


def _take(resource: Table, file: str, evidence: ClusterEvidence) -> bool:
    """Take over one resource; False where it has nothing of a cluster."""
    kind, version = str(resource.get("kind", "")), str(resource.get("apiVersion", ""))
    name = str(_table(resource, "metadata").get("name", ""))
    if isinstance(resource.get("services"), dict):
        return _compose(resource["services"], file, evidence)
    if version.startswith(_STRIMZI) and kind in {"Kafka", "KafkaTopic", "KafkaNodePool"}:
        {"Kafka": _strimzi, "KafkaTopic": _topic, "KafkaNodePool": _pool}[kind](resource, name, file, evidence)
        return True
    if version.startswith(_CONFLUENT) and kind in {"Kafka", "KafkaTopic", "KRaftController"}:
        read = _topic_of_confluent if kind == "KafkaTopic" else _confluent
        return read(resource, f"{file}, {kind} {name}", evidence)
    if kind == "ConfigMap":
        return _config_map(resource, f"{file}, ConfigMap {name}", evidence)
    if kind in _WORKLOADS:
        return _workload(resource, f"{file}, {kind} {name}", evidence)
    return _inspected(resource, file, evidence)


def _what_else(resources: list[Table]) -> str:
    kinds = sorted({str(resource["kind"]) for resource in resources if "kind" in resource})
    if kinds:
        return f"it has {', '.join(kinds)}, and no broker; give the resource Kafka, or KafkaTopic"
    return (
        "it is YAML or JSON of no known kind, such as the values of a Helm chart; give its result (`helm "
        "template`, `kubectl get kafka -o yaml`), or what Kafka's tools print of the running cluster"
    )


# --- Strimzi ---------------------------------------------------------------------------------------------------------


def _strimzi(resource: Table, name: str, file: str, evidence: ClusterEvidence) -> None:
    spec = _table(resource, "spec")
    kafka = _table(spec, "kafka")
    _only(name, file, evidence)
    node = evidence.node(EVERY_NODE)
    node.whole = True
    into = node.layers[Layer.FILE]
    label = f"{file}, Kafka {name}"
    _settings(kafka.get("config"), into, label, evidence)
    if "zookeeper" in spec:
        evidence.put(into, Entered("zookeeper.connect", "of the operator", label))
    elif _table(_table(resource, "metadata"), "annotations").get("strimzi.io/kraft") == "enabled":
        evidence.put(into, Entered("process.roles", "broker,controller", label))
    evidence.brokers_declared += _number(kafka.get("replicas"))


def _pool(resource: Table, name: str, file: str, evidence: ClusterEvidence) -> None:
    spec = _table(resource, "spec")
    roles = [str(role) for role in spec.get("roles") or []]
    node = evidence.node(EVERY_NODE)
    label = f"{file}, KafkaNodePool {name}"
    # The operator gives brokers and controllers the same settings.
    evidence.put(node.layers[Layer.FILE], Entered("process.roles", "broker,controller", label))
    if "broker" in roles:
        evidence.brokers_declared += _number(spec.get("replicas"))


def _topic(resource: Table, name: str, file: str, evidence: ClusterEvidence) -> None:
    spec = _table(resource, "spec")
    topic = str(spec.get("topicName", name))
    said = evidence.topic(topic)
    label = f"{file}, KafkaTopic {name}"
    said.declare(Declared(_number(spec.get("partitions")) or None, _number(spec.get("replicas")) or None, label))
    _settings(spec.get("config"), said.own, label, evidence)


def _only(name: str, file: str, evidence: ClusterEvidence) -> None:
    first = evidence.clusters.setdefault(name, file)
    if len(evidence.clusters) > 1:
        raise PlanError(
            f"there are several clusters ({', '.join(sorted(evidence.clusters))}) in {', '.join({first, file})}; give "
            "the files of one"
        )


def _settings(config: object, into: Slots, label: str, evidence: ClusterEvidence) -> None:
    if config is None or (isinstance(config, Scalar) and config.lower() in {"", "null", "~"}):
        return
    if not isinstance(config, dict):
        raise ValueError(f"the config of {label} is no mapping")
    for name, value in _entries(config, ""):
        variable = _variable(name, value, label)
        several = "" if isinstance(value, Scalar) else "a text, a number or a boolean is wanted"
        parts = "" if name in config else "its name is written in parts, and the operator makes no setting of them"
        evidence.put(into, Entered(name, variable.value, variable.where, parts or several or variable.why))


def _entries(config: Table, before: str) -> Iterator[tuple[str, object]]:
    """The settings of a mapping, those inside others with the names of these before their own."""
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _entries(value, f"{before}{name}.")
        else:
            yield before + name, value


def _confluent(resource: Table, label: str, evidence: ClusterEvidence) -> bool:
    lines = _table(_table(resource, "spec"), "configOverrides").get("server")
    if not isinstance(lines, list):
        return False
    server = of_properties("\n".join(map(str, lines)), label)
    role = "controller" if resource.get("kind") == "KRaftController" else "broker"
    if role == "controller" or "kRaftController" in _table(_table(resource, "spec"), "dependencies"):
        server = server._replace(entries=(*server.entries, Entered("process.roles", role, label)))
    read_server(server, evidence)
    return True


def _topic_of_confluent(resource: Table, label: str, evidence: ClusterEvidence) -> bool:
    spec = _table(resource, "spec")
    said = evidence.topic(str(spec.get("name", _table(resource, "metadata").get("name", ""))))
    said.declare(Declared(_number(spec.get("partitionCount")) or None, _number(spec.get("replicas")) or None, label))
    _settings(spec.get("configs"), said.own, label, evidence)
    return True


# --- Kubernetes and compose ------------------------------------------------------------------------------------------


def _config_map(resource: Table, label: str, evidence: ClusterEvidence) -> bool:
    """The files of brokers in an object; what another file in it may set is not known, if one is a broker's."""
    servers: list[Server] = []
    doubts: list[NotUnderstood] = []
    for key, text in scalars(resource.get("data")):
        file = f"{label}, {key}"
        try:
            servers.append(_server(text, file))
        except ValueError as error:
            doubts += (NotUnderstood(file, f"{name}={value}", str(error), name) for name, value in written_in(text))
    for server in servers:
        read_server(server, evidence)
    if servers:
        evidence.not_understood |= dict.fromkeys(doubts)
    return bool(servers)


def _server(text: str, file: str) -> Server:
    """The broker whose properties a text has. Raises ValueError where it has none."""
    if not is_properties(text):
        raise ValueError("not every line of it is an entry of properties, a comment or blank; give the file itself")
    return of_properties(text, file)


def _workload(resource: Table, label: str, evidence: ClusterEvidence) -> bool:
    spec = _table(resource, "spec")
    spec = _table(_table(spec, "template"), "spec") or spec
    brokers = [
        container
        for container in spec.get("containers") or []
        if isinstance(container, dict) and is_broker(_of_kubernetes(container, label))
    ]
    for container in brokers:
        if container.get("envFrom"):
            _elsewhere("envFrom", label, evidence)
        _files(container.get("volumeMounts"), label, evidence)
        command = _command(container, "command", "args")
        variables = _of_kubernetes(container, label)
        read_container(Container(label, str(container.get("image", "")), variables, command), evidence)
    return bool(brokers)


def _of_kubernetes(container: Table, label: str) -> list[Variable]:
    variables = []
    for each in container.get("env") or []:
        value = each.get("value", "")
        why = "its value is in another object; write the value itself" if "valueFrom" in each else ""
        variables.append(_variable(str(each["name"]), value, label, why))
    return variables


def _compose(services: Table, file: str, evidence: ClusterEvidence) -> bool:
    taken = False
    for name, service in services.items():
        label = f"{file}, service {name}"
        if not isinstance(service, dict) or not is_broker(variables := _of_compose(service, label)):
            continue
        for key in ("env_file", "extends"):
            if key in service:
                _elsewhere(key, label, evidence)
        _files([*(service.get("volumes") or []), *(service.get("configs") or [])], label, evidence)
        read_container(
            Container(label, str(service.get("image", "")), variables, _command(service, "entrypoint", "command")),
            evidence,
        )
        taken = True
    return taken


def _of_compose(service: Table, label: str) -> list[Variable]:
    environment = service.get("environment")
    if isinstance(environment, dict):
        return [_variable(str(name), value, label) for name, value in environment.items()]
    variables = []
    for each in environment if isinstance(environment, list) else []:
        name, separator, value = str(each).partition("=")
        why = "" if separator else "its value comes from the shell that starts compose; write the value itself"
        variables.append(Variable(name, value, f"{label}, line {getattr(each, 'line', 0)}", why))
    return variables


def _inspected(resource: Table, file: str, evidence: ClusterEvidence) -> bool:
    """A container as ``docker inspect`` prints it."""
    config = _table(resource, "Config")
    label = f"{file}, container {resource.get('Name', '')}"
    variables = [Variable(*str(each).partition("=")[::2], label) for each in config.get("Env") or []]
    if not is_broker(variables):
        return False
    read_container(Container(label, str(config.get("Image", "")), variables), evidence)
    return True


def _variable(name: str, value: object, label: str, why: str = "") -> Variable:
    if not isinstance(value, Scalar):
        return Variable(name, str(value or ""), label, why)
    changed = _CHANGED if value.changed else ""
    return Variable(name, str(value), f"{label}, line {value.line}" if value.line else label, why or changed)


def _files(mounted: object, label: str, evidence: ClusterEvidence) -> None:
    """Say it where a file of settings may be mounted into a broker's container."""
    each = map(str, mounted if isinstance(mounted, list) else [])
    if any(_MOUNTED.search(where) and not _NO_SETTINGS.search(where) for where in each):
        _elsewhere("a mounted file of properties", label, evidence)


def _elsewhere(what: str, label: str, evidence: ClusterEvidence) -> None:
    evidence.not_understood[NotUnderstood(where=label, text=what, why=_ELSEWHERE)] = None


def _table(resource: Table, name: str) -> Table:
    """A table inside a resource; an empty one where it has no such table."""
    inner = resource.get(name)
    return inner if isinstance(inner, dict) else {}


def _command(container: Table, *names: str) -> str:
    return " ".join(_words(container.get(name)) for name in names)


def _words(command: object) -> str:
    """A command, which is a text or a list of words."""
    return " ".join(map(str, command)) if isinstance(command, list) else str(command or "")


def _number(value: object) -> int:
    return int(value) if isinstance(value, str) and value.isdigit() else 0
