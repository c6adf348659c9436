"""Renders copies of a log that differ: what each broker's disk, and each final reader, has.

Of a key its records, of an offset those around it. What disks hold comes from ``replicas.parquet``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from checkers import REPLICAS_FILE, CheckError, CopiesView, TransactionPart, held_record, read_replicas
from harness.campaigns.report.history_rows import of_partition
from harness.campaigns.report.names import node_name
from harness.campaigns.report.offsets_panel import offset_scale
from harness.campaigns.report.renderer import Material, Renderer
from harness.campaigns.report.svg import PALETTE, drawing, element, group, point, text, title, x_axis
from workloads import Event, EventType, Function, Poll, Send
from workloads.history import FUNCTION_CODE, OK, Columns, Flags, Kind, Names, Needed

#: The words of the page below the chart.
KEY: Final = (
    "Offsets of the log, a row for each final reader and for each broker's disk when the run had ended: a dot for a "
    "record, a square for a tombstone. Records that are the same have the same colour; grey ones most rows have."
)
#: Offsets drawn on each side of the one that differs.
AROUND: Final = 12
#: Records of a key drawn, the last ones of a row.
RECORDS_MAX: Final = 40
_DRAIN: Final = FUNCTION_CODE[Function.DRAIN]
_USUAL: Final = "#8b949e"
_LEFT_PX: Final = 150
_WIDTH_PX: Final = 900
_ROW_PX: Final = 26
_TOP_PX: Final = 22
_FOOT_PX: Final = 40


class _Copy(NamedTuple):
    """A record as one copy has it."""

    offset: int
    value: int
    tombstone: bool


Rows = Mapping[str, Sequence[_Copy]]


def needed_rows(key: object, view: CopiesView) -> Needed:
    """Mark the records of its key, what was read around its offset, and who read to the end; disks tell the rest."""

    def needed(rows: Columns, names: Names) -> Flags:
        here = of_partition(rows, names, key)
        ends: Flags = (rows["function"] == _DRAIN) & (rows["kind"] == Kind.LISTED)
        reads: Flags = (rows["type"] == OK) & (rows["kind"] == Kind.READ)
        if view.offset is not None:
            # Without readers that are compared, disks tell all.
            here &= bool(view.readers)
            readers = np.isin(rows["process"], view.readers)
            return here & (ends | (reads & readers & np.isin(rows["offset"], around(view.offset))))
        sends = here & (rows["kind"] == Kind.SEND) & (rows["record_key"] == view.record_key)
        offsets = rows["offset"][here & reads & np.isin(rows["value"], rows["value"][sends])]
        marked: Flags = sends | (here & (ends | (reads & np.isin(rows["offset"], offsets))))
        return marked

    return needed


def copies_chart(key: object, view: CopiesView, material: Material) -> Markup:
    """The chart of copies of the log partition ``key``; empty where neither disks nor events show it."""
    run, events = material.run, material.events
    if view.offset is not None:
        near = around(view.offset)
        rows = {**_read(events, key, view.readers, near), **_on_disks(run, key, "offset", near)}
        return _drawn(rows, f"Records around offset {view.offset} of {key}", view.offset)
    rows = {**_told(events, key, view.record_key), **_on_disks(run, key, "record_key", [view.record_key])}
    return _drawn(rows, f"Records of key {view.record_key} of {key}", None)


def around(offset: int) -> range:
    """The offsets that are drawn."""
    return range(offset - AROUND, offset + AROUND + 1)


def _read(events: Iterable[Event], partition: object, readers: Sequence[int], near: range) -> Rows:
    """By final reader, in the order in which they came to the end: what it read at these offsets."""
    key = str(partition)
    polled: dict[int, dict[int, int]] = {process: {} for process in readers}
    rows: dict[str, Sequence[_Copy]] = {}
    for event in events:
        if event.type is not EventType.OK or event.process not in polled:
            continue
        for poll in (micro for micro in event.micro if isinstance(micro, Poll)):
            polled[event.process].update((r.offset, r.value) for r in poll.records.get(key, ()) if r.offset in near)
        if event.function is Function.DRAIN and key in event.partitions:
            rows[_reader(event)] = [_Copy(offset, value, False) for offset, value in polled[event.process].items()]
    return rows


def _reader(event: Event) -> str:
    """The name of a final reader's row: who led then, where leaders were moved for it."""
    return f"reader {event.process}{'' if event.node is None else f' ({node_name(event.node)} led)'}"


def _on_disks(run: Path, key: object, column: str, wanted: Iterable[int | None]) -> Rows:
    """By broker; a file that is not there, or cannot be read, says nothing."""
    try:
        replicas = read_replicas(run / REPLICAS_FILE)
    except CheckError:
        replicas = None
    if replicas is None:
        return {}
    ends, table = replicas
    here = pc.equal(table["partition"].cast(pa.string()), pa.scalar(str(key)))
    chosen = pc.is_in(table[column], value_set=pa.array(wanted, table.schema.field(column).type))
    records = pc.less_equal(table["part"], pa.scalar(int(TransactionPart.IN_TRANSACTION), pa.int8()))
    chosen_rows = table.filter(pc.and_(pc.and_(here, chosen), records))
    names = ("node", "offset", "value", "tombstone")
    rows: dict[str, list[_Copy]] = {node_name(node): [] for node in sorted(ends.held.get(str(key), []))}
    for node, offset, value, tombstone in zip(*(chosen_rows[name].to_pylist() for name in names), strict=True):
        rows.setdefault(node_name(node), []).append(_Copy(offset, value, tombstone > 0))
    return rows


def _told(events: Iterable[Event], partition: object, record_key: int | None) -> Rows:
    """By who was told of the key: producers, then final readers in the order in which they came to the end."""
    key, tombstones = str(partition), dict[int, bool]()
    acknowledged: list[_Copy] = []
    polled: dict[int, dict[int, int]] = {}
    rows: dict[str, Sequence[_Copy]] = {"acknowledged": acknowledged}
    for event in events:
        for send in event.micro:
            if isinstance(send, Send) and send.partition == key and send.record_key == record_key:
                tombstones[send.value] = send.tombstone
                if event.type is EventType.OK and send.offset is not None:
                    acknowledged.append(_Copy(send.offset, send.value, send.tombstone))
        if event.type is EventType.OK:
            for poll in (micro for micro in event.micro if isinstance(micro, Poll)):
                polled.setdefault(event.process, {}).update((r.offset, r.value) for r in poll.records.get(key, ()))
            if event.function is Function.DRAIN and key in event.partitions:
                own = polled.get(event.process, {})
                rows[_reader(event)] = [
                    _Copy(offset, value, tombstones[value]) for offset, value in own.items() if value in tombstones
                ]
    return rows


def _drawn(rows: Rows, label: str, odd: int | None) -> Markup:
    copies = {name: sorted(row)[-RECORDS_MAX:] for name, row in rows.items()}
    offsets = [copy.offset for row in copies.values() for copy in row]
    if not offsets:
        return Markup("")
    scale = offset_scale(min(offsets), max(offsets), 20, _WIDTH_PX - 20, 10)
    colours, height_px = _colours(copies.values()), _ROW_PX * len(copies)
    line_px = [(number + 0.5) * _ROW_PX for number in range(len(copies))]
    names = [text(name, -8, y_px + 4, text_anchor="end") for name, y_px in zip(copies, line_px, strict=True)]
    ring = [] if odd is None else [_column(scale.px(odd), height_px)]
    marks = [
        _mark(copy, name, scale.px(copy.offset), y_px, colours[copy.value])
        for (name, row), y_px in zip(copies.items(), line_px, strict=True)
        for copy in row
    ]
    none = [
        text("none", 26, y_px + 4, class_="axis") for row, y_px in zip(copies.values(), line_px, strict=True) if not row
    ]
    inside = group(
        x_axis(scale, height_px, 0, "offset"),
        group(*names, class_="axis"),
        *ring,
        *none,
        *marks,
        x_px=_LEFT_PX,
        y_px=_TOP_PX,
    )
    return drawing(_LEFT_PX + _WIDTH_PX + 20, _TOP_PX + height_px + _FOOT_PX, label, inside)


def _colours(rows: Iterable[Sequence[_Copy]]) -> dict[int, str]:
    """By value: grey where more than half of the copies have it, else a colour of its own."""
    each = list(rows)
    times = Counter(copy.value for row in each for copy in {copy.value: copy for copy in row}.values())
    own = iter(PALETTE * (len(times) // len(PALETTE) + 1))
    return {value: _USUAL if 2 * count > len(each) else next(own) for value, count in sorted(times.items())}


def _column(x_px: float, height_px: float) -> Markup:
    return element("rect", x=x_px - 9, y=1, width=18, height=height_px - 2, rx=4, class_="ink", fill="none")


def _mark(copy: _Copy, name: str, x_px: float, y_px: float, colour: str) -> Markup:
    words = title(f"{name}, offset {copy.offset}: {held_record(copy.value)}{', a tombstone' if copy.tombstone else ''}")
    if copy.tombstone:
        shape = f"M{point(x_px - 5, y_px - 5)}h10v10h-10z"
        return element("path", words, d=shape, fill="none", stroke=colour, stroke_width=2.5)
    return element("circle", words, cx=x_px, cy=y_px, r=5, fill=colour)


RENDERER: Final = Renderer(KEY, needed_rows, copies_chart)
