"""A lost write's story as a chart: faults, brokers and the write on one time axis, and the log's offsets over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import altair as alt

from harness.report.telling import fault_name, listed, write_name
from harness.report.timeline import POINTS_MAX, Timeline
from harness.worlds.contract import Observation

WIDTH_PX: Final = 820
LANE_PX: Final = 22
OFFSETS_PX: Final = 220
#: A label of a bar is about this wide; shorter bars carry none, their tooltip does.
LABEL_PX: Final = 70
#: Okabe and Ito's palette, told apart with any colour vision; brokers take its colours in turn.
BROKERS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
FAULT: Final = "#5f6368"
ISR: Final = "#c9d1d9"
WRITE: Final = "#111111"
#: Lanes for faults: more overlapping ones are in the text only.
FAULT_LANES_MAX: Final = 8

Row = dict[str, Any]


def story_chart(timeline: Timeline) -> dict[str, Any]:
    """The Vega-Lite specification of the story. Rows are inside it; nothing is loaded from anywhere."""
    axis = alt.Scale(domain=[timeline.begin_us / 1e6, timeline.end_us / 1e6], nice=False)
    panels = [_lanes(timeline, axis)]
    if timeline.write.offset is not None:
        panels.append(_offsets(timeline, axis))
    chart = alt.vconcat(*panels, spacing=6).resolve_scale(color="independent", y="independent")
    return specification(chart)


def specification(chart: Any) -> dict[str, Any]:
    """The chart as data, with its rows inside and the report's look. Altair's validation costs more than the rest."""
    styled = chart.configure(font="system-ui, sans-serif").configure_view(stroke="#d8dee4")
    with alt.data_transformers.enable("default", consolidate_datasets=False, max_rows=None):
        found: dict[str, Any] = styled.to_dict(validate=False)
    return found


# --- upper panel: what lasted ----------------------------------------------------------------------------------------


def _lanes(timeline: Timeline, axis: alt.Scale) -> alt.LayerChart:
    bars = [*_fault_bars(timeline), *_leader_bars(timeline), *_isr_bars(timeline), *_write_bar(timeline)]
    order = list(dict.fromkeys(bar["lane"] for bar in bars))
    base = alt.Chart(alt.Data(values=bars)).encode(
        y=alt.Y("lane:N", sort=order, title=None, axis=alt.Axis(labelLimit=250, domain=False, ticks=False)),
    )
    time = alt.X("begin:Q", scale=axis, title=None, axis=alt.Axis(labels=False, ticks=False, grid=True))
    bar = base.mark_bar(height=LANE_PX - 6, cornerRadius=2).encode(
        x=time,
        x2="end:Q",
        color=alt.Color("colour:N", scale=None),
        tooltip=[alt.Tooltip("tip:N", title=" ")],
    )
    label = (
        base.transform_filter("datum.label != ''")
        .mark_text(align="left", dx=4, fontSize=11, clip=True)
        .encode(x=alt.X("begin:Q", scale=axis), text="label:N", color=alt.Color("ink:N", scale=None))
    )
    return alt.layer(bar, label, _moment(timeline, axis)).properties(width=WIDTH_PX, height=LANE_PX * len(order))


def _bar(timeline: Timeline, lane: str, begin_us: float, end_us: float, **look: str) -> Row:
    begin_us, end_us = max(begin_us, timeline.begin_us), min(end_us, timeline.end_us)
    pixels = (end_us - begin_us) / (timeline.end_us - timeline.begin_us) * WIDTH_PX
    label = look.pop("label", "")
    look["label"] = label if pixels >= min(LABEL_PX, 7 * len(label)) else ""
    return {"lane": lane, "begin": begin_us / 1e6, "end": end_us / 1e6, "ink": "#ffffff", **look}


def _fault_bars(timeline: Timeline) -> Iterator[Row]:
    for number, fault in enumerate(timeline.faults[:FAULT_LANES_MAX], start=1):
        end_us = timeline.end_us if fault.ended_us is None else fault.ended_us
        name = fault_name(fault)
        lane = f"fault {number}: {fault.fault}"
        yield _bar(timeline, lane, fault.begun_us, end_us, label=name, tip=f"fault: {name}", colour=FAULT)


def _leader_bars(timeline: Timeline) -> Iterator[Row]:
    """Who believed to lead, by its own word; without such words, who acknowledged writes."""
    words = [seen for seen in timeline.cluster if seen.what in {"leader", "follower", "recovered"}]
    for node in sorted({seen.node for seen in words if seen.what == "leader"}):
        own = [seen for seen in words if seen.node == node]
        ends = [*(seen.time_us for seen in own[1:]), timeline.end_us]
        for seen, told_us in zip(own, ends, strict=True):
            end_us = min([told_us, *_deaths(timeline, node, seen.time_us)])
            if seen.what == "leader" and end_us > timeline.begin_us:
                label = f"leads, epoch {seen.facts.get('leader_epoch')}"
                lane, tip = f"broker {node}", f"broker {node} {label}"
                yield _bar(timeline, lane, seen.time_us, end_us, label=label, tip=tip, colour=_colour(node))
    if not words:
        yield from _acknowledging_bars(timeline)


def _deaths(timeline: Timeline, node: int, since_us: int) -> list[int]:
    """When the process of ``node`` was killed: the dead do not lead, though they cannot say so."""
    killed = (fault for fault in timeline.faults if fault.fault == "kill" and node in fault.targets)
    return [fault.begun_us for fault in killed if fault.begun_us > since_us]


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


def _moment(timeline: Timeline, axis: alt.Scale) -> alt.Chart:
    """A thin line through both panels at the acknowledgement."""
    rows = alt.Data(values=[{"at": timeline.write.acknowledged_us / 1e6}])
    return alt.Chart(rows).mark_rule(color=WRITE, strokeDash=[2, 3]).encode(x=alt.X("at:Q", scale=axis))


def _colour(node: int | None) -> str:
    return FAULT if node is None else BROKERS[node % len(BROKERS)]


# --- lower panel: offsets over time ----------------------------------------------------------------------------------

_SHAPES: Final[dict[str, str]] = {"acknowledged": "circle", "also lost": "cross", "at its offset now": "diamond"}
_SIZES: Final = (24, 70, 170)
_TIP: Final = ["time:Q", "offset:Q", "what:N", "broker:N"]


def _offsets(timeline: Timeline, axis: alt.Scale) -> alt.LayerChart:
    levels, points = _levels(timeline), _points(timeline)
    seen = [row["offset"] for row in (*levels, *points)]
    scale = alt.Scale(domain=[min(seen) - 1, max(seen) + 2], nice=False)
    time = alt.X("time:Q", scale=axis, title="seconds since the run began")
    offset = alt.Y("offset:Q", scale=scale, title="offset", axis=alt.Axis(tickCount=5))
    rows = alt.Chart(alt.Data(values=[*levels, *points, *_cuts(timeline)])).encode(x=time, y=offset, tooltip=_TIP)
    rows = rows.encode(color=alt.Color("broker:N", scale=_broker_colours(timeline), legend=None))
    layers = [
        _own_offset(timeline, time, offset),
        _moment(timeline, axis),
        rows.transform_filter("datum.what == 'high watermark'").mark_line(interpolate="step-after", strokeWidth=1.5),
        rows.transform_filter("datum.what == 'truncated'").mark_rule(strokeWidth=2.5, clip=True).encode(y2="from:Q"),
        rows.transform_filter("datum.what == 'truncated'").mark_point(
            shape="triangle-down", size=90, filled=True, clip=True
        ),
        _marks(rows),
        *_named_marks(points, time, offset),
    ]
    return alt.layer(*layers).properties(width=WIDTH_PX, height=OFFSETS_PX)


def _broker_colours(timeline: Timeline) -> alt.Scale:
    nodes = {point.node for point in timeline.points} | {seen.node for seen in timeline.cluster}
    return alt.Scale(domain=[_broker(n) for n in nodes], range=[_colour(n) for n in nodes])


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


def _own_offset(timeline: Timeline, time: alt.X, offset: alt.Y) -> alt.Chart:
    row = {"time": timeline.begin_us / 1e6, "end": timeline.end_us / 1e6, "offset": timeline.write.offset}
    rule = alt.Chart(alt.Data(values=[row])).mark_rule(color="#b0b8c0", strokeDash=[4, 3])
    return rule.encode(x=time, x2="end:Q", y=offset)


def _marks(rows: alt.Chart) -> alt.Chart:
    kinds = list(_SHAPES)
    shape = alt.Scale(domain=kinds, range=list(_SHAPES.values()))
    size = alt.Scale(domain=kinds, range=_SIZES)
    return (
        rows.transform_filter(alt.FieldOneOfPredicate("what", kinds))
        .mark_point(filled=True, opacity=0.9, clip=True)
        .encode(shape=alt.Shape("what:N", scale=shape, legend=None), size=alt.Size("what:O", scale=size, legend=None))
    )


def _named_marks(points: Sequence[Row], time: alt.X, offset: alt.Y) -> list[alt.Chart]:
    """The write itself, and a name for it and for what took its place."""
    names = {"the lost write": "lost", "at its offset now": "now here"}
    named = [row | {"text": names[row["what"]]} for row in points if row["what"] in names]
    base = alt.Chart(alt.Data(values=named)).encode(x=time, y=offset, tooltip=[*_TIP, "write:N"])
    return [
        base.transform_filter("datum.what == 'the lost write'").mark_point(
            shape="M-.8-.8L.8.8M-.8.8L.8-.8", size=120, stroke=WRITE, strokeWidth=2.5
        ),
        base.mark_text(align="left", dx=9, dy=-9, fontWeight="bold", fontSize=11).encode(text="text:N"),
    ]
