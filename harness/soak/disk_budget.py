"""The disk of a soak: how much is used, and what goes so that the rest has room."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from harness.records.files import files_of
from harness.records.run_record import Ended
from harness.soak.ledger import Dropped, Performed, Planned
from harness.soak.resources import free_bytes, used_bytes
from harness.soak.state import RecordedState

#: Bytes that a run of a world is expected to leave before one of it has ended: in virtual time, and of real nodes.
_EXPECTED_VIRTUAL_BYTES: Final = 2_000_000
_EXPECTED_BYTES: Final = 60_000_000
#: Where something must go, a little more goes, so that not every run has to look again.
_SPARE_SHARE: Final = 0.02


class DiskBudget:
    """At most ``limit_bytes`` below the soak's directory; ``virtual`` are the names of worlds in virtual time.

    Attributes:
        used_bytes: what everything takes, as far as it is known: measured by :meth:`measure`.
    """

    def __init__(self, recorded: RecordedState, limit_bytes: int, virtual: frozenset[str]) -> None:
        self._recorded, self.limit_bytes, self._virtual = recorded, limit_bytes, virtual
        self.used_bytes = 0

    def measure(self, running: Iterable[Path]) -> None:
        """Look again: the files of runs that ended do not change, so they are not looked at each time."""
        state = self._recorded.state
        top = sum(entry.stat().st_size for entry in os.scandir(self._recorded.directory) if entry.is_file())
        waiting = sum(left_bytes for _, left_bytes in state.performed.values())
        self.used_bytes = top + state.kept_runs.bytes + waiting + sum(map(used_bytes, running))

    def performed(self, planned: Planned, ended: Ended) -> Performed:
        """The entry by which a run is over, with what it left."""
        left = used_bytes(self._recorded.directory / planned.place)
        self.used_bytes += left
        return Performed(turn=planned.turn, status=ended.status, wall_ms=ended.wall_ms, left_bytes=left)

    def has_for(self, worlds: Sequence[str]) -> bool:
        """There is room for what one run of each of ``worlds`` leaves, maybe after the longest findings have gone."""
        needed = sum(map(self._expected_bytes, worlds))
        if needed > self._free_bytes:
            self.drop(
                self._recorded.state.kept_runs.longest(
                    needed - self._free_bytes + round(_SPARE_SHARE * self.limit_bytes)
                )
            )
        return needed <= self._free_bytes

    @property
    def _free_bytes(self) -> int:
        return min(self.limit_bytes - self.used_bytes, free_bytes(self._recorded.directory))

    def _expected_bytes(self, world: str) -> int:
        usual = _EXPECTED_VIRTUAL_BYTES if world in self._virtual else _EXPECTED_BYTES
        return self._recorded.state.largest_bytes.get(world, usual)

    def drop(self, turns: Sequence[int]) -> None:
        """Delete the files of these judged turns: first it is written down, so that a later session goes on with it."""
        if turns:
            gone = [self._recorded.state.kept_runs.kept[turn] for turn in turns]
            self._recorded.write(Dropped(turns=tuple(turns)))
            for one in gone:
                self.remove(one.planned)
                self.used_bytes -= one.bytes

    def remove(self, planned: Planned) -> None:
        """Delete the files of a turn, if there are any."""
        place = self._recorded.directory / planned.place
        with files_of(place):
            if place.exists():
                shutil.rmtree(place)

    @property
    def sentence(self) -> str:
        """What is wrong where there is none."""
        if free_bytes(self._recorded.directory) < self.limit_bytes - self.used_bytes:
            return f"no space is left on the disk of {self._recorded.directory}; make room there"
        return (
            f"the disk limit is reached: {self.used_bytes / 1e6:,.0f} of {self.limit_bytes / 1e6:,.0f} MB are taken, "
            "by findings of which each is the last of its kind; raise --disk"
        )
