"""The chart of a finding about a group has its last commits up to the contradiction, and faults while they lasted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from checkers import EventPlace
from checkers.anomalies.group_went_back import OlderOffset
from harness.campaigns.report.group_chart import COMMITS_MAX, commits_chart
from harness.campaigns.report.renderer import Material
from tests.nemesis.receipt_factory import a_receipt
from workloads import Event, EventType, Function, GroupMember, Reached

KEY, GROUP = "t-0", "g"
SECOND_US = 1_000_000
#: The number of the last commit before the contradiction, of the contradiction, and of a commit after it.
LAST, ODD, AFTER = COMMITS_MAX + 5, COMMITS_MAX + 6, COMMITS_MAX + 7
EARLIER = 3


def events() -> Iterator[Event]:
    """A commit each second by two members in turn, and as many of another group; then what the group is told."""
    for number in range(AFTER + 1):
        for index, group in ((2 * number, GROUP), (2 * number + 1, "other")):
            is_told = number == ODD and group == GROUP
            yield Event(
                index=index,
                time_us=number * SECOND_US,
                process=number % 2,
                instance=number % 2,
                type=EventType.OK,
                function=Function.COMMITTED if is_told else Function.COMMIT,
                micro=(Reached(KEY, EARLIER if is_told else number),),
                detail=msgspec.json.encode(GroupMember(group=group)).decode(),
            )


def test_the_last_commits_of_the_group_are_drawn_up_to_the_contradiction() -> None:
    finding = OlderOffset(
        key=KEY, group=GROUP, offset=EARLIER, committed=LAST, op=EventPlace(2 * ODD), commit=EventPlace(2 * LAST)
    )
    drawn = commits_chart(
        finding.key,
        finding.view(),
        Material(Path(), events(), [a_receipt(begun_us=20 * SECOND_US, ended_us=30 * SECOND_US)]),
    )
    dots = re.findall(r'fill="(\S+)"><title>commit of offset (\d+) by member (\d)', drawn)
    assert [int(offset) for _, offset, _ in dots] == list(range(LAST - COMMITS_MAX + 1, LAST + 1))
    assert len({(colour, member) for colour, _, member in dots}) == 2
    ((begin_px, width_px),) = re.findall(r'<rect x="([\d.]+)" y="0" width="([\d.]+)"', drawn)
    column_px = {int(offset): float(x_px) for x_px, offset in re.findall(r'cx="([\d.]+)".*?offset (\d+) by', drawn)}
    assert float(begin_px) == column_px[20]
    assert float(width_px) == pytest.approx(column_px[30] - column_px[20], abs=0.11)
