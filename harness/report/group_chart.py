"""The chart of a finding about a consumer group: what was committed of a log partition, and what contradicts it.

Only the last commits before the contradiction are drawn, with the faults of that time as bands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from checkers import (
    AbortedCommit,
    EventPlace,
    MissingEffect,
    OlderOffset,
    ReturnedGroup,
    SkippedRecord,
    StaleCommit,
    UnfencedCommit,
    UnstableOffset,
    decoded,
)
from harness.report.names import moment
from harness.report.offsets_panel import OffsetMark, OffsetsPanel
from harness.report.svg import PALETTE, element, title
from nemesis.receipts import Receipt
from workloads import Event, EventType, Function, GroupMember, Poll, Reached, Record

#: Commits drawn, the last ones.
COMMITS_MAX: Final = 80
#: The words of the page below the chart.
KEY: Final = (
    "Offsets that the group committed over time: a dot for each commit that it took, a colour for each member. The "
    "diamond is what counts, the cross is what contradicts it; grey bands are faults."
)
#: By finding, the words beside what counts and beside what contradicts it.
_WORDS: Final = {
    OlderOffset: ("the commit that counts", "the group was here"),
    StaleCommit: ("the commit that counts", "taken from the member before"),
    UnfencedCommit: ("another instance began", "taken from the instance before"),
    ReturnedGroup: ("the group was deleted", "the group was here"),
    AbortedCommit: ("aborted", "the group was here"),
    UnstableOffset: ("committed later", "the group was here"),
    SkippedRecord: ("the group committed past it", "read, and processed by no member"),
    MissingEffect: ("the group committed past it", "read, and without an effect"),
}
#: Functions whose success commits offsets.
COMMITTING: Final = (Function.COMMIT, Function.TXN)


#: Findings that have this chart.
OfGroups = (
    OlderOffset
    | StaleCommit
    | UnfencedCommit
    | ReturnedGroup
    | AbortedCommit
    | UnstableOffset
    | SkippedRecord
    | MissingEffect
)


class _Sides(NamedTuple):
    """The events that tell what counts and what contradicts it, None where offsets do, each with its word."""

    counts: EventPlace | None
    contradiction: EventPlace | None
    counts_word: str
    word: str


class _Seen(NamedTuple):
    """The place of a group, or of a reader, as an event tells it."""

    mark: OffsetMark
    member: int
    event: int
    is_commit: bool


def group_chart(events: Iterable[Event], finding: OfGroups, receipts: Sequence[Receipt]) -> Markup:
    """The chart of a finding about a group; empty where ``events`` do not show it.

    ``receipts`` are of the faults that took effect.
    """
    sides = _sides(finding)
    facts = _seen(events, finding, sides)
    counts = next((fact for fact in facts if _counts(fact, finding, sides)), None)
    against = next((fact for fact in facts if _contradicts(fact, finding, sides)), None)
    if counts is None or against is None:
        return Markup("")
    last_us = max(counts.mark.time_us, against.mark.time_us)
    commits = [fact for fact in facts if fact.is_commit and fact is not against and fact.mark.time_us <= last_us]
    commits = sorted(commits, key=lambda fact: fact.mark.time_us)[-COMMITS_MAX:]
    shown = [*commits, counts, against]
    panel = OffsetsPanel([fact.mark.time_us for fact in shown], [fact.mark.offset for fact in shown])
    members = list(dict.fromkeys(fact.member for fact in shown))
    dots = [_dot(panel, fact, PALETTE[members.index(fact.member) % len(PALETTE)]) for fact in commits]
    marks = panel.cross(against.mark, sides.word), panel.diamond(counts.mark, sides.counts_word)
    return panel.drawn("What a group committed, and what contradicts it", receipts, *dots, *marks)


def _sides(finding: OfGroups) -> _Sides:
    places: tuple[EventPlace | None, EventPlace | None]
    match finding:
        case SkippedRecord():
            places = None, None
        case MissingEffect():
            places = None, finding.reader
        case OlderOffset():
            places = finding.commit, finding.op
        case ReturnedGroup():
            places = finding.deletion, finding.op
        case StaleCommit() | UnfencedCommit():
            places = finding.successor, finding.op
        case AbortedCommit() | UnstableOffset():
            places = finding.transaction, finding.op
    return _Sides(places[0], places[1], *_WORDS[type(finding)])


def _counts(seen: _Seen, finding: OfGroups, sides: _Sides) -> bool:
    if isinstance(finding, SkippedRecord | MissingEffect):
        return seen.is_commit and seen.mark.offset == finding.committed
    return sides.counts is not None and seen.event == sides.counts.op_pos


def _contradicts(seen: _Seen, finding: OfGroups, sides: _Sides) -> bool:
    if sides.contradiction is None:
        return not seen.is_commit and seen.mark.offset == finding.offset
    return seen.event == sides.contradiction.op_pos


def _seen(events: Iterable[Event], finding: OfGroups, sides: _Sides) -> list[_Seen]:
    """Commits that the group took of the log partition, and whatever tells one of the two sides."""
    named = {event.op_pos for event in (sides.counts, sides.contradiction) if event is not None}
    of_record = isinstance(finding, SkippedRecord | MissingEffect)
    facts: list[_Seen] = []
    for event in events:
        is_ok = event.type is EventType.OK
        is_commit = is_ok and event.function in COMMITTING and _group(event) == finding.group
        offsets: list[int] = []
        if is_commit or event.index in named:
            offsets = [
                micro.offset for micro in event.micro if isinstance(micro, Reached) and micro.partition == finding.key
            ]
        polled = [record.offset for record in _polled(event, finding)] if is_ok else []
        if of_record:
            offsets += [offset for offset in polled if offset == finding.offset]
        elif event.index in named:
            # An assignment names no offset: it is drawn where the finding is.
            offsets = offsets or polled[:1] or [finding.offset]
        what = "commit" if is_commit else str(event.function)
        facts += [
            _Seen(OffsetMark(event.time_us, offset, _tip(what, offset, event)), event.instance, event.index, is_commit)
            for offset in offsets
        ]
    return facts


def _polled(event: Event, finding: OfGroups) -> Iterable[Record]:
    polls = (micro for micro in event.micro if isinstance(micro, Poll))
    return (record for poll in polls for record in poll.records.get(str(finding.key), ()))


def _tip(what: str, offset: int, event: Event) -> str:
    return f"{what} of offset {offset} by member {event.instance}, {moment(event.time_us)}"


def _group(event: Event) -> str | None:
    member = decoded(event.detail or "", GroupMember)
    return member.group if member else None


def _dot(panel: OffsetsPanel, seen: _Seen, colour: str) -> Markup:
    x_px, y_px = panel.pixels(seen.mark)
    return element("circle", title(seen.mark.tip), cx=x_px, cy=y_px, r=3, fill=colour)
