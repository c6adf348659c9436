"""A script: what happens in a story, step by step, whatever is expected of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from harness.runs.stories.stage.names import BASE
from harness.runs.stories.steps import Step
from harness.runs.stories.steps.faults import Abandon
from harness.runs.stories.steps.groups import GroupStep
from harness.runs.stories.steps.transactions import BeginTransaction, WriteElsewhere, WriteInTransaction
from harness.runs.stories.steps.writes import WriteRecord
from nemesis.faults import Fault
from workloads.driver import DueWrite


class StoryScript(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a story. ``settings`` are those that they need in every column, under Kafka's names."""

    number: str
    title: str
    settings: Mapping[str, object]
    steps: tuple[Step, ...]

    @property
    def writes(self) -> Iterator[WriteRecord | WriteInTransaction]:
        """The steps that write a record."""
        return (step for step in self.steps if isinstance(step, WriteRecord | WriteInTransaction))

    @property
    def records(self) -> tuple[str, ...]:
        """Every record, in the order in which they are written."""
        return (BASE, *(step.record for step in self.writes))

    @property
    def keys(self) -> Mapping[str, bytes]:
        """The key of each record: that of the one that it is written over, or deletes, or else its own name."""
        keys: dict[str, bytes] = {}
        for step in self.writes:
            keys[step.record] = keys.get(step.keyed_as, step.keyed_as.encode())
        return keys

    @property
    def transactions(self) -> Mapping[str, tuple[str, ...]]:
        """The records of each transaction, in their order; empty where it has none."""
        return {name: tuple(step.record for step in steps) for name, steps in self._of_transactions.items()}

    @property
    def planned(self) -> Mapping[str, list[DueWrite]]:
        """The writes of each transaction, to the first log partition or elsewhere, in their order."""
        keys = self.keys
        return {
            name: [DueWrite(0, 0, int(isinstance(step, WriteElsewhere)), keys[step.record], 0) for step in steps]
            for name, steps in self._of_transactions.items()
        }

    @property
    def _of_transactions(self) -> Mapping[str, list[WriteInTransaction]]:
        begun = [step.transaction for step in self.steps if isinstance(step, BeginTransaction)]
        writes = [step for step in self.steps if isinstance(step, WriteInTransaction)]
        return {name: [step for step in writes if step.transaction == name] for name in begun}

    @property
    def elsewhere(self) -> frozenset[str]:
        """The records that transactions write to a second log partition."""
        return frozenset(step.record for step in self.steps if isinstance(step, WriteElsewhere))

    @property
    def log_partitions(self) -> int:
        """The number of log partitions that it writes to."""
        return 2 if self.elsewhere else 1

    @property
    def grouped(self) -> bool:
        """True if a consumer group has a part in it."""
        return self.first(GroupStep) is not None

    @property
    def workload(self) -> str:
        """The workload by which a run of it is judged, and whose topics the cluster gets; only the script writes."""
        if self.grouped:
            return "groups"
        if self.transactions:
            return "transactions"
        return "keyed" if self.compacted else "steady"

    @property
    def compacted(self) -> bool:
        """True if its topic is compacted."""
        return "compact" in str(self.settings.get("cleanup.policy", ""))

    def first(self, *kinds: type[Step]) -> Step | None:
        """The first step of one of these kinds, if there is any."""
        return next((step for step in self.steps if isinstance(step, kinds)), None)

    @property
    def abandons(self) -> bool:
        """True if a dead broker never returns, so that its copy is gone."""
        return self.first(Abandon) is not None

    def faults(self) -> dict[type[Fault], Step]:
        """Every kind of fault that its steps begin, with the first step that does."""
        return {step.begins: step for step in reversed(self.steps) if step.begins is not None}
