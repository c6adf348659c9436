"""Two transactions of one producer with the same epoch, as the account of a finding tells it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from checkers import EventPlace, TornTransaction, TransactionRead, Verdict
from checkers.anomalies.transactions import HangingTransaction
from harness.campaigns.report.accounts import narration_of
from harness.campaigns.report.shared_epoch import shared_epoch
from harness.records.files import HISTORY
from workloads import Event, EventType, Function, ProducerEpoch, Send, TransactionEnd
from workloads.history import HistoryError, HistoryWriter

KEY = "t-0"
FIRST, SAME, NEXT = ProducerEpoch(4000, 3), ProducerEpoch(4000, 3), ProducerEpoch(4000, 4)
WORDS = (
    "The transaction had the same epoch as that before it (id 4000, epoch 3). So brokers could not tell "
    "a late request to end the one before from a request to end this one (finding 009)."
)


def wrote(directory: Path, *producers: tuple[int, ProducerEpoch | None]) -> list[EventPlace]:
    """The ends of transactions, one after the other: of this process, with this epoch."""
    with HistoryWriter(directory / HISTORY, "run") as writer:
        for number, (process, epoch) in enumerate(producers):
            end = TransactionEnd(transactional_id=f"t{process}", number=0, asked="commit", producer=epoch)
            common = {"process": process, "instance": process, "function": Function.TXN}
            detail = msgspec.json.encode(end).decode()
            sends = (Send(KEY, 2 * number), Send("t-1", 2 * number + 1))
            writer.record(Event(time_us=10 * number, type=EventType.INVOKE, micro=sends, **common))
            done = tuple(msgspec.structs.replace(send, offset=number) for send in sends)
            writer.record(Event(time_us=10 * number + 5, type=EventType.OK, micro=done, detail=detail, **common))
    return [EventPlace(2 * number + 1) for number in range(len(producers))]


@pytest.mark.parametrize(
    ("producers", "words"),
    [
        ([(0, FIRST), (0, SAME)], WORDS),
        ([(0, NEXT), (0, FIRST), (1, NEXT), (0, SAME)], WORDS),
        ([(0, FIRST), (0, NEXT)], ""),
        ([(0, FIRST), (1, SAME)], ""),
        ([(0, FIRST), (0, None)], ""),
        ([(0, None), (0, None)], ""),
        ([(0, FIRST)], ""),
    ],
)
def test_the_last_transaction_before_it_of_the_same_producer_is_compared(
    producers: Sequence[tuple[int, ProducerEpoch | None]], words: str, tmp_path: Path
) -> None:
    *_, writer = wrote(tmp_path, *producers, (7, FIRST))[:-1]
    assert shared_epoch(tmp_path, TornTransaction(key=KEY, value=1, writer=writer)) == words
    assert shared_epoch(tmp_path, TransactionRead(key=KEY, value=1, writer=writer, reader=EventPlace(99))) == words


def test_a_finding_about_something_else_needs_no_history(tmp_path: Path) -> None:
    with pytest.raises(HistoryError):
        shared_epoch(tmp_path, TornTransaction(key=KEY, value=1, writer=EventPlace(1)))
    hanging = HangingTransaction(key=KEY, last_stable_offset=0, high_watermark=1, waited_us=1, op=EventPlace(1))
    assert shared_epoch(tmp_path, hanging) == ""


def test_the_account_of_a_torn_transaction_tells_it(tmp_path: Path) -> None:
    *_, writer = wrote(tmp_path, (0, FIRST), (0, SAME))
    torn = TornTransaction(key=KEY, value=2, writer=writer)
    told = narration_of(tmp_path, "torn-transaction", torn, Verdict(history="run", valid=False), idempotent=True)
    assert WORDS in told.sentences
