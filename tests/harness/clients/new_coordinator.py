"""A new coordinator of a group that tells an older offset than was acknowledged: the script of finding 015.

Broker 0 coordinates the group, and acknowledges a commit. At once another in-sync broker becomes the coordinator: an
operator moves the leader of the log partition with the offsets, or broker 0 is killed. The new coordinator is asked
what the group has committed, by requests of our own with and without KIP-447's flag for stable offsets, and by clients,
until all answers are right; and clients begin where it says. As a program it tells the answers of each round; the exit
code is 1 where one was too old:

    python -m tests.harness.clients.new_coordinator --version 4.3.1
    python -m tests.harness.clients.new_coordinator --way killed --rounds 5
    python -m tests.harness.clients.new_coordinator --rest 2
"""

from __future__ import annotations

import select
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal, NamedTuple, get_args

import confluent_kafka
import kafka
from typing_extensions import override

from harness.clients import DirectConnection
from harness.observations import BecameLeader
from harness.plan import Kafka
from harness.plan.worlds import ClientName
from harness.reference.core.types import OFFSETS_TOPIC
from harness.worlds.kafka.administration import Administration
from harness.worlds.kafka.log_events import LogTail
from nemesis.cluster import require
from tests.harness.clients.group_requests import ANSWER_S, commits, connected, offset_in, question
from tests.harness.clients.internal_topics import SAFE_SETTINGS, OperatedScript, tuned_world
from tests.harness.clients.script import rules_of, script_options
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads import LogPartition
from workloads.client import Consumer, Membership, Offsets, PollOutcome
from workloads.settings import IsolationLevel

#: The leader of the partition with the offsets is moved as planned, the same while the third broker hangs, or it is
#: killed.
Way = Literal["moved", "hung", "killed"]
GROUP: Final = "new"
FIRST, NEXT, THIRD = 0, 1, 2
ASSIGNMENT: Final = ((NEXT, THIRD, FIRST),) * len(PARTITIONS)
#: The one partition that serves every group.
SERVING: Final = f"{OFFSETS_TOPIC}-0"
OF_BROKERS: Final = {"offsets.topic.num.partitions": 1}
AGAIN_US: Final = 20_000
#: Until all have the right answer; a library may never begin (librdkafka #5586).
ASKED_S: Final = 20
#: By then each follower knows what is committed: its requests wait half a second at most (replica.fetch.wait.max.ms).
SETTLED_US: Final = 2_000_000
ISOLATIONS: Final = get_args(IsolationLevel)
#: Records of the partition; each round commits one more.
RECORDS: Final = 100
POLL_MS: Final = 50
#: The libraries whose consumers we can have begin at the group's offset without being members.
ASSIGNABLE: Final[Mapping[ClientName, Callable[[str, int], Any]]] = {
    "confluent-kafka": confluent_kafka.TopicPartition,
    "kafka-python": kafka.TopicPartition,
}

Answer = int | str


class Told(NamedTuple):
    """An offset or error that was answered, with the milliseconds since the commit, and how often in a row."""

    answer: Answer
    since_ms: int
    until_ms: int
    times: int


class Round(NamedTuple):
    """The answers to what the group has committed, after ``acknowledged``.

    Attributes:
        acknowledged: the offset that the former coordinator acknowledged.
        end: the end of the new coordinator's log when it was elected, and its high watermark.
        high_watermark: see ``end``.
        answers: by who asked, or began to read there.
    """

    acknowledged: int
    end: int
    high_watermark: int
    answers: dict[str, list[Told]]

    def too_old(self, asker: str) -> list[Told]:
        """The answers to this one that were older than what had been acknowledged."""
        return [
            told for told in self.answers[asker] if isinstance(told.answer, int) and told.answer < self.acknowledged
        ]


class Asker:
    """Collects the answers to a question that is asked again and again."""

    def __init__(self, acknowledged: int, since_s: float) -> None:
        self.told: list[Told] = []
        self._acknowledged, self._since_s = acknowledged, since_s

    @property
    def ended(self) -> bool:
        """True once the answer was right."""
        return bool(self.told) and self.told[-1].answer == self._acknowledged

    def go_on(self) -> None:
        """Ask, if this does not ask by itself."""

    def hear(self, answer: Answer) -> None:
        """Keep an answer."""
        ms = round((time.monotonic() - self._since_s) * 1_000)
        if self.told and self.told[-1].answer == answer:
            last = self.told[-1]
            self.told[-1] = last._replace(until_ms=ms, times=last.times + 1)
        else:
            self.told.append(Told(answer, ms, ms, 1))


class OwnAsker(Asker):
    """One question at a time on a connection of our own."""

    def __init__(self, connection: DirectConnection, acknowledged: int, since_s: float, *, stable: bool) -> None:
        super().__init__(acknowledged, since_s)
        self._connection, self._stable, self._waits = connection, stable, False

    @override
    def go_on(self) -> None:
        """Take an answer that is there, and ask."""
        if self._waits and select.select([self._connection], [], [], 0)[0]:
            self.hear(offset_in(self._connection.answer(ANSWER_S)))
            self._waits = False
        if not (self._waits or self.ended):
            self._connection.send(question(GROUP, stable=self._stable))
            self._waits = True


class ClientAsker(Asker):
    """A client that asks for the group's offset."""

    def __init__(self, consumer: Consumer, acknowledged: int, since_s: float) -> None:
        super().__init__(acknowledged, since_s)
        assert consumer.commits is not None
        self._ask, self._waits = consumer.commits.ask_committed, False

    @override
    def go_on(self) -> None:
        """Ask again, where no question is open and the answer was not right."""
        if not (self._waits or self.ended):
            self._waits = True
            self._ask([PARTITIONS[0]], self._answered)

    def _answered(self, answer: Offsets) -> None:
        self._waits = False
        self.hear(answer.offsets.get(PARTITIONS[0], (answer.error or "nothing").partition(":")[0]))


class Beginner(Asker):
    """A client that begins to read, and the offset of the first record that it gets."""

    def __init__(self, consumer: Consumer, acknowledged: int, since_s: float) -> None:
        super().__init__(acknowledged, since_s)
        self._poll = consumer.poll
        self._poll(POLL_MS, self._polled)

    @property
    @override
    def ended(self) -> bool:
        """True once it has a record."""
        return bool(self.told)

    def _polled(self, outcome: PollOutcome) -> None:
        for record in outcome.records[:1]:
            self.hear(record.offset)
        if not self.ended:
            self._poll(POLL_MS, self._polled)


class NewCoordinator(OperatedScript):
    """The script on one cluster, with one library."""

    def __init__(self, cluster: Cluster, operator: Administration, client: ClientName, way: Way, rest_us: int) -> None:
        super().__init__(cluster, operator)
        self._client: ClientName = client
        self._way, self._rest_us = way, rest_us
        self._acknowledged = 1
        self.send(self.clients.producer(cluster.next_process()), [(PARTITIONS[0], b"key")] * RECORDS)
        self.commit(GROUP, {PARTITIONS[0]: self._acknowledged})  # so that there is a partition for commits

    def play(self) -> Round:
        """Commit, lose the coordinator, and ask the next one."""
        self._begin()
        log = LogTail(self.cluster.directory / "logs" / f"node-{NEXT}.log")
        log.events()
        self._acknowledged += 1
        with connected(self.cluster, FIRST) as connection:
            assert commits(connection, GROUP, self._acknowledged)
        since_s = time.monotonic()
        self.let_pass(self._rest_us)
        self._lose()
        answers = self._answers(since_s)
        self._restore()
        (role,) = (each for each in log.events() if isinstance(each, BecameLeader) and each.partition == SERVING)
        assert role.end_offset is not None
        assert role.high_watermark is not None
        return Round(self._acknowledged, role.end_offset, role.high_watermark, answers)

    def _answers(self, since_s: float) -> dict[str, list[Told]]:
        """Ask in every way until each has the right answer, or has begun to read."""
        with ExitStack() as ending:
            askers = dict[str, Asker]()
            for stable in (False, True):
                connection = ending.enter_context(connected(self.cluster, NEXT))
                askers[f"request{', stable' * stable}"] = OwnAsker(
                    connection, self._acknowledged, since_s, stable=stable
                )
            for isolation in ISOLATIONS:
                askers[f"client, {isolation}"] = ClientAsker(
                    self._consumer(ending, isolation), self._acknowledged, since_s
                )
            for name, consumer in self._beginning(ending):
                askers[name] = Beginner(consumer, self._acknowledged, since_s)
            until_s = time.monotonic() + ASKED_S
            while not all(asker.ended for asker in askers.values()) and time.monotonic() < until_s:
                for asker in askers.values():
                    asker.go_on()
                self.let_pass(AGAIN_US)
        return {name: asker.told for name, asker in askers.items()}

    def _beginning(self, ending: ExitStack) -> Iterator[tuple[str, Consumer]]:
        """Consumers that begin where the group stands: a member of it, and others, where their library lets us."""
        member = self._consumer(ending, "read_uncommitted")
        assert member.subscription is not None
        topic, index = LogPartition.named(PARTITIONS[0])
        member.subscription.subscribe([topic], lambda _: None)
        yield "member", member
        if make := ASSIGNABLE.get(self._client):
            for isolation in ISOLATIONS:
                consumer = self._consumer(ending, isolation)
                consumer.owner.submit(lambda library: library.assign([make(topic, index)]))
                yield f"assigned, {isolation}", consumer

    def _consumer(self, ending: ExitStack, isolation: IsolationLevel) -> Any:
        consumer = self.clients.consumer(self.cluster.next_process(), Membership(GROUP), isolation)
        ending.callback(consumer.close)
        return consumer

    # --- the cluster -------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Broker 0 coordinates, all are in sync, and an election would prefer the next one."""
        self.lead(SERVING, FIRST)
        refused = self.operator.reassign(SERVING, (NEXT, FIRST, THIRD))
        assert not refused, refused
        with connected(self.cluster, FIRST) as connection:
            self.until(lambda: commits(connection, GROUP, self._acknowledged))
        self.let_pass(SETTLED_US)

    def _lose(self) -> None:
        processes = require(self.cluster.target.processes)
        if self._way == "killed":
            processes.kill(FIRST)
            self.until(lambda: self.view(SERVING).leader == NEXT)
            return
        refused = self.operator.move_leader(SERVING, NEXT, (NEXT, FIRST, THIRD))
        assert not refused, refused
        if self._way == "hung":
            processes.pause(THIRD)

    def _restore(self) -> None:
        processes = require(self.cluster.target.processes)
        if self._way == "killed":
            processes.restart(FIRST)
        elif self._way == "hung":
            processes.resume(THIRD)
        self.until(lambda: self.is_whole(SERVING))


def played(
    version: str, client: ClientName, directory: Path, rounds: int, *, way: Way = "moved", rest_s: float = 0
) -> Iterator[Round]:
    """Play it several times on a new cluster of this release, with one library."""
    planned = Kafka(version=version, client=client)
    with ExitStack() as ending:
        world = tuned_world(planned, directory, SAFE_SETTINGS | rules_of(version), OF_BROKERS, ASSIGNMENT)
        ending.callback(world.close)
        world.open()
        servers = world.clients.bootstrap
        operator = ending.enter_context(closing(Administration(lambda: [servers[NEXT]])))
        script = NewCoordinator(Cluster(world, directory), operator, client, way, round(rest_s * 1_000_000))
        for _ in range(rounds):
            yield script.play()


def main() -> None:
    """Play it, and say what was answered."""
    parser = script_options(__doc__, client="confluent-kafka")
    parser.add_argument("--way", default="moved", choices=get_args(Way), help="how broker 0 loses the group")
    parser.add_argument("--rest", default=0.0, type=float, help="seconds between the commit and that; 2: a control")
    parser.add_argument("--rounds", default=20, type=int)
    asked = parser.parse_args()
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory() as directory:
        tries = played(asked.version, asked.client, Path(directory), asked.rounds, way=asked.way, rest_s=asked.rest)
        for each in tries:
            rounds.append(each)
            sys.stdout.write(f"{_line(each)}\n")
            sys.stdout.flush()
    for asker in rounds[0].answers:
        sys.stdout.write(f"{_summary(asker, rounds)}\n")
    sys.exit(any(each.too_old(asker) for each in rounds for asker in each.answers))


def _summary(asker: str, rounds: Sequence[Round]) -> str:
    """Say in how many rounds an answer was too old, and for how long; and in how many none came."""
    old = [told for each in rounds if (told := each.too_old(asker))]
    lasted = [told[-1].until_ms - told[0].since_ms for told in old]
    never = sum(not each.answers[asker] for each in rounds)
    return (
        f"{asker}: too old in {len(old)} of {len(rounds)} rounds"
        + (f", for {median(lasted):.0f} ms (median), {max(lasted)} ms at most" if lasted else "")
        + (f"; nothing in {never}" if never else "")
    )


def _line(seen: Round) -> str:
    askers = "; ".join(f"{asker}: {_spelled(told)}" for asker, told in seen.answers.items())
    return f"{seen.acknowledged} acknowledged, elected at {seen.high_watermark} of {seen.end}; {askers}"


def _spelled(answers: Sequence[Told]) -> str:
    return (
        ", ".join(f"{each.answer} at {each.since_ms}{f' to {each.until_ms}' * (each.times > 1)} ms" for each in answers)
        or f"nothing in {ASKED_S} s"
    )


if __name__ == "__main__":
    main()
