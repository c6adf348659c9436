"""The chart of one run over time: writes by what became of them, how slow they were, and its faults as bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from checkers import WritesOverTime
from harness.campaigns.report.names import fault_name
from harness.campaigns.report.svg import (
    Linear,
    Milliseconds,
    drawing,
    element,
    group,
    legend,
    milliseconds,
    path,
    point,
    title,
    x_axis,
    y_axis,
)
from nemesis.receipts import Receipt

#: Bands in one picture; later faults of a long run are in its receipts.
FAULTS_MAX: Final = 60
ANSWERS: Final = {"acknowledged": "#0072B2", "refused": "#D55E00", "unknown": "#CC79A7"}
_LEFT_PX: Final = 90
_WIDTH_PX: Final = 920
_PANEL_PX: Final = 90
#: The tops of the two panels, and the height of the whole.
_WRITES_PX: Final = 26
_SLOWEST_PX: Final = _WRITES_PX + _PANEL_PX + 12
_HEIGHT_PX: Final = _SLOWEST_PX + _PANEL_PX + 40


def over_time_chart(writes: WritesOverTime, receipts: Sequence[Receipt]) -> Markup:
    """Writes by the step in which they began, and a band for each of ``receipts``; empty where nothing was counted."""
    answers = (writes.acknowledged, writes.rejected, writes.unknown)
    if not any(map(any, answers)):
        return Markup("")
    end_us = writes.begun_us + writes.step_us * len(writes.acknowledged)
    time = Linear(writes.begun_us / 1e6, end_us / 1e6, 0, _WIDTH_PX, 12)
    step_s = writes.step_us / 1e6
    rate = Linear(0, max(map(sum, zip(*answers, strict=True))) / step_s, _PANEL_PX, 0, 3)
    slowest_ms = [slowest_us / 1000 for slowest_us in writes.slowest_us if slowest_us]
    slow = Milliseconds(min(slowest_ms, default=1), max(slowest_ms, default=1), _PANEL_PX - 4, 4)
    bands = group(*_bands(receipts, time), class_="band")
    upper = group(
        bands,
        y_axis(rate, 0, _WIDTH_PX, "writes/s"),
        *_bars(writes, time, rate),
        x_axis(time, _PANEL_PX, _PANEL_PX, names=False),
        x_px=_LEFT_PX,
        y_px=_WRITES_PX,
    )
    lower = group(
        bands,
        y_axis(slow, 0, _WIDTH_PX, ""),
        _slowest(writes, time, slow),
        x_axis(time, _PANEL_PX, _PANEL_PX, "seconds since the run began"),
        group(*_said(writes, time), class_="ask"),
        x_px=_LEFT_PX,
        y_px=_SLOWEST_PX,
    )
    head = legend("", ANSWERS, _LEFT_PX + 60, 4)
    return drawing(_LEFT_PX + _WIDTH_PX + 20, _HEIGHT_PX, "Writes over the whole run", head, upper, lower)


def _bands(receipts: Sequence[Receipt], time: Linear) -> Iterator[Markup]:
    for receipt in receipts[:FAULTS_MAX]:
        yield from fault_bar(receipt, time, height=_PANEL_PX)


def fault_bar(receipt: Receipt, time: Linear, *, least_px: float = 0, **look: float | str) -> Iterator[Markup]:
    """A bar for a fault, at least so wide; none where it is not within ``time``. ``look`` are attributes of it."""
    begin_s = max(time.low, receipt.begun_us / 1e6)
    end_s = time.high if receipt.ended_us is None else min(time.high, receipt.ended_us / 1e6)
    if begin_s < time.high and end_s > time.low:
        x_px = time.px(begin_s)
        width_px = max(time.px(end_s) - x_px, least_px)
        yield element("rect", title(fault_name(receipt)), **{"x": x_px, "y": 0, "width": width_px, **look})


def _bars(writes: WritesOverTime, time: Linear, rate: Linear) -> Iterator[Markup]:
    """A path for each answer: its bars stand on those of the answers before it."""
    step_s, width_px = writes.step_us / 1e6, time.px(writes.step_us / 1e6) - time.px(0)
    base = [0.0] * len(writes.acknowledged)
    for (answer, colour), counts in zip(
        ANSWERS.items(), (writes.acknowledged, writes.rejected, writes.unknown), strict=True
    ):
        steps: list[tuple[str, float | str]] = []
        for number, count in enumerate(counts):
            if count:
                top = base[number] + count / step_s
                steps += [("M", point(number * width_px, rate.px(base[number]))), ("V", rate.px(top))]
                steps += [("h", width_px), ("V", rate.px(base[number])), ("z", "")]
                base[number] = top
        if steps:
            yield element("g", title(f"{answer}: {sum(counts):,} writes"), path(steps, fill=colour))


def _slowest(writes: WritesOverTime, time: Linear, slow: Milliseconds) -> Markup:
    width_px = time.px(writes.step_us / 1e6) - time.px(0)
    steps = [
        step
        for number, slowest_us in enumerate(writes.slowest_us)
        if slowest_us
        for step in (("M", point(number * width_px, slow.px(slowest_us / 1000))), ("h", width_px))
    ]
    return path(steps, class_="ink", stroke_width=2.5)


def _said(writes: WritesOverTime, time: Linear) -> Iterator[Markup]:
    """A step's numbers, beside the pointer over both panels."""
    width_px = time.px(writes.step_us / 1e6) - time.px(0)
    for number, counts in enumerate(zip(writes.acknowledged, writes.rejected, writes.unknown, strict=True)):
        if any(counts):
            words = ", ".join(f"{count:,} {answer}" for count, answer in zip(counts, ANSWERS, strict=True) if count)
            slowest_us = writes.slowest_us[number]
            slowest = f"; slowest {milliseconds(slowest_us / 1000)}" if slowest_us else ""
            begun = f"{(writes.begun_us + number * writes.step_us) / 1e6:.1f} s"
            height_px = _SLOWEST_PX - _WRITES_PX + _PANEL_PX
            yield element(
                "rect",
                title(f"{begun}: {words}{slowest}"),
                x=number * width_px,
                y=_WRITES_PX - _SLOWEST_PX,
                width=width_px,
                height=height_px,
            )
