"""The chart of a finding about transactions has what the account is about, however long ago that was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from markupsafe import Markup

from checkers import EventPlace, Finding, TransactionRead
from checkers.anomalies.transactions import HangingTransaction, ZombieWrite
from harness.campaigns.report.renderer import Material
from harness.campaigns.report.transaction_chart import TRANSACTIONS_MAX, transaction_chart
from workloads import Event, EventType, Function, Poll, ProducerEpoch, Reached, Record, Send, TransactionEnd

KEY = "t-0"
#: The first transaction, which is aborted, ends with event 1; as many committed ones follow as are drawn at most.
ABORTED, LATER = 1, TRANSACTIONS_MAX
READ = 2 * (LATER + 1)
SECOND_US = 1_000_000
HANGING = HangingTransaction(
    key=KEY, last_stable_offset=0, high_watermark=LATER + 2, waited_us=1, op=EventPlace(READ + 1)
)


def events() -> Iterator[Event]:
    """A transaction each second, a record each: then a reader has all of them, and a broker says where the log ends."""
    for number in range(LATER + 1):
        kind = EventType.OK if number else EventType.FAIL
        began_us, ended_us = number * SECOND_US, number * SECOND_US + 500_000
        end = TransactionEnd(
            transactional_id="p",
            number=0,
            asked="commit" if number else "abort",
            ending_us=began_us + 400_000,
            producer=None if number else ProducerEpoch(4000, 3),
        )
        micro = (Send(KEY, number, number),)
        common = {"process": 3, "instance": 3, "function": Function.TXN}
        yield Event(index=2 * number, time_us=began_us, type=EventType.INVOKE, **common)
        detail = msgspec.json.encode(end).decode()
        yield Event(index=2 * number + 1, time_us=ended_us, type=kind, micro=micro, detail=detail, **common)
    records = tuple(Record(number, number) for number in range(LATER + 1))
    last_us = (LATER + 1) * SECOND_US
    poll = (Poll({KEY: records}),)
    yield Event(index=READ, time_us=last_us, process=9, type=EventType.OK, function=Function.POLL, micro=poll)
    reached = (Reached(KEY, 0),)
    yield Event(index=READ + 1, time_us=last_us, process=9, type=EventType.OK, function=Function.STABLE, micro=reached)


def drawn_of(finding: Finding) -> Markup:
    return transaction_chart(KEY, finding.view(), Material(Path(), list(events())))


@pytest.mark.parametrize(
    "finding",
    [
        TransactionRead(key=KEY, value=0, writer=EventPlace(ABORTED), reader=EventPlace(READ)),
        HANGING,
    ],
    ids=lambda finding: type(finding).__name__,
)
def test_the_transaction_of_the_account_is_drawn_beside_the_last_ones(finding: Finding) -> None:
    drawn = drawn_of(finding)
    spans = re.findall(r"<title>(committed|aborted), p, producer 0(.*?): 1 record, (\d+)\.000 s to", drawn)
    later = [("committed", "", str(number)) for number in range(1, LATER + 1)]
    assert spans == [("aborted", " (id 4000, epoch 3)", "0"), *later]


def test_a_successor_that_was_in_charge_before_all_that_is_drawn_is_on_the_chart() -> None:
    late_us = LATER * SECOND_US - 100_000
    last = EventPlace(2 * LATER + 1)
    drawn = drawn_of(ZombieWrite(key=KEY, value=LATER, late_us=late_us, writer=last))
    assert ">a successor, 0.500 s<" in drawn
    columns_px = [float(column) for column in re.findall(r' d="M(-?[\d.]+) ', drawn)]
    assert min(columns_px) >= 0


def test_the_high_watermark_is_at_its_offset_above_the_last_stable_one_at_one_moment() -> None:
    drawn = drawn_of(HANGING)
    (stable,) = re.findall(r"<title>last stable offset 0, .*?</title><path d=\"M([\d.]+) ([\d.]+)m", drawn)
    (end,) = re.findall(rf"<title>high watermark {LATER + 2}, .*?</title><path d=\"M([\d.]+) ([\d.]+)m", drawn)
    assert stable[0] == end[0]
    assert float(stable[1]) > float(end[1])
