"""The phases of a run, its faults with their receipts, and its clients' fates, as its history tells them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from checkers.columns.ids import Numbers
from nemesis.receipts import Receipt
from workloads import ApplicationFacts, BrokenInvariant, FreshWrites, RefusedAttempts, Retirement
from workloads.history import MARKS, HistoryError

_FAULT, _PHASE, _RETIRE, _RECOVERY, _INVARIANT, _REFUSED, _APPLICATION = MARKS
_Detail = TypeVar("_Detail")
#: Names of the phases of a run.
WORKLOAD_BEGINS = ("break",)
HEALED = ("heal", "healed")
DRAINING = ("drain",)


class Mark(msgspec.Struct, frozen=True):
    """One row of :data:`workloads.history.MARKS`. ``detail`` is its JSON; ``index`` and ``process`` are the event's."""

    time_us: int
    function: int
    index: int
    process: int
    detail: str


class FaultSpan(NamedTuple):
    """A fault that took effect: its begin and its end on the run's clock, and its latest receipt."""

    begun_us: int
    ended_us: int
    receipt: Receipt


class _Phase(msgspec.Struct):
    mark: str


@dataclass(frozen=True)
class RunMarks:
    """The moments of a run that its history tells, in order of time."""

    moments: tuple[Mark, ...] = ()

    @cached_property
    def own(self) -> bool:
        """True if a run of ours wrote this history: it says when its phases began."""
        return any(moment.function == _PHASE for moment in self.moments)

    @cached_property
    def marked_receipts(self) -> list[tuple[Mark, Receipt]]:
        """Receipts of faults with their events; a fault that ended has two."""
        return self._facts(_FAULT, Receipt)

    @property
    def receipts(self) -> list[Receipt]:
        """Receipts of faults in the order of their events."""
        return [receipt for _, receipt in self.marked_receipts]

    @property
    def retirements(self) -> list[tuple[Mark, Retirement]]:
        """Producer instances that were given up."""
        return self._facts(_RETIRE, Retirement)

    @property
    def broken_invariants(self) -> list[tuple[Mark, BrokenInvariant]]:
        """States that the run's world saw and that the cluster's rules exclude."""
        return self._facts(_INVARIANT, BrokenInvariant)

    @property
    def recovery(self) -> tuple[Mark, FreshWrites] | None:
        """The writes of fresh clients after healing with their event, None if they tried no write."""
        return next(reversed(self._facts(_RECOVERY, FreshWrites)), None)

    @property
    def fresh_writes(self) -> FreshWrites | None:
        """The writes of fresh clients after healing, None if they tried no write."""
        return None if self.recovery is None else self.recovery[1]

    @property
    def refused_attempts(self) -> RefusedAttempts | None:
        """The attempts that leaders refused in the whole run, None if no world counted them."""
        return next((attempts for _, attempts in reversed(self._facts(_REFUSED, RefusedAttempts))), None)

    @property
    def application(self) -> ApplicationFacts | None:
        """The application under test at the end of the run, None without an application."""
        return next((facts for _, facts in reversed(self._facts(_APPLICATION, ApplicationFacts))), None)

    def _facts(self, function: int, kind: type[_Detail]) -> list[tuple[Mark, _Detail]]:
        """Marks of one kind with their facts. Those of another tool mean something else and are passed over."""
        facts = []
        for moment in self.moments:
            if moment.function == function:
                try:
                    facts.append((moment, msgspec.json.decode(moment.detail, type=kind)))
                except msgspec.DecodeError as error:
                    if kind is Receipt and self.own:  # a fault that is passed over would make its losses unexplained
                        why = f"a receipt of a fault cannot be read ({error}); restore the history"
                        raise HistoryError(why) from error
        return facts

    def phase_us(self, names: Iterable[str]) -> int | None:
        """The begin of the last phase with one of these names."""
        wanted = tuple(names)
        times = [moment.time_us for moment, phase in self._facts(_PHASE, _Phase) if phase.mark in wanted]
        return max(times, default=None)

    @cached_property
    def faults(self) -> list[FaultSpan]:
        """The faults that took effect, by their receipts, in order of their begins; those without a begin are left out.

        A fault counts from the event of its begin to that of its end, or for ever if no end is known.
        """
        begun: dict[int, int] = {}
        ended: dict[int, int] = {}
        for moment, receipt in self.marked_receipts:
            if receipt.mark == "begin":
                begun.setdefault(receipt.sequence, moment.time_us)
            elif receipt.mark == "end":
                ended[receipt.sequence] = moment.time_us
        latest = {receipt.sequence: receipt for receipt in self.receipts}
        spans = [
            FaultSpan(begun_us, ended.get(sequence, FOR_EVER), latest[sequence])
            for sequence, begun_us in begun.items()
            if latest[sequence].took_effect
        ]
        return sorted(spans, key=lambda span: span.begun_us)

    def fault_windows(self) -> Numbers:
        """Spans of time (int64, (n, 2), microseconds), merged and in order, inside which some fault was in effect."""
        return merged((fault.begun_us, fault.ended_us) for fault in self.faults)


#: The end of a span that does not end.
FOR_EVER = int(np.iinfo(np.int64).max)


def merged(spans: Iterable[tuple[int, int]]) -> Numbers:
    """Join spans of time that meet: int64, (n, 2), in order."""
    together: list[list[int]] = []
    for start, end in sorted(spans):
        if together and start <= together[-1][1]:
            together[-1][1] = max(together[-1][1], end)
        else:
            together.append([start, end])
    return np.array(together, dtype=np.int64).reshape(-1, 2)


def inside(times_us: Numbers, windows: Numbers) -> Any:
    """Mark those of ``times_us`` (bool) that lie in one of the merged windows (int64, (n, 2)), ends included."""
    if not len(windows):
        return np.zeros(len(times_us), dtype=bool)
    window = np.searchsorted(windows[:, 0], times_us, side="right") - 1
    return (window >= 0) & (times_us <= windows[np.maximum(window, 0), 1])
