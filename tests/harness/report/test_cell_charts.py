"""Charts over all cells can be read with as many families as a campaign has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from checkers.verdicts.verdict import Verdict
from harness.records.verdict_lines import write_matrix
from harness.report.cell_charts import FAMILY_PX, availability_chart, loss_rate_chart
from workloads.settings import Settings

FAMILIES = [
    *("controller", "corrupt", "kill", "move", "partition", "pause"),
    *("power", "restart", "rolling", "slow-link", "wipe"),
]


def test_eleven_families_have_a_colour_and_room_each(campaign: tuple[Path, Callable[..., Verdict]]) -> None:
    directory, make = campaign
    for family in FAMILIES:
        make(Settings(acks=1), family=family, lost=1)
    cells = write_matrix(directory).cells
    for chart in (loss_rate_chart(cells), availability_chart(cells)):
        (scale,) = _scales(chart)
        assert scale["domain"] == FAMILIES
        assert len(set(scale["range"])) == len(FAMILIES)
        assert chart["spec"]["height"] >= FAMILY_PX * len(FAMILIES)


def _scales(chart: dict[str, Any]) -> list[dict[str, Any]]:
    layers = chart["spec"].get("layer") or [chart["spec"]]
    scales = [layer["encoding"]["color"]["scale"] for layer in layers]
    return [scale for place, scale in enumerate(scales) if scale not in scales[:place]]
