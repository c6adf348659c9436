"""A broker that is away while transactions end and a group is deleted: the script of finding 006 about transactions.

The user's topic is compacted, as ``__consumer_offsets`` is. Broker 2 is stopped in order; meanwhile a transaction is
aborted, another one is committed, and a group is deleted; the cleaner removes their markers and tombstones, and then
broker 2 is started again, is in sync, and is elected. As a program it says what readers and groups have before and
after that election; the exit code is 1 where they differ:

    python -m tests.harness.clients.away --version 4.3.1
    python -m tests.harness.clients.away --version 4.3.1 --retention-ms 86400000
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kafka import KafkaAdminClient

from harness.plan import Kafka
from harness.plan.worlds import ClientName
from harness.reference.core.types import OFFSETS_TOPIC
from harness.worlds.kafka.administration import Administration
from harness.worlds.kafka.releases import DEFAULT_VERSION
from nemesis.cluster import PartitionView, require
from tests.harness.clients.internal_topics import serving, stored, tuned_world
from tests.harness.clients.script import Script, rules_of, script_options
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads.client import Membership, MemberToken, Producer, Transactions

AWAY: Final = 2
#: Broker 2 is no leader before it is away.
ASSIGNMENT: Final = ((0, 1, AWAY), (1, 0, AWAY), (0, 1, AWAY))
#: The partition with an aborted value, and that with a committed one of a producer that expires.
ABORTED, STUCK = PARTITIONS[:2]
SHORT_MS: Final = 1_000
#: The cleaner works so long at most; where it may not remove markers it takes all of that.
CLEAN_US: Final = 45_000_000
FILL_EVERY_US: Final = 300_000
#: The time of a producer that writes no more; a day is Kafka's default, as it is of the retention.
EXPIRATION_MS: Final = 5_000
SETTINGS: Final = {
    "acks": "all",
    "min.insync.replicas": 2,
    "enable.idempotence": True,
    "request.timeout.ms": 10_000,
    "delivery.timeout.ms": 30_000,
    "transaction.timeout.ms": 90_000,
    "cleanup.policy": "compact",
    "segment.ms": 1_000,
    "min.cleanable.dirty.ratio": 0.01,
    # A machine that stands still for seconds must not move leaders.
    "broker.session.timeout.ms": 6_000,
    "broker.heartbeat.interval.ms": 1_000,
    "replica.lag.time.max.ms": 6_000,
}


class Trial(NamedTuple):
    """One way to play: the release, the client, and what an operator may have chosen."""

    version: str = DEFAULT_VERSION
    client: ClientName = "confluent-kafka"
    retention_ms: int = SHORT_MS
    lag_ms: int = 0
    wiped: bool = False


class State(NamedTuple):
    """The commits of a group and of a deleted group, the last value by key of both partitions, and the ends of one.

    ``ends`` are the last stable offset and the high watermark of the partition whose producer expires.
    """

    group: dict[str, int]
    deleted: dict[str, int]
    aborted: dict[str, str]
    stuck: dict[str, str]
    ends: tuple[int, int]


class Played(NamedTuple):
    """True if the markers and tombstones were cleaned, and the state before and after broker 2 was elected."""

    cleaned: bool
    before: State
    after: State


class Away(Script):
    """The transactions and groups of this finding."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, cluster.world.clients)
        self._names: dict[int, str] = {}
        self._offsets = serving(OFFSETS_TOPIC, "group-0")
        names = (f"group-{number}" for number in range(100))
        same = (name for name in names if serving(OFFSETS_TOPIC, name) == self._offsets)
        self._group, self._deleted, self._filler = (next(same) for _ in range(3))
        self._servers = tuple(cluster.world.clients.bootstrap)
        self._plain = self.clients.producer(cluster.next_process())
        self._fillings = 0

    def play(self, wiped: bool) -> Played:
        """The whole script; ``wiped``: the broker comes back with an empty disk."""
        processes = require(self.cluster.target.processes)
        with closing(Administration(self._running)) as operator:
            self._operator = operator
            self.commit(self._group, {ABORTED: 1, STUCK: 1})
            self.commit(self._deleted, {ABORTED: 5})
            self.until(self._well)
            with self._open_transactions():
                processes.stop(AWAY)
                self.until(lambda: all(AWAY not in view.isr and view.leader is not None for view in self._views()))
            self._end_the_rest()
            cleaned = self._clean()
            if wiped:
                self.until(lambda: bool(require(self.cluster.target.files).wipe(AWAY)))
            processes.restart(AWAY)
            self.until(self._well)
            before = self._state()
            self.until(self._elect)
            return Played(cleaned, before, self._state())

    @contextmanager
    def _open_transactions(self) -> Iterator[None]:
        """Two transactions are open; afterwards the first is aborted, and the second committed."""
        first, aborted = self.transactional("aborted")
        second, committed = self.transactional("committed")
        self.done(aborted.begin)
        self._send(first, ABORTED, k="committed")
        self.done(aborted.commit)
        self.done(aborted.begin)
        self._send(first, ABORTED, k="ABORTED")
        self._send_offsets(aborted, {ABORTED: 3})
        self.done(committed.begin)
        self._send(second, STUCK, k="committed")
        yield
        self.done(aborted.abort)
        self.done(committed.commit)
        first.close()
        second.close()

    def _end_the_rest(self) -> None:
        """The first transactional id goes on, a plain record follows the second, and a group is deleted."""
        producer, calls = self.transactional("aborted")
        self.done(calls.begin)
        self._send(producer, ABORTED, j="committed")
        self._send_offsets(calls, {STUCK: 2})
        self.done(calls.commit)
        producer.close()
        self._send(self._plain, STUCK, k="plain")
        with closing(KafkaAdminClient(bootstrap_servers=self._running())) as admin:
            answer = admin.delete_groups([self._deleted])
        assert answer == {self._deleted: "OK"}, answer

    def _clean(self) -> bool:
        """Write until the leaders' logs are clean of markers and tombstones, or the time is over; True if they are."""
        deadline_us = self.cluster.world.clock.now_us() + CLEAN_US
        while not (clean := self._is_clean()) and self.cluster.world.clock.now_us() < deadline_us:
            self._fillings += 1
            self.commit(self._filler, {ABORTED: self._fillings})
            for partition in (ABORTED, STUCK):
                self._send(self._plain, partition, filler=str(self._fillings))
            self.let_pass(FILL_EVERY_US)
        return clean

    def _elect(self) -> bool:
        """Ask that broker 2 leads where it does not; True if it does everywhere."""
        others = {partition: view for partition, view in self._view().items() if view.leader != AWAY}
        for partition, view in others.items():
            self._operator.move_leader(partition, AWAY, view.replicas)
        return not others

    def _is_clean(self) -> bool:
        views = self._view()

        def gone(partition: str, *kinds: str) -> bool:
            leader = views[partition].leader
            records = None if leader is None else stored(self.cluster.directory, leader, partition)
            return records is not None and not {record.kind for record in records} & set(kinds)

        return gone(ABORTED, "abort") and gone(STUCK, "commit") and gone(self._offsets, "abort", "tombstone")

    # --- what is asked -----------------------------------------------------------------------------------------------

    def _state(self) -> State:
        tables: dict[str, dict[str, str]] = {ABORTED: {}, STUCK: {}}
        for partition, key, value in self.read(tables):
            if key != b"filler":
                tables[partition][key.decode()] = self._names[value]
        group, deleted = (self.committed(name, (ABORTED, STUCK)) for name in (self._group, self._deleted))
        ends = (self.end(STUCK, "read_committed"), self.end(STUCK, "read_uncommitted"))
        return State(group, deleted, tables[ABORTED], tables[STUCK], ends)

    def _running(self) -> list[str]:
        return [self._servers[broker] for broker in self.cluster.target.view().running]

    def _view(self) -> dict[str, PartitionView]:
        """The partitions that matter, by name."""
        image = self._operator.topic(OFFSETS_TOPIC)
        offsets = {} if image is None else {self._offsets: image.partitions[self._offsets]}
        mine = self.cluster.target.view().partitions
        return {ABORTED: mine[ABORTED], STUCK: mine[STUCK], **offsets}

    def _views(self) -> Collection[PartitionView]:
        return self._view().values()

    def _well(self) -> bool:
        return self.cluster.is_well() and all(set(view.isr) == set(view.replicas) for view in self._views())

    def _send(self, producer: Producer, partition: str, **names: str) -> None:
        """Send a record with each key, under a name."""
        numbers = self.send(producer, [(partition, key.encode()) for key in names])
        self._names |= zip(numbers, names.values(), strict=True)

    def _send_offsets(self, calls: Transactions, offsets: Mapping[str, int]) -> None:
        consumer = self.clients.consumer(self.cluster.next_process(), Membership(self._group))
        assert consumer.commits is not None
        token: MemberToken = self.ask(consumer.commits.ask_member)
        self.done(lambda done: calls.send_offsets(offsets, token, done))
        consumer.close()


def played(trial: Trial, directory: Path) -> Played:
    """Play it on a new cluster."""
    compaction = {"delete.retention.ms": trial.retention_ms, "min.compaction.lag.ms": trial.lag_ms}
    # __consumer_offsets has the brokers' values.
    of_brokers = {
        "log.roll.ms": SETTINGS["segment.ms"],
        "log.cleaner.min.cleanable.ratio": SETTINGS["min.cleanable.dirty.ratio"],
        "log.cleaner.delete.retention.ms": trial.retention_ms,
        "log.cleaner.min.compaction.lag.ms": trial.lag_ms,
        "producer.id.expiration.ms": EXPIRATION_MS,
        "producer.id.expiration.check.interval.ms": SHORT_MS,
    }
    planned = Kafka(version=trial.version, client=trial.client)
    world = tuned_world(planned, directory, SETTINGS | compaction | rules_of(trial.version), of_brokers, ASSIGNMENT)
    try:
        world.open()
        return Away(Cluster(world, directory)).play(trial.wiped)
    finally:
        world.close()


def main() -> None:
    """Play it, and say what there is before and after the election."""
    usual = Trial()
    parser = script_options(__doc__, version=usual.version, client=usual.client)
    parser.add_argument("--retention-ms", type=int, default=usual.retention_ms, help="delete.retention.ms")
    parser.add_argument("--lag-ms", type=int, default=usual.lag_ms, help="min.compaction.lag.ms")
    parser.add_argument("--wiped", action="store_true", help="broker 2 comes back with an empty disk")
    with tempfile.TemporaryDirectory() as directory:
        seen = played(Trial(**vars(parser.parse_args())), Path(directory))
    sys.stdout.write(f"markers and tombstones were {'' if seen.cleaned else 'not '}cleaned\n")
    for name, before, after in zip(State._fields, seen.before, seen.after, strict=True):
        sys.stdout.write(f"{name:8} {before} {'' if before == after else f'-> {after}'}\n")
    sys.exit(seen.before != seen.after)


if __name__ == "__main__":
    main()
