"""The chart of a finding's write: faults, brokers and the write on one time axis, and the log's offsets over time.

All charts of a page share one specification, ``templates/loss-chart.vl.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple

from harness.observations import HighWatermarkMoved, Truncated, of_kind
from harness.report.charts import LOSS, LOSS_WITHOUT_OFFSETS, Chart, Row
from harness.report.leadership import isr_reports, known
from harness.report.names import fault_name, replica_set, write_name
from harness.report.timeline import LOSSES, POINTS_MAX, PointKind, Timeline

#: Okabe and Ito's palette, distinct with any colour vision; brokers take its colours in turn, in both panels.
BROKERS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
FAULT: Final = "#5f6368"
ISR: Final = "#c9d1d9"
WRITE: Final = "@ink"
#: Words beside the points that the story is about.
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


class Bar(NamedTuple):
    """Something that lasted, on a track of the upper panel."""

    track: str
    begin_us: int
    end_us: int
    label: str
    tip: str
    colour: str
    ink: str = "#ffffff"


def loss_chart(timeline: Timeline) -> Chart:
    """The chart of one story; without the lower panel where no offset of the write is known."""
    begin_s, end_s = timeline.begin_us / 1e6, timeline.end_us / 1e6
    window = {"begin": begin_s, "end": end_s, "at": timeline.write.acknowledged_us / 1e6}
    bars = [*_fault_bars(timeline), *_leader_bars(timeline), *_isr_bars(timeline), *_write_bars(timeline)]
    shown = [bar for bar in bars if bar.end_us > timeline.begin_us]
    datasets = {"bars": [_bar_row(timeline, place, bar) for place, bar in enumerate(shown)], "window": [window]}
    if timeline.write.offset is not None:
        window["offset"] = timeline.write.offset
        datasets["rows"] = [*_points(timeline), *_high_watermarks(timeline), *_truncations(timeline)]
    return Chart(
        template=LOSS_WITHOUT_OFFSETS if timeline.write.offset is None else LOSS,
        params=[{"name": "begin_s", "value": begin_s}, {"name": "end_s", "value": end_s}],
        datasets=datasets,
    )


# --- upper panel: what lasted ----------------------------------------------------------------------------------------


def _bar_row(timeline: Timeline, place: int, bar: Bar) -> Row:
    """The bar cut to the window. The page cuts its label to the room that it has there; the rest is in its tooltip."""
    return {
        "track": bar.track,
        "begin": max(bar.begin_us, timeline.begin_us) / 1e6,
        "end": min(bar.end_us, timeline.end_us) / 1e6,
        "ink": bar.ink,
        "label": bar.label,
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


def _write_bars(timeline: Timeline) -> Iterator[Bar]:
    written = {"the lost write" if timeline.anomaly in LOSSES else "the write": timeline.write}
    if timeline.overtaking is not None:
        written = {"sent earlier": timeline.write, "sent later": timeline.overtaking}
    for track, write in written.items():
        end_us = max(write.acknowledged_us, write.invoked_us + (timeline.end_us - timeline.begin_us) // 200)
        tip = f"{write_name(write.value)}: sent, then acknowledged"
        yield Bar(track, write.invoked_us, end_us, "", tip, WRITE)


def _colour(node: int | None) -> str:
    return FAULT if node is None else BROKERS[node % len(BROKERS)]


# --- lower panel: offsets over time ----------------------------------------------------------------------------------


def _row(time_us: int, offset: int, what: str, node: int | None, **more: Any) -> Row:
    broker = "?" if node is None else str(node)
    return {"time": round(time_us / 1e6, 4), "offset": offset, "what": what, "broker": broker, **more}


def _points(timeline: Timeline) -> list[Row]:
    return [
        _row(write.acknowledged_us, offset, kind, write.node)
        | ({} if kind == "acknowledged" else {"write": write_name(write.value)})
        | ({"label": LABELS[kind]} if kind in LABELS else {})
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
