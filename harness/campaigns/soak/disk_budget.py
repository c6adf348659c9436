"""The disk of a soak: how much is used, and what goes so that the rest has room."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from harness.campaigns.soak.ledger import Dropped, Performed, Planned
from harness.campaigns.soak.resources import free_bytes, megabytes, used_bytes
from harness.campaigns.soak.state import RecordedState
from harness.ground.errors import NamedWronglyError
from harness.plan import AnyWorld
from harness.records.files import files_of
from harness.records.run_record import Ended

#: Bytes that a run of a world is expected to leave before one of it has ended: in virtual time, and of real nodes.
_EXPECTED_VIRTUAL_BYTES: Final = 2_000_000
_EXPECTED_BYTES: Final = 60_000_000
#: Bytes of the lines that ledger and verdicts have of a run: they are written after its room was looked for.
_LINES_BYTES: Final = 10_000
#: A clean-up removes this share more than it must, so that not every run has to look again.
_SPARE_SHARE: Final = 0.02


def refuse_too_little(disk_bytes: int, worlds: Collection[AnyWorld]) -> None:
    """Refuse a limit without room for a run of any of ``worlds`` beside a finding as large, before anything is made.

    Raises:
        NamedWronglyError: it is too small; the sentence names the least that is not.
    """
    largest = max(worlds, key=lambda world: _usual_bytes(virtual=world.virtual_time))
    run_bytes = _usual_bytes(virtual=largest.virtual_time)
    if disk_bytes < 2 * run_bytes:
        raise NamedWronglyError(
            f"--disk {megabytes(disk_bytes)} is too small: one run in the world {largest.name} may leave "
            f"{megabytes(run_bytes)}, and findings are kept beside it; write --disk {megabytes(2 * run_bytes)} or more"
        )


def _usual_bytes(*, virtual: bool) -> int:
    return _EXPECTED_VIRTUAL_BYTES if virtual else _EXPECTED_BYTES


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
        waiting = sum(left_bytes + _LINES_BYTES for _, left_bytes in state.performed.values())
        self.used_bytes = top + state.kept_runs.bytes + waiting + sum(map(used_bytes, running))

    def performed(self, planned: Planned, ended: Ended) -> Performed:
        """The entry by which a run is over, with what it left."""
        left = used_bytes(self._recorded.directory / planned.directory)
        self.used_bytes += left + _LINES_BYTES
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

    def is_free_for(self, world: str) -> bool:
        """The disk itself has room for what a run of ``world`` leaves, whatever the limit is."""
        return free_bytes(self._recorded.directory) >= self._expected_bytes(world)

    @property
    def _free_bytes(self) -> int:
        return min(self.limit_bytes - self.used_bytes, free_bytes(self._recorded.directory))

    def _expected_bytes(self, world: str) -> int:
        usual = _usual_bytes(virtual=world in self._virtual)
        return self._recorded.state.largest_bytes.get(world, usual) + _LINES_BYTES

    def drop(self, turns: Sequence[int]) -> None:
        """Delete the files of these judged turns: first it is written down, so that a later session goes on with it."""
        if turns:
            gone = [self._recorded.state.kept_runs.kept[turn] for turn in turns]
            self._recorded.write(Dropped(turns=tuple(turns)))
            for run in gone:
                self.remove(run.planned)
                self.used_bytes -= run.bytes

    def remove(self, planned: Planned) -> None:
        """Delete the files of a turn, if there are any."""
        directory = self._recorded.directory / planned.directory
        with files_of(directory):
            if directory.exists():
                shutil.rmtree(directory)

    def why_no_room(self, world: str) -> str:
        """Say why there is no room for one run of ``world``, and what to do."""
        needed = self._expected_bytes(world)
        may_leave = f"one run in the world {world} may leave {megabytes(needed)}"
        free = free_bytes(self._recorded.directory)
        if free < self.limit_bytes - self.used_bytes:
            return (
                f"no space is left for a run on the disk of {self._recorded.directory}: {megabytes(free)} are free, "
                f"and {may_leave}; make room there"
            )
        kept = ", by findings, and each is the last of its kind" if self._recorded.state.kept_runs.kept else ""
        return (
            f"the disk limit is reached: {megabytes(self.used_bytes)} of {megabytes(self.limit_bytes)} are taken"
            f"{kept}, and {may_leave}; raise --disk to {megabytes(self.used_bytes + needed)} or more"
        )
