"""Finding 014: a member that was given up commits in a transaction all the same.

A member reads records and processes them for longer than max.poll.interval.ms, so its library leaves the group. Another
member reads the same records, and commits them in a transaction. Then the first one goes on: it writes its effect,
hands over the offsets with what its library says of its membership, and commits. The coordinator must refuse that
(KIP-447).
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Final, NamedTuple

from harness.lab.findings.playable import PlayableFinding, Played, Way
from harness.lab.findings.script import Script, commits_of, subscribe
from harness.lab.findings.stage import PARTITIONS, FindingStage, NotObservedError
from harness.lab.findings.unstable_start import SETTINGS
from workloads import Consumer, EventType, Membership, MemberToken, PollOutcome, SendOutcome

INPUT, OUTPUT, *_ = PARTITIONS
RECORDS: Final = 10
POLL_MS: Final = 100
#: A member that has not polled for so long leaves its group.
POLL_INTERVAL_MS: Final = 6_000
#: The library has seen by then that it is out of the group.
LEFT_US: Final = 3_000_000


class LeftSeen(NamedTuple):
    """The result of a try.

    Attributes:
        refused: the first error of the member that was given up; "" where it committed.
        effects: committed effects of the same records.
        committed: the group's offset in the end.
    """

    refused: str
    effects: int
    committed: int


class SlowMember:
    """A member that polls until it has read all records, and not any more."""

    def __init__(self, script: LeftMember, group: Membership) -> None:
        self.read = 0
        self.consumer: Consumer = script.clients.consumer(script.cluster.next_process(), group, "read_committed")
        subscribe(self.consumer, lambda _: None)
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

    def play(self, membership: Membership) -> LeftSeen:
        """Let a second member take over while the first one processes for too long, and the first one go on."""
        before = len(self.read([OUTPUT]))
        producer = self.clients.producer(self.cluster.next_process())
        self.send(producer, [(INPUT, b"key")] * RECORDS)
        slow = SlowMember(self, membership)
        self.wait("the first member has read all records", lambda: slow.read == RECORDS)
        successor = SlowMember(self, membership)
        self.wait("the second member has read all records", lambda: successor.read == RECORDS)
        if error := self.commit_effect("successor", successor):
            raise NotObservedError(f"the second member could not commit: {error}")
        self.let_pass(LEFT_US)
        refused = self.commit_effect("slow", slow)
        offsets = self.committed(membership.group, [INPUT])
        effects = len(self.read([OUTPUT])) - before
        for client in (producer, slow.consumer, successor.consumer):
            client.close()
        return LeftSeen(refused, effects, offsets[INPUT])

    def commit_effect(self, transactional_id: str, member: SlowMember) -> str:
        """Write an effect, and commit it with the member's offset; the error that ended it, "" where none did."""
        producer, calls = self.transactional(transactional_id)
        self.done(calls.begin)
        self.send(producer, [(OUTPUT, b"key")])
        token: MemberToken = self.ask(commits_of(member.consumer).ask_member)
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


def play(stage: FindingStage) -> Played:
    """Play it on a new cluster."""
    with ExitStack() as resources:
        library = stage.library(resources)
        cluster = resources.enter_context(stage.kafka(SETTINGS))
        clients = resources.enter_context(cluster.clients_until_closed(library))
        # The session is the time between polls, too.
        seen = LeftMember(cluster, clients).play(Membership("group", session_timeout_ms=POLL_INTERVAL_MS))
    return played(seen)


def played(seen: LeftSeen) -> Played:
    """It shows where the same records have two effects."""
    ended = f"was refused: {seen.refused}" if seen.refused else "committed its effect and the offset too"
    return Played.of(
        [
            f"a second member committed its effect of {RECORDS} records, and their offset",
            f"the first one, which the group had given up, {ended}",
            f"committed effects of the same records: {seen.effects}; the group has committed {seen.committed}",
        ],
        shown=seen.effects > 1,
    )


FINDING: Final = PlayableFinding(
    "014",
    {"left": Way("a member processes for longer than max.poll.interval.ms", play)},
    clients=("kafka-python", "java", "confluent-kafka"),
)
