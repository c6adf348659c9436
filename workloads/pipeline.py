"""The readers of a pipeline: its members, readers of what they write, and questions what the group has committed."""

from __future__ import annotations

from functools import partial
from typing import Final

from workloads.consumers import Consumers
from workloads.group_end import CommittedQuestions, GroupEnd
from workloads.members import FREEZE_SESSIONS, Members, membership_of
from workloads.pipeline_member import Pipeline
from workloads.stable_offsets import ABORT_CHECK_MS

#: The pause between two questions what the group has committed, in the break phase.
ASK_MS: Final = 300
#: Readers of what the members write.
OUTPUT_READERS: Final = 1


class PipelineReaders:
    """The readers of the break phase (:class:`workloads.roles.Reading`).

    Members freeze past their session, and each third time past the time-out of their transaction, too.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        plan, settings = pipeline.plan, pipeline.settings
        freeze_ms = int(FREEZE_SESSIONS * settings.session_timeout_ms)
        self._clock = pipeline.readers.clock
        self._members = Members(
            self._clock,
            [partial(pipeline.member, slot) for slot in range(plan.consumers)],
            change_ms=plan.member_change_ms,
            freezes_ms=(freeze_ms, freeze_ms, settings.transaction_timeout_ms + ABORT_CHECK_MS),
        )
        self._outputs = Consumers(pipeline.readers, pipeline.outputs, OUTPUT_READERS)
        self._questions = CommittedQuestions(pipeline.readers, membership_of(plan, settings), pipeline.inputs)
        self._stopped = False

    @property
    def records_read(self) -> int:
        """The records that members and readers of their outputs read."""
        return self._members.records_read + self._outputs.records_read

    def start(self) -> None:
        """Read from now on."""
        self._members.start()
        self._outputs.start()
        self._ask()

    def stop(self) -> None:
        """Close every client."""
        self._stopped = True
        self._members.stop()
        self._outputs.stop()
        self._questions.consumer.close()

    def _ask(self) -> None:
        if not self._stopped:
            self._questions.ask(lambda _: self._clock.call_at(self._clock.now_us() + ASK_MS * 1000, self._ask))


def pipeline_end(pipeline: Pipeline) -> GroupEnd:
    """The end of a pipeline: a fresh member in each slot fences the producers before, and does what is left."""
    return GroupEnd(
        pipeline.readers,
        membership_of(pipeline.plan, pipeline.settings),
        [partial(pipeline.member, slot, calm=True) for slot in range(pipeline.plan.consumers)],
    )
