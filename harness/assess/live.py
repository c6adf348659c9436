"""Reads a cluster that runs, through its bootstrap servers. It asks, and changes nothing."""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from typing import Final

from kafka.errors import KafkaError, UnsupportedVersionError

from checkers import counted
from harness.assess.cluster_files import racks_of, shared
from harness.assess.configuration import OF_BROKERS, OF_TOPICS, Cluster, Now, Release, Topic
from harness.clients import at_home, named, require_credentials
from harness.errors import HostError, NotReachableError
from harness.plan import Existing
from harness.progress import Progress
from harness.worlds.kafka.administration import FAR_ASK_LIMIT_S, Administration, UnansweredError
from harness.worlds.kafka.releases import Version
from workloads import reason_of

#: Topics whose settings are asked for at a time.
TOPICS_A_REQUEST: Final = 500
#: The wait for a server that gave no answer, to see why.
_TOUCH_LIMIT_S: Final = 2.0
_OF_BROKERS: Final = tuple(OF_BROKERS) + tuple(name for inherited in OF_TOPICS.values() for name in inherited.brokers)


def read_live(world: Existing, progress: Progress) -> Cluster:
    """The cluster of ``world``.

    Raises:
        NotReachableError: no server answers; the text says why of each.
        HostError: the cluster refuses us; the text says why.
    """
    security = at_home(world.security)
    require_credentials(security)
    administration = Administration(lambda: world.bootstrap, limit_s=FAR_ASK_LIMIT_S, security=security)
    with closing(administration):
        try:
            return _read(administration, world.bootstrap, progress)
        except UnansweredError as error:
            reasons = "; ".join(map(why_silent, world.bootstrap))
            raise NotReachableError(f"no server answers: {reasons}; check the addresses and the network") from error
        except KafkaError as error:
            raise HostError(
                f"the cluster refused a request ({named(error)}); its user needs Describe and DescribeConfigs on "
                "topics and on the cluster"
            ) from error


def why_silent(server: str) -> str:
    """The reason of a server ("host:port") that gives no answer: its name, its port, or itself."""
    host, _, port = server.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_TOUCH_LIMIT_S):
            return f"{server} accepts connections but does not answer as a broker; does it need TLS or SASL (--access)?"
    except socket.gaierror:
        return f"the name {host} does not resolve"
    except ConnectionRefusedError:
        return f"{server} refuses connections, so no process listens there"
    except OSError as error:
        return f"{server} cannot be reached ({reason_of(error)})"


def _read(administration: Administration, bootstrap: Sequence[str], progress: Progress) -> Cluster:
    racks = administration.racks()
    progress.say(f"{counted(len(racks), 'running broker')} found")
    topics = administration.topics()
    progress.say(f"{counted(len(topics), 'topic')} found")
    unread: list[str] = []
    settings: dict[str, dict[str, str]] = {}
    for names in _chunks(sorted(topics)):
        settings |= _settings(administration, names, unread)
    brokers, releases = _brokers(administration, racks, unread)
    in_racks = {broker: rack for broker, rack in racks.items() if rack}
    same, differing = shared({str(broker): own for broker, own in brokers.items() if own})
    if len(releases) > 1:
        differing |= {"release": tuple(f"{major}.{minor}" for major, minor, *_ in sorted(releases))}
    return Cluster(
        source=", ".join(bootstrap),
        topics=tuple(
            Topic(
                name=name,
                partitions=len(partitions),
                replicas=min((len(partition.replicas) for partition in partitions), default=1),
                racks=racks_of({partition.replicas for partition in partitions}, in_racks),
                settings=settings.get(name, {}),
                now=Now(
                    leaderless=sum(partition.leader is None for partition in partitions),
                    behind=sum(len(partition.isr) < len(partition.replicas) for partition in partitions),
                    in_sync=min((len(partition.isr) for partition in partitions), default=None),
                    absent=tuple(sorted({broker for each in partitions for broker in each.replicas} - brokers.keys())),
                ),
            )
            for name, partitions in sorted(topics.items())
        ),
        brokers=len(brokers),
        settings=same,
        differing=differing,
        features=administration.features(),
        release=Release(min(releases), patch_seen=False) if releases else None,
        unread=tuple(dict.fromkeys(unread)),
    )


def _settings(administration: Administration, names: Sequence[str], unread: list[str]) -> dict[str, dict[str, str]]:
    read = administration.configurations("topic", names, tuple(OF_TOPICS))
    if any(not read.get(name) for name in names):
        unread.append("settings of some topics (DescribeConfigs on the topics)")
    return read


def _brokers(
    administration: Administration, running: Collection[int], unread: list[str]
) -> tuple[dict[int, dict[str, str]], set[Version]]:
    """The settings of the brokers that answer, by number, and their releases.

    A cluster counts a broker as running until the session of its process is over, which by default lasts nine seconds.

    Raises:
        UnansweredError: none answers.
    """
    brokers: dict[int, dict[str, str]] = {}
    releases: set[Version] = set()
    for broker in running:
        try:
            release = administration.release(broker)
            brokers[broker] = _of_broker(administration, broker, unread)
        except UnansweredError:
            unread.append(f"settings of broker {broker}, which is not dead for the cluster, but does not answer")
            continue
        releases.add(release)
    if running and not brokers:
        raise UnansweredError("no broker answers")
    return brokers, releases


def _of_broker(administration: Administration, broker: int, unread: list[str]) -> dict[str, str]:
    """The settings of one broker; empty where they cannot be read."""
    try:
        read = administration.configurations("broker", [str(broker)], _OF_BROKERS)
    except UnsupportedVersionError:
        read = {}
    own = read.get(str(broker), {})
    if not own:
        unread.append("settings of brokers (DescribeConfigs on the cluster)")
    return own


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(names), TOPICS_A_REQUEST):
        yield names[begin : begin + TOPICS_A_REQUEST]
