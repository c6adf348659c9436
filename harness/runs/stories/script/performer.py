"""Performs a story: a run whose middle is a script, done step by step.

What clients saw is in the history, which the checkers judge as that of every run. The trace says whether the story
played as it is written: a step that could not be performed has failed there, and so has a wait that ended at its limit.
A story that did not happen cannot pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from harness.plan import RunSpec
from harness.records.fault_events import record_fault
from harness.runs.phases import Phases, RunReport, opened
from harness.runs.stories.script.language import Names, parse_script
from harness.runs.stories.script.script import StoryScript
from harness.runs.stories.stage.names import BASE
from harness.runs.stories.stage.pauses import Pause, no_pause
from harness.runs.stories.stage.questions import READ, Questions
from harness.runs.stories.stage.stage import StoryStage
from harness.runs.stories.stage.story_world import GROUPS_LOG, TRANSACTIONS_LOG
from harness.runs.stories.stage.trace import HEALED, WHOLE, Play, StepError, Told, Trace, TraceEntry
from harness.runs.stories.steps import Step
from harness.worlds.contract import World
from nemesis.open_faults import Cause
from nemesis.receipts import Receipt
from nemesis.schedule import Schedule
from workloads import Recorder
from workloads.driver import SendCounts, Workload

#: A coordinator looks for transactions that are over time, and aborts them, within this.
ABORT_MS: Final = 15_000


class Performance(NamedTuple):
    """A run that performed a story, and how its steps went."""

    report: RunReport
    trace: Trace


def perform_script(
    script: StoryScript, spec: RunSpec, world: World, recorder: Recorder, pause: Pause = no_pause
) -> Performance:
    """Do the run that ``spec`` describes, with this ``script``, in a fresh ``world``, which is closed in any case.

    The ``pause`` is made after each step, before it is written down how that went.

    Raises:
        HarnessError: the world could not do its work; what was recorded so far stands.
        PlanError: this world can perform no scripted stories.
    """
    with opened(world):
        phases = Phases(spec, world, recorder)
        performer = _Performer(script, spec, world, phases.workload, recorder, pause=pause)
        report = phases.perform_phases(performer)
        return Performance(report, performer.trace(report))


class _Performer:
    """The middle of such a run (:class:`harness.runs.phases.Middle`)."""

    schedule: Final = Schedule(steps=(), healed_ms=0)

    def __init__(
        self, script: StoryScript, spec: RunSpec, world: World, workload: Workload, recorder: Recorder, *, pause: Pause
    ) -> None:
        self._script = script
        self._clock = world.clock
        self._workload = workload
        self._stage = StoryStage(
            world,
            workload,
            spec,
            recorder,
            keys=script.keys,
            planned=script.planned,
            grouped=script.grouped,
        )
        self._questions = Questions(self._stage)
        self._pause = pause
        self._entries: list[TraceEntry] = []
        self._cause = Cause(script.number, script.title, "as the script says")
        # What brings about the state in which a script begins leaves no receipt.
        self._stage.begin_faults(self._cause, lambda _: None)
        self._witness = partial(record_fault, recorder, world.clock)
        self._leaderless = self._for_good = False

    @property
    def receipts(self) -> list[Receipt]:
        return self._stage.open_faults.receipts

    @property
    def sends(self) -> SendCounts:
        return self._stage.writes.counts()

    def trace(self, report: RunReport) -> Trace:
        """Its steps with their results, once the log was read."""
        note = "" if report.drained else "not read to its end"
        self._write_down(0, "(fresh clients wrote and read)", self._entries[-1].ended_us, note)
        return Trace(
            settings=self._stage.settings.to_mapping(),
            entries=tuple(self._entries),
            records=self._stage.writes.ends(),
            leaderless=self._leaderless,
            for_good=self._for_good,
        )

    # --- the beginning and single steps ------------------------------------------------------------------------------

    def begin(self) -> None:
        """The state in which every script begins: broker 0 leads, all are in sync, and "base" is on every disk.

        From then on everything that is done to the cluster leaves a receipt.
        """
        self._workload.mark("break")
        self._names = Names(self._stage.brokers)
        if self._stage.view.leader != 0:
            self._perform("wait until all are in sync", "move leader to 0")
        self._perform("wait until 0 leads", f"write {BASE} to 0 acks=all")
        self._perform(f"wait until {BASE} is acknowledged and all are in sync")
        self._make_coordinators()
        if (self._script.transactions or self._script.grouped) and 1 in self._stage.brokers:
            self._perform("move coordinator to 1")
        self._perform("flush all")
        self._stage.begin_faults(self._cause, self._witness)
        self._questions.begin()

    def _perform(self, *lines: str) -> None:
        for line in lines:
            (step,) = parse_script(line, "the beginning", 0, self._names.brokers, self._names)
            self.perform_step(step)

    def _make_coordinators(self) -> None:
        """Ask for those that the script needs: Kafka makes the log of one when it is first asked for it."""
        stage = self._stage
        of_groups = self._script.grouped and stage.coordinator_of(GROUPS_LOG) is None
        of_transactions = self._script.transactions and stage.coordinator_of(TRANSACTIONS_LOG) is None
        if of_groups:
            answers: list[object] = []
            self._workload.ask_committed(answers.append)
            stage.until(lambda: bool(answers), stage.patience.limit_ms)
        if of_transactions:
            first = stage.new_producer("first")
            first.init(lambda _: None)
            stage.until(lambda: first.ready, stage.patience.limit_ms)
            first.close()
        if of_groups or of_transactions:
            stage.order_coordinators()

    def play(self) -> None:
        for step in self._script.steps:
            self.perform_step(step)

    def perform_step(self, step: Step) -> None:
        """Perform one step, and write down how that went."""
        begun_us = self._clock.now_us()
        try:
            self._stage.able(step.uses)
            note, play = step.act(self._stage) or "", Play.PLAYED
        except StepError as error:
            note, play = str(error), Play.TRIED if step.tried else Play.FAILED
        self._note(step.line, step.text, begun_us, note, play, freed=step.frees_links)

    def _note(
        self, line: int, text: str, begun_us: int, note: str, play: Play = Play.PLAYED, *, freed: bool = False
    ) -> None:
        self._pause(self._stage, begun_us, freed)
        notes = note, self._stage.other_order(), self._stage.faults.turned()
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
                view=self._stage.view,
                replicas=self._stage.replicas(),
                fenced=self._stage.fenced(),
                answers=self._stage.writes.ends(),
                told=told,
            )
        )

    def _told(self) -> Mapping[str, Told]:
        read, self._stage.read_last = self._stage.read_last, None
        return {**self._questions.ask(), **({} if read is None else {READ: read})}

    # --- the end -----------------------------------------------------------------------------------------------------

    def recover(self) -> int | None:
        """Heal, look for a leader, start the brokers that may return, and wait until the log partition is whole."""
        stage, begun_us = self._stage, self._clock.now_us()
        freed = stage.faults.repair_all()
        self._leaderless = bool(stage.running) and not stage.leader_found()
        self._note(0, HEALED, begun_us, "nobody leads" if self._leaderless else "", freed=freed)
        begun_us = self._clock.now_us()
        stage.faults.start_the_dead()
        self._for_good = not stage.leader_found()
        limit_ms = 0 if self._for_good and self._lost_for_good else stage.patience.limit_ms
        recovered = stage.until(lambda: not self.lacking(), limit_ms)
        recovered_us = self._clock.now_us() if recovered else None
        self._note(0, WHOLE, begun_us, ", ".join(self.lacking().values()))
        return recovered_us

    def answer(self) -> None:
        stage = self._stage
        limit_ms = stage.settings.request_timeout_ms + stage.patience.answer_ms
        records, transactions = stage.records.values(), stage.transactions.values()

        def all_answered() -> bool:
            return all(each.answered for each in records) and not any(each.waits for each in transactions)

        stage.until(all_answered, limit_ms)
        stage.writes.end()
        for member in stage.members.values():
            member.stop()
        if self._script.transactions:
            for producer in stage.producers.values():
                producer.close()
            # What is open is aborted now: a reader cannot tell that only a marker follows the last record.
            stage.until(lambda: stage.is_stable, stage.settings.transaction_timeout_ms + ABORT_MS)

    def lacking(self) -> dict[str, str]:
        """A broker that never returns is not missed."""
        stage, view = self._stage, self._stage.view
        if not stage.leads(view.leader):
            return {stage.partition: "it has no leader"}
        expected = tuple(node for node in view.replicas if node not in stage.faults.abandoned)
        whole = stage.all_in_sync(expected)
        return {} if whole else {stage.partition: f"not all of {list(expected)} are in sync"}

    @property
    def _lost_for_good(self) -> bool:
        """True if some broker may be elected without loss, and every such broker never returns."""
        view = self._stage.view
        eligible = {*view.isr, *view.elr}
        return bool(eligible) and eligible <= self._stage.faults.abandoned
