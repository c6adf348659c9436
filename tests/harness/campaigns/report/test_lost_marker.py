"""Markers of later transactions that end a record, as the account of a finding tells them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import REPLICAS_FILE, EventPlace, TornTransaction, TransactionRead, Verdict
from checkers.anomalies.transactions import HangingTransaction
from checkers.columns.replica_file import REPLICAS_META, REPLICAS_SCHEMA, Ends, TransactionPart
from harness.campaigns.report.accounts import narration_of
from harness.campaigns.report.lost_marker import lost_marker
from harness.records.files import HISTORY
from workloads import Event, EventType, Function, Send
from workloads.history import HistoryWriter

KEY, OTHER, VALUE, SECOND = "t-0", "t-1", 77, 78
RECORD, ABORT, COMMIT = TransactionPart.IN_TRANSACTION, TransactionPart.ABORT, TransactionPart.COMMIT
#: A row: the log partition, the offset, the value, the producer's id and epoch, the part.
Row = tuple[str, int, int, int, int, TransactionPart]
MINE: Final[Row] = (KEY, 5, VALUE, 4000, 3, RECORD)
NEXT: Final[Row] = (KEY, 6, -9, 4000, 4, COMMIT)
LATE: Final[Row] = (KEY, 8, -9, 4000, 6, COMMIT)
WORDS = (
    "On the disk of broker 1 the record at offset 5 of t-0 has producer epoch 3, and the next marker of its producer, "
    "which commits, epoch 6: that of a later transaction. The record's own transaction never ended there (finding 008)."
)
PLACE = EventPlace(1)
TORN = TornTransaction(key=KEY, value=VALUE, writer=PLACE)


def write_run(directory: Path, rows: Sequence[Row]) -> None:
    """A transaction that sent two values, and what the disk of broker 1 has."""
    sends = (Send(KEY, VALUE, 5), Send(OTHER, SECOND, 5))
    with HistoryWriter(directory / HISTORY, "run") as writer:
        for kind in (EventType.INVOKE, EventType.OK):
            writer.record(Event(time_us=1, process=0, type=kind, function=Function.TXN, micro=sends))
    names = ("partition", "offset", "value", "producer_id", "producer_epoch", "part")
    columns = {
        **{field.name: [0] * len(rows) for field in REPLICAS_SCHEMA},
        "node": [1] * len(rows),
        **dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)),
    }
    arrays = [pa.array(columns[field.name], field.type) for field in REPLICAS_SCHEMA]
    schema = REPLICAS_SCHEMA.with_metadata({REPLICAS_META: msgspec.json.encode(Ends())})
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), directory / REPLICAS_FILE)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([MINE, LATE], WORDS),
        ([(KEY, 2, -9, 4000, 3, ABORT), MINE, (KEY, 9, -9, 4000, 9, ABORT), LATE], WORDS),
        ([MINE, NEXT, LATE], ""),
        ([MINE, (KEY, 6, -9, 4000, 3, ABORT)], ""),
        ([MINE, (KEY, 6, -9, 4001, 6, COMMIT), (OTHER, 7, -9, 4000, 6, COMMIT)], ""),
        ([(OTHER, 5, VALUE, 4000, 3, RECORD), (OTHER, 6, -9, 4000, 6, COMMIT)], ""),
        (
            [MINE, NEXT, (OTHER, 5, SECOND, 4000, 3, RECORD), (OTHER, 6, -9, 4000, 6, COMMIT)],
            WORDS.replace(KEY, OTHER),
        ),
    ],
)
def test_the_next_marker_of_the_producer_behind_each_record_of_the_transaction_is_compared(
    rows: Sequence[Row], words: str, tmp_path: Path
) -> None:
    write_run(tmp_path, rows)
    assert lost_marker(tmp_path, TORN) == words
    assert lost_marker(tmp_path, TransactionRead(key=KEY, value=VALUE, writer=PLACE, reader=PLACE)) == words
    hanging = HangingTransaction(key=KEY, last_stable_offset=0, high_watermark=1, waited_us=1, op=PLACE)
    assert lost_marker(tmp_path, hanging) == ""


def test_the_account_of_a_torn_transaction_tells_it(tmp_path: Path) -> None:
    write_run(tmp_path, [MINE, LATE])
    told = narration_of(tmp_path, "torn-transaction", TORN, Verdict(history="run", valid=False), idempotent=True)
    assert WORDS in told.sentences


def test_a_run_without_disks_says_nothing(tmp_path: Path) -> None:
    assert lost_marker(tmp_path, TORN) == ""
