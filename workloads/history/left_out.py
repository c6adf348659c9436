"""Parts of a history that a check does not judge: said once for each kind, never passed over in silence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from workloads.application_facts import ApplicationFacts
from workloads.operations import (
    BrokenInvariant,
    CleanerTimes,
    FreshWrites,
    Function,
    GroupMember,
    RefusedAttempts,
    Retirement,
    StableOffset,
    TransactionEnd,
)

#: The struct that the detail of an event is, by function; the detail of others is free.
DETAILS: Final[Mapping[Function, type[msgspec.Struct]]] = {
    Function.TXN: TransactionEnd,
    Function.STABLE: StableOffset,
    Function.DRAIN: CleanerTimes,
    Function.RETIRE: Retirement,
    Function.RECOVERY: FreshWrites,
    Function.INVARIANT: BrokenInvariant,
    Function.REFUSED: RefusedAttempts,
    Function.APPLICATION: ApplicationFacts,
    **dict.fromkeys(
        (
            Function.COMMIT, Function.COMMITTED, Function.PROCESS, Function.REBALANCE, Function.OFFSETS,
            Function.DELETE_GROUP, Function.RESET, Function.SEEK,
        ),
        GroupMember,
    ),
}  # fmt: skip
#: Kinds that are told apart; a file that has more is of no kind that this reader knows.
KINDS_MAX: Final = 32
_FIELDS: Final = {kind: frozenset(kind.__struct_encode_fields__) for kind in DETAILS.values()}
_Names = dict[str, Any]


class LeftOut:
    """Sentences with the number of times that each applies, and the number of its first line."""

    def __init__(self) -> None:
        self.line = 0
        self.told: dict[str, tuple[int, int]] = {}
        self._good: set[str] = set()

    def add(self, what: str, times: int = 1, first: int | None = None) -> None:
        """Note that something was left out, in the line that is read now or from line ``first`` on."""
        if what in self.told:
            before, line = self.told[what]
            self.told[what] = before + times, line
        elif len(self.told) < KINDS_MAX:
            self.told[what] = times, self.line if first is None else first

    def add_fields(self, of: str, names: Collection[str]) -> None:
        """Note fields that no reader knows."""
        for name in sorted(map(str, names)):
            self.add(f"the field {msgspec.json.encode(name).decode()} of {of}")

    def look_at(self, function: Function, detail: str | None) -> None:
        """Note what of an event's detail is not understood."""
        kind = DETAILS.get(function)
        if detail is None or kind is None or detail in self._good:
            return
        try:
            names = msgspec.json.decode(detail, type=_Names).keys()
            msgspec.json.decode(detail, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.add(f"the detail of {function}: {error}")
            return
        unknown = names - _FIELDS[kind]
        if function is Function.TXN:
            unknown -= {"instance_id"}
        self.add_fields(f"the detail of {function}", unknown)
        if not unknown and len(self._good) < KINDS_MAX:
            self._good.add(detail)

    def follow(self, later: LeftOut, lines: int) -> None:
        """Add what a later part of the file left out, whose lines come after ``lines`` others."""
        for what, (times, line) in later.told.items():
            self.add(what, times, lines + line)

    @property
    def sentences(self) -> list[str]:
        """Sentences about what was left out, in the order of the lines."""
        return [*_sentences(self.told)]


def _sentences(told: Mapping[str, tuple[int, int]]) -> Iterable[str]:
    for what, (times, line) in told.items():
        where = f"first in line {line}" if line else ""
        often = f"{times} times" if times > 1 else ""
        together = ", ".join(filter(None, (often, where)))
        yield f"{what} ({together})" if together else what
