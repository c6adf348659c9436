"""The chart of one run over time: writes by what became of them, how slow they were, and its faults as bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers import WritesOverTime
from harness.report.charts import OVER_TIME, Chart
from harness.report.names import fault_name
from nemesis.receipts import Receipt

#: Bands in one picture; later faults of a long run are in its receipts.
FAULTS_MAX: Final = 60


def over_time_chart(writes: WritesOverTime, receipts: Sequence[Receipt]) -> Chart | None:
    """Writes by the step in which they began, and a band for each of ``receipts``; None where nothing was counted.

    Steps are columns of one row, which the specification takes apart: a hundred stories share a page.
    """
    if not any((*writes.acknowledged, *writes.rejected, *writes.unknown)):
        return None
    begin_s, step_s = writes.begun_us / 1e6, writes.step_us / 1e6
    end_s = begin_s + step_s * len(writes.acknowledged)
    bands = [
        {
            "begin": max(begin_s, receipt.begun_us / 1e6),
            "end": end_s if receipt.ended_us is None else min(end_s, receipt.ended_us / 1e6),
            "tip": fault_name(receipt),
        }
        for receipt in receipts[:FAULTS_MAX]
        if receipt.begun_us / 1e6 < end_s and (receipt.ended_us is None or receipt.ended_us / 1e6 > begin_s)
    ]
    steps = {
        "begun": begin_s,
        "step": step_s,
        "acknowledged": writes.acknowledged,
        "refused": writes.rejected,
        "unknown": writes.unknown,
        "slowest": [time_us / 1000 for time_us in writes.slowest_us],
    }
    return Chart(
        template=OVER_TIME,
        params=[{"name": "begin_s", "value": begin_s}, {"name": "end_s", "value": end_s}],
        datasets={"steps": [steps], "bands": bands},
    )
