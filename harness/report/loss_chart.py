"""The chart of one lost write: faults, brokers and the write on one time axis, and the log's offsets over time.

All charts of a page share two Vega-Lite specifications (:func:`chart_templates`), so each adds its data only
(:func:`chart_data`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

import altair as alt
import msgspec

from harness.observations import HighWatermarkMoved, Truncated, of_kind
from harness.report.brokers import isr_reports, known
from harness.report.names import fault_name, replica_set, write_name
from harness.report.timeline import POINTS_MAX, Timeline

WIDTH_PX: Final = 920
TRACK_PX: Final = 22
OFFSETS_PX: Final = 220
#: A letter of a bar's label is about this wide; a label cut to fewer letters tells nothing.
LETTER_PX: Final = 6.2
LETTERS_MIN: Final = 6
#: Okabe and Ito's palette, told apart with any colour vision; brokers take its colours in turn.
BROKERS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
FAULT: Final = "#5f6368"
ISR: Final = "#c9d1d9"
WRITE: Final = "#111111"
#: Tracks for faults: more overlapping ones are in the text only.
FAULT_TRACKS_MAX: Final = 8
WITH_OFFSETS: Final = "loss-with-offsets"
WITHOUT_OFFSETS: Final = "loss-without-offsets"
BEGIN, END = "begin_s", "end_s"

Row = dict[str, Any]


class ChartData(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two charts.

    ``template`` is a name among :func:`chart_templates`; ``params`` and ``datasets`` are put into it.
    """

    template: str
    params: list[Row]
    datasets: dict[str, list[Row]]


class Bar(NamedTuple):
    """Something that lasted, on a track of the upper panel."""

    track: str
    begin_us: int
    end_us: int
    label: str
    tip: str
    colour: str
    ink: str = "#ffffff"


def chart_data(timeline: Timeline) -> ChartData:
    """The rows of one chart, and the ends of its time axis."""
    begin_s, end_s = timeline.begin_us / 1e6, timeline.end_us / 1e6
    window = {"begin": begin_s, "end": end_s, "at": timeline.write.acknowledged_us / 1e6}
    bars = [*_fault_bars(timeline), *_leader_bars(timeline), *_isr_bars(timeline), _write_bar(timeline)]
    shown = [bar for bar in bars if bar.end_us > timeline.begin_us]
    datasets = {"bars": [_bar_row(timeline, place, bar) for place, bar in enumerate(shown)], "window": [window]}
    if timeline.write.offset is not None:
        points = _points(timeline)
        window["offset"] = timeline.write.offset
        named = [row | {"text": NAMED[row["what"]]} for row in points if row["what"] in NAMED]
        datasets |= {"rows": [*points, *_high_watermarks(timeline), *_truncations(timeline)], "named": named}
    return ChartData(
        template=WITHOUT_OFFSETS if timeline.write.offset is None else WITH_OFFSETS,
        params=[{"name": BEGIN, "value": begin_s}, {"name": END, "value": end_s}],
        datasets=datasets,
    )


def chart_templates() -> dict[str, Row]:
    """Vega-Lite specifications without data, by name."""
    quiet = {"title": None, "axis": alt.Axis(labels=False, ticks=False, grid=True)}
    return {
        WITH_OFFSETS: specification(_stacked(_tracks(quiet), _offsets())),
        WITHOUT_OFFSETS: specification(_stacked(_tracks(_SECONDS))),
    }


def specification(chart: Any) -> Row:
    """An Altair chart as Vega-Lite's JSON, with the report's look; not validated, which would cost most."""
    styled = chart.configure(font="system-ui, sans-serif").configure_view(stroke="#d8dee4")
    with alt.data_transformers.enable("default", consolidate_datasets=False, max_rows=None):
        found: Row = styled.to_dict(validate=False)
    return found


def _stacked(*panels: alt.LayerChart) -> alt.VConcatChart:
    return alt.vconcat(*panels, spacing=6).resolve_scale(color="independent", y="independent")


_SECONDS: Final = {"title": "seconds since the run began", "axis": alt.Axis(grid=True)}


def _time(field: str, **look: Any) -> alt.X:
    ends = [alt.ExprRef(BEGIN), alt.ExprRef(END)]
    return alt.X(f"{field}:Q", scale=alt.Scale(domain=ends, nice=False), **look)


def _acknowledgement() -> alt.Chart:
    """A thin line through both panels."""
    return alt.Chart(alt.NamedData("window")).mark_rule(color=WRITE, strokeDash=[2, 3]).encode(x=_time("at"))


# --- upper panel: what lasted ----------------------------------------------------------------------------------------


def _tracks(time: dict[str, Any]) -> alt.LayerChart:
    order = alt.EncodingSortField(field="place", op="min", order="ascending")
    base = alt.Chart(alt.NamedData("bars")).encode(
        y=alt.Y("track:N", sort=order, title=None, axis=alt.Axis(labelLimit=250, domain=False, ticks=False)),
    )
    bar = base.mark_bar(height=TRACK_PX - 6, cornerRadius=2).encode(
        x=_time("begin", **time),
        x2="end:Q",
        color=alt.Color("colour:N", scale=None),
        tooltip=[alt.Tooltip("tip:N", title=" ")],
    )
    label = (
        base.transform_filter("datum.label != ''")
        .mark_text(align="left", dx=4, fontSize=11, clip=True)
        .encode(x=_time("begin"), text="label:N", color=alt.Color("ink:N", scale=None))
    )
    return alt.layer(bar, label, _acknowledgement()).properties(width=WIDTH_PX, height=alt.Step(TRACK_PX))


def _bar_row(timeline: Timeline, place: int, bar: Bar) -> Row:
    """The bar cut to the window, with as much of its label as it has room for; the rest is in its tooltip."""
    begin_us, end_us = max(bar.begin_us, timeline.begin_us), min(bar.end_us, timeline.end_us)
    width_px = (end_us - begin_us) / (timeline.end_us - timeline.begin_us) * WIDTH_PX
    letters = int((width_px - 8) / LETTER_PX)
    cut = bar.label[: letters - 1] + "…" if letters >= LETTERS_MIN else ""
    return {
        "track": bar.track,
        "begin": begin_us / 1e6,
        "end": end_us / 1e6,
        "ink": bar.ink,
        "label": bar.label if len(bar.label) <= letters else cut,
        "tip": bar.tip,
        "colour": bar.colour,
        "place": place,
    }


def _fault_bars(timeline: Timeline) -> Iterator[Bar]:
    for number, fault in enumerate(timeline.faults[:FAULT_TRACKS_MAX], start=1):
        end_us = timeline.end_us if fault.ended_us is None else fault.ended_us
        name = fault_name(fault)
        yield Bar(f"fault {number}: {fault.fault}", fault.begun_us, end_us, name, f"fault: {name}", FAULT)


def _leader_bars(timeline: Timeline) -> Iterator[Bar]:
    """Who believed to lead, by its own report; without such reports, who acknowledged writes."""
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
        epoch = known(fact.leader_epoch)
        if fact.isr is not None and (not reports or epoch >= reports[-1][1]):
            reports.append((begin_us, epoch, replica_set(fact.isr)))
    ends = [*(begin_us for begin_us, _, _ in reports[1:]), timeline.end_us]
    for (begin_us, epoch, isr), end_us in zip(reports, ends, strict=False):  # nothing reported, nothing to end
        tip = f"in-sync replicas {isr}, epoch {epoch}"
        yield Bar("in-sync replicas", begin_us, end_us, isr, tip, ISR, "#24292f")


def _write_bar(timeline: Timeline) -> Bar:
    write = timeline.write
    end_us = max(write.acknowledged_us, write.invoked_us + (timeline.end_us - timeline.begin_us) // 200)
    tip = f"{write_name(write.value)}: sent, then acknowledged"
    return Bar("the lost write", write.invoked_us, end_us, "", tip, WRITE)


def _colour(node: int | None) -> str:
    return FAULT if node is None else BROKERS[node % len(BROKERS)]


# --- lower panel: offsets over time ----------------------------------------------------------------------------------

_KINDS: Final = ["acknowledged", "also lost", "at its offset now"]
_SHAPES: Final = ["circle", "cross", "diamond"]
_SIZES: Final = [24, 70, 170]
_TIP: Final = ["time:Q", "offset:Q", "what:N", "broker:N"]
NAMED: Final = {"the lost write": "lost", "at its offset now": "now here"}
#: Numbers of brokers whose colours the template knows; the palette is shorter and repeats.
_NODES: Final = range(24)


def _offsets() -> alt.LayerChart:
    time = _time("time", **_SECONDS)
    scale = alt.Scale(zero=False, nice=False, padding=14)
    offset = alt.Y("offset:Q", scale=scale, title="offset", axis=alt.Axis(tickCount=5, tickMinStep=1))
    colours = alt.Scale(domain=["?", *map(str, _NODES)], range=[FAULT, *map(_colour, _NODES)])
    rows = alt.Chart(alt.NamedData("rows")).encode(
        x=time, y=offset, tooltip=_TIP, color=alt.Color("broker:N", scale=colours, legend=None)
    )
    cuts = rows.transform_filter("datum.what == 'truncated'")
    shape, size = alt.Scale(domain=_KINDS, range=_SHAPES), alt.Scale(domain=_KINDS, range=_SIZES)
    points = (
        rows.transform_filter(alt.FieldOneOfPredicate("what", _KINDS))
        .mark_point(filled=True, opacity=0.9, clip=True)
        .encode(shape=alt.Shape("what:N", scale=shape, legend=None), size=alt.Size("what:O", scale=size, legend=None))
    )
    own = alt.Chart(alt.NamedData("window")).mark_rule(color="#b0b8c0", strokeDash=[4, 3])
    named = alt.Chart(alt.NamedData("named")).encode(x=time, y=offset, tooltip=[*_TIP, "write:N"])
    layers = [
        own.encode(x=_time("begin"), x2="end:Q", y=offset),
        _acknowledgement(),
        rows.transform_filter("datum.what == 'high watermark'").mark_line(interpolate="step-after", strokeWidth=1.5),
        cuts.mark_rule(strokeWidth=2.5, clip=True).encode(y2="from:Q"),
        cuts.mark_point(shape="triangle-down", size=90, filled=True, clip=True),
        points,
        named.transform_filter("datum.what == 'the lost write'").mark_point(
            shape="M-.8-.8L.8.8M-.8.8L.8-.8", size=120, stroke=WRITE, strokeWidth=2.5
        ),
        named.mark_text(align="left", dx=9, dy=-9, fontWeight="bold", fontSize=11).encode(text="text:N"),
    ]
    return alt.layer(*layers).properties(width=WIDTH_PX, height=OFFSETS_PX)


def _row(time_us: int, offset: int, what: str, node: int | None, **more: Any) -> Row:
    broker = "?" if node is None else str(node)
    return {"time": round(time_us / 1e6, 4), "offset": offset, "what": what, "broker": broker, **more}


def _points(timeline: Timeline) -> list[Row]:
    return [
        _row(write.acknowledged_us, offset, kind, write.node)
        | ({} if kind == "acknowledged" else {"write": write_name(write.value)})
        for write, offset, kind in timeline.points
    ]


def _high_watermarks(timeline: Timeline) -> list[Row]:
    """By broker, thinned to what the width can show, each carried on to the end of the axis."""
    rows: list[Row] = []
    reports = of_kind(timeline.observations, HighWatermarkMoved)
    for node in sorted({seen.node for seen in reports}):
        own = [(seen.time_us, seen.fact.offset) for seen in reports if seen.node == node]
        before = [(timeline.begin_us, offset) for time_us, offset in own if time_us < timeline.begin_us][-1:]
        inside = [step for step in own if step[0] >= timeline.begin_us]
        thinned = inside[:: len(inside) // POINTS_MAX + 1] + inside[-1:]
        last = (timeline.end_us, own[-1][1])
        rows += [_row(time_us, offset, "high watermark", node) for time_us, offset in (*before, *thinned, last)]
    return rows


def _truncations(timeline: Timeline) -> list[Row]:
    return [
        _row(time_us, fact.to_offset, "truncated", node, **{"from": fact.from_offset})
        for time_us, node, fact in of_kind(timeline.observations, Truncated)
        if time_us >= timeline.begin_us
    ]
