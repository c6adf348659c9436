"""Finding 015: a new coordinator of a group tells an older offset than was acknowledged.

Broker 0 coordinates the group, and acknowledges a commit. At once another in-sync broker becomes the coordinator: an
operator moves the leader of the log partition with the offsets, or broker 0 is killed. The new coordinator is asked
what the group has committed, by requests of our own with and without KIP-447's flag for stable offsets, and by clients,
until all answers are right; and clients begin where it says. Or an operator resets the group to where it is.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Any, Final, Literal, NamedTuple, get_args

import confluent_kafka
import kafka
from typing_extensions import override

from harness.ground.observations import BecameLeader
from harness.lab.findings.group_requests import ANSWER_S, commits, connected, offset_in, question, told
from harness.lab.findings.internal_topics import SAFE_SETTINGS, SERVING
from harness.lab.findings.playable import PlayableFinding, Played, Way, expects_nothing
from harness.lab.findings.script import OperatedScript, commits_of, subscribe
from harness.lab.findings.stage import PARTITIONS, FindingStage, NotObservedError, OpenCluster
from harness.plan import ClientName
from harness.worlds.clients import DirectConnection
from harness.worlds.hosts import attempt
from harness.worlds.kafka.administration import Administration
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import tool_command
from harness.worlds.kafka.log_events import LogTail
from nemesis.cluster import require
from workloads import Clients, Consumer, IsolationLevel, LogPartition, Membership, Offsets, PollOutcome

#: The leader of the partition with the offsets is moved as planned, the same while the third broker hangs, or it is
#: killed.
Loss = Literal["moved", "hung", "killed"]
GROUP: Final = "new"
FIRST, NEXT, THIRD = 0, 1, 2
ASSIGNMENT: Final = ((NEXT, THIRD, FIRST),) * len(PARTITIONS)
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
#: Rounds on one cluster.
ROUNDS: Final = 5
#: The libraries whose consumers we can have begin at the group's offset without being members.
ASSIGNABLE: Final[Mapping[ClientName, Callable[[str, int], Any]]] = {
    "confluent-kafka": confluent_kafka.TopicPartition,
    "kafka-python": kafka.TopicPartition,
}

#: The tool kafka-consumer-groups, and its words; on a busy machine it is slow.
RESET: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TO_CURRENT: Final = ("--reset-offsets", "--to-current", "--topic", "ackproof:0", "--execute", "--timeout", "60000")
RESET_S: Final = 180.0

ToldOffset = int | str


class ToldTimes(NamedTuple):
    """An offset or error that was answered, with the milliseconds since the commit, and how often in a row."""

    answer: ToldOffset
    since_ms: int
    until_ms: int
    times: int


class CoordinatorRound(NamedTuple):
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
    answers: dict[str, list[ToldTimes]]

    def too_old(self, asker: str) -> list[ToldTimes]:
        """The answers to this one that were older than what had been acknowledged."""
        return [
            told for told in self.answers[asker] if isinstance(told.answer, int) and told.answer < self.acknowledged
        ]


class ResetSeen(NamedTuple):
    """The offset that was acknowledged, and what is left after the group was reset to where it is."""

    acknowledged: int
    left: ToldOffset

    @property
    def went_back(self) -> bool:
        """True if less is left than was acknowledged."""
        return isinstance(self.left, int) and self.left < self.acknowledged


class OffsetAsker:
    """Collects the answers to a question that is asked again and again."""

    def __init__(self, acknowledged: int, since_s: float) -> None:
        self.told: list[ToldTimes] = []
        self._acknowledged, self._since_s = acknowledged, since_s

    @property
    def ended(self) -> bool:
        """True once the answer was right."""
        return bool(self.told) and self.told[-1].answer == self._acknowledged

    def go_on(self) -> None:
        """Ask, if this does not ask by itself."""

    def hear(self, answer: ToldOffset) -> None:
        """Keep an answer."""
        ms = round((time.monotonic() - self._since_s) * 1_000)
        if self.told and self.told[-1].answer == answer:
            last = self.told[-1]
            self.told[-1] = last._replace(until_ms=ms, times=last.times + 1)
        else:
            self.told.append(ToldTimes(answer, ms, ms, 1))


class RequestAsker(OffsetAsker):
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


class ClientAsker(OffsetAsker):
    """A client that asks for the group's offset."""

    def __init__(self, consumer: Consumer, acknowledged: int, since_s: float) -> None:
        super().__init__(acknowledged, since_s)
        self._ask, self._waits = commits_of(consumer).ask_committed, False

    @override
    def go_on(self) -> None:
        """Ask again, where no question is open and the answer was not right."""
        if not (self._waits or self.ended):
            self._waits = True
            self._ask([PARTITIONS[0]], self._answered)

    def _answered(self, answer: Offsets) -> None:
        self._waits = False
        self.hear(answer.offsets.get(PARTITIONS[0], (answer.error or "nothing").partition(":")[0]))


class BeginningReader(OffsetAsker):
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

    def __init__(
        self, cluster: OpenCluster, clients: Clients, operator: Administration, client: ClientName, loss: Loss
    ) -> None:
        super().__init__(cluster, clients, operator)
        self._client: ClientName = client
        self._loss = loss
        self._acknowledged = 1
        self.send(self.clients.producer(cluster.next_process()), [(PARTITIONS[0], b"key")] * RECORDS)
        self.commit(GROUP, {PARTITIONS[0]: self._acknowledged})  # so that there is a partition for commits

    def play(self, rest_us: int) -> CoordinatorRound:
        """Commit, lose the coordinator after ``rest_us``, and ask the next one."""
        self._begin()
        log = LogTail(self.cluster.directory / "logs" / f"node-{NEXT}.log")
        log.events()
        self._acknowledged += 1
        with connected(self.cluster, FIRST) as connection:
            if not commits(connection, GROUP, self._acknowledged):
                raise NotObservedError("a commit was not acknowledged")
        since_s = time.monotonic()
        self.let_pass(rest_us)
        self._lose()
        answers = self._answers(since_s)
        self._restore()
        roles = [each for each in log.events() if isinstance(each, BecameLeader) and each.partition == SERVING]
        if len(roles) != 1:
            raise NotObservedError(f"broker {NEXT} became the coordinator {len(roles)} times in a round")
        (role,) = roles
        if role.end_offset is None or role.high_watermark is None:
            raise NotObservedError("the new coordinator did not log the end of its log")
        return CoordinatorRound(self._acknowledged, role.end_offset, role.high_watermark, answers)

    def reset(self, release: Installation) -> ResetSeen:
        """Commit, lose the coordinator, and reset the group to where the next one says that it is."""
        self._begin()
        self._acknowledged += 1
        with connected(self.cluster, FIRST) as connection:
            if not commits(connection, GROUP, self._acknowledged):
                raise NotObservedError("a commit was not acknowledged")
        self._lose()
        self.cluster.does("the group is reset to where it is")
        server = self.cluster.world.clients.bootstrap[NEXT]
        command = tool_command(release, [RESET, "--bootstrap-server", server, "--group", GROUP, *TO_CURRENT])
        done = attempt(command, limit_s=RESET_S)
        if done.returncode:
            raise NotObservedError(f"the group was not reset: {' '.join(done.stderr.split())[-200:]}")
        self._restore()
        with connected(self.cluster, NEXT) as connection:
            return ResetSeen(self._acknowledged, told(connection, GROUP, stable=True))

    def _answers(self, since_s: float) -> dict[str, list[ToldTimes]]:
        """Ask in every way until each has the right answer, or has begun to read."""
        with ExitStack() as ending:
            askers = dict[str, OffsetAsker]()
            for stable in (False, True):
                connection = ending.enter_context(connected(self.cluster, NEXT))
                askers[f"request{', stable' * stable}"] = RequestAsker(
                    connection, self._acknowledged, since_s, stable=stable
                )
            for isolation in ISOLATIONS:
                askers[f"client, {isolation}"] = ClientAsker(
                    self._consumer(ending, isolation), self._acknowledged, since_s
                )
            for name, consumer in self._beginning(ending):
                askers[name] = BeginningReader(consumer, self._acknowledged, since_s)
            until_s = time.monotonic() + ASKED_S
            while not all(asker.ended for asker in askers.values()) and time.monotonic() < until_s:
                for asker in askers.values():
                    asker.go_on()
                self.let_pass(AGAIN_US)
        return {name: asker.told for name, asker in askers.items()}

    def _beginning(self, ending: ExitStack) -> Iterator[tuple[str, Consumer]]:
        """Consumers that begin where the group stands: a member of it, and others, where their library lets us."""
        member = self._consumer(ending, "read_uncommitted")
        topic, index = LogPartition.named(PARTITIONS[0])
        subscribe(member, lambda _: None)
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
        self.granted(self.operator.reassign(SERVING, (NEXT, FIRST, THIRD)))
        with connected(self.cluster, FIRST) as connection:
            self.wait("broker 0 coordinates", lambda: commits(connection, GROUP, self._acknowledged))
        self.let_pass(SETTLED_US)

    def _lose(self) -> None:
        processes = require(self.cluster.target.processes)
        if self._loss == "killed":
            processes.kill(FIRST)
            self.wait("broker 1 coordinates", lambda: self.view(SERVING).leader == NEXT)
            return
        self.granted(self.operator.move_leader(SERVING, NEXT, (NEXT, FIRST, THIRD)))
        if self._loss == "hung":
            processes.pause(THIRD)

    def _restore(self) -> None:
        processes = require(self.cluster.target.processes)
        if self._loss == "killed":
            processes.restart(FIRST)
        elif self._loss == "hung":
            processes.resume(THIRD)
        self.wait_until_whole(SERVING)


def play(stage: FindingStage, loss: Loss, *, rest_us: int = 0) -> Played:
    """Play it several times on a new cluster."""
    with ExitStack() as resources:
        library = stage.library(resources)
        cluster = resources.enter_context(stage.kafka(SAFE_SETTINGS, OF_BROKERS, assignment=ASSIGNMENT))
        clients = resources.enter_context(cluster.clients_until_closed(library))
        operator = resources.enter_context(cluster.operator(NEXT))
        script = NewCoordinator(cluster, clients, operator, stage.client, loss)
        return played([script.play(rest_us) for _ in range(ROUNDS)])


def play_reset(stage: FindingStage) -> Played:
    """Reset the group on a new cluster until it went back, several times at most."""
    with ExitStack() as resources:
        cluster = resources.enter_context(stage.kafka(SAFE_SETTINGS, OF_BROKERS, assignment=ASSIGNMENT))
        operator = resources.enter_context(cluster.operator(NEXT))
        script = NewCoordinator(cluster, cluster.world.clients, operator, "confluent-kafka", "hung")
        seen: list[ResetSeen] = []
        while len(seen) < ROUNDS and not any(each.went_back for each in seen):
            seen.append(script.reset(stage.release))
    return played_reset(seen)


def played_reset(seen: Sequence[ResetSeen]) -> Played:
    """It shows where a reset took an acknowledged commit back."""
    facts = [
        f"{each.acknowledged} was acknowledged; the coordinator was moved, and the group reset to where it is; then it "
        f"has committed {each.left}"
        for each in seen
    ]
    return Played.of(facts, shown=any(each.went_back for each in seen))


def played(rounds: Sequence[CoordinatorRound]) -> Played:
    """It shows where an answer was older than the commit that had been acknowledged."""
    facts = [
        f"{each.acknowledged} was acknowledged; broker {NEXT} was elected with high watermark {each.high_watermark} of "
        f"{each.end}"
        for each in rounds
    ]
    facts += [_summary(asker, rounds) for asker in rounds[0].answers]
    return Played.of(facts, shown=any(each.too_old(asker) for each in rounds for asker in each.answers))


def _summary(asker: str, rounds: Sequence[CoordinatorRound]) -> str:
    """Say in how many rounds an answer was too old, and for how long; and in how many none came."""
    old = [told for each in rounds if (told := each.too_old(asker))]
    lasted = [told[-1].until_ms - told[0].since_ms for told in old]
    never = sum(not each.answers[asker] for each in rounds)
    return (
        f"{asker}: too old in {len(old)} of {len(rounds)} rounds"
        + (f", for {median(lasted):.0f} ms (median), {max(lasted)} ms at most" if lasted else "")
        + (f"; nothing in {never}" if never else "")
    )


FINDING: Final = PlayableFinding(
    "015",
    {
        "moved": Way("the next coordinator is elected as planned", partial(play, loss="moved")),
        "hung": Way("the same, while the third broker hangs", partial(play, loss="hung")),
        "killed": Way("the coordinator is killed", partial(play, loss="killed")),
        "reset": Way("as hung, and kafka-consumer-groups resets the group with --to-current", play_reset),
        "rested": Way(
            "as moved, two seconds after the commit", partial(play, loss="moved", rest_us=SETTLED_US), expects_nothing
        ),
    },
    clients=("confluent-kafka", "java", "kafka-python"),
    minutes=2,
    controls=("3.9.2",),
)
