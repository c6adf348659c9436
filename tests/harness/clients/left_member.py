"""A member that was given up and commits in a transaction all the same: the script of finding 014.

A member reads records and processes them for longer than max.poll.interval.ms, so its library leaves the group. Another
member reads the same records, and commits them in a transaction. Then the first one goes on: it writes its effect,
hands over the offsets with what its library says of its membership, and commits. The coordinator must refuse that
(KIP-447). As a program it says what was committed; the exit code is 1 where both effects were:

    python -m tests.harness.clients.left_member --version 4.3.1 --client java
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from harness.plan import Kafka
from harness.plan.worlds import ClientName
from harness.worlds.kafka import client_library, kafka_world
from tests.harness.clients.script import Script, rules_of, script_options
from tests.harness.clients.unstable_start import SETTINGS, configured
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster, spec
from workloads.client import Consumer, Membership, MemberToken, PollOutcome, SendOutcome
from workloads.operations import EventType

INPUT, OUTPUT, *_ = PARTITIONS
RECORDS: Final = 10
POLL_MS: Final = 100
#: A member that has not polled for so long leaves its group.
POLL_INTERVAL_MS: Final = 6_000
#: librdkafka makes no consumer whose session is longer.
OF_CONSUMERS: Final = {"max.poll.interval.ms": POLL_INTERVAL_MS, "session.timeout.ms": POLL_INTERVAL_MS}
#: The library has seen by then that it is out of the group.
LEFT_US: Final = 3_000_000
CLOSE_S: Final = 10


class Seen(NamedTuple):
    """The result of a try.

    Attributes:
        refused: the first error of the member that was given up; "" where it committed.
        effects: committed effects of the same records.
        committed: the group's offset in the end.
    """

    refused: str
    effects: int
    committed: int


class Member:
    """A member that polls until it has read all records, and not any more."""

    def __init__(self, script: LeftMember, group: Membership) -> None:
        self.read = 0
        self.consumer: Consumer = script.clients.consumer(script.cluster.next_process(), group, "read_committed")
        assert self.consumer.subscription is not None
        self.consumer.subscription.subscribe(["ackproof"], lambda _: None)
        self.poll()

    def poll(self) -> None:
        """Ask for records until all were read."""
        if self.read < RECORDS:
            self.consumer.poll(POLL_MS, self._polled)

    def _polled(self, outcome: PollOutcome) -> None:
        self.read = max([self.read, *(record.offset + 1 for record in outcome.records if record.partition == INPUT)])
        self.poll()


class LeftMember(Script):
    """The script, on one cluster, with one library."""

    def play(self, membership: Membership) -> Seen:
        """Let a second member take over while the first one processes for too long, and the first one go on."""
        before = len(self.read([OUTPUT]))
        producer = self.clients.producer(self.cluster.next_process())
        self.send(producer, [(INPUT, b"key")] * RECORDS)
        slow = Member(self, membership)
        self.until(lambda: slow.read == RECORDS)
        successor = Member(self, membership)
        self.until(lambda: successor.read == RECORDS)
        assert not self.commit_effect("successor", successor)
        self.let_pass(LEFT_US)
        refused = self.commit_effect("slow", slow)
        offsets = self.committed(membership.group, [INPUT])
        effects = len(self.read([OUTPUT])) - before
        for client in (producer, slow.consumer, successor.consumer):
            client.close()
        return Seen(refused, effects, offsets[INPUT])

    def commit_effect(self, transactional_id: str, member: Member) -> str:
        """Write an effect, and commit it with the member's offset; the error that ended it, "" where none did."""
        producer, calls = self.transactional(transactional_id)
        self.done(calls.begin)
        self.send(producer, [(OUTPUT, b"key")])
        assert member.consumer.commits is not None
        token: MemberToken = self.ask(member.consumer.commits.ask_member)
        steps = (partial(calls.send_offsets, {INPUT: member.read}, token), calls.commit)
        try:
            for step in steps:
                outcome: SendOutcome = self.ask(step)
                if outcome.type is not EventType.OK:
                    self.ask(calls.abort)
                    return outcome.error or str(outcome.type)
            return ""
        finally:
            producer.close()


def played(client: ClientName, directory: Path, *, version: str) -> Seen:
    """Play it on a new cluster of this release."""
    with ExitStack() as ending:
        world = kafka_world(spec(SETTINGS | rules_of(version), world=Kafka(version=version)), directory)
        ending.callback(world.close)
        world.open()
        library = client_library(Kafka(version=version, client=client), directory, ending)
        cluster = Cluster(world, directory)
        clients = cluster.clients(configured(library, OF_CONSUMERS))
        ending.callback(clients.close, CLOSE_S)
        return LeftMember(cluster, clients).play(Membership("group", session_timeout_ms=POLL_INTERVAL_MS))


def main() -> None:
    """Play it, and say what was committed."""
    parser = script_options(__doc__, client="kafka-python")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        seen = played(chosen.client, Path(directory), version=chosen.version)
    sys.stdout.write(
        f"the member that was given up: {seen.refused or 'committed'}; "
        f"{seen.effects} effects of the same records; the group is at {seen.committed}\n"
    )
    sys.exit(seen.effects > 1)


if __name__ == "__main__":
    main()
