"""What a history tells of its run beside operations: when phases began, faults with their receipts, and what came of
clients.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from checkers.columns.ids import Numbers
from workloads import BrokenInvariant, FreshWrites, Function, Retirement
from workloads.history import FUNCTION_CODE

_FAULT, _PHASE, _RETIRE, _RECOVERY, _INVARIANT = (
    FUNCTION_CODE[name]
    for name in (Function.FAULT, Function.PHASE, Function.RETIRE, Function.RECOVERY, Function.INVARIANT)
)
_Detail = TypeVar("_Detail", Retirement, FreshWrites, BrokenInvariant)
#: What the phases of a run are called.
WORKLOAD_BEGINS = ("break",)
HEALED = ("heal", "healed")
DRAINING = ("drain",)


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """One row of :data:`workloads.history.MARKS`. ``detail`` is its JSON object, decoded.

    ``index`` and ``process`` are those of the event.
    """

    time_us: int
    function: int
    index: int
    process: int
    detail: dict[str, Any]


class FaultSpan(NamedTuple):
    """A fault that took effect: its begin and its end on the run's clock, and its receipt, the latest, as stored."""

    begun_us: int
    ended_us: int
    receipt: dict[str, Any]


class Phases(msgspec.Struct, frozen=True):
    """What one history tells of its run, in order of time."""

    moments: tuple[Moment, ...] = ()

    @property
    def own(self) -> bool:
        """Whether a run of ours wrote this history: it says when its phases began."""
        return any(moment.function == _PHASE for moment in self.moments)

    @property
    def receipts(self) -> list[dict[str, Any]]:
        """Details of faults as they stand in the history."""
        return [moment.detail for moment in self.moments if moment.function == _FAULT and "mark" in moment.detail]

    @property
    def retirements(self) -> list[tuple[Moment, Retirement]]:
        """Producer instances that were given up."""
        return self._facts(_RETIRE, Retirement)

    @property
    def broken_invariants(self) -> list[tuple[Moment, BrokenInvariant]]:
        """What the run's world saw in its cluster that the cluster's rules exclude."""
        return self._facts(_INVARIANT, BrokenInvariant)

    @property
    def fresh_writes(self) -> FreshWrites | None:
        """What fresh clients could write after healing, None where nobody tried."""
        return next((found for _, found in reversed(self._facts(_RECOVERY, FreshWrites))), None)

    def _facts(self, function: int, kind: type[_Detail]) -> list[tuple[Moment, _Detail]]:
        """Marks of one kind with their facts; those of another tool, which mean something else, are passed over."""
        found = []
        for moment in self.moments:
            if moment.function == function:
                with contextlib.suppress(msgspec.ValidationError):
                    found.append((moment, msgspec.convert(moment.detail, kind)))
        return found

    def phase_us(self, names: Iterable[str]) -> int | None:
        """When the last phase of one of these names began."""
        times = [m.time_us for m in self.moments if m.function == _PHASE and m.detail.get("mark") in tuple(names)]
        return max(times, default=None)

    @property
    def faults(self) -> list[FaultSpan]:
        """The faults that took effect, by their receipts, in order of their begins; those without a begin are left out.

        A fault counts from the event of its begin to that of its end, or for ever if no end is known.
        """
        begun: dict[Any, int] = {}
        ended: dict[Any, int] = {}
        latest: dict[Any, dict[str, Any]] = {}
        for moment in self.moments:
            which = moment.detail.get("sequence")
            if moment.function != _FAULT or which is None:
                continue
            latest[which] = moment.detail
            if moment.detail.get("mark") == "begin":
                begun.setdefault(which, moment.time_us)
            elif moment.detail.get("mark") == "end":
                ended[which] = moment.time_us
        spans = [
            FaultSpan(begun_us, ended.get(which, FOR_EVER), latest[which])
            for which, begun_us in begun.items()
            if latest[which].get("took_effect")
        ]
        return sorted(spans, key=lambda span: span.begun_us)

    def fault_windows(self) -> Numbers:
        """Spans of time (int64, (n, 2), microseconds), merged and in order, inside which some fault was in effect."""
        return merged((fault.begun_us, fault.ended_us) for fault in self.faults)


#: The end of what has none.
FOR_EVER = int(np.iinfo(np.int64).max)


def merged(spans: Iterable[tuple[int, int]]) -> Numbers:
    """Spans of time that meet as one: int64, (n, 2), in order."""
    together: list[list[int]] = []
    for start, end in sorted(spans):
        if together and start <= together[-1][1]:
            together[-1][1] = max(together[-1][1], end)
        else:
            together.append([start, end])
    return np.array(together, dtype=np.int64).reshape(-1, 2)


def decode_detail(text: str | None) -> dict[str, Any]:
    """The JSON object of a moment; a text that is none is kept under "text"."""
    try:
        detail = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        detail = text
    return detail if isinstance(detail, dict) else {"text": detail}


def inside(times_us: Numbers, windows: Numbers) -> Any:
    """Of ``times_us``: whether it lies in one of the merged windows (int64, (n, 2)), ends included (bool)."""
    if not len(windows):
        return np.zeros(len(times_us), dtype=bool)
    place = np.searchsorted(windows[:, 0], times_us, side="right") - 1
    return (place >= 0) & (times_us <= windows[np.maximum(place, 0), 1])
