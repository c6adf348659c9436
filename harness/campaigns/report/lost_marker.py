"""Says where the disks show that a transaction never ended on a log partition: a later one's marker ended its record.

With version 2 of transactions each end has the next epoch of its producer, so a marker of an epoch after that belongs
to another transaction. With version 1 all ends of a producer have the same epoch, and this says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from checkers import REPLICAS_FILE, EventPlace, Finding, TornTransaction, TransactionPart, TransactionRead
from harness.campaigns.report.names import node_name
from harness.records.files import HISTORY
from workloads import Send
from workloads.history import Columns, Flags, Names, read_events

_COLUMNS: Final = ["partition", "node", "offset", "producer_id", "producer_epoch", "part"]
_ENDS: Final = {TransactionPart.ABORT: "aborts", TransactionPart.COMMIT: "commits"}


def lost_marker(run: Path, finding: Finding) -> str:
    """Say that a record of the finding's transaction has no marker of its own; "" if all have, or no disk tells.

    Of other findings than those that a lost marker brings about it says nothing.

    Raises:
        HistoryError: the history cannot be read.
    """
    if not isinstance(finding, TornTransaction | TransactionRead) or not (run / REPLICAS_FILE).exists():
        return ""
    try:
        told = (_told(run / REPLICAS_FILE, *sent) for sent in _sends(run, finding.writer))
        return next(filter(None, told), "")
    except (OSError, pa.ArrowException):
        return ""


def _sends(run: Path, writer: EventPlace) -> Iterator[tuple[str, int]]:
    """The log partitions and values that the operation sent."""

    def needed(rows: Columns, _: Names) -> Flags:
        mine: Flags = rows["index"] == writer.op_pos
        return mine

    for event in read_events(run / HISTORY, needed):
        yield from ((part.partition, part.value) for part in event.micro if isinstance(part, Send))


def _told(file: Path, partition: str, value: int) -> str:
    """The words about one record, "" if its next marker may be its own."""
    held = (row for row in _rows(file, "value", value) if row["partition"] == partition)
    record = next((row for row in held if row["part"] == TransactionPart.IN_TRANSACTION), None)
    if record is None:
        return ""
    same = {name: record[name] for name in ("partition", "node")}
    later = [
        row
        for row in _rows(file, "producer_id", record["producer_id"])
        if row["part"] in _ENDS and row["offset"] > record["offset"] and same.items() <= row.items()
    ]
    marker = min(later, key=lambda row: row["offset"], default=record)
    if marker["producer_epoch"] <= record["producer_epoch"] + 1:
        return ""
    ends = _ENDS[TransactionPart(marker["part"])]
    held_at = f"On the disk of {node_name(record['node'])} the record at offset {record['offset']} of {partition}"
    return (
        f"{held_at} has producer epoch {record['producer_epoch']}, and the next marker of its producer, which {ends}, "
        f"epoch {marker['producer_epoch']}: that of a later transaction. The record's own transaction never "
        "ended there (finding 008)."
    )


def _rows(file: Path, column: str, value: int) -> list[dict[str, Any]]:
    """The rows that have this value in a column."""
    rows: list[dict[str, Any]] = pq.read_table(file, columns=_COLUMNS, filters=[(column, "=", value)]).to_pylist()
    return rows
