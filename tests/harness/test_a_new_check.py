"""A new workload, anomaly and measure take the files that the guide names: verdicts, pages and tables know them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.harness.newcomer import ROOT, answers_of

ANOMALY: Final = '''
"""``seventh-read``: the record at offset 7 was read.

Example: a poll reads ``z@7``.

Findings: key, value, offset. O(n).
"""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.view import CopiesView
from checkers.columns.log import Log
from checkers.words import written


class SeventhRead(Finding, kw_only=True):
    """A record at offset 7 that was read."""

    value: int
    offset: int

    @override
    def words(self) -> str:
        return f"{written(self.value).capitalize()} was read at offset {self.offset}, which is unlucky."

    @override
    def view(self) -> CopiesView:
        return CopiesView(offset=self.offset)


def find(log: Log) -> Found:
    """The first read of each value at offset 7."""
    rows = log.reads[log.offset[log.reads] == 7]
    _, first = np.unique(log.value_id[rows], return_index=True)
    rows = rows[first]

    def describe(number: int) -> SeventhRead:
        row = int(rows[number])
        return SeventhRead(key=log.key(row), value=int(log.value[row]), offset=7)

    return Found(partition=log.partition[rows], describe=describe, row=rows, rank=rows)


ANOMALY = Anomaly.documented(
    "seventh-read",
    __doc__,
    SeventhRead,
    find,
    about=About.READERS,
    title="Somebody read offset 7",
    rule="Offset 7 is not for reading.",
)
'''
MEASURE: Final = '''
"""Rows that readers had."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.columns.log import Log
from checkers.columns.phases import RunMarks
from checkers.measures.measure import Measure


class RowsRead(Measure):
    """The number of rows that readers had."""

    rows: int = 0

    @classmethod
    def of_each(cls, log: Log, phases: Sequence[RunMarks]) -> list[RowsRead]:
        """Count the rows that readers got."""
        history = log.partition_history[log.partition[log.reads]]
        return [cls(rows=int((history == number).sum())) for number in range(len(phases))]
'''
WORKLOAD: Final = '''
def halves(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """Writes in the second half of each second only."""
    return (write for write in steady(plan) if write.due_us % 1_000_000 >= 500_000)


WORKLOADS["halves"] = WorkloadKind(halves, ("seventh-read", "rows_read"))
'''
#: The one line in a door or struct, with the line that it is put before; all in files that the guide names.
LINES: Final = (
    ("checkers/anomalies/__init__.py", "    two_owners,\n", "    seventh_read,\n"),
    ("checkers/anomalies/__init__.py", "        two_owners.ANOMALY,\n", "        seventh_read.ANOMALY,\n"),
    (
        "checkers/verdicts/verdict.py",
        "from checkers.measures.situations",
        "from checkers.measures.rows_read import RowsRead\n",
    ),
    (
        "checkers/verdicts/verdict.py",
        "    latency: Latency = ",
        "    rows_read: RowsRead = msgspec.field(default_factory=RowsRead)\n",
    ),
    ("workloads/generators.py", "def _listed(", f"{WORKLOAD}\n\n"),
)
ASKED: Final = """
import json
from pathlib import Path

from harness.cli.app import exit_code_of
from harness.records.schemas import schema_text
from scripts.reference.anomalies import anomalies
from scripts.reference.plan_keys import plan_keys

Path("p.toml").write_text(
    'families = ["kill"]\\nworkload = { name = "halves", partitions = 1 }\\nworlds = { simulated = { runs = 1 } }\\n'
)
code = exit_code_of(["campaign", "p.toml", "--out", "out", "--seed", "1"])
(verdict,) = [line for line in map(json.loads, Path("out/verdicts.jsonl").read_text().splitlines()) if "counts" in line]
junit = Path("out/junit.xml").read_text()
schema = schema_text("verdicts.v1.schema.json").decode()
print(json.dumps({
    "exit code": code,
    "found": verdict["counts"]["seventh-read"],
    "rows are counted": verdict["rows_read"]["rows"] > 0,
    "page": [
        words in Path("out/report.html").read_text()
        for words in (
            "seventh-read",
            "Somebody read offset 7",
            "Offset 7 is not for reading.",
            "was read at offset 7, which is unlucky",
            "Records around offset 7 of",
        )
    ],
    "matrix": "seventh-read" in Path("out/matrix.md").read_text(),
    "junit": ["seventh-read" in junit, "was read at offset 7, which is unlucky" in junit],
    "schema": ["SeventhRead" in schema, "RowsRead" in schema],
    "reference": ["seventh-read" in anomalies(), "`halves`" in plan_keys()],
}))
"""


@pytest.mark.system
def test_a_workload_an_anomaly_and_a_measure_are_known_everywhere(tmp_path: Path) -> None:
    for package in ("checkers", "workloads"):
        shutil.copytree(ROOT / package, tmp_path / package)
    (tmp_path / "checkers/anomalies/seventh_read.py").write_text(ANOMALY)
    (tmp_path / "checkers/measures/rows_read.py").write_text(MEASURE)
    for file, before, line in LINES:
        text = (tmp_path / file).read_text()
        assert text.count(before) == 1, (file, before)
        (tmp_path / file).write_text(text.replace(before, line + before))
    assert answers_of(tmp_path, ASKED) == {
        "exit code": 1,
        "found": 1,
        "rows are counted": True,
        "page": [True] * 5,
        "matrix": True,
        "junit": [True, True],
        "schema": [True, True],
        "reference": [True, True],
    }
