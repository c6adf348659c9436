"""Performs a story: a run whose middle is a script, done step by step.

What clients saw is in the history, which the checkers judge as that of every run. The trace says whether the story
played as it is written: a step that could not be performed has failed there, and so has a wait that ended at its limit.
A story that did not happen cannot pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from harness.ground.errors import PlanError
from harness.plan import RunSpec
from harness.records.fault_events import record_fault
from harness.runs.phases import Phases, RunReport, opened
from harness.runs.stories import steps as s
from harness.runs.stories.asked import READ, Questions
from harness.runs.stories.fault_steps import OF_FAULTS, FaultSteps
from harness.runs.stories.group_script import OF_GROUPS
from harness.runs.stories.group_steps import GroupSteps
from harness.runs.stories.holding import all_hold, holds, instead
from harness.runs.stories.members import ScriptMembers
from harness.runs.stories.outside_commits import OutsideCommits
from harness.runs.stories.patience import Patience
from harness.runs.stories.pauses import Pause, no_pause
from harness.runs.stories.script_faults import ScriptFaults
from harness.runs.stories.story import BASE, Story
from harness.runs.stories.story_world import GROUPS_LOG, TRANSACTIONS_LOG, StoryWorld
from harness.runs.stories.trace import HEALED, WHOLE, Play, StepError, Told, Trace, TraceEntry, reader_words
from harness.runs.stories.transaction_steps import TransactionSteps
from harness.runs.stories.transactions import ScriptTransactions
from harness.runs.stories.writes import DirectRecord, ScriptedRecord, Writes
from harness.worlds.contract import World
from nemesis.faults import MoveLeader
from nemesis.open_faults import Cause, OpenFaults
from nemesis.receipts import Receipt
from nemesis.schedule import Schedule
from workloads import ACKS_ALL, Poll, Recorder
from workloads.driver import SendCounts, Workload
from workloads.history import HistoryInMemory

#: A coordinator looks for transactions that are over time, and aborts them, within this.
ABORT_MS: Final = 15_000


class Performance(NamedTuple):
    """A run that performed a story, and how its steps went."""

    report: RunReport
    trace: Trace


def perform_script(
    story: Story, spec: RunSpec, world: World, recorder: Recorder, pause: Pause = no_pause
) -> Performance:
    """Do the run that ``spec`` describes, with this ``story``, in a fresh ``world``, which is closed in any case.

    The ``pause`` is made after each step, before it is written down how that went.

    Raises:
        HarnessError: the world could not do its work; what was recorded so far stands.
        PlanError: this world can perform no scripted stories.
    """
    with opened(world):
        phases = Phases(spec, world, recorder)
        performer = _Performer(story.in_column(spec.cell), spec, world, phases.workload, recorder, pause=pause)
        report = phases.perform_phases(performer)
        return Performance(report, performer.trace(report))


class _Performer:
    """The middle of such a run (:class:`harness.runs.phases.Middle`)."""

    schedule: Final = Schedule(steps=(), healed_ms=0)

    def __init__(
        self, story: Story, spec: RunSpec, world: World, workload: Workload, recorder: Recorder, *, pause: Pause
    ) -> None:
        if world.direct is None:
            raise PlanError("this world cannot send single writes, so no scripted story can be performed in it")
        self._story = story
        self._settings = spec.chosen()
        self._plan = spec.workload
        self._clock = world.clock
        self._target = world.target
        self._patience = Patience.of(spec)
        self._workload = workload
        self._partition, *_ = workload.partitions
        records: dict[str, ScriptedRecord] = {}
        self._writes = Writes(
            world.direct,
            self._partition,
            self._settings,
            records,
            clock=world.clock,
            recorder=recorder,
            new_process=workload.new_process,
        )
        self._transactions = ScriptTransactions(
            world.clients,
            workload.partitions,
            records,
            planned=story.transactions,
            elsewhere=story.elsewhere,
            keyed=story.compacted,
            clock=world.clock,
            # Where transactions of a script with a group have no record, they are no part of its history.
            recorder=HistoryInMemory() if story.grouped and not any(story.transactions.values()) else recorder,
            new_process=workload.new_process,
        )
        self._members = ScriptMembers(workload)
        self._story_world = StoryWorld(
            world, self._partition, records, self._transactions, self._members, grouped=story.grouped
        )
        outside = OutsideCommits(world, self._transactions, workload.membership, workload.new_process)
        self._group_steps = GroupSteps(self._story_world, self._members, outside, self._patience)
        self._transaction_steps = TransactionSteps(
            world, self._story_world, self._transactions, self._patience, workload.new_process
        )
        self._questions = Questions(
            self._story_world, self._members, grouped=story.grouped, transactional=bool(story.transactions)
        )
        self._pause = pause
        self._entries: list[TraceEntry] = []
        # What brings about the state in which a script begins leaves no receipt.
        self._begin_faults(lambda _: None)
        self._witness = partial(record_fault, recorder, world.clock)
        self._leaderless = self._for_good = False

    def _begin_faults(self, witness: Callable[[Receipt], None]) -> None:
        self._open = OpenFaults(self._target, self._clock.now_us, witness)
        self._story_world.look = self._open.view
        cause = Cause(self._story.number, self._story.title, "as the script says")
        self._faults = ScriptFaults(self._story_world, self._open, cause)
        self._fault_steps = FaultSteps(self._faults, self._story_world, self._writes, self._settings, self._patience)

    @property
    def receipts(self) -> list[Receipt]:
        return self._open.receipts

    @property
    def sends(self) -> SendCounts:
        return self._writes.counts()

    def trace(self, report: RunReport) -> Trace:
        """Its steps with their results, once the log was read."""
        note = "" if report.drained else "not read to its end"
        self._write_down(0, "(fresh clients wrote and read)", self._entries[-1].ended_us, note)
        return Trace(
            settings=self._settings.to_mapping(),
            entries=tuple(self._entries),
            records=self._writes.ends(),
            leaderless=self._leaderless,
            for_good=self._for_good,
        )

    # --- the beginning and single steps ------------------------------------------------------------------------------

    def begin(self) -> None:
        """The state in which every script begins: broker 0 leads, all are in sync, and "base" is on every disk.

        From then on everything that is done to the cluster leaves a receipt.
        """
        self._workload.mark("break")
        if self._story_world.view.leader != 0:
            self.perform_step(s.WaitUntil(line=0, text="wait until all are in sync", states=(s.AllInSync(),)))
            self.perform_step(s.Begin(line=0, text="move leader to 0", fault=MoveLeader, nodes=(0,)))
        self.perform_step(s.WaitUntil(line=0, text="wait until 0 leads", states=(s.Leads(0),)))
        self.perform_step(s.WriteRecord(line=0, text="write base to 0 acks=all", record=BASE, to=0, acks=ACKS_ALL))
        states = (s.Answered(BASE, acknowledged=True), s.AllInSync())
        self.perform_step(
            s.WaitUntil(line=0, text="wait until base is acknowledged and all are in sync", states=states)
        )
        self._make_coordinators()
        if (self._story.transactions or self._story.grouped) and 1 in self._story_world.brokers:
            self.perform_step(s.MoveCoordinator(line=0, text="move coordinator to 1", broker=1))
        self.perform_step(s.Flush(line=0, text="flush all", nodes=self._story_world.brokers))
        self._begin_faults(self._witness)
        self._questions.begin()

    def _make_coordinators(self) -> None:
        """Ask for those that the story needs: Kafka makes the log of one when it is first asked for it."""
        of_groups = self._story.grouped and self._story_world.coordinator_of(GROUPS_LOG) is None
        of_transactions = self._story.transactions and self._story_world.coordinator_of(TRANSACTIONS_LOG) is None
        if of_groups:
            answers: list[object] = []
            self._members.ask(answers.append)
            self._story_world.until(lambda: bool(answers), self._patience.limit_ms)
        if of_transactions:
            first = self._transactions.first()
            self._story_world.until(lambda: first.ready, self._patience.limit_ms)
            first.client.close()
        if of_groups or of_transactions:
            self._story_world.order_coordinators()

    def play(self) -> None:
        for step in self._story.steps:
            self.perform_step(step)

    def perform_step(self, step: s.Step) -> None:
        """Perform one step, and write down how that went."""
        begun_us = self._clock.now_us()
        try:
            note, play = _ACTIONS[type(step)](self, step) or "", Play.PLAYED
        except StepError as error:
            note, play = str(error), Play.TRIED if step.tried else Play.FAILED
        self._note(step.line, step.text, begun_us, note, play, freed=step.frees_links)

    def _note(
        self, line: int, text: str, begun_us: int, note: str, play: Play = Play.PLAYED, *, freed: bool = False
    ) -> None:
        self._pause(self._story_world, begun_us, freed)
        notes = note, self._story_world.other_order(), self._faults.turned()
        self._write_down(line, text, begun_us, "; ".join(filter(None, notes)), play)

    def _write_down(self, line: int, text: str, begun_us: int, note: str, play: Play = Play.PLAYED) -> None:
        # The questions take time of the step, which another performance gives it too.
        told = {} if self._pause is no_pause else self._told()
        self._entries.append(
            TraceEntry(
                line=line,
                text=text,
                begun_us=begun_us,
                ended_us=self._clock.now_us(),
                play=play,
                note=note,
                view=self._story_world.view,
                replicas=self._story_world.replicas(),
                fenced=self._story_world.fenced(),
                answers=self._writes.ends(),
                told=told,
            )
        )

    def _told(self) -> Mapping[str, Told]:
        read, self._transaction_steps.read_last = self._transaction_steps.read_last, None
        return {**self._questions.ask(), **({} if read is None else {READ: read})}

    # --- time --------------------------------------------------------------------------------------------------------

    def wait(self, step: s.Wait) -> None:
        self._story_world.let_pass(step.ms)

    def wait_until(self, step: s.WaitUntil) -> None:
        usual_ms = self._patience.tried_ms if step.tried else self._patience.limit_ms
        limit_ms = usual_ms if step.limit_ms is None else step.limit_ms
        # Of a record that was not sent this raises before time passes: real worlds close where a condition raises.
        holding = [holds(state, self._story_world) for state in step.states]
        if not all(holding) and not self._story_world.until(lambda: all_hold(step.states, self._story_world), limit_ms):
            parts = zip(step.text.partition(" until ")[2].split(" and "), step.states, strict=True)
            wrong = [
                f"{part}: no, {instead(state, self._story_world)}"
                for part, state in parts
                if not holds(state, self._story_world)
            ]
            raise StepError("; ".join([f"waited {limit_ms} ms without effect", *wrong]))

    # --- clients -----------------------------------------------------------------------------------------------------

    def _whom(self, broker: s.Broker) -> int:
        """The broker that a client writes to; a client that knows no leader waits a moment for one, and gives up."""
        if broker is s.BrokerRole.LEADER:
            self._leader_found()
            if self._story_world.view.leader is None:
                raise StepError("not sent: no broker leads")
        return self._story_world.node(broker)

    def send(self, step: s.WriteRecord) -> str:
        return f"sent to {self._sent(step)[0]}"

    def write(self, step: s.WriteRecord) -> str:
        node, record = self._sent(step)
        return f"sent to {node}: {self._answer_of(record)}"

    def _sent(self, step: s.WriteRecord) -> tuple[int, DirectRecord]:
        node = self._whom(step.to)
        deletes = step.deletes if isinstance(step, s.DeleteKey) else None
        return node, self._writes.send(
            step.record, node, over=step.over, acks=step.acks, producer=step.producer, deletes=deletes
        )

    def in_transactions(self, step: s.Step) -> str:
        return self._transaction_steps.perform(step)

    def with_faults(self, step: s.Step) -> str | None:
        return self._fault_steps.perform(step)

    def in_groups(self, step: s.Step) -> str:
        return self._group_steps.perform(step)

    def retry(self, step: s.Retry) -> str:
        record = self._story_world.record(step.record)
        if not isinstance(record, DirectRecord):
            raise StepError("it is part of a transaction, whose producer sends it again by itself")
        if record.acknowledged:
            return "acknowledged already: not sent again"
        node = self._whom(step.to)
        self._writes.send_again(record, node)
        return f"sent to {node}: {self._answer_of(record)}"

    def _answer_of(self, record: DirectRecord) -> str:
        """Wait a moment for the answer; in words."""
        # A write with acks=0 is not answered: it is given the time to arrive.
        self._story_world.until(lambda: record.answered and record.write.acks != 0, self._patience.answer_ms)
        end = record.end()
        if not record.answered:
            return "no answer yet"
        offset = "" if end.offset is None else f" at offset {end.offset}"
        return f"{end.outcome}{offset}" + (f" ({end.error})" if end.error else "")

    def bump(self, step: s.BumpEpoch) -> None:
        self._writes.bump(step.producer)

    def read(self, step: s.Read) -> str:
        read: list[str] = []
        names = self._story_world.names

        def polled(poll: Poll) -> None:
            got = poll.records.get(self._partition, ())
            read.extend(names[record.value] for record in got if record.value in names)

        reader = self._workload.begin_reader(polled)
        self._story_world.let_pass(3 * self._plan.poll_wait_ms)
        reader.stop()
        return "" if step.records is None else reader_words(tuple(read), step.records)

    # --- the end -----------------------------------------------------------------------------------------------------

    def recover(self) -> int | None:
        """Heal, look for a leader, start the brokers that may return, and wait until the log partition is whole."""
        begun_us = self._clock.now_us()
        freed = self._faults.repair_all()
        self._leaderless = bool(self._story_world.running) and not self._leader_found()
        self._note(0, HEALED, begun_us, "nobody leads" if self._leaderless else "", freed=freed)
        begun_us = self._clock.now_us()
        self._faults.start_the_dead()
        self._for_good = not self._leader_found()
        limit_ms = 0 if self._for_good and self._lost_for_good else self._patience.limit_ms
        recovered = self._story_world.until(lambda: not self.lacking(), limit_ms)
        recovered_us = self._clock.now_us() if recovered else None
        self._note(0, WHOLE, begun_us, ", ".join(self.lacking().values()))
        return recovered_us

    def answer(self) -> None:
        limit_ms = self._settings.request_timeout_ms + self._patience.answer_ms
        records = self._writes.records.values()
        self._story_world.until(
            lambda: all(record.answered for record in records) and not self._transactions.waiting, limit_ms
        )
        self._writes.end()
        self._members.close()
        if self._story.transactions:
            self._transactions.close()
            # What is open is aborted now: a reader cannot tell that only a marker follows the last record.
            self._story_world.until(
                lambda: self._story_world.is_stable, self._settings.transaction_timeout_ms + ABORT_MS
            )
            self._transactions.end()

    def lacking(self) -> dict[str, str]:
        """A broker that never returns is not missed."""
        view = self._story_world.view
        if not self._story_world.leads(view.leader):
            return {self._partition: "it has no leader"}
        expected = tuple(node for node in view.replicas if node not in self._faults.abandoned)
        whole = self._story_world.all_in_sync(expected)
        return {} if whole else {self._partition: f"not all of {list(expected)} are in sync"}

    @property
    def _lost_for_good(self) -> bool:
        """True if some broker may be elected without loss, and every such broker never returns."""
        view = self._story_world.view
        eligible = {*view.isr, *view.elr}
        return bool(eligible) and eligible <= self._faults.abandoned

    def _leader_found(self) -> bool:
        """Wait for a leader as long as an election may take; True if there is one."""
        return self._story_world.until(
            lambda: self._story_world.leads(self._story_world.view.leader), self._patience.election_ms
        )


#: The performer of each step; it answers with the outcome in words, or with none.
_ACTIONS: Final[Mapping[type, Callable[[_Performer, Any], str | None]]] = {
    s.WriteRecord: _Performer.write,
    s.SendRecord: _Performer.send,
    s.DeleteKey: _Performer.write,
    s.Retry: _Performer.retry,
    s.BumpEpoch: _Performer.bump,
    s.Read: _Performer.read,
    s.Wait: _Performer.wait,
    s.WaitUntil: _Performer.wait_until,
    **dict.fromkeys(OF_FAULTS, _Performer.with_faults),
    **dict.fromkeys(s.OF_TRANSACTIONS, _Performer.in_transactions),
    **dict.fromkeys(OF_GROUPS, _Performer.in_groups),
}
