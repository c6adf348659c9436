"""The chart of a finding about a consumer group: what members committed of a log partition, and what contradicts it.

Only the last commits before the contradiction are drawn, with the faults of that time as bands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from markupsafe import Markup

from checkers import Finding, OlderOffset, StaleCommit
from harness.records.files import HISTORY
from harness.report.loss_chart import FAULT
from harness.report.names import fault_name, moment
from harness.report.svg import PALETTE, Linear, drawing, element, group, path, point, text, title, x_axis, y_axis
from nemesis.receipts import Receipt
from workloads import Event, EventType, Function, GroupMember, Poll, Reached
from workloads.history import read_events

#: Commits drawn, the last ones.
COMMITS_MAX: Final = 80
#: The words of the page below the chart.
KEY: Final = (
    "Offsets that the group committed over time: a dot for each commit that it took, a colour for each member. The "
    "diamond is the commit that counts, the cross is what contradicts it; grey bands are faults."
)
_LEFT_PX: Final = 90
_WIDTH_PX: Final = 1000
_HEIGHT_PX: Final = 220
_TOP_PX: Final = 24
_FOOT_PX: Final = 44
_MARGIN_US: Final = 200_000


class _Mark(NamedTuple):
    """Something that tells where a group was: a commit, or what was read back."""

    time_us: int
    offset: int
    member: int
    event: int


def group_chart(run: Path, finding: Finding, receipts: Sequence[Receipt]) -> Markup:
    """The chart of a group that went back or has two owners; empty for any other finding.

    ``receipts`` are of the faults that took effect.

    Raises:
        HistoryError: the history cannot be read.
    """
    match finding:
        case OlderOffset():
            counts, odd, word = finding.commit, finding.op, "the group was here"
        case StaleCommit():
            counts, odd, word = finding.successor, finding.op, "taken from the member before"
        case _:
            return Markup("")
    marks = {mark.event: mark for mark in _marks(read_events(run / HISTORY), finding, odd.op_pos)}
    if counts.op_pos not in marks or odd.op_pos not in marks:
        return Markup("")
    contradiction = marks.pop(odd.op_pos)
    before = sorted(mark for mark in marks.values() if mark.time_us <= contradiction.time_us)[-COMMITS_MAX:]
    return _drawn(sorted({*before, marks[counts.op_pos]}), marks[counts.op_pos], contradiction, word, receipts)


def _marks(events: Iterable[Event], finding: OlderOffset | StaleCommit, odd: int) -> Iterator[_Mark]:
    """Commits that the group took of the log partition, and the event ``odd``, which may be of another kind."""
    for event in events:
        for micro in event.micro if event.type is EventType.OK else ():
            if isinstance(micro, Reached) and micro.partition == finding.key:
                if event.index == odd or (event.function is Function.COMMIT and _group(event) == finding.group):
                    yield _Mark(event.time_us, micro.offset, event.instance, event.index)
            elif event.index == odd and isinstance(micro, Poll) and (read := micro.records.get(str(finding.key))):
                yield _Mark(event.time_us, read[0].offset, event.instance, event.index)


def _group(event: Event) -> str:
    try:
        return msgspec.json.decode(event.detail or "", type=GroupMember).group
    except msgspec.DecodeError:
        return ""


def _drawn(
    commits: Sequence[_Mark], counts: _Mark, contradiction: _Mark, word: str, receipts: Iterable[Receipt]
) -> Markup:
    offsets = [max(mark.offset, 0) for mark in (*commits, contradiction)]
    begin_us, end_us = max(0, commits[0].time_us - _MARGIN_US), contradiction.time_us + _MARGIN_US
    time = Linear(begin_us / 1e6, end_us / 1e6, 0, _WIDTH_PX, 12)
    scale = Linear(min(offsets), max(offsets), _HEIGHT_PX - 14, 14, 5)
    members = list(dict.fromkeys(mark.member for mark in (*commits, contradiction)))

    def place(mark: _Mark) -> tuple[float, float]:
        return time.px(mark.time_us / 1e6), scale.px(max(mark.offset, 0))

    def tip(mark: _Mark, what: str) -> Markup:
        return title(f"{what} of offset {mark.offset} by member {mark.member}, {moment(mark.time_us)}")

    dots = [
        element(
            "circle",
            tip(mark, "commit"),
            cx=place(mark)[0],
            cy=place(mark)[1],
            r=3,
            fill=PALETTE[members.index(mark.member) % len(PALETTE)],
        )
        for mark in commits
    ]
    (x_px, y_px), (odd_px, odd_y_px) = place(counts), place(contradiction)
    diamond = element(
        "path", tip(counts, "commit"), d=f"M{point(x_px, y_px)}m0-7l7 7l-7 7l-7-7z", class_="ink", fill="none"
    )
    cross = path([("M", f"{point(odd_px, odd_y_px)}m-5-5l10 10m-10 0l10-10")], class_="ink", stroke_width=2.5)
    named = [
        _word("the commit that counts", x_px, y_px - 10),
        _word(word, odd_px, odd_y_px + 16),
    ]
    content = group(
        *(_band(receipt, time, end_us) for receipt in receipts if receipt.begun_us <= end_us),
        x_axis(time, _HEIGHT_PX, 0, "seconds since the run began"),
        y_axis(scale, 0, _WIDTH_PX, "offset"),
        *dots,
        group(tip(contradiction, "offset"), cross),
        diamond,
        *named,
        x_px=_LEFT_PX,
        y_px=_TOP_PX,
    )
    size = _LEFT_PX + _WIDTH_PX + 20, _TOP_PX + _HEIGHT_PX + _FOOT_PX
    return drawing(*size, "What a group committed, and what contradicts it", content)


def _word(words: str, x_px: float, y_px: float) -> Markup:
    """A word on that side of a mark where there is room."""
    right = x_px < _WIDTH_PX / 2
    return text(words, x_px + (9 if right else -9), y_px, class_="word", text_anchor="start" if right else "end")


def _band(receipt: Receipt, time: Linear, end_us: int) -> Markup:
    ended_us = end_us if receipt.ended_us is None else min(receipt.ended_us, end_us)
    first_px, last_px = max(0.0, time.px(receipt.begun_us / 1e6)), time.px(ended_us / 1e6)
    width_px = max(last_px - first_px, 0)
    return element(
        "rect", title(fault_name(receipt)), x=first_px, y=0, width=width_px, height=_HEIGHT_PX, fill=FAULT, opacity=0.2
    )
