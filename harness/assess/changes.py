"""The changes of settings that are offered, each with what it is against, how it is made, on what condition, and its
price.

Together they are one aim: applied all at once to any settings, they leave none of their weaknesses, and no change
undoes another's. With fewer than three replicas no value of min.insync.replicas keeps both two copies and writes while
a broker is away, so the change is a third replica, and none of that setting by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from harness.assess.client_settings import version_of
from harness.assess.concerns import COPIES, brokers_needed
from harness.assess.configuration import Client, Release
from harness.ground.known_defects import Library
from harness.worlds.kafka.releases import ZOOKEEPER_GONE_SINCE, Version
from workloads import NO_ERA, NOT_BY_RELEASE, Settings, spelled

_NEWEST: Final = "4.1"
_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
_MIN_ISR: Final = "min.insync.replicas"
#: The first releases with min.insync.replicas, and with idempotent producers: of brokers (KIP-98), and of libraries.
_MIN_ISR_SINCE: Final = Version(0, 8, 2)
_IDEMPOTENT_BROKERS: Final = Version(0, 11, 0)
_IDEMPOTENT_CLIENTS: Final[Mapping[Library, Version]] = {
    "java": Version(0, 11, 0),
    "librdkafka": Version(1, 0, 0),
    "kafka-python": Version(2, 2, 0),
}
#: The last release with ZooKeeper: a cluster leaves it there.
_BRIDGE: Final = "3.9"


class Surroundings(NamedTuple):
    """The surroundings of a change: the brokers, their release, the producer, and the demand as it is written.

    ``zookeeper`` is None where it is not known. ``demanded`` is min.insync.replicas as it is set; ``binding`` is true
    where brokers hold to it beyond all replicas (see :func:`binding`).
    """

    brokers: int | None
    racks: int | None
    release: Release | None
    zookeeper: bool | None
    producer: Client
    demanded: int
    binding: bool


#: The first release that counts no more replicas than there are (KAFKA-15583).
_CAPPED_SINCE: Final = Version(3, 7, 0)


def binding(release: Release | None) -> bool:
    """True if brokers hold to min.insync.replicas beyond all replicas, and so refuse every write with acks=all.

    Up to 3.6 they do. Since 3.7 they take it as the number of replicas (KAFKA-15583; seen with one replica and a demand
    of two: 3.6.2 refuses a write with acks=all, 4.3.1 takes it).
    """
    return release is not None and release.version < _CAPPED_SINCE


#: Conditions of a change under some settings, in words.
Conditions = Callable[[Settings, Surroundings], Iterator[str]]


def _none(_: Settings, __: Surroundings) -> Iterator[str]:
    yield from ()


def _of_its_era(settings: Settings) -> Mapping[str, object]:
    """The rules of a release whose upgrade was finished: those that its era presets."""
    preset = Settings.from_mapping({"era": settings.era}).to_mapping()
    return {name: preset[name] for name in ("truncation", "fetch.fencing")}


def _newest(_: Settings) -> Mapping[str, object]:
    """The newest era, with what a formatted cluster of it has raised."""
    preset = Settings.from_mapping({"era": _NEWEST}).to_mapping()
    return {"era": _NEWEST, **{name: preset[name] for name in (*NOT_BY_RELEASE, "eligible.leader.replicas")}}


class AdvisedChange(NamedTuple):
    """One change. ``applies`` to settings that lack it; ``values`` are what it sets.

    ``weakness`` says what is wrong without it, with the settings' own values in braces; ``how`` has those that it sets.
    ``conditions`` are what must be so before it helps; ``price`` is what it costs.
    """

    name: str
    applies: Callable[[Settings], bool]
    values: Callable[[Settings], Mapping[str, object]]
    weakness: str
    how: str
    price: str
    conditions: Conditions = _none

    def advice(self, settings: Settings, around: Surroundings) -> str:
        """The change in words, with its conditions."""
        how = filled(self.how, self.values(settings))
        return how + "".join(self.conditions(settings, around))


def filled(sentence: str, values: Mapping[str, object]) -> str:
    """The sentence with the values of the settings that it names in braces."""
    for name, value in values.items():
        sentence = sentence.replace(f"{{{name}}}", spelled(value))
    return sentence


def _three_brokers(_: Settings, around: Surroundings) -> Iterator[str]:
    if around.brokers is not None:
        yield brokers_needed(around.brokers)
    if around.racks is not None:
        yield ", each in another rack"
    if around.demanded != 2:
        yield f"; then `{_MIN_ISR}=2` on the topic, not before"
        yield from _brokers_that_have_it(around)


def _demand_that_can_be_met(settings: Settings, around: Surroundings) -> Iterator[str]:
    """With acks=all a demand beyond all replicas refuses every write."""
    if around.binding and around.demanded > settings.replication_factor:
        first = "a third replica" if _few(settings) else f"`{_MIN_ISR}={settings.replication_factor - 1}`"
        yield f", after {first}: until then {_MIN_ISR}={around.demanded} refuses each of these writes"


def _all_must_answer(settings: Settings, around: Surroundings) -> Iterator[str]:
    if settings.acks != -1:
        yield ", with `acks=all`: the setting binds no other write"
    yield from _brokers_that_have_it(around)


def _brokers_that_have_it(around: Surroundings) -> Iterator[str]:
    if around.release is not None and around.release.version < _MIN_ISR_SINCE:
        yield f"; brokers of {around.release.words} do not have it: Apache Kafka {_MIN_ISR_SINCE} or later"


def _client_that_has_it(_: Settings, around: Surroundings) -> Iterator[str]:
    library, version = around.producer.library, version_of(around.producer)
    if version is not None and version < (since := _IDEMPOTENT_CLIENTS.get(library, version)):
        yield f"; {library} {around.producer.version} does not have it: {library} {since} or later"
    if around.release is not None and around.release.version < _IDEMPOTENT_BROKERS:
        yield f"; brokers of {around.release.words} do not have it: Apache Kafka {_IDEMPOTENT_BROKERS} or later"


def _way_up(_: Settings, around: Surroundings) -> Iterator[str]:
    if around.zookeeper or (around.zookeeper is None and _may_have_zookeeper(around.release)):
        yield f", from ZooKeeper by way of {_BRIDGE} and a migration to KRaft: 4.0 has no ZooKeeper"


def _may_have_zookeeper(release: Release | None) -> bool:
    return release is not None and release.version < ZOOKEEPER_GONE_SINCE


def _few(settings: Settings) -> bool:
    return settings.replication_factor < COPIES


def _one_may_be_away(settings: Settings) -> Mapping[str, object]:
    return {_MIN_ISR: settings.replication_factor - 1}


#: Settings that are recommended, in the order in which they are tried.
RECOMMENDED: Final = (
    AdvisedChange(
        "replicas",
        _few,
        lambda _: {"replication.factor": COPIES, _MIN_ISR: 2},
        "replication.factor={replication.factor}: with min.insync.replicas=1 a write may be acknowledged with one "
        "copy, with 2 one broker away refuses every write with acks=all; fewer than three replicas cannot avoid both",
        "three replicas: `kafka-reassign-partitions.sh` with three brokers for each log partition",
        "three times the disk space and the traffic between brokers of one copy",
        _three_brokers,
    ),
    AdvisedChange(
        "acks",
        lambda s: s.acks != -1,
        lambda _: {"acks": "all"},
        "acks={acks}: a write is acknowledged before other replicas have it",
        "`acks=all` in the producer",
        "each write waits for the slowest replica in sync",
        _demand_that_can_be_met,
    ),
    AdvisedChange(
        "unclean-election",
        lambda s: s.elects_uncleanly,
        lambda _: {"unclean.leader.election.enable": False},
        "unclean.leader.election.enable=true: a replica without acknowledged records may lead",
        "`unclean.leader.election.enable=false` on the topic",
        "no leader, so no reads and writes, until a replica that was in sync is back",
    ),
    AdvisedChange(
        "unclean-election-later",
        lambda s: s.unclean_leader_election_enable and not s.unclean_elections,
        lambda _: {"unclean.leader.election.enable": False},
        "unclean.leader.election.enable=true: KRaft before 3.9 does not ask it, so no replica leads until one in sync "
        "is back; from 3.9 on one without acknowledged records may lead (KAFKA-12670)",
        "`unclean.leader.election.enable=false` on the topic before an upgrade to 3.9 or later",
        "none before it",
    ),
    AdvisedChange(
        "too-few-in-sync",
        lambda s: not _few(s) and s.min_insync_replicas < 2,
        lambda _: {_MIN_ISR: 2},
        "min.insync.replicas={min.insync.replicas}: a write may be acknowledged with one copy",
        "`min.insync.replicas={min.insync.replicas}` on the topic",
        "writes with acks=all are refused while fewer than two replicas are in sync",
        _all_must_answer,
    ),
    AdvisedChange(
        "all-must-be-in-sync",
        lambda s: not _few(s) and s.min_insync_replicas >= s.replication_factor,
        _one_may_be_away,
        "min.insync.replicas={min.insync.replicas} of {replication.factor} replicas: one broker away, even in a "
        "restart, and every write with acks=all is refused",
        "`min.insync.replicas={min.insync.replicas}` on the topic, one less than its replicas",
        "a write may be acknowledged with one copy less",
    ),
    AdvisedChange(
        "idempotence",
        lambda s: not s.enable_idempotence,
        lambda _: {"enable.idempotence": True, "retries": 2**31 - 1, _IN_FLIGHT: 5},
        "enable.idempotence=false: a batch that is sent again may be written twice or be overtaken",
        "`enable.idempotence=true` in the producer, with acks=all, retries, and at most five requests in flight",
        "brokers keep a few numbers of each producer",
        _client_that_has_it,
    ),
    AdvisedChange(
        "offset-reset",
        lambda s: s.auto_offset_reset == "latest",
        lambda _: {"auto.offset.reset": "earliest"},
        "auto.offset.reset=latest: a group whose offset is lost passes over what was written meanwhile",
        "`auto.offset.reset=earliest` in the consumers",
        "a group without an offset begins at the start of the log",
    ),
)  # fmt: skip

#: Further changes, against faults that take copies away.
HARDENING: Final = (
    AdvisedChange(
        "eligible-replicas",
        lambda s: not s.eligible_leader_replicas and s.era == _NEWEST,
        # The feature needs a later level of metadata.version than the epochs of brokers do.
        lambda _: {"eligible.leader.replicas": True, "broker.epochs": True},
        "",
        "`kafka-features.sh upgrade --feature eligible.leader.replicas.version=1` (Kafka 4.0 or later)",
        "min.insync.replicas can then only be set for the cluster or the topic, not for one broker",
    ),
    AdvisedChange(
        "flush",
        lambda s: not s.flushes_first,
        lambda _: {"flush.messages": 1},
        "",
        "`flush.messages=1` on the topic",
        "every write waits for the disks of the replicas in sync",
    ),
    AdvisedChange(
        "protocol",
        lambda s: s.truncation != _of_its_era(s)["truncation"],
        _of_its_era,
        "",
        "`inter.broker.protocol.version` and `log.message.format.version` of the release itself, by rolling restarts",
        "no way back to the release before",
    ),
    AdvisedChange(
        "newer-release",
        lambda s: s.era not in {NO_ERA, _NEWEST},
        _newest,
        "",
        "Apache Kafka 4.1 or later, and after an upgrade its own features: `kafka-features.sh upgrade "
        "--release-version 4.1`",
        "an upgrade",
        _way_up,
    ),
)  # fmt: skip


def with_changes(settings: Mapping[str, object], changes: tuple[AdvisedChange, ...]) -> dict[str, object]:
    """The settings after some changes, each made to the settings as they were."""
    before = Settings.from_mapping(settings)
    values = dict(settings)
    for change in changes:
        values |= change.values(before)
    return values
