"""The chart of a trend: a line for each thing that is counted, over nights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from harness.campaigns.report.svg import (
    PALETTE,
    Linear,
    coloured,
    drawing,
    element,
    group,
    legend,
    path,
    point,
    title,
    x_axis,
    y_axis,
)

#: A line's points: the number of the night, and the value.
Points = Sequence[tuple[int, float]]

_LEFT_PX: Final = 70
_WIDTH_PX: Final = 420
_HEIGHT_PX: Final = 150
_HEAD_PX: Final = 30
_FOOT_PX: Final = 40
_LEGEND_PX: Final = 18
#: Names in a row of the legend.
_NAMES: Final = 2


def trend_chart(unit: str, lines: Mapping[str, Points]) -> Markup:
    """``lines`` by their names, the values in ``unit``; empty where there are no points."""
    points = [each for line in lines.values() for each in line]
    if not points:
        return Markup("")
    nights, values = [night for night, _ in points], [value for _, value in points]
    across = Linear(min(nights) - 0.5, max(nights) + 0.5, 0, _WIDTH_PX, min(8, 1 + max(nights) - min(nights)))
    up = Linear(min(0, *values), max(values), _HEIGHT_PX, 0, 4)
    colours = coloured(list(lines), (*PALETTE, "currentColor"))
    drawn = [_line(name, line, colours[name], across, up) for name, line in lines.items()]
    names = list(colours)
    rows = [names[first : first + _NAMES] for first in range(0, len(names), _NAMES)]
    legends = [
        legend("", {name: colours[name] for name in row}, 0, _HEIGHT_PX + _FOOT_PX + _LEGEND_PX * number)
        for number, row in enumerate(rows)
    ]
    axes = (y_axis(up, 0, _WIDTH_PX), x_axis(across, _HEIGHT_PX, _HEIGHT_PX, "night"))
    height_px = _HEAD_PX + _HEIGHT_PX + _FOOT_PX + _LEGEND_PX * len(rows)
    body = group(*axes, *drawn, *legends, x_px=_LEFT_PX, y_px=_HEAD_PX)
    return drawing(_LEFT_PX + _WIDTH_PX + 10, height_px, unit, body)


def _line(name: str, line: Points, colour: str, across: Linear, up: Linear) -> Markup:
    steps = [
        ("L" if number else "M", point(across.px(night), up.px(value))) for number, (night, value) in enumerate(line)
    ]
    dots = [
        element("circle", title(f"{name}, night {night}: {value:,.4g}"), cx=across.px(night), cy=up.px(value), r=3)
        for night, value in line
    ]
    return group(path(steps, fill="none", stroke_width=1.5), *dots, stroke=colour, fill=colour)
