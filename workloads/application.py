"""A run with a user's program in the middle: it reads the input, and what it writes is read.

The program's instances are looked after by :class:`workloads.instances.Instances`. After healing the program has time
to catch up; then it is ended in order, its output is read to the end at both isolation levels, and all effects are
written into the history. In which order, :mod:`workloads.application_closings` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from workloads.application_facts import ApplicationFacts
from workloads.application_plan import ApplicationPlan
from workloads.application_progress import GroupQuestions, ProgressPoints
from workloads.client import Clock, Fetched, Membership
from workloads.consumers import Consumers, Readers
from workloads.effects import LAST, SINK, Effects, Unrecorded
from workloads.final_read import Drain
from workloads.instance import SendCounts, Writers
from workloads.instances import InstanceProcesses, Instances
from workloads.operations import HARNESS, Event, EventType, Function, Poll, Recorder
from workloads.recovery import RecoveryWrites
from workloads.settings import IsolationLevel, Settings
from workloads.stable_offsets import StableOffsets

#: Pause between questions what the group has committed.
ASK_MS: Final = 500
#: Silence of the output after which an application that lacks nothing has caught up.
QUIET_MS: Final = 1_500
#: The same of one whose group has committed the end of the input, though inputs lack effects.
PASSED_QUIET_MS: Final = 3_000
#: An application that lacks nothing may still have to commit: longer than clients' libraries wait with that.
COMMITS_LATE_MS: Final = 12_000
OUTPUT_READERS: Final = 1


class ApplicationRun:
    """The application of one run, as its readers of the break phase (:class:`workloads.roles.Reading`).

    ``stop`` lets it go on: it has to catch up.

    Attributes:
        instances: its instances, for faults.
        recorder: the recorder for producers of inputs.
    """

    def __init__(
        self,
        plan: ApplicationPlan,
        settings: Settings,
        readers: Readers,
        writers: Writers,
        partitions: tuple[Sequence[str], Sequence[str]],
        *,
        processes: InstanceProcesses,
        group: str,
        keys: int,
    ) -> None:
        self.plan, self._settings = plan, settings
        self._readers, self._writers, self._processes = readers, writers, processes
        self._inputs, self._outputs = partitions
        self._group, self._keys = group, keys
        self.instances = Instances(plan, processes, readers.clock)
        told = (SINK,) if plan.effects else self._outputs
        self.effects = Effects(plan, keys, self._inputs, told, readers.recorder)
        self._unprinted = ""
        self._live: Consumers | None = None
        self._questions: GroupQuestions | None = None
        self._progress: ProgressPoints | None = None
        self._levels_read: list[Drain] = []
        self._stable: StableOffsets | None = None
        self.committed: dict[str, int] = {}
        self.waited_ms = 0

    @property
    def recorder(self) -> Recorder:
        """The recorder of the producers of inputs."""
        return self.effects

    @property
    def records_read(self) -> int:
        """The outputs that were read meanwhile."""
        return 0 if self._live is None else self._live.records_read

    @property
    def ready(self) -> bool:
        """True if its instances say that they are ready, or, where the plan does not say how, once an output is there.

        A sink, which has no output, is ready at once. An application that ends again and again is as ready as it will
        be.
        """
        if self.instances.hopeless:
            return True
        return self.instances.ready if self.plan.ready or not self._outputs else self.effects.last_us > 0

    @property
    def complaint(self) -> str:
        """Say that no output had an id, so that nothing is known of any input; "" if one had."""
        if self.effects.named or self.effects.nameless is None:
            return ""
        if not self._outputs:
            return (
                "no line that the command under [application] effects printed is the id of an input; the first one is "
                f"{self.effects.nameless!r}: let it print the ids of inputs, one a line, and nothing else"
            )
        return (
            f"no output of the application has the id of an input at {self.plan.id!r}; the first one is "
            f"{self.effects.nameless!r}: say where it is by id = under [application], or let the application copy it"
        )

    def start(self) -> None:
        """Start the instances, and read the output from now on."""
        self.instances.start_all()
        self._questions = self._ask_group()
        self._progress = ProgressPoints(self._readers.clock, self.effects, self.committed)
        if not self._outputs:
            return
        self._live = Consumers(self._of_outputs(self._readers, counts=True), self._outputs, OUTPUT_READERS)
        self._live.start()

    def stop(self) -> None:
        """Let it go on: it catches up with what was written (:meth:`catch_up`)."""

    def _ask_group(self) -> GroupQuestions:
        """Let a fresh client ask how far the group is, from now on."""
        readers = self._readers
        consumer = readers.clients.consumer(readers.new_process(), Membership(group=self._group))
        return GroupQuestions(consumer, readers.clock, self._inputs, ASK_MS, self.committed.update)

    def _end_questions(self) -> None:
        if self._questions is not None:
            self._questions.end()

    def catch_up(self) -> CatchingUp:
        """Wait until it has caught up."""
        self._end_questions()
        return CatchingUp(self, self._readers.clock, self._ask_group())

    def end_instances(self) -> InstancesEnding:
        """Ask every instance to end."""
        return InstancesEnding(self)

    def write_last(self) -> RecoveryWrites:
        """Let a plain record be the last one of the output: behind it no reader waits for the marker of a transaction.

        It is no output, and the history does not have it.
        """
        writers = self._writers._replace(
            recorder=Unrecorded(), counts=SendCounts(), make=lambda _partition, _key, _value, _size: (LAST, LAST)
        )
        writes = RecoveryWrites(writers, self._outputs, acks=self._settings.acks)
        writes.start()
        return writes

    def await_stable(self) -> StableOffsets:
        """Ask whether transactions are open in the output."""
        self._stable = StableOffsets(self._readers._replace(recorder=Unrecorded()), self._settings)
        self._stable.start(self._outputs)
        return self._stable

    @property
    def inputs(self) -> Sequence[str]:
        """The log partitions that it reads."""
        return self._inputs

    @property
    def outputs(self) -> Sequence[str]:
        """The log partitions that it writes to; none of a sink."""
        return self._outputs

    def print_effects(self) -> None:
        """Let the user's command say what a sink did."""
        if self.plan.effects:
            lines, self._unprinted = self._processes.printed_effects()
            self.effects.read_lines(lines, self._readers.clock.now_us())

    def stop_reading(self) -> None:
        """Stop the reader of the break phase, and whatever else looks at its progress."""
        if self._progress is not None:
            self._progress.end()
        if self._live is not None:
            self._live.stop()

    def read(self, level: IsolationLevel) -> Drain:
        """Let a fresh reader read the output to its end at this level."""
        counts = level == self._readers.isolation
        readers = self._of_outputs(self._readers if counts else self._readers.other_level, counts=counts)
        held = self._stable.held if self._stable is not None and level == "read_committed" else {}
        drain = Drain(readers, self._outputs, unhealthy=held, consumers=OUTPUT_READERS)
        if counts:
            self._levels_read.append(drain)
        drain.start()
        return drain

    def tell(self) -> None:
        """Write all effects, and what became of the application, into the history."""
        clock, record = self._readers.clock, self._readers.recorder.record
        for event in self.effects.events(clock.now_us()):
            record(event)
        plan = self.plan
        facts = ApplicationFacts(
            shape=plan.shape,
            outputs_each=plan.outputs_of_each,
            every=plan.every if plan.shape == "some" else 1,
            promise=plan.promise,
            order=plan.order,
            fold=plan.fold if plan.shape == "fold" else None,
            keys=self._keys,
            group=self._group,
            inputs=tuple(self._inputs),
            outputs=(SINK,) if plan.effects else tuple(self._outputs),
            unread=self._unread(),
            committed=self.committed,
            exits=tuple(self.instances.exits),
            crash_loops=self.instances.crash_loops,
            starts=self.instances.starts,
            waited_ms=self.waited_ms,
            topics=self._processes.other_topics(),
            instances=plan.instances,
            progress=() if self._progress is None else tuple(self._progress.points),
        )
        record(
            Event(
                time_us=clock.now_us(),
                process=HARNESS,
                type=EventType.INFO,
                function=Function.APPLICATION,
                detail=msgspec.json.encode(facts).decode(),
            )
        )

    def _unread(self) -> dict[str, str]:
        if self._unprinted:
            return {SINK: self._unprinted}
        if self.effects.overflowed:
            return dict.fromkeys(self._outputs or (SINK,), "there are more outputs than are remembered")
        read = {name for drain in self._levels_read for name in drain.ends}
        held = {} if self._stable is None else self._stable.held
        return {
            name: held.get(name, "its end was not reached in time: raise drain_limit_ms")
            for name in self._outputs
            if name not in read
        }

    def _of_outputs(self, readers: Readers, *, counts: bool) -> Readers:
        """Readers of outputs, whose own operations are not in the history."""

        def decode(records: Sequence[Fetched]) -> Poll:
            return self.effects.read(counts, readers.clock.now_us(), records)

        return readers._replace(recorder=Unrecorded(), decode=decode)


class CatchingUp:
    """The wait until an application has caught up (:class:`workloads.closings.Work`)."""

    def __init__(self, run: ApplicationRun, clock: Clock, questions: GroupQuestions) -> None:
        self._run, self._clock, self._questions = run, clock, questions
        self._begun_us = clock.now_us()

    @property
    def finished(self) -> bool:
        """True if every input has its effect and is committed, or the group has passed them all."""
        run, now_us = self._run, self._clock.now_us()
        if run.instances.hopeless:
            return True
        quiet_ms = (now_us - max(run.effects.last_us, self._begun_us)) // 1000
        if not run.effects.pending:
            patient = now_us - self._begun_us < COMMITS_LATE_MS * 1000 and run.committed and not self._passed
            return quiet_ms >= QUIET_MS and not patient
        return self._passed and quiet_ms >= PASSED_QUIET_MS

    def end(self) -> None:
        """Ask no more."""
        self._run.waited_ms = (self._clock.now_us() - self._begun_us) // 1000
        self._questions.end()

    @property
    def _passed(self) -> bool:
        """True if the group has committed the end of each log partition that has records."""
        committed, ends = self._run.committed, self._questions.ends
        return len(ends) == len(self._run.inputs) and all(committed.get(name, 0) >= end for name, end in ends.items())


class InstancesEnding:
    """The end of all instances (:class:`workloads.closings.Work`)."""

    def __init__(self, run: ApplicationRun) -> None:
        self._run = run
        run.instances.ask_all_to_end()

    @property
    def finished(self) -> bool:
        """True if none runs."""
        return self._run.instances.all_ended

    def end(self) -> None:
        """Kill what is left, and what was left behind."""
        self._run.instances.kill_all()
        self._run.stop_reading()
