"""A workload with an ending of its own takes its file and its entry: the phases of a run do its closing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.harness.newcomer import ROOT, answers_of

#: The workload's own file.
FILE: Final = '''
"""A log that is read once more when it was quiet for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from workloads.closings import CLOSING_MS, Begun, Closings, Levels, Work
from workloads.plan import WorkloadPlan
from workloads.steady_writes import DueWrite, steady

if TYPE_CHECKING:
    from workloads.ending import RunEnding

QUIET_MS = 5_000


def writes(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """The writes of `steady`, read again after five quiet seconds."""
    yield from steady(plan)


class LateRead:
    """A read that begins late."""

    def __init__(self, ending: RunEnding) -> None:
        self._ending = ending
        self._read: Work | None = None
        ending.clock.call_at(ending.clock.now_us() + QUIET_MS * 1000, self._begin)

    def _begin(self) -> None:
        self._read = self._ending.read(self._ending.settings.isolation_level)

    @property
    def finished(self) -> bool:
        """True once all was read."""
        return self._read is not None and self._read.finished

    def end(self) -> None:
        """Close its clients."""
        if self._read is not None:
            self._read.end()


class ReadLate(msgspec.Struct, frozen=True):
    """Read again after a while."""

    def begin(self, ending: RunEnding) -> Begun:
        """Wait, and read."""
        return Begun(LateRead(ending), QUIET_MS + ending.plan.drain_limit_ms // 2, CLOSING_MS)


def closings(_levels: Levels, _brokers: Sequence[int]) -> Closings:
    """One late read."""
    return Closings(after=(ReadLate(),))
'''
#: The entry in workloads/generators.py, with the lines that its parts are put before.
ENTRY: Final = (
    ("from workloads.plan import LISTED", "from workloads import late_reading\n"),
    (
        '    "steady": WorkloadKind(',
        '    "late-reading": WorkloadKind(late_reading.writes, ("lost-write",), closings=late_reading.closings),\n',
    ),
)
ASKED: Final = """
import json
from pathlib import Path

from harness.plan import parse_plan
from harness.records.files import HISTORY
from harness.runs.run import perform_run
from workloads import EventType, Function
from workloads.history import read_events

plan = (
    'seed = 1\\nfamilies = ["kill"]\\nworkload = { name = "late-reading", duration_ms = 3_000 }\\n'
    'worlds = { simulated = { runs = 1 } }\\n'
)
(spec,) = parse_plan(plan, "p.toml").runs()
status = perform_run(spec, Path("run")).status
drains = [e for e in read_events(Path("run") / HISTORY) if e.function is Function.DRAIN and e.type is EventType.OK]
print(json.dumps({"status": status, "drains": [(e.partitions[0], e.time_us) for e in drains]}))
"""


@pytest.mark.system
def test_a_closing_in_the_file_of_its_workload_is_performed_and_seen_in_the_history(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "workloads", tmp_path / "workloads")
    (tmp_path / "workloads/late_reading.py").write_text(FILE)
    registry = tmp_path / "workloads/generators.py"
    for before, line in ENTRY:
        text = registry.read_text()
        assert text.count(before) == 1, before
        registry.write_text(text.replace(before, line + before))
    told = answers_of(tmp_path, ASKED)
    assert told["status"] == "completed"
    names = sorted(f"ackproof-{number}" for number in range(3))
    first, late = told["drains"][:3], told["drains"][3:]
    assert sorted(name for name, _ in first) == sorted(name for name, _ in late) == names
    assert min(time_us for _, time_us in late) - max(time_us for _, time_us in first) >= 5_000_000
