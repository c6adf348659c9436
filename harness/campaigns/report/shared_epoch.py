"""Says where two transactions of one producer had the same epoch, by which alone brokers tell their ends apart."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from checkers import EventPlace, Finding, TornTransaction, TransactionRead, decoded, producer_name
from harness.records.files import HISTORY
from workloads import EventType, Function, ProducerEpoch, TransactionEnd
from workloads.history import FUNCTION_CODE, INVOKE, Columns, Flags, Names, Needed, read_events

_TXN: Final = FUNCTION_CODE[Function.TXN]


def shared_epoch(run: Path, finding: Finding) -> str:
    """Say that the transaction of a finding had the epoch of the one before it; "" if it had not, or no client told.

    Of other findings than those that a late end brings about it says nothing.

    Raises:
        HistoryError: the history cannot be read.
    """
    if not isinstance(finding, TornTransaction | TransactionRead):
        return ""
    told = _told(run, finding.writer)
    if len(told) < 2 or told[-1] is None or told[-1] != told[-2]:
        return ""
    return (
        f"The transaction had the same epoch as that before it ({producer_name(told[-1])}). So brokers could not tell "
        "a late request to end the one before from a request to end this one (finding 009)."
    )


def _told(run: Path, writer: EventPlace) -> list[ProducerEpoch | None]:
    """The ids and epochs of this transaction and of its producer's last one before, the later one last."""
    ends = [event for event in read_events(run / HISTORY, _last_two(writer)) if event.type is not EventType.INVOKE]
    details = [decoded(event.detail or "", TransactionEnd) for event in ends]
    return [None if detail is None else detail.producer for detail in details]


def _last_two(writer: EventPlace) -> Needed:
    """Mark the end of this transaction, and of its producer's last one before."""

    def needed(rows: Columns, _: Names) -> Flags:
        ends = (rows["function"] == _TXN) & (rows["type"] != INVOKE) & (rows["index"] <= writer.op_pos)
        producer = rows["process"][ends & (rows["index"] == writer.op_pos)]
        ends &= np.isin(rows["process"], producer)
        last: Flags = np.isin(rows["index"], np.unique(rows["index"][ends])[-2:])
        return last

    return needed
