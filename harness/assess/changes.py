"""The changes of settings that are offered, each with what it is against, how it is made, and its price."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from workloads import NO_ERA, NOT_BY_RELEASE, Settings

_NEWEST: Final = "4.1"


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

    ``weakness`` says what is wrong without it, with the settings' own values in braces; ``price`` is what it costs.
    """

    name: str
    applies: Callable[[Settings], bool]
    values: Callable[[Settings], Mapping[str, object]]
    weakness: str
    how: str
    price: str


def _in_sync(settings: Settings) -> Mapping[str, object]:
    return {"min.insync.replicas": max(1, min(2, settings.replication_factor - 1))}


#: Settings that are recommended, in the order in which they are tried.
RECOMMENDED: Final = (
    AdvisedChange(
        "replicas",
        lambda s: s.replication_factor < 3,
        lambda _: {"replication.factor": 3},
        "replication.factor={replication.factor}: there are too few copies of a record",
        "three replicas: `kafka-reassign-partitions.sh` with three brokers for each log partition",
        "three times the disk space and the traffic between brokers of one copy",
    ),
    AdvisedChange(
        "acks",
        lambda s: s.acks != -1,
        lambda _: {"acks": "all"},
        "acks={acks}: a write is acknowledged before other replicas have it",
        "`acks=all` in the producer",
        "each write waits for the slowest replica in sync",
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
        lambda s: s.min_insync_replicas < 2,
        _in_sync,
        "min.insync.replicas={min.insync.replicas}: a write may be acknowledged with one copy",
        "`min.insync.replicas=2` on the topic",
        "writes with acks=all are refused while fewer than two replicas are in sync",
    ),
    AdvisedChange(
        "all-must-be-in-sync",
        lambda s: s.min_insync_replicas >= s.replication_factor > 1,
        _in_sync,
        "min.insync.replicas={min.insync.replicas} of {replication.factor} replicas: one broker away, even in a "
        "restart, and every write with acks=all is refused",
        "`min.insync.replicas` one less than the replication factor",
        "a write may be acknowledged with one copy less",
    ),
    AdvisedChange(
        "idempotence",
        lambda s: not s.enable_idempotence,
        lambda _: {"enable.idempotence": True, "retries": 2**31 - 1, _IN_FLIGHT: 5},
        "enable.idempotence=false: a batch that is sent again may be written twice or be overtaken",
        "`enable.idempotence=true` in the producer, with acks=all and at most five requests in flight",
        "brokers keep a few numbers of each producer",
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
_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"

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
        "Apache Kafka 4.1 or later, formatted with its own features",
        "an upgrade",
    ),
)  # fmt: skip


def with_changes(settings: Mapping[str, object], changes: tuple[AdvisedChange, ...]) -> dict[str, object]:
    """The settings after some changes."""
    values = dict(settings)
    for change in changes:
        values |= change.values(Settings.from_mapping(values))
    return values
