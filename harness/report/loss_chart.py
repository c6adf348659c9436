"""A lost write's story as a chart: faults, brokers and the write on one time axis, and the log's offsets over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import altair as alt
import msgspec

from harness.report.brokers import reigns
from harness.report.narrative import fault_name, listed, write_name
from harness.report.timeline import POINTS_MAX, Timeline
from harness.worlds.contract import Observation

WIDTH_PX: Final = 920
LANE_PX: Final = 22
OFFSETS_PX: Final = 220
#: A letter of a bar's label is about this wide; a label cut to fewer letters tells nothing.
LETTER_PX: Final = 6.2
LETTERS_MIN: Final = 6
#: Okabe and Ito's palette, told apart with any colour vision; brokers take its colours in turn.
BROKERS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
FAULT: Final = "#5f6368"
ISR: Final = "#c9d1d9"
WRITE: Final = "#111111"
#: Lanes for faults: more overlapping ones are in the text only.
FAULT_LANES_MAX: Final = 8

Row = dict[str, Any]


class StoryData(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between charts of stories; :func:`story_template` is what they share.

    ``template`` is the template's name; ``params`` and ``datasets`` are put into it. The rows are small on purpose.
    """

    template: str
    params: list[Row]
    datasets: dict[str, list[Row]]


WITH_OFFSETS: Final = "story-with-offsets"
WITHOUT_OFFSETS: Final = "story-without-offsets"
BEGIN, END = "begin_s", "end_s"


def story_data(timeline: Timeline) -> StoryData:
    """The rows of one story, and the ends of its time axis."""
    begin_s, end_s = timeline.begin_us / 1e6, timeline.end_us / 1e6
    window = {"begin": begin_s, "end": end_s, "at": timeline.write.acknowledged_us / 1e6}
    bars = [*_fault_bars(timeline), *_leader_bars(timeline), *_isr_bars(timeline), *_write_bar(timeline)]
    datasets = {"bars": [row | {"place": place} for place, row in enumerate(bars)], "window": [window]}
    if timeline.write.offset is not None:
        points = _points(timeline)
        window["offset"] = timeline.write.offset
        named = [row | {"text": NAMED[row["what"]]} for row in points if row["what"] in NAMED]
        datasets |= {"rows": [*points, *_levels(timeline), *_cuts(timeline)], "named": named}
    return StoryData(
        template=WITHOUT_OFFSETS if timeline.write.offset is None else WITH_OFFSETS,
        params=[{"name": BEGIN, "value": begin_s}, {"name": END, "value": end_s}],
        datasets=datasets,
    )


def story_templates() -> dict[str, dict[str, Any]]:
    """Vega-Lite specifications without data, by name."""
    return {
        WITH_OFFSETS: specification(_stacked(_lanes(_QUIET), _offsets())),
        WITHOUT_OFFSETS: specification(_stacked(_lanes(_SECONDS))),
    }


def specification(chart: Any) -> dict[str, Any]:
    """The chart as data, with the report's look. Altair's validation would cost more than the rest."""
    styled = chart.configure(font="system-ui, sans-serif").configure_view(stroke="#d8dee4")
    with alt.data_transformers.enable("default", consolidate_datasets=False, max_rows=None):
        found: dict[str, Any] = styled.to_dict(validate=False)
    return found


def _stacked(*panels: alt.LayerChart) -> alt.VConcatChart:
    return alt.vconcat(*panels, spacing=6).resolve_scale(color="independent", y="independent")


def _time(field: str, **look: Any) -> alt.X:
    ends = [alt.ExprRef(BEGIN), alt.ExprRef(END)]
    return alt.X(f"{field}:Q", scale=alt.Scale(domain=ends, nice=False), **look)


# --- upper panel: what lasted ----------------------------------------------------------------------------------------


_SECONDS: Final = {"title": "seconds since the run began", "axis": alt.Axis(grid=True)}
_QUIET: Final = {"title": None, "axis": alt.Axis(labels=False, ticks=False, grid=True)}


def _lanes(time: dict[str, Any]) -> alt.LayerChart:
    order = alt.EncodingSortField(field="place", op="min", order="ascending")
    base = alt.Chart(alt.NamedData("bars")).encode(
        y=alt.Y("lane:N", sort=order, title=None, axis=alt.Axis(labelLimit=250, domain=False, ticks=False)),
    )
    bar = base.mark_bar(height=LANE_PX - 6, cornerRadius=2).encode(
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
    return alt.layer(bar, label, _moment()).properties(width=WIDTH_PX, height=alt.Step(LANE_PX))


def _moment() -> alt.Chart:
    """A thin line through both panels at the acknowledgement."""
    return alt.Chart(alt.NamedData("window")).mark_rule(color=WRITE, strokeDash=[2, 3]).encode(x=_time("at"))


def _bar(timeline: Timeline, lane: str, begin_us: float, end_us: float, **look: str) -> Row:
    begin_us, end_us = max(begin_us, timeline.begin_us), min(end_us, timeline.end_us)
    pixels = (end_us - begin_us) / (timeline.end_us - timeline.begin_us) * WIDTH_PX
    look["label"] = _fitting(look.pop("label", ""), pixels)
    return {"lane": lane, "begin": begin_us / 1e6, "end": end_us / 1e6, "ink": "#ffffff", **look}


def _fitting(label: str, pixels: float) -> str:
    """As much of a bar's label as the bar has room for; the rest is in its tooltip."""
    room = int((pixels - 8) / LETTER_PX)
    if len(label) <= room:
        return label
    return label[: room - 1] + "…" if room >= LETTERS_MIN else ""


def _fault_bars(timeline: Timeline) -> Iterator[Row]:
    for number, fault in enumerate(timeline.faults[:FAULT_LANES_MAX], start=1):
        end_us = timeline.end_us if fault.ended_us is None else fault.ended_us
        name = fault_name(fault)
        lane = f"fault {number}: {fault.fault}"
        yield _bar(timeline, lane, fault.begun_us, end_us, label=name, tip=f"fault: {name}", colour=FAULT)


def _leader_bars(timeline: Timeline) -> Iterator[Row]:
    """Who believed to lead, by its own word; without such words, who acknowledged writes."""
    led = reigns(timeline.cluster, timeline.faults, timeline.end_us)
    for node, epoch, begin_us, end_us in led:
        if end_us > timeline.begin_us:
            label, lane = f"leads, epoch {epoch}", f"broker {node}"
            yield _bar(timeline, lane, begin_us, end_us, label=label, tip=f"{lane} {label}", colour=_colour(node))
    if not led:
        yield from _acknowledging_bars(timeline)


def _acknowledging_bars(timeline: Timeline) -> Iterator[Row]:
    points = sorted((p for p in timeline.points if p.node is not None), key=lambda p: p.time_us)
    runs: list[list[Any]] = []
    for point in points:
        if runs and runs[-1][0] == point.node:
            runs[-1][2] = point.time_us
        else:
            runs.append([point.node, point.time_us, point.time_us])
    for node, begin_us, end_us in runs:
        tip = f"broker {node} acknowledged writes"
        lane = f"broker {node} acknowledges"
        yield _bar(timeline, lane, begin_us, end_us + 20_000, label="", tip=tip, colour=_colour(node))


def _isr_bars(timeline: Timeline) -> Iterator[Row]:
    """The committed in-sync replicas, as the leader of the newest epoch told it."""
    told: list[Observation] = []
    for seen in timeline.cluster:
        epoch = seen.facts.get("leader_epoch", -1)
        if seen.what in {"leader", "isr"} and "isr" in seen.facts:
            newest = told[-1].facts.get("leader_epoch", -1) if told else -1
            if epoch >= newest:
                told.append(seen)
    ends = [*(seen.time_us for seen in told[1:]), timeline.end_us]
    for seen, end_us in zip(told, ends, strict=False):  # nothing told, nothing to end
        if end_us > timeline.begin_us:
            isr = listed(seen.facts["isr"])
            tip = f"in-sync replicas {isr}, epoch {seen.facts.get('leader_epoch')}"
            yield _bar(
                timeline, "in-sync replicas", seen.time_us, end_us, label=isr, tip=tip, colour=ISR, ink="#24292f"
            )


def _write_bar(timeline: Timeline) -> Iterator[Row]:
    write = timeline.write
    end_us = max(write.acknowledged_us, write.invoked_us + (timeline.end_us - timeline.begin_us) // 200)
    tip = f"{write_name(write.value)}: sent, then acknowledged"
    yield _bar(timeline, "the lost write", write.invoked_us, end_us, label="", tip=tip, colour=WRITE)


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
    colours = alt.Scale(domain=["?", *map(str, _NODES)], range=[FAULT, *(_colour(node) for node in _NODES)])
    rows = alt.Chart(alt.NamedData("rows")).encode(
        x=time, y=offset, tooltip=_TIP, color=alt.Color("broker:N", scale=colours, legend=None)
    )
    cuts = rows.transform_filter("datum.what == 'truncated'")
    layers = [
        _own_offset(offset),
        _moment(),
        rows.transform_filter("datum.what == 'high watermark'").mark_line(interpolate="step-after", strokeWidth=1.5),
        cuts.mark_rule(strokeWidth=2.5, clip=True).encode(y2="from:Q"),
        cuts.mark_point(shape="triangle-down", size=90, filled=True, clip=True),
        _marks(rows),
        *_named_marks(time, offset),
    ]
    return alt.layer(*layers).properties(width=WIDTH_PX, height=OFFSETS_PX)


def _own_offset(offset: alt.Y) -> alt.Chart:
    rule = alt.Chart(alt.NamedData("window")).mark_rule(color="#b0b8c0", strokeDash=[4, 3])
    return rule.encode(x=_time("begin"), x2="end:Q", y=offset)


def _marks(rows: alt.Chart) -> alt.Chart:
    shape, size = alt.Scale(domain=_KINDS, range=_SHAPES), alt.Scale(domain=_KINDS, range=_SIZES)
    return (
        rows.transform_filter(alt.FieldOneOfPredicate("what", _KINDS))
        .mark_point(filled=True, opacity=0.9, clip=True)
        .encode(shape=alt.Shape("what:N", scale=shape, legend=None), size=alt.Size("what:O", scale=size, legend=None))
    )


def _named_marks(time: alt.X, offset: alt.Y) -> list[alt.Chart]:
    """The write itself, and a name for it and for what took its place."""
    base = alt.Chart(alt.NamedData("named")).encode(x=time, y=offset, tooltip=[*_TIP, "write:N"])
    return [
        base.transform_filter("datum.what == 'the lost write'").mark_point(
            shape="M-.8-.8L.8.8M-.8.8L.8-.8", size=120, stroke=WRITE, strokeWidth=2.5
        ),
        base.mark_text(align="left", dx=9, dy=-9, fontWeight="bold", fontSize=11).encode(text="text:N"),
    ]


def _broker(node: int | None) -> str:
    return "?" if node is None else str(node)


def _row(time_us: int, offset: int, what: str, node: int | None, **more: Any) -> Row:
    return {"time": round(time_us / 1e6, 4), "offset": offset, "what": what, "broker": _broker(node), **more}


def _points(timeline: Timeline) -> list[Row]:
    return [
        _row(
            p.time_us, p.offset, p.kind, p.node, **({} if p.kind == "acknowledged" else {"write": write_name(p.value)})
        )
        for p in timeline.points
    ]


def _levels(timeline: Timeline) -> list[Row]:
    """High watermarks by broker, thinned to what the width can show, each carried on to the end of the axis."""
    rows: list[Row] = []
    told = [seen for seen in timeline.cluster if seen.what == "high-watermark"]
    for node in sorted({seen.node for seen in told}):
        own = [seen for seen in told if seen.node == node]
        before = [seen for seen in own if seen.time_us < timeline.begin_us][-1:]
        inside = [seen for seen in own if seen.time_us >= timeline.begin_us]
        inside = inside[:: len(inside) // POINTS_MAX + 1] + inside[-1:]
        steps = [(max(seen.time_us, timeline.begin_us), int(seen.facts["offset"])) for seen in before + inside]
        steps += [(timeline.end_us, steps[-1][1])] if steps else []
        rows += [_row(time_us, offset, "high watermark", node) for time_us, offset in steps]
    return rows


def _cuts(timeline: Timeline) -> list[Row]:
    return [
        _row(seen.time_us, seen.facts["to_offset"], "truncated", seen.node, **{"from": seen.facts["from_offset"]})
        for seen in timeline.cluster
        if seen.what == "truncated" and seen.time_us >= timeline.begin_us
    ]
