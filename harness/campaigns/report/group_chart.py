"""Renders the commits of a consumer group: what was committed of a log partition, and what contradicts it.

Only the last commits before the contradiction are drawn, with the faults of that time as bands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from markupsafe import Markup

from checkers import CommitsView, decoded
from harness.campaigns.report.history_rows import first_row, last_rows, of_events, of_partition
from harness.campaigns.report.names import moment
from harness.campaigns.report.offsets_panel import OffsetMark, OffsetsPanel
from harness.campaigns.report.renderer import Material, Renderer
from harness.campaigns.report.svg import PALETTE, element, title
from workloads import Event, EventType, Function, GroupMember, Poll, Reached, Record
from workloads.history import FUNCTION_CODE, NONE, OK, Columns, Flags, Kind, Names, Needed

#: Commits drawn, the last ones.
COMMITS_MAX: Final = 80
#: The words of the page below the chart.
KEY: Final = (
    "Offsets that the group committed over time: a dot for each commit that it took, a colour for each member. The "
    "diamond is what counts, the cross is what contradicts it; grey bands are faults."
)
#: Functions whose success commits offsets.
COMMITTING: Final = (Function.COMMIT, Function.TXN)
_COMMITTING: Final = [FUNCTION_CODE[function] for function in COMMITTING]


class _Seen(NamedTuple):
    """The place of a group, or of a reader, as an event tells it."""

    mark: OffsetMark
    member: int
    event: int
    is_commit: bool


def needed_rows(key: object, view: CommitsView) -> Needed:
    """Mark the last commits of the group before the contradiction, and what the finding is about."""

    def needed(rows: Columns, names: Names) -> Flags:
        here, named = of_partition(rows, names, key), of_events(rows, view.events)
        done = here & (rows["type"] == OK)
        of_group = done & np.isin(rows["function"], _COMMITTING)
        details = [code for code in np.unique(rows["detail"][of_group]).tolist() if code != NONE]
        members = ((code, decoded(names["detail"][code], GroupMember)) for code in details)
        mine = [code for code, member in members if member and member.group == view.group]
        of_group &= np.isin(rows["detail"], mine)
        commits = of_group & (rows["kind"] == Kind.REACHED)
        reads, sides = np.zeros(len(here), dtype=bool), named
        if isinstance(view.counts, int):
            reads = done & (rows["kind"] == Kind.READ) & (rows["offset"] == view.offset)
            counting = first_row(rows, commits & (rows["offset"] == view.counts))
            sides = named | first_row(rows, reads & ~of_group) | counting
        # Where a finding names the begin of an operation, that is when it was.
        at_end = ~named | np.isin(rows["index"], [event.op_pos for event in view.events])
        until_us = np.where(at_end, rows["time_us"], rows["invoke_us"])[sides].max(initial=0)
        before = commits & (rows["time_us"] <= until_us)
        marked: Flags = named | sides | reads | last_rows(rows["time_us"], before, 2 * COMMITS_MAX)
        return marked

    return needed


def commits_chart(key: object, view: CommitsView, material: Material) -> Markup:
    """The chart of a group's commits in the log partition ``key``; empty where the material does not show it."""
    facts = _seen(material.events, key, view)
    counts = next((fact for fact in facts if _counts(fact, view)), None)
    against = next((fact for fact in facts if _contradicts(fact, view)), None)
    if counts is None or against is None:
        return Markup("")
    last_us = max(counts.mark.time_us, against.mark.time_us)
    commits = [fact for fact in facts if fact.is_commit and fact is not against and fact.mark.time_us <= last_us]
    commits = sorted(commits, key=lambda fact: fact.mark.time_us)[-COMMITS_MAX:]
    shown = [*commits, counts, against]
    panel = OffsetsPanel([fact.mark.time_us for fact in shown], [fact.mark.offset for fact in shown])
    members = list(dict.fromkeys(fact.member for fact in shown))
    dots = [_dot(panel, fact, PALETTE[members.index(fact.member) % len(PALETTE)]) for fact in commits]
    counts_word, word = view.words
    marks = panel.cross(against.mark, word), panel.diamond(counts.mark, counts_word)
    return panel.drawn("What a group committed, and what contradicts it", material.receipts, *dots, *marks)


def _counts(seen: _Seen, view: CommitsView) -> bool:
    if isinstance(view.counts, int):
        return seen.is_commit and seen.mark.offset == view.counts
    return seen.event == view.counts.op_pos


def _contradicts(seen: _Seen, view: CommitsView) -> bool:
    if view.against is None:
        return not seen.is_commit and seen.mark.offset == view.offset
    return seen.event == view.against.op_pos


def _seen(events: Iterable[Event], key: object, view: CommitsView) -> list[_Seen]:
    """Commits that the group took of the log partition, and whatever tells one of the two sides."""
    named = {event.op_pos for event in view.events}
    facts: list[_Seen] = []
    for event in events:
        is_ok = event.type is EventType.OK
        is_commit = is_ok and event.function in COMMITTING and _group(event) == view.group
        offsets: list[int] = []
        if is_commit or event.index in named:
            offsets = [micro.offset for micro in event.micro if isinstance(micro, Reached) and micro.partition == key]
        polled = [record.offset for record in _polled(event, key)] if is_ok else []
        if isinstance(view.counts, int):
            offsets += [offset for offset in polled if offset == view.offset]
        elif event.index in named:
            # An assignment names no offset: it is drawn where the finding is.
            offsets = offsets or polled[:1] or [view.offset]
        what = "commit" if is_commit else str(event.function)
        facts += [
            _Seen(OffsetMark(event.time_us, offset, _tip(what, offset, event)), event.instance, event.index, is_commit)
            for offset in offsets
        ]
    return facts


def _polled(event: Event, key: object) -> Iterable[Record]:
    polls = (micro for micro in event.micro if isinstance(micro, Poll))
    return (record for poll in polls for record in poll.records.get(str(key), ()))


def _tip(what: str, offset: int, event: Event) -> str:
    return f"{what} of offset {offset} by member {event.instance}, {moment(event.time_us)}"


def _group(event: Event) -> str | None:
    member = decoded(event.detail or "", GroupMember)
    return member.group if member else None


def _dot(panel: OffsetsPanel, seen: _Seen, colour: str) -> Markup:
    x_px, y_px = panel.pixels(seen.mark)
    return element("circle", title(seen.mark.tip), cx=x_px, cy=y_px, r=3, fill=colour)


RENDERER: Final = Renderer(KEY, needed_rows, commits_chart)
