"""Members of a group whose start is not known while a transaction with its offsets is open: the script of finding 010.

The group has committed offset 10 of every partition; a transaction that commits 15 is open. One member joins and asks
where to begin: the answer waits for the transaction. A second member joins meanwhile, so that partitions are dealt out
again. Then both should still wait, and begin at 15 once the transaction is committed. As a program it says where each
partition was begun:

    python -m tests.harness.clients.unstable_start --version 4.3.1 --client confluent-kafka --reset latest
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from harness.clients import ClientLibrary
from harness.plan import Kafka
from harness.plan.worlds import ClientName
from harness.worlds.kafka import client_library, kafka_world
from tests.harness.clients.script import Script, rules_of, script_options
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster, spec
from workloads.client import Consumer, Membership, MemberToken, PollOutcome, Producer
from workloads.errors import CLIENT_CLOSED
from workloads.settings import GroupProtocol

#: Records before anybody joins; what the group has committed; what the open transaction commits.
WRITTEN, COMMITTED, PENDING = 20, 10, 15
#: Records after the end of the transaction, so that each partition is read.
MORE: Final = 3
#: A member asks again where to begin, and a second one may have joined, within this time.
WAIT_US: Final = 6_000_000
READ_US: Final = 30_000_000
POLL_MS: Final = 100
CLOSE_S: Final = 10
#: One copy is enough: no broker dies.
SETTINGS: Final = {
    "enable.idempotence": True,
    "replication.factor": 1,
    "request.timeout.ms": 10_000,
    "delivery.timeout.ms": 30_000,
    "transaction.timeout.ms": 120_000,
}
SESSION_MS: Final = 20_000

#: The assignor that takes away only what another member gets.
ASSIGNORS: Final[Mapping[ClientName, Mapping[str, object]]] = {
    "confluent-kafka": {"partition.assignment.strategy": "cooperative-sticky"},
    "java": {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
}

#: With "error", librdkafka reports what it would do.
Reset = Literal["earliest", "latest", "error"]
Groups = Literal["classic", "cooperative", "consumer"]


class Seen(NamedTuple):
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


class Member:
    """A member that polls, and remembers the first record that it read of each partition of its assignment."""

    def __init__(self, script: UnstableStart, group: Membership) -> None:
        self.first: dict[str, int] = {}
        self.assigned: list[tuple[str, ...]] = []
        self.consumer: Consumer = script.clients.consumer(script.cluster.next_process(), group, "read_committed")
        assert self.consumer.subscription is not None
        self.consumer.subscription.subscribe(["ackproof"], lambda each: self.assigned.append(each.partitions))
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

    def play(self, membership: Membership) -> Seen:
        """Have a second member join while the first one waits for the end of a transaction."""
        for partition in PARTITIONS:
            self.write(partition, WRITTEN)
        producer, calls = self.transactional(f"of-{membership.group}")
        outsider = self.clients.consumer(self.cluster.next_process(), membership)
        assert outsider.commits is not None
        token: MemberToken = self.ask(outsider.commits.ask_member)
        self.done(calls.begin)
        self.done(partial(calls.send_offsets, dict.fromkeys(PARTITIONS, COMMITTED), token))
        self.done(calls.commit)
        self.done(calls.begin)
        self.done(partial(calls.send_offsets, dict.fromkeys(PARTITIONS, PENDING), token))
        member = Member(self, membership)
        self.until(lambda: len(member.held) == len(PARTITIONS))
        self.let_pass(WAIT_US)
        other = Member(self, membership)
        self.until(lambda: bool(other.held))
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
        return Seen(early, member.first | other.first, committed, again)

    def _go_on(self, member: Member, group: str) -> dict[str, int]:
        """Commit that the member has done the first record that it read of each partition."""
        producer, calls = self.transactional(f"again-{group}")
        assert member.consumer.commits is not None
        self.done(calls.begin)
        token: MemberToken = self.ask(member.consumer.commits.ask_member)
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


def played(
    client: ClientName,
    directory: Path,
    tries: int,
    *,
    version: str,
    reset: Reset = "earliest",
    groups: Groups = "classic",
) -> list[Seen]:
    """Play it several times on a new cluster of this release."""
    with ExitStack() as ending:
        world = kafka_world(spec(SETTINGS | rules_of(version), world=Kafka(version=version)), directory)
        ending.callback(world.close)
        world.open()
        library = client_library(Kafka(version=version, client=client), directory, ending)
        more = ASSIGNORS[client] if groups == "cooperative" else {}
        cluster = Cluster(world, directory)
        clients = cluster.clients(configured(library, {"auto.offset.reset": reset, **more}))
        ending.callback(clients.close, CLOSE_S)
        script = UnstableStart(cluster, clients)
        protocol: GroupProtocol = "consumer" if groups == "consumer" else "classic"
        return [
            script.play(Membership(f"group-{number}", protocol=protocol, session_timeout_ms=SESSION_MS))
            for number in range(tries)
        ]


def configured(library: ClientLibrary, properties: Mapping[str, object]) -> ClientLibrary:
    """The library with other properties of its consumers, under Kafka's names."""

    def consumer_configuration(*of: Any) -> dict[str, object]:
        chosen = library.consumer_configuration(*of)
        kafkas = "auto.offset.reset" in chosen
        return chosen | {name if kafkas else name.replace(".", "_"): value for name, value in properties.items()}

    return replace(library, consumer_configuration=consumer_configuration)


def main() -> None:
    """Play it, and say where partitions were begun; the exit code is 1 where that is not what was committed."""
    parser = script_options(__doc__, client="confluent-kafka")
    parser.add_argument("--reset", default="earliest", choices=get_args(Reset), help="auto.offset.reset")
    parser.add_argument("--groups", default="classic", choices=get_args(Groups), help="how partitions are dealt out")
    parser.add_argument("--tries", default=1, type=int)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        tries = played(
            chosen.client,
            Path(directory),
            chosen.tries,
            version=chosen.version,
            reset=chosen.reset,
            groups=chosen.groups,
        )
    for seen in tries:
        places = ", ".join(f"{seen.begun.get(name, 'nowhere')}{' early' * (name in seen.early)}" for name in PARTITIONS)
        sys.stdout.write(f"committed {COMMITTED}, then {sorted({*seen.committed.values()})}; begun at {places}")
        went_back = seen.again != seen.committed
        sys.stdout.write(f"; then the group is at {sorted(seen.again.values())}\n" if went_back else "\n")
    sys.exit(any(seen.begun != seen.committed for seen in tries))


if __name__ == "__main__":
    main()
