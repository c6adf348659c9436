"""Charts over all cells: how often runs lost, how long partitions took no write, and how latencies are distributed.

A row is a choice of settings, a panel a world; in a row each family of faults has its own line and colour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from checkers import Cell, end_us, percent, settings_words
from harness.campaigns.report.price import Price
from harness.campaigns.report.svg import (
    Linear,
    Milliseconds,
    Scale,
    coloured,
    cut,
    drawing,
    element,
    group,
    legend,
    milliseconds,
    path,
    point,
    text,
    title,
    x_axis,
)

#: A row has room for its words, and for a line of each family.
ROW_PX_MIN: Final = 26
LINE_PX: Final = 8
#: Twelve families of faults have a colour each; the last serves what is more.
COLOURS: Final = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#8c8c8c"),
    *("#332288", "#DDCC77", "#7f4a1d", "#999933", "#D55E00", "var(--soft)"),
)
WHEN: Final = {"without a fault": "#0072B2", "during a fault": "#E69F00"}
#: More rows than this are no picture any more; the table has all of them.
SETTINGS_DRAWN_MAX: Final = 60
#: Buckets of a histogram in one step of a strip of latencies; it has eight where a latency doubles.
BUCKETS_DRAWN: Final = (4, 8, 16, 32)
#: A step is some 80 bytes of the page.
STEPS_DRAWN_MAX: Final = 500
_WORDS_PX: Final = 330
_PANEL_PX: Final = 380
_GAP_PX: Final = 24
_HEAD_PX: Final = 46


class _Mark(NamedTuple):
    """One mark of a chart: where it belongs, and ``draw(scale, y_px)``."""

    settings: str
    world: str
    line: str
    draw: Callable[[Scale, float], Markup]


def loss_rate_chart(cells: Sequence[Cell]) -> Markup:
    """The share of judged runs that lost acknowledged writes, with its 95 % interval, by settings and family."""
    judged = [cell for cell in cells if cell.runs_judged]
    marks = [_Mark(settings_words(cell.label), cell.world, cell.family, _rate(cell)) for cell in judged]
    scale = Linear(0, 1, 0, _PANEL_PX, 5, "{:.0%}")
    return _chart("Share of runs that lost acknowledged writes", "faults", marks, _families(judged), scale)


def availability_chart(cells: Sequence[Cell]) -> Markup:
    """The longest time (seconds) in which any partition of any run took no write, by settings and family."""
    seen = [cell for cell in cells if cell.longest_gap_us]
    marks = [_Mark(settings_words(cell.label), cell.world, cell.family, _gap(cell)) for cell in seen]
    longest_s = max((cell.longest_gap_us / 1e6 for cell in seen), default=1)
    scale = Linear(0, longest_s, 0, _PANEL_PX, 6, "{:g} s")
    return _chart("Longest time without a write", "faults", marks, _families(seen), scale)


def latency_chart(prices: Sequence[Price]) -> Markup:
    """Strips of latencies, the darker the more writes; empty where nothing was measured or there are too many rows."""
    measured = [price for price in prices if price.p50_us is not None]
    if not measured or len(measured) > SETTINGS_DRAWN_MAX:
        return Markup("")
    for size in BUCKETS_DRAWN:
        strips = list(_strips(measured, size))
        if sum(len(strip.steps) for strip in strips) <= STEPS_DRAWN_MAX:
            break
    times_ms = [time for strip in strips for step in strip.steps for time in step[:2]]
    marks = [_Mark(strip.price.settings, strip.price.world, strip.when, _drawn(strip)) for strip in strips]
    return _chart("Latency", "writes that began", marks, WHEN, Milliseconds(min(times_ms), max(times_ms), 0, _PANEL_PX))


def _families(cells: Sequence[Cell]) -> dict[str, str]:
    return coloured([cell.family for cell in cells], COLOURS)


def _rate(cell: Cell) -> Callable[[Scale, float], Markup]:
    rate = cell.lossy_runs
    words = f"{cell.runs_lost} of {cell.runs_judged} runs lost: {percent(rate.low)} to {percent(rate.high)}"

    def draw(scale: Scale, y_px: float) -> Markup:
        span = path([("M", point(scale.px(rate.low), y_px)), ("H", scale.px(rate.high))], class_="span")
        return group(_said(cell, words), span, element("circle", cx=scale.px(rate.rate), cy=y_px, r=3.5))

    return draw


def _gap(cell: Cell) -> Callable[[Scale, float], Markup]:
    longest_s = cell.longest_gap_us / 1e6

    def draw(scale: Scale, y_px: float) -> Markup:
        bar = {"x": scale.px(0), "y": y_px - 3.5, "width": scale.px(longest_s) - scale.px(0), "height": 7.0}
        return element("rect", _said(cell, f"{longest_s:.3f} s"), **bar)

    return draw


def _said(cell: Cell, words: str) -> Markup:
    return title(f"{settings_words(cell.label)}, {cell.family}, {cell.world}: {words}")


#: From and to (ms), and the share of the writes between.
_Step = tuple[float, float, float]


class _Strip(NamedTuple):
    """Latencies of the writes of ``price`` that began ``when``."""

    price: Price
    when: str
    steps: list[_Step]


def _strips(prices: Sequence[Price], size: int) -> Iterator[_Strip]:
    for price in prices:
        for when, histogram in zip(WHEN, (price.latency.calm, price.latency.in_fault), strict=True):
            if histogram:
                yield _Strip(price, when, list(_coarser(histogram, size)))


def _coarser(histogram: Mapping[int, int], size: int) -> Iterator[_Step]:
    total, coarse = sum(histogram.values()), dict.fromkeys(sorted(bucket // size for bucket in histogram), 0)
    for bucket, count in histogram.items():
        coarse[bucket // size] += count
    for number, count in coarse.items():
        yield end_us(number * size - 1) / 1000, end_us((number + 1) * size - 1) / 1000, count / total


def _drawn(strip: _Strip) -> Callable[[Scale, float], Markup]:
    def draw(scale: Scale, y_px: float) -> Markup:
        return group(*(_step(scale, *step) for step in strip.steps), y_px=y_px - LINE_PX / 2, class_="strip")

    return draw


def _step(scale: Scale, from_ms: float, to_ms: float, share: float) -> Markup:
    words = f"{milliseconds(from_ms)} to {milliseconds(to_ms)}: {percent(share)}"
    # The square root, because a tail of one in a thousand is to be seen beside the bulk.
    darkness = f"{min(1.0, 0.08 + 1.3 * share**0.5):.2f}"
    x_px = scale.px(from_ms)
    return element("rect", title(words), x=x_px, width=scale.px(to_ms) - x_px, opacity=darkness)


def _chart(name: str, lines_name: str, marks: Sequence[_Mark], lines: Mapping[str, str], scale: Scale) -> Markup:
    """Rows of settings, panels of worlds, and in each row a line for each of ``lines``, in its colour."""
    rows, worlds = (
        list(dict.fromkeys(mark.settings for mark in marks)),
        list(dict.fromkeys(mark.world for mark in marks)),
    )
    row_px = max(ROW_PX_MIN, LINE_PX * (len(lines) + 1))
    height_px = row_px * len(rows)
    first_px, order = (row_px - LINE_PX * (len(lines) - 1)) / 2, list(lines)
    words = [
        text(cut(row, _WORDS_PX), _WORDS_PX - 8, row_px * (n + 0.5) + 4, text_anchor="end")
        for n, row in enumerate(rows)
    ]
    panels = []
    for number, world in enumerate(worlds):
        drawn: dict[str, list[Markup]] = {}
        for mark in marks:
            if mark.world == world:
                y_px = row_px * rows.index(mark.settings) + first_px + LINE_PX * order.index(mark.line)
                drawn.setdefault(mark.line, []).append(mark.draw(scale, y_px))
        layers = [
            group(*parts, fill=lines[line], stroke=None if line in WHEN else lines[line])
            for line, parts in drawn.items()
        ]
        head = text(world, _PANEL_PX / 2, -8, text_anchor="middle", class_="head")
        x_px = _WORDS_PX + number * (_PANEL_PX + _GAP_PX)
        panels.append(group(x_axis(scale, height_px, 0), head, *layers, x_px=x_px, y_px=_HEAD_PX))
    width_px = _WORDS_PX + len(worlds) * (_PANEL_PX + _GAP_PX)
    return drawing(
        width_px,
        _HEAD_PX + height_px + 24,
        name,
        legend(lines_name, lines, _WORDS_PX, 6),
        group(*words, y_px=_HEAD_PX, class_="axis"),
        *panels,
    )
