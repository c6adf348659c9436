"""The chart of a finding's write: faults, brokers and the write on one time axis, and the log's offsets over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from markupsafe import Markup

from checkers import write_name
from harness.campaigns.report.leadership import comparable_epoch, isr_reports
from harness.campaigns.report.names import fault_name, moment, replica_set
from harness.campaigns.report.svg import (
    PALETTE,
    Linear,
    cut,
    drawing,
    element,
    group,
    ink_on,
    path,
    point,
    text,
    title,
    x_axis,
    y_axis,
)
from harness.campaigns.report.timeline import LOSSES, POINTS_MAX, Point, PointKind, Timeline, end_of
from harness.ground.observations import HighWatermarkMoved, Truncated, of_kind

FAULT: Final = "#5f6368"
ISR: Final = "#c9d1d9"
WRITE: Final = "var(--ink)"
#: Words beside the points that the account is about.
LABELS: Final[Mapping[PointKind, str]] = {
    "the lost write": "lost",
    "at its offset now": "now here",
    "the write": "acknowledged here",
    "the write, again": "and here",
    "sent earlier": "sent earlier",
    "sent later": "sent later",
}
#: Tracks for faults: more overlapping ones are in the text only.
FAULT_TRACKS_MAX: Final = 8
_LEFT_PX: Final = 190
_WIDTH_PX: Final = 900
_TRACK_PX: Final = 22
_HEAD_PX: Final = 38
_OFFSETS_PX: Final = 220
#: From the upper panel to the lower one, and below that one.
_BETWEEN_PX: Final = 14
_FOOT_PX: Final = 40


class Bar(NamedTuple):
    """Something that lasted, on a track of the upper panel."""

    track: str
    begin_us: int
    end_us: int
    label: str
    tip: str
    colour: str


def loss_chart(timeline: Timeline) -> Markup:
    """The chart of one finding; without the lower panel where no offset of the write is known."""
    time = Linear(timeline.begin_us / 1e6, timeline.end_us / 1e6, 0, _WIDTH_PX, 12)
    bars = [*_fault_bars(timeline), *_leader_bars(timeline), *_isr_bars(timeline), *_write_bars(timeline)]
    shown = [bar for bar in bars if bar.end_us > timeline.begin_us]
    tracks = list(dict.fromkeys(bar.track for bar in shown))
    height_px = _TRACK_PX * len(tracks)
    names = [text(track, -8, _TRACK_PX * n + 15, text_anchor="end") for n, track in enumerate(tracks)]
    upper = group(
        x_axis(time, 0, height_px, "seconds since the run began"),
        group(*names, class_="axis"),
        *(_drawn(bar, tracks.index(bar.track), time) for bar in shown),
        _acknowledgement(timeline, time, height_px),
        x_px=_LEFT_PX,
        y_px=_HEAD_PX,
    )
    end_px = _HEAD_PX + height_px
    lower = Markup("")
    if timeline.write.offset is not None:
        lower = group(*_offsets(timeline, time), x_px=_LEFT_PX, y_px=end_px + _BETWEEN_PX)
        end_px += _BETWEEN_PX + _OFFSETS_PX + _FOOT_PX
    label = f"What happened to {write_name(timeline.write.value)}"
    return drawing(_LEFT_PX + _WIDTH_PX + 20, end_px + 4, label, upper, lower)


def _acknowledgement(timeline: Timeline, time: Linear, height_px: float) -> Markup:
    x_px = time.px(timeline.write.acknowledged_us / 1e6)
    return path([("M", point(x_px, 0)), ("V", height_px)], class_="ink", stroke_dasharray="2 3")


# --- upper panel: what lasted ----------------------------------------------------------------------------------------


def _drawn(bar: Bar, track: int, time: Linear) -> Markup:
    """The bar within the window, and its label where that has room; its title has all of it."""
    begin_px, end_px = max(time.px(bar.begin_us / 1e6), 0.0), min(time.px(bar.end_us / 1e6), float(_WIDTH_PX))
    y_px, width_px = _TRACK_PX * track + 3, max(end_px - begin_px, 1)
    body = element("rect", x=begin_px, y=y_px, width=width_px, height=16, rx=2, fill=bar.colour)
    label = cut(bar.label, width_px - 8)
    words = [text(label, begin_px + 4, y_px + 12, style=f"fill:{ink_on(bar.colour)}")] if label else []
    return group(title(f"{bar.tip}, {moment(bar.begin_us)} to {moment(bar.end_us)}"), body, *words)


def _fault_bars(timeline: Timeline) -> Iterator[Bar]:
    for number, fault in enumerate(timeline.faults[:FAULT_TRACKS_MAX], start=1):
        end_us = end_of(fault, timeline.end_us)
        name = fault_name(fault)
        yield Bar(f"fault {number}: {fault.fault}", fault.begun_us, end_us, name, f"fault: {name}", FAULT)


def _leader_bars(timeline: Timeline) -> Iterator[Bar]:
    """Draw who believed to lead, by its own report; without such reports, who acknowledged writes."""
    for node, epoch, begin_us, end_us in timeline.leaderships:
        label, track = f"leads, epoch {epoch}", f"broker {node}"
        yield Bar(track, begin_us, end_us, label, f"{track} {label}", _colour(node))
    if not timeline.leaderships:
        answered = (point.write for point in timeline.points if point.write.node is not None)
        for node, writes in groupby(answered, key=lambda write: write.node):
            first, *rest = writes
            end_us = (rest or [first])[-1].acknowledged_us + 20_000
            tip = f"broker {node} acknowledged writes"
            yield Bar(f"broker {node} acknowledges", first.acknowledged_us, end_us, "", tip, _colour(node))


def _isr_bars(timeline: Timeline) -> Iterator[Bar]:
    """The committed in-sync replicas, as the leader of the newest epoch reported them."""
    reports: list[tuple[int, int, str]] = []
    for begin_us, _, fact in isr_reports(timeline.observations):
        epoch = comparable_epoch(fact.leader_epoch)
        if fact.isr is not None and (not reports or epoch >= reports[-1][1]):
            reports.append((begin_us, epoch, replica_set(fact.isr)))
    ends = [*(begin_us for begin_us, _, _ in reports[1:]), timeline.end_us]
    for (begin_us, epoch, isr), end_us in zip(reports, ends, strict=False):  # nothing reported, nothing to end
        tip = f"in-sync replicas {isr}, epoch {epoch}"
        yield Bar("in-sync replicas", begin_us, end_us, isr, tip, ISR)


def _write_bars(timeline: Timeline) -> Iterator[Bar]:
    written = {"the lost write" if timeline.anomaly in LOSSES else "the write": timeline.write}
    if timeline.overtaking is not None:
        written = {"sent earlier": timeline.write, "sent later": timeline.overtaking}
    for track, write in written.items():
        end_us = max(write.acknowledged_us, write.invoked_us + (timeline.end_us - timeline.begin_us) // 200)
        tip = f"{write_name(write.value)}: sent, then acknowledged"
        yield Bar(track, write.invoked_us, end_us, "", tip, WRITE)


def _colour(node: int | None) -> str:
    return FAULT if node is None else PALETTE[node % len(PALETTE)]


# --- lower panel: offsets over time ----------------------------------------------------------------------------------


def _offsets(timeline: Timeline, time: Linear) -> Iterator[Markup]:
    """High watermarks as lines, truncations as triangles, writes as dots; the write's own offset is the dashed line."""
    lines, cuts = list(_high_watermarks(timeline)), list(_truncations(timeline))
    values = [value.offset for value in timeline.points] + [offset for line in lines for _, offset in line.steps]
    values += [offset for cut_ in cuts for offset in (cut_.begin, cut_.end)]
    offset = timeline.write.offset or 0
    scale = Linear(min([offset, *values]), max([offset, *values]), _OFFSETS_PX - 14, 14, 5)
    yield x_axis(time, _OFFSETS_PX, 0, "seconds since the run began")
    yield y_axis(scale, 0, _WIDTH_PX, "offset")
    yield path([("M", point(0, scale.px(offset))), ("H", _WIDTH_PX)], class_="soft", stroke_dasharray="4 3")
    yield _acknowledgement(timeline, time, _OFFSETS_PX)
    for line in lines:
        yield _line(line, time, scale)
    for cut_ in cuts:
        yield _cut(cut_, time, scale)
    for node, points in groupby(sorted(timeline.points, key=_node), key=_node):
        colour = _colour(None if node < 0 else node)
        yield group(
            *(_dot(each, time, scale) for each in points if each.kind not in LABELS), fill=colour, stroke=colour
        )
    for each in timeline.points:
        if each.kind in LABELS:
            yield _named(each, time, scale)


def _node(drawn: Point) -> int:
    return -1 if drawn.write.node is None else drawn.write.node


def _tip(time_us: int, offset: int, what: str, node: int | None) -> Markup:
    return title(f"{what}, {moment(time_us)}, offset {offset}, broker {'?' if node is None else node}")


def _dot(drawn: Point, time: Linear, scale: Linear) -> Markup:
    """A dot for a write that is there, a cross for one that is lost too."""
    tip = _tip(drawn.write.acknowledged_us, drawn.offset, drawn.kind, drawn.write.node)
    x_px, y_px = time.px(drawn.write.acknowledged_us / 1e6), scale.px(drawn.offset)
    if drawn.kind == "acknowledged":
        return element("circle", tip, cx=x_px, cy=y_px, r=2.6)
    return element("path", tip, d=f"M{point(x_px - 3, y_px)}h6m-3-3v6", stroke_width=2.5)


def _named(drawn: Point, time: Linear, scale: Linear) -> Markup:
    """A write that the account is about, with its word: an X where it is gone, a diamond where it is."""
    x_px, y_px = time.px(drawn.write.acknowledged_us / 1e6), scale.px(drawn.offset)
    lost = drawn.kind == "the lost write"
    shape = "m-5-5l10 10m-10 0l10-10" if lost else "m0-7l7 7l-7 7l-7-7z"
    what = f"{drawn.kind} ({write_name(drawn.write.value)})"
    mark = element(
        "path",
        d=f"M{point(x_px, y_px)}{shape}",
        class_="ink",
        stroke_width=2.5 if lost else 1,
        fill=None if lost else _colour(drawn.write.node),
    )
    word = text(LABELS[drawn.kind], x_px + 9, y_px + (16 if drawn.kind == "sent later" else -10), class_="word")
    return group(_tip(drawn.write.acknowledged_us, drawn.offset, what, drawn.write.node), mark, word)


class _HighWatermarks(NamedTuple):
    """Times (us) and offsets that ``node`` reported."""

    node: int
    steps: Sequence[tuple[int, int]]


def _high_watermarks(timeline: Timeline) -> Iterator[_HighWatermarks]:
    """By broker, thinned to what the width can show, each carried on to the end of the axis."""
    reports = of_kind(timeline.observations, HighWatermarkMoved)
    for node in sorted({seen.node for seen in reports}):
        own = [(seen.time_us, seen.fact.offset) for seen in reports if seen.node == node]
        before = [(timeline.begin_us, offset) for time_us, offset in own if time_us < timeline.begin_us][-1:]
        inside = [step for step in own if step[0] >= timeline.begin_us]
        thinned = inside[:: len(inside) // POINTS_MAX + 1] + inside[-1:]
        yield _HighWatermarks(node, [*before, *thinned, (timeline.end_us, own[-1][1])])


def _line(line: _HighWatermarks, time: Linear, scale: Linear) -> Markup:
    (first_us, first), *rest = line.steps
    steps: list[tuple[str, float | str]] = [("M", point(time.px(first_us / 1e6), scale.px(first)))]
    for time_us, offset in rest:
        steps += [("H", time.px(time_us / 1e6)), ("V", scale.px(offset))]
    drawn = path(steps, fill="none", stroke=_colour(line.node), stroke_width=1.5)
    return group(title(f"high watermark of broker {line.node}"), drawn)


class _Cut(NamedTuple):
    """A truncation: the log of ``node`` ended at ``begin`` before it, at ``end`` after it."""

    time_us: int
    node: int
    begin: int
    end: int


def _truncations(timeline: Timeline) -> Iterator[_Cut]:
    for time_us, node, fact in of_kind(timeline.observations, Truncated):
        if time_us >= timeline.begin_us:
            yield _Cut(time_us, node, fact.to_offset if fact.from_offset is None else fact.from_offset, fact.to_offset)


def _cut(drawn: _Cut, time: Linear, scale: Linear) -> Markup:
    x_px, top_px, end_px = time.px(drawn.time_us / 1e6), scale.px(drawn.begin), scale.px(drawn.end)
    words = f"broker {drawn.node} truncated its log from {drawn.begin} to {drawn.end}, {moment(drawn.time_us)}"
    shape = f"M{point(x_px, top_px)}L{point(x_px, end_px)}m-5-4h10l-5 8z"
    colour = _colour(drawn.node)
    return element("path", title(words), d=shape, stroke=colour, fill=colour, stroke_width=2)
