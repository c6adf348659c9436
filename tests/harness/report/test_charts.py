"""Charts can be read with as many families as a campaign has, and labels fit the width that is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from checkers import Verdict
from harness.records.verdict_lines import write_matrix
from harness.report.charts import FAMILY_PX, LOSS, availability_chart, chart_templates, loss_rate_chart
from harness.report.loss_chart import BROKERS
from workloads.settings import Settings

FAMILIES = [
    *("controller", "corrupt", "kill", "move", "partition", "pause"),
    *("power", "restart", "rolling", "slow-link", "wipe"),
]


@pytest.mark.parametrize("make_chart", [loss_rate_chart, availability_chart])
def test_eleven_families_have_a_colour_and_room_each(
    campaign: tuple[Path, Callable[..., Verdict]], make_chart: Callable[..., Any]
) -> None:
    directory, make = campaign
    for family in FAMILIES:
        make(Settings(acks=1), family=family, lost=1)
    cells = write_matrix(directory).cells
    chart = make_chart(cells)
    specification = chart_templates(cells)[chart.template] | {"datasets": chart.datasets, "params": chart.params}
    range_ = specification["spec"]["encoding"]["color"]["scale"]["range"]
    drawing = vl_convert.vegalite_to_svg(specification)
    assert all(f">{family}<" in drawing for family in FAMILIES)
    assert all(colour in drawing for colour in range_[: len(FAMILIES)])
    assert len(set(range_)) >= len(FAMILIES)
    assert specification["spec"]["height"] == {"step": FAMILY_PX * len(FAMILIES), "for": "position"}


def test_both_panels_of_a_loss_are_equally_wide_and_use_the_same_colours() -> None:
    panels = chart_templates([])[LOSS]["vconcat"]
    assert panels[0]["width"] == panels[1]["width"]
    assert tuple(panels[1]["encoding"]["color"]["scale"]["range"][1:]) == BROKERS
