"""Renders transactions: which ones wrote to a log partition, where and how long, and what is odd.

Only the last transactions before the contradiction are drawn, and those that it is about, with faults as bands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from markupsafe import Markup

from checkers import EventPlace, TransactionMoment, TransactionsView, counted, decoded, producer_name
from harness.campaigns.report.history_rows import of_events, of_partition
from harness.campaigns.report.names import moment
from harness.campaigns.report.offsets_panel import HEIGHT_PX, OffsetMark, OffsetsPanel
from harness.campaigns.report.renderer import Material, Renderer
from harness.campaigns.report.svg import PALETTE, element, group, legend, path, point, title
from workloads import Event, EventType, Function, Poll, Send, TransactionEnd
from workloads.history import FUNCTION_CODE, INVOKE, NONE, OK, Columns, Flags, Kind, Names, Needed

#: Transactions drawn, the last ones.
TRANSACTIONS_MAX: Final = 120
#: The words of the page below the chart.
KEY: Final = (
    "Transactions that wrote to the log partition: each bar is at its offsets there, from when it began to when its "
    "end was answered. The cross is what this account is about; grey bands are faults."
)
_TXN: Final = FUNCTION_CODE[Function.TXN]
ENDS: Final = {"committed": PALETTE[2], "aborted": PALETTE[5], "end not known": PALETTE[1]}
_END_OF: Final[Mapping[EventType, str]] = {EventType.OK: "committed", EventType.FAIL: "aborted"}


class _Transaction(NamedTuple):
    """One transaction: when it began and ended, how, and the values that it sent to the log partition."""

    begun_us: int
    ended_us: int
    end: str
    values: tuple[int, ...]
    event: int
    detail: TransactionEnd | None


class _Partition(NamedTuple):
    """A log partition as clients saw it: its transactions, offsets by value, and the times of some events by number."""

    transactions: list[_Transaction]
    offsets: dict[int, int]
    times_us: dict[int, int]


def needed_rows(key: object, view: TransactionsView) -> Needed:
    """Mark the last transactions before the contradiction, those that it is about, and what tells their offsets."""

    def needed(rows: Columns, names: Names) -> Flags:
        here, named = of_partition(rows, names, key), of_events(rows, view.events)
        is_transaction = rows["function"] == _TXN
        sends = here & is_transaction & (rows["type"] != INVOKE) & (rows["kind"] == Kind.SEND)
        reads = here & ~is_transaction & (rows["type"] == OK) & (rows["kind"] == Kind.READ)
        values = [value for value in view.values if isinstance(value, int)]
        if view.offset is not None:
            values += rows["value"][(sends | reads) & (rows["offset"] == view.offset)].tolist()
        placed = sends & ((rows["offset"] != NONE) | np.isin(rows["value"], rows["value"][reads]))
        about = placed & np.isin(rows["value"], values)
        begun_us = np.where(rows["invoke_us"] == NONE, rows["time_us"], rows["invoke_us"])
        before = placed & (begun_us <= _until_us(view, rows, names, about))
        ends = np.unique(rows["index"][before])[-2 * TRANSACTIONS_MAX :]
        # All that a transaction sent: its bar is as high as that.
        chosen = sends & (named | np.isin(rows["index"], np.concatenate([ends, rows["index"][about]])))
        begins = is_transaction & np.isin(rows["index"], rows["invoke_index"][chosen])
        told = reads & np.isin(rows["value"], [*values, *rows["value"][chosen].tolist()])
        marked: Flags = named | chosen | begins | told
        return marked

    return needed


def _until_us(view: TransactionsView, rows: Columns, names: Names, about: Flags) -> int:
    """The time of the contradiction, after which nothing that begins is drawn."""
    match view.when:
        case EventPlace(op_pos=number):
            return _latest_us(rows, rows["index"] == number)
        case TransactionMoment.ENDED:
            return _latest_us(rows, about)
        case TransactionMoment.ASKED:
            writers = np.isin(rows["index"], [writer.op_pos for writer in view.writers])
            codes = np.unique(rows["detail"][writers]).tolist()
            ends = (decoded(names["detail"][code], TransactionEnd) for code in codes if code != NONE)
            return max((end.ending_us or 0 for end in ends if end), default=0)


def _latest_us(rows: Columns, about: Flags) -> int:
    return int(rows["time_us"][about].max(initial=0))


def transaction_chart(key: object, view: TransactionsView, material: Material) -> Markup:
    """The chart of transactions in the log partition ``key``; empty where the material does not show what is odd."""
    seen = _seen(material.events, key, view)
    odd = list(_odd(view, seen))
    if not odd:
        return Markup("")
    compared = list(_compared(view, odd[0][0]))
    marks = [mark for mark, _ in (*odd, *compared)]
    last_us = max(mark.time_us for mark, _ in odd)
    placed = [
        (transaction, offsets)
        for transaction in seen.transactions
        if (offsets := _offsets(transaction, seen.offsets)) and transaction.begun_us <= last_us
    ]
    first = max(len(placed) - TRANSACTIONS_MAX, 0)
    placed = [*(each for each in placed[:first] if _is_named(view, *each)), *placed[first:]]
    times_us = [
        time_us for transaction, _ in placed for time_us in (transaction.begun_us, min(transaction.ended_us, last_us))
    ]
    times_us += [mark.time_us for mark in marks]
    offsets = [*(mark.offset for mark in marks), *(offset for _, own in placed for offset in own)]
    panel = OffsetsPanel(times_us, offsets)
    return panel.drawn(
        f"Transactions of {key}",
        material.receipts,
        legend("", ENDS, 60, -20),
        *(_bar(panel, transaction, own) for transaction, own in placed),
        *(panel.cross(mark, word) for mark, word in odd),
        *_line(panel, view, marks),
        *(panel.diamond(mark, word) for mark, word in compared),
    )


def _seen(events: Iterable[Event], key: object, view: TransactionsView) -> _Partition:
    seen = _Partition([], {}, {})
    begun_us: dict[int, int] = {}
    named = {event.op_pos for event in view.events}
    for event in events:
        if event.index in named:
            seen.times_us[event.index] = event.time_us
        if event.function is Function.TXN:
            if event.type is EventType.INVOKE:
                begun_us[event.process] = event.time_us
            else:
                sends = [micro for micro in event.micro if isinstance(micro, Send) and micro.partition == key]
                seen.offsets.update((send.value, send.offset) for send in sends if send.offset is not None)
                if sends:
                    began_us = begun_us.get(event.process, event.time_us)
                    seen.transactions.append(_transaction(event, began_us, tuple(send.value for send in sends)))
        elif event.type is EventType.OK:
            for poll in (micro for micro in event.micro if isinstance(micro, Poll)):
                records = poll.records.get(str(key), ())
                seen.offsets.update((record.value, record.offset) for record in records)
    return seen


def _transaction(event: Event, begun_us: int, values: tuple[int, ...]) -> _Transaction:
    detail = decoded(event.detail or "", TransactionEnd)
    end = _END_OF.get(event.type, "end not known")
    return _Transaction(begun_us, event.time_us, end, values, event.index, detail)


def _is_named(view: TransactionsView, transaction: _Transaction, offsets: Sequence[int]) -> bool:
    """The account is about it, so it is drawn however long ago it was."""
    return transaction.event in {writer.op_pos for writer in view.writers} or view.offset in offsets


def _odd(view: TransactionsView, seen: _Partition) -> Iterator[tuple[OffsetMark, str]]:
    """The marks that the account is about, each with its word."""
    writers = {writer.op_pos for writer in view.writers}
    match view.when:
        case EventPlace(op_pos=number) if (time_us := seen.times_us.get(number)) is not None:
            if view.offset is not None:
                tip = f"{view.word} {view.offset}, {moment(time_us)}"
                yield OffsetMark(time_us, view.offset, tip), view.word
            for value in view.values:
                yield from _mark(seen, value, time_us, view.word)
        case TransactionMoment.ASKED:
            own = next((transaction for transaction in seen.transactions if transaction.event in writers), None)
            asked_us = own.detail.ending_us if own and own.detail else None
            for value in view.values:
                yield from _mark(seen, value, asked_us, view.word)
        case TransactionMoment.ENDED:
            for transaction in seen.transactions:
                for value in (value for value in view.values if value in transaction.values):
                    yield from _mark(seen, value, transaction.ended_us, view.word)


def _mark(seen: _Partition, value: object, time_us: int | None, word: str) -> Iterator[tuple[OffsetMark, str]]:
    offset = seen.offsets.get(value) if isinstance(value, int) else None
    if offset is not None and time_us is not None:
        yield OffsetMark(time_us, offset, f"offset {offset}, {moment(time_us)}"), word


def _compared(view: TransactionsView, odd: OffsetMark) -> Iterator[tuple[OffsetMark, str]]:
    """The mark that ``odd`` is to be compared with, if any: the high watermark, or when a successor was in charge."""
    if (end := view.high_watermark) is not None:
        yield odd._replace(offset=end, tip=f"high watermark {end}, {moment(odd.time_us)}"), "high watermark"
    if view.late_us is not None:
        began_us = odd.time_us - view.late_us
        yield odd._replace(time_us=began_us, tip=f"a successor, {moment(began_us)}"), "a successor was in charge"


def _line(panel: OffsetsPanel, view: TransactionsView, marks: Sequence[OffsetMark]) -> Iterator[Markup]:
    """The line that readers do not pass, or that begins the time of the successor."""
    if view.high_watermark is not None:
        x_px, y_px = panel.pixels(marks[0])
        yield path([("M", point(0, y_px)), ("H", x_px)], class_="soft", stroke_dasharray="4 3")
    if view.late_us is not None:
        yield path([("M", point(panel.x_px(marks[-1].time_us), 0)), ("V", HEIGHT_PX)], class_="ink")


def _offsets(transaction: _Transaction, offsets: Mapping[int, int]) -> list[int]:
    return [offsets[value] for value in transaction.values if value in offsets]


def _producer(end: TransactionEnd) -> str:
    told = "" if end.producer is None else f" ({producer_name(end.producer)})"
    return f"{end.transactional_id}, producer {end.number}{told}"


def _bar(panel: OffsetsPanel, transaction: _Transaction, offsets: Sequence[int]) -> Markup:
    """A bar at a transaction's offsets; it is cut at the end of the panel."""
    (begin_px, low_px), (_, high_px) = (
        panel.pixels(OffsetMark(transaction.begun_us, offset, "")) for offset in (min(offsets), max(offsets))
    )
    end_px = min(panel.x_px(transaction.ended_us), panel.time.end_px)
    named = "" if transaction.detail is None else f", {_producer(transaction.detail)}"
    span = f"{moment(transaction.begun_us)} to {moment(transaction.ended_us)}"
    words = title(f"{transaction.end}{named}: {counted(len(offsets), 'record')}, {span}")
    shape = element(
        "rect", x=begin_px, y=high_px - 3, width=max(end_px - begin_px, 2), height=low_px - high_px + 6, rx=2
    )
    return group(words, shape, fill=ENDS[transaction.end], opacity=0.7)


RENDERER: Final = Renderer(KEY, needed_rows, transaction_chart)
