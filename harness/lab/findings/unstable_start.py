"""Finding 010: members of a group whose start is not known while a transaction with its offsets is open.

The group has committed offset 10 of every partition; a transaction that commits 15 is open. One member joins and asks
where to begin: the answer waits for the transaction. A second member joins meanwhile, so that partitions are dealt out
again. Then both should still wait, and begin at 15 once the transaction is committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import msgspec

from harness.lab.findings.playable import PlayableFinding, Played, Way
from harness.lab.findings.script import Script, commits_of, subscribe
from harness.lab.findings.stage import PARTITIONS, FindingStage, NotObservedError
from harness.plan import ClientName
from harness.worlds.clients import ClientLibrary
from workloads import CLIENT_CLOSED, Consumer, Membership, MemberToken, PollOutcome, Producer

#: Records before a member joins; what the group has committed; what the open transaction commits.
WRITTEN, COMMITTED, PENDING = 20, 10, 15
#: Records after the end of the transaction, so that each partition is read.
MORE: Final = 3
#: A member asks again where to begin, and a second one may have joined, within this time.
WAIT_US: Final = 6_000_000
READ_US: Final = 30_000_000
POLL_MS: Final = 100
#: One copy is enough: no broker dies.
SETTINGS: Final = {
    "enable.idempotence": True,
    "replication.factor": 1,
    "request.timeout.ms": 10_000,
    "delivery.timeout.ms": 30_000,
    "transaction.timeout.ms": 120_000,
}
SESSION_MS: Final = 20_000
#: The request that is out when partitions are dealt out again misses the new assignment now and then.
TRIES: Final = 3

#: The assignor that takes away only what another member gets.
COOPERATIVE: Final[Mapping[ClientName, Mapping[str, object]]] = {
    "confluent-kafka": {"partition.assignment.strategy": "cooperative-sticky"},
    "java": {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
}


class StartSeen(NamedTuple):
    """The result of a try.

    Attributes:
        early: where partitions were begun while the transaction was open.
        begun: where they had been begun by the end.
        committed: what the group had committed with the transaction.
        again: what it has committed after a member went on from where it began early, in a transaction.
    """

    early: dict[str, int]
    begun: dict[str, int]
    committed: dict[str, int]
    again: dict[str, int]

    @property
    def elsewhere(self) -> list[str]:
        """The partitions that were begun elsewhere than at what the group had committed."""
        return [name for name, offset in self.begun.items() if offset != self.committed.get(name)]


class StartingMember:
    """A member that polls, and remembers the first record that it read of each partition of its assignment."""

    def __init__(self, script: UnstableStart, group: Membership) -> None:
        self.first: dict[str, int] = {}
        self.assigned: list[tuple[str, ...]] = []
        self.consumer: Consumer = script.clients.consumer(script.cluster.next_process(), group, "read_committed")
        subscribe(self.consumer, lambda each: self.assigned.append(each.partitions))
        self._poll()

    @property
    def held(self) -> tuple[str, ...]:
        """The partitions that it was dealt last."""
        return self.assigned[-1] if self.assigned else ()

    def _poll(self) -> None:
        self.consumer.poll(POLL_MS, self._polled)

    def _polled(self, outcome: PollOutcome) -> None:
        for record in outcome.records:
            self.first.setdefault(record.partition, record.offset)
        if outcome.error != CLIENT_CLOSED:
            self._poll()


class UnstableStart(Script):
    """The script, on one cluster, with one library."""

    def play(self, membership: Membership) -> StartSeen:
        """Have a second member join while the first one waits for the end of a transaction."""
        for partition in PARTITIONS:
            self.write(partition, WRITTEN)
        producer, calls = self.transactional(f"of-{membership.group}")
        outsider = self.clients.consumer(self.cluster.next_process(), membership)
        token: MemberToken = self.ask(commits_of(outsider).ask_member)
        self.done(calls.begin)
        self.done(partial(calls.send_offsets, dict.fromkeys(PARTITIONS, COMMITTED), token))
        self.done(calls.commit)
        self.done(calls.begin)
        self.done(partial(calls.send_offsets, dict.fromkeys(PARTITIONS, PENDING), token))
        member = StartingMember(self, membership)
        self.wait("a member holds all partitions", lambda: len(member.held) == len(PARTITIONS))
        self.let_pass(WAIT_US)
        other = StartingMember(self, membership)
        self.wait("a second member holds a partition", lambda: bool(other.held))
        self.let_pass(WAIT_US)
        early = member.first | other.first
        self.done(calls.commit)
        committed = self.committed(membership.group, PARTITIONS, "read_committed")
        again = self._go_on(member, membership.group) if member.first.keys() & early.keys() else committed
        self.let_pass(WAIT_US)
        for partition in PARTITIONS:
            self.write(partition, MORE)
        self.cluster.until(lambda: len(member.first | other.first) == len(PARTITIONS), READ_US)
        for client in (producer, outsider, member.consumer, other.consumer):
            client.close()
        if len(member.first | other.first) < len(PARTITIONS):
            raise NotObservedError("members did not read every partition in time")
        return StartSeen(early, member.first | other.first, committed, again)

    def _go_on(self, member: StartingMember, group: str) -> dict[str, int]:
        """Commit that the member has done the first record that it read of each partition."""
        producer, calls = self.transactional(f"again-{group}")
        self.done(calls.begin)
        token: MemberToken = self.ask(commits_of(member.consumer).ask_member)
        done = {name: offset + 1 for name, offset in member.first.items()}
        self.done(partial(calls.send_offsets, done, token))
        self.done(calls.commit)
        producer.close()
        return self.committed(group, PARTITIONS, "read_committed")

    def write(self, partition: str, count: int) -> None:
        """Write records that are acknowledged."""
        self.send(self._writer, [(partition, b"key")] * count)

    @cached_property
    def _writer(self) -> Producer:
        return self.clients.producer(self.cluster.next_process())


def play(stage: FindingStage, membership: Membership, properties: Mapping[str, object] | None = None) -> Played:
    """Play it several times on a new cluster, with such members whose consumers have these properties."""
    with ExitStack() as resources:
        library = _with_consumers(stage.library(resources), properties or {})
        cluster = resources.enter_context(stage.kafka(SETTINGS))
        clients = resources.enter_context(cluster.clients_until_closed(library))
        script = UnstableStart(cluster, clients)
        tries: list[StartSeen] = []
        while len(tries) < TRIES and not any(each.elsewhere for each in tries):
            group = f"{membership.group}-{len(tries)}"
            tries.append(script.play(msgspec.structs.replace(membership, group=group)))
    return played(tries)


def play_cooperative(stage: FindingStage) -> Played:
    """The same with the assignor that takes away only what another member gets."""
    return play(stage, CLASSIC, COOPERATIVE[stage.client])


def _with_consumers(library: ClientLibrary, properties: Mapping[str, object]) -> ClientLibrary:
    """The library with other properties of its consumers."""

    def configuration(*of: Any) -> dict[str, object]:
        return library.consumer_configuration(*of) | dict(properties)

    return replace(library, consumer_configuration=configuration)


def played(tries: Sequence[StartSeen]) -> Played:
    """It shows where a member began elsewhere than at what the group had committed."""
    facts = [f"each partition has {WRITTEN} records; the group committed {COMMITTED}, and {PENDING} in a transaction"]
    for number, seen in enumerate(tries, 1):
        begun = ", ".join(
            f"{seen.begun[name]}{' before the transaction ended' * (name in seen.early)}" for name in PARTITIONS
        )
        facts.append(f"try {number}: partitions were begun at {begun}; the group is at {_offsets(seen.committed)}")
        if seen.again != seen.committed:
            facts.append(
                f"try {number}: a member committed what it had read; the group is at {_offsets(seen.again)} then"
            )
    return Played.of(facts, shown=any(seen.elsewhere for seen in tries))


def _offsets(committed: Mapping[str, int]) -> str:
    return ", ".join(str(committed.get(name, "nothing")) for name in PARTITIONS)


CLASSIC: Final = Membership("group", session_timeout_ms=SESSION_MS)
LATEST: Final = msgspec.structs.replace(CLASSIC, reset="latest")
#: Brokers deal partitions out (KIP-848).
BY_BROKERS: Final = msgspec.structs.replace(CLASSIC, protocol="consumer")
FINDING: Final = PlayableFinding(
    "010",
    {
        "earliest": Way("auto.offset.reset is earliest", partial(play, membership=CLASSIC)),
        "latest": Way("auto.offset.reset is latest, the default", partial(play, membership=LATEST)),
        "cooperative": Way(
            "the cooperative protocol deals partitions out", play_cooperative, clients=("confluent-kafka", "java")
        ),
        "consumer": Way(
            "group.protocol is consumer (KIP-848)", partial(play, membership=BY_BROKERS), clients=("confluent-kafka",)
        ),
    },
    clients=("confluent-kafka", "java", "kafka-python"),
    minutes=2,
)
