"""Charts are drawn when the page is written: readable with eleven families, with titles, and text is text."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import Latency, Verdict, WritesOverTime
from harness.campaigns.report.cells_charts import (
    COLOURS,
    LINE_PX,
    STEPS_DRAWN_MAX,
    availability_chart,
    latency_chart,
    loss_rate_chart,
)
from harness.campaigns.report.over_time import over_time_chart
from harness.campaigns.report.price import prices_of
from harness.campaigns.report.svg import LETTER_PX, Linear, Milliseconds, cut, element, text, title
from harness.campaigns.report.trend_chart import trend_chart
from harness.records.verdict_lines import write_matrix
from tests.harness.campaigns.report.conftest import kill_receipt
from workloads.settings import Settings

FAMILIES = [
    *("controller", "corrupt", "kill", "move", "partition", "pause"),
    *("power", "restart", "rolling", "slow-link", "wipe"),
]


def titles(drawing: str) -> list[str]:
    return [mark.text or "" for mark in Xml.fromstring(drawing).iter("title")]  # noqa: S314 - our own


@pytest.mark.parametrize("make_chart", [loss_rate_chart, availability_chart])
def test_eleven_families_have_a_colour_and_room_each(
    campaign: tuple[Path, Callable[..., Verdict]], make_chart: Callable[..., Any]
) -> None:
    directory, make = campaign
    for family in FAMILIES:
        make(Settings(acks=1), family=family, lost=1)
    drawing = Xml.fromstring(make_chart(write_matrix(directory).cells))  # noqa: S314 - our own
    colours = {group.get("fill") for group in drawing.iter("g")} - {None}
    assert colours == set(COLOURS[: len(FAMILIES)])
    words = {mark.text for mark in drawing.iter("text")}
    assert words.issuperset(FAMILIES)
    rows_px = [
        float(mark.get("y") or mark.get("cy") or "nan") for mark in (*drawing.iter("circle"), *drawing.iter("rect"))
    ]
    heights = sorted(y_px for y_px in rows_px if y_px > LINE_PX)
    assert min(b - a for a, b in pairwise(heights)) >= LINE_PX - 0.1


def test_a_rate_says_its_interval_beside_the_pointer(campaign: tuple[Path, Callable[..., Verdict]]) -> None:
    directory, make = campaign
    make(Settings(acks=1), lost=1)
    (said,) = titles(loss_rate_chart(write_matrix(directory).cells))
    assert said == "acks=1, min.insync.replicas=1, kill, simulated: 1 of 1 runs lost: 2.5 % to 100 %"


def test_a_price_says_what_was_lost_written_twice_and_reordered_for_it(
    campaign: tuple[Path, Callable[..., Verdict]],
) -> None:
    directory, make = campaign
    make(Settings(acks=1), cell="acks=1/kill", lost=2)
    make(Settings(), cell="acks=all/kill", counts={"duplicate": 5, "reordered": 3})
    make(Settings(), cell="acks=all/pause", counts={"duplicate": 1})
    prices = {price.settings: price for price in prices_of(write_matrix(directory).cells)}
    sums = {name: (price.lost, price.doubled, price.reordered) for name, price in prices.items()}
    assert sums == {"acks=1": (2, 0, 0), "acks=all": (0, 6, 3)}


def test_latencies_of_many_settings_are_drawn_in_coarser_steps(
    campaign: tuple[Path, Callable[..., Verdict]],
) -> None:
    directory, make = campaign
    spread = Latency(calm=dict.fromkeys(range(160), 10), in_fault=dict.fromkeys(range(160), 10))
    shares = {}
    for settings in (1, 40):
        make(Settings(replica_lag_time_max_ms=1_000 + settings), cell=f"lag={settings}/kill", latency=spread)
        prices = prices_of(write_matrix(directory).cells) * settings
        drawing = latency_chart([price._replace(settings=f"{n}") for n, price in enumerate(prices[:40])])
        shares[settings] = len(titles(drawing)) / len(prices[:40])
        assert len(titles(drawing)) <= STEPS_DRAWN_MAX
    assert shares[40] < shares[1]


def test_a_run_without_writes_has_no_chart_over_time() -> None:
    nothing = WritesOverTime(begun_us=0, step_us=1, acknowledged=[0], rejected=[0], unknown=[0], slowest_us=[0])
    assert over_time_chart(nothing, []) == ""


def test_each_step_of_a_run_and_each_fault_says_what_it_was() -> None:
    writes = WritesOverTime(
        begun_us=0, step_us=4_000_000, acknowledged=[9, 0], rejected=[0, 3], unknown=[0, 0], slowest_us=[7_000, 0]
    )
    said = titles(over_time_chart(writes, [kill_receipt()]))
    assert "kill broker 0 [leader of partition 0]" in said
    assert "0.0 s: 9 acknowledged; slowest 7 ms" in said
    assert "4.0 s: 3 refused" in said


def test_a_fault_outside_of_the_run_is_not_drawn() -> None:
    writes = WritesOverTime(
        begun_us=0, step_us=1_000_000, acknowledged=[9], rejected=[0], unknown=[0], slowest_us=[7_000]
    )
    assert not [said for said in titles(over_time_chart(writes, [kill_receipt()])) if "kill" in said]


def test_a_trend_is_a_line_for_each_thing_and_nothing_without_values() -> None:
    assert trend_chart("runs", {}) == ""
    drawing = trend_chart("runs an hour", {"runs": [(3, 10.0), (4, 30.5)], "others": [(4, 0.0)]})
    assert titles(drawing) == ["runs, night 3: 10", "runs, night 4: 30.5", "others, night 4: 0"]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12))
def test_ticks_are_within_the_scale_round_and_about_as_many_as_asked(low: float, span: float, about: int) -> None:
    scale = Linear(low, low + span, 0, 500, about)
    ticks = list(scale.ticks())
    assert all(-0.001 <= scale.px(value) <= 500.001 for value in ticks)
    assert len(ticks) <= about + 1


@given(st.floats(1e-3, 1e3), st.floats(1.5, 1e4))
def test_ticks_of_times_are_powers_of_ten_within_the_scale(low: float, factor: float) -> None:
    scale = Milliseconds(low, low * factor, 500, 0)
    assert all(-0.001 <= scale.px(value) <= 500.001 for value in scale.ticks())


def test_a_scale_of_a_single_value_has_a_pixel_for_it() -> None:
    assert Linear(3, 3, 10, 20).px(3) == 10
    assert Milliseconds(3, 3, 10, 20).px(3) == 10


@pytest.mark.parametrize(
    ("room_px", "expected"), [(100, "kill broker 0"), (10 * LETTER_PX, "kill brok…"), (5 * LETTER_PX, "")]
)
def test_a_label_is_cut_to_its_room_or_left_out(room_px: float, expected: str) -> None:
    assert cut("kill broker 0", room_px) == expected


def test_markup_in_words_and_attributes_is_text() -> None:
    drawn = element("g", title("<script>"), text("<b>", 0, 0), class_='"><img>')
    assert (
        drawn == '<g class="&#34;&gt;&lt;img&gt;"><title>&lt;script&gt;</title><text x="0" y="0">&lt;b&gt;</text></g>'
    )
