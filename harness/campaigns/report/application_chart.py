"""The chart of an application over a run: inputs, effects and commits, and below them its instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from markupsafe import Markup

from checkers import ApplicationCounts
from harness.campaigns.report.over_time import FAULTS_MAX, fault_bar
from harness.campaigns.report.svg import (
    Linear,
    drawing,
    element,
    group,
    legend,
    path,
    point,
    text,
    title,
    x_axis,
    y_axis,
)
from nemesis.receipts import Receipt
from workloads import InputProgress

#: By line, its colour.
LINES: Final = {"inputs": "#0072B2", "with an effect": "#009E73", "committed": "#D55E00"}
_NUMBERS: Final[dict[str, Callable[[InputProgress], int]]] = {
    "inputs": lambda progress: progress.inputs,
    "with an effect": lambda progress: progress.done,
    "committed": lambda progress: progress.committed,
}
_FAULT: Final = "#CC79A7"
_LEFT_PX: Final = 90
_WIDTH_PX: Final = 920
_PANEL_PX: Final = 140
_TRACK_PX: Final = 18
_HEAD_PX: Final = 26
_BETWEEN_PX: Final = 12
_FOOT_PX: Final = 40


def application_chart(counts: ApplicationCounts, receipts: Sequence[Receipt]) -> Markup:
    """The chart of one run, whose faults are ``receipts``; empty where nothing was looked at."""
    progress = counts.progress
    if len(progress) < 2:
        return Markup("")
    time = Linear(progress[0].time_us / 1e6, progress[-1].time_us / 1e6, 0, _WIDTH_PX, 12)
    most = max(number(each) for number in _NUMBERS.values() for each in progress)
    scale = Linear(0, max(most, 1), _PANEL_PX, 0, 3)
    tracks_px = _TRACK_PX * counts.instances
    bands = group(*_bands(receipts, time, _PANEL_PX), class_="band")
    upper = group(
        bands,
        y_axis(scale, 0, _WIDTH_PX, "records"),
        *_lines(counts, time, scale),
        x_axis(time, _PANEL_PX, _PANEL_PX, names=False),
        x_px=_LEFT_PX,
        y_px=_HEAD_PX,
    )
    names = [
        text(f"instance {number}", -8, _TRACK_PX * number + 13, text_anchor="end") for number in range(counts.instances)
    ]
    lower = group(
        group(*names, class_="axis"),
        *_instances(counts, receipts, time),
        x_axis(time, tracks_px, tracks_px, "seconds since the run began"),
        x_px=_LEFT_PX,
        y_px=_HEAD_PX + _PANEL_PX + _BETWEEN_PX,
    )
    height_px = _HEAD_PX + _PANEL_PX + _BETWEEN_PX + tracks_px + _FOOT_PX
    head = legend("", LINES, _LEFT_PX + 60, 4)
    return drawing(_LEFT_PX + _WIDTH_PX + 20, height_px, "The application over the whole run", head, upper, lower)


def _lines(counts: ApplicationCounts, time: Linear, scale: Linear) -> Iterator[Markup]:
    """A line for inputs, effects and commits; without effects where a sink does not tell them."""
    for name, number in _NUMBERS.items():
        if name == "with an effect" and counts.blind:
            continue
        steps: list[tuple[str, float | str]] = [
            ("L" if number_of_point else "M", point(time.px(each.time_us / 1e6), scale.px(number(each))))
            for number_of_point, each in enumerate(counts.progress)
        ]
        last = number(counts.progress[-1])
        yield element("g", title(f"{name}: {last:,}"), path(steps, fill="none", stroke=LINES[name], stroke_width=2))


def _bands(receipts: Sequence[Receipt], time: Linear, height_px: float) -> Iterator[Markup]:
    for receipt in receipts[:FAULTS_MAX]:
        yield from fault_bar(receipt, time, least_px=1, height=height_px)


def _instances(counts: ApplicationCounts, receipts: Sequence[Receipt], time: Linear) -> Iterator[Markup]:
    """A bar for each fault of an instance in its track, and a mark where it ended by itself."""
    for receipt in receipts[:FAULTS_MAX]:
        for instance in _hit(receipt):
            if instance < counts.instances:
                y_px, height_px = _TRACK_PX * instance + 2, _TRACK_PX - 4
                yield from fault_bar(receipt, time, least_px=1, y=y_px, height=height_px, fill=_FAULT)
    for end in counts.ends:
        if end.instance < counts.instances:
            x_px, y_px = time.px(end.time_us / 1e6), _TRACK_PX * end.instance
            words = title(f"instance {end.instance} ended by itself at {end.time_us / 1e6:.1f} s: {end.exit}")
            mark = path([("M", point(x_px, y_px + 1)), ("V", y_px + _TRACK_PX - 1)], class_="ink", stroke_width=3)
            yield element("g", words, mark)


def _hit(receipt: Receipt) -> Iterator[int]:
    """The instances that a fault hit."""
    for seen in receipt.of_nodes.values():
        if isinstance(number := seen.get("instance"), int):
            yield number
