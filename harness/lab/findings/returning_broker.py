"""Finding 006: a broker that was away while transactions ended and a group was deleted, and is elected.

The user's topic is compacted, as ``__consumer_offsets`` is. Broker 2 is stopped in order; meanwhile a transaction is
aborted, another one is committed, and a group is deleted; the cleaner removes their markers and tombstones, and then
broker 2 is started again, is in sync, and is elected. Readers and groups are asked before and after that election.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Final, NamedTuple

from kafka import KafkaAdminClient

from harness.broker.core.types import OFFSETS_TOPIC
from harness.lab.findings.internal_topics import serving, stored
from harness.lab.findings.planned_runs import play_plan
from harness.lab.findings.playable import PlayableFinding, Played, Way, expects_defect, expects_nothing
from harness.lab.findings.script import Script, commits_of
from harness.lab.findings.stage import LIMIT_US, PARTITIONS, FindingStage, NotObservedError, OpenCluster
from harness.worlds.kafka.administration import Administration
from nemesis.cluster import PartitionView, require
from workloads import Clients, Membership, MemberToken, Producer, Transactions

AWAY: Final = 2
#: Broker 2 is no leader before it is away.
ASSIGNMENT: Final = ((0, 1, AWAY), (1, 0, AWAY), (0, 1, AWAY))
#: The partition with an aborted value, and that with a committed one of a producer that expires.
ABORTED, STUCK = PARTITIONS[:2]
SHORT_MS: Final = 1_000
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
_OF_KEYS: Final = {"delete.retention.ms": SHORT_MS}
#: The time of a cleaner that may not remove markers; it takes all of that.
_NOT_CLEANED_US: Final = 45_000_000
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


class AwayState(NamedTuple):
    """The commits of a group and of a deleted group, the last value by key of both partitions, and the ends of one.

    ``ends`` are the last stable offset and the high watermark of the partition whose producer expires.
    """

    group: dict[str, int]
    deleted: dict[str, int]
    aborted: dict[str, str]
    stuck: dict[str, str]
    ends: tuple[int, int]


#: Each part of a state in words.
_WORDS: Final = {
    "group": "the group has committed",
    "deleted": "the deleted group has committed",
    "aborted": f"read in {ABORTED}, where a value was aborted",
    "stuck": f"read in {STUCK}, where a value was committed",
    "ends": f"last stable offset and high watermark of {STUCK}",
}


class AwaySeen(NamedTuple):
    """True if the markers and tombstones were cleaned, and the state before and after broker 2 was elected."""

    cleaned: bool
    before: AwayState
    after: AwayState


class ReturningBroker(Script):
    """The transactions and groups of this finding."""

    def __init__(self, cluster: OpenCluster, clients: Clients) -> None:
        super().__init__(cluster, clients)
        self._names: dict[int, str] = {}
        self._offsets = serving(OFFSETS_TOPIC, "group-0")
        names = (f"group-{number}" for number in range(100))
        same = (name for name in names if serving(OFFSETS_TOPIC, name) == self._offsets)
        self._group, self._deleted, self._filler = (next(same) for _ in range(3))
        self._servers = tuple(cluster.world.clients.bootstrap)
        self._plain = self.clients.producer(cluster.next_process())
        self._fillings = 0

    def play(self, clean_us: int, *, wiped: bool) -> AwaySeen:
        """The whole script; cleaners have ``clean_us``. ``wiped``: the broker comes back with an empty disk."""
        processes = require(self.cluster.target.processes)
        with closing(Administration(self._running)) as operator:
            self._operator = operator
            self.commit(self._group, {ABORTED: 1, STUCK: 1})
            self.commit(self._deleted, {ABORTED: 5})
            self._wait_until_well()
            with self._open_transactions():
                processes.stop(AWAY)
                self.wait("broker 2 is away", self._is_away)
            self._end_the_rest()
            cleaned = self._clean(clean_us)
            if wiped:
                files = require(self.cluster.target.files)
                self.wait("the disk of broker 2 is empty", lambda: bool(files.wipe(AWAY)))
            processes.restart(AWAY)
            self._wait_until_well()
            before = self._state()
            self.wait("broker 2 is elected", self._elect)
            return AwaySeen(cleaned, before, self._state())

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
        if answer != {self._deleted: "OK"}:
            raise NotObservedError(f"the group could not be deleted: {answer}")

    def _clean(self, limit_us: int) -> bool:
        """Write until the leaders' logs are clean of markers and tombstones, or the time is over; True if they are."""
        self.cluster.does("writing until markers and tombstones are cleaned")
        deadline_us = self.cluster.world.clock.now_us() + limit_us
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

    def _state(self) -> AwayState:
        tables: dict[str, dict[str, str]] = {ABORTED: {}, STUCK: {}}
        for partition, key, value in self.read(tables):
            if key != b"filler":
                tables[partition][key.decode()] = self._names[value]
        group, deleted = (self.committed(name, (ABORTED, STUCK)) for name in (self._group, self._deleted))
        ends = (self.end(STUCK, "read_committed"), self.end(STUCK, "read_uncommitted"))
        return AwayState(group, deleted, tables[ABORTED], tables[STUCK], ends)

    def _running(self) -> list[str]:
        return [self._servers[broker] for broker in self.cluster.target.view().running]

    def _view(self) -> dict[str, PartitionView]:
        """The partitions that matter, by name."""
        image = self._operator.topic(OFFSETS_TOPIC)
        offsets = {} if image is None else {self._offsets: image.partitions[self._offsets]}
        mine = self.cluster.target.view().partitions
        return {ABORTED: mine[ABORTED], STUCK: mine[STUCK], **offsets}

    def _is_away(self) -> bool:
        return all(AWAY not in view.isr and view.leader is not None for view in self._view().values())

    def _wait_until_well(self) -> None:
        self.wait(
            "all brokers run and are in sync",
            lambda: (
                self.cluster.is_well() and all(set(view.isr) == set(view.replicas) for view in self._view().values())
            ),
        )

    def _send(self, producer: Producer, partition: str, **names: str) -> None:
        """Send a record with each key, under a name."""
        numbers = self.send(producer, [(partition, key.encode()) for key in names])
        self._names |= zip(numbers, names.values(), strict=True)

    def _send_offsets(self, calls: Transactions, offsets: Mapping[str, int]) -> None:
        consumer = self.clients.consumer(self.cluster.next_process(), Membership(self._group))
        token: MemberToken = self.ask(commits_of(consumer).ask_member)
        self.done(lambda done: calls.send_offsets(offsets, token, done))
        consumer.close()


def play(stage: FindingStage, *, retention_ms: int = SHORT_MS, lag_ms: int = 0, wiped: bool = False) -> Played:
    """Play it on a new cluster: what is read and committed before and after the election."""
    compaction = {"delete.retention.ms": retention_ms, "min.compaction.lag.ms": lag_ms}
    # __consumer_offsets has the brokers' values.
    of_brokers = {
        "log.roll.ms": SETTINGS["segment.ms"],
        "log.cleaner.min.cleanable.ratio": SETTINGS["min.cleanable.dirty.ratio"],
        "log.cleaner.delete.retention.ms": retention_ms,
        "log.cleaner.min.compaction.lag.ms": lag_ms,
        "producer.id.expiration.ms": EXPIRATION_MS,
        "producer.id.expiration.check.interval.ms": SHORT_MS,
    }
    with ExitStack() as resources:
        library = stage.library(resources)
        cluster = resources.enter_context(stage.kafka(SETTINGS | compaction, of_brokers, assignment=ASSIGNMENT))
        clients = resources.enter_context(cluster.clients_until_closed(library))
        # Where markers and tombstones have to stay, it is right that they are not cleaned.
        cleans = (retention_ms, lag_ms) == (SHORT_MS, 0)
        seen = ReturningBroker(cluster, clients).play(LIMIT_US if cleans else _NOT_CLEANED_US, wiped=wiped)
    if cleans and not seen.cleaned:
        raise NotObservedError("the cleaner did not remove the markers and tombstones in time")
    return played(seen)


def played(seen: AwaySeen) -> Played:
    """It shows where the election changed what is read or committed."""
    facts = [f"markers and tombstones were {'' if seen.cleaned else 'not '}cleaned before broker 2 returned"]
    for name, words in _WORDS.items():
        before, after = (getattr(state, name) for state in (seen.before, seen.after))
        change = "the same after the election" if before == after else f"after the election {_spelled(after)}"
        facts.append(f"{words}: {_spelled(before)}; {change}")
    return Played.of(facts, shown=seen.before != seen.after)


def _spelled(value: Mapping[str, object] | tuple[int, int]) -> str:
    if isinstance(value, tuple):
        return f"{value[0]} and {value[1]}"
    return ", ".join(f"{name}: {each}" for name, each in value.items()) or "nothing"


FINDING: Final = PlayableFinding(
    "006",
    {
        "transactions": Way("a transaction and a group end meanwhile", play, expects_defect("finding-006-groups")),
        "keys": Way(
            "keys are deleted meanwhile: a run of plans/keyed.toml",
            partial(play_plan, name="keyed", anomalies=("returned-key",), settings=_OF_KEYS, family="away"),
            expects_defect("finding-006"),
            ("confluent-kafka",),
        ),
        "wiped": Way("the broker returns with an empty disk", partial(play, wiped=True), expects_nothing),
        "day": Way("delete.retention.ms is a day, the default", partial(play, retention_ms=DAY_MS), expects_nothing),
        "lag": Way("min.compaction.lag.ms is an hour", partial(play, lag_ms=HOUR_MS), expects_nothing),
    },
    clients=("confluent-kafka", "java"),
    minutes=2,
)
