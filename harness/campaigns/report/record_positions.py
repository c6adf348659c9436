"""The positions of a write that is in its log partition more than once, and what the files of a run say of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from checkers import REPLICAS_FILE
from harness.campaigns.report.client_side import AcknowledgedWrite


class RecordPosition(NamedTuple):
    """One position of a write.

    ``leader_epochs`` are those under which it was appended there, by the replicas' disks; empty where none was read.
    ``near_us`` is when the write nearest to it in the log was acknowledged: about then it was appended. None: no other
    write of this log partition was acknowledged.
    """

    offset: int
    leader_epochs: tuple[int, ...]
    near_us: int | None


def positions_of(
    run: Path, partition: str, value: int, offsets: Sequence[int], acknowledged: Collection[AcknowledgedWrite]
) -> tuple[RecordPosition, ...]:
    """The positions of ``value`` at ``offsets``, in order; ``acknowledged`` are all writes of the partition."""
    epochs = _leader_epochs(run / REPLICAS_FILE, partition, value)
    return tuple(
        RecordPosition(offset, epochs.get(offset, ()), _near_us(offset, acknowledged)) for offset in sorted(offsets)
    )


def _leader_epochs(file: Path, partition: str, value: int) -> Mapping[int, tuple[int, ...]]:
    """By offset. A file that is not there, or cannot be read, says nothing: the account goes without."""
    try:
        rows = pq.read_table(
            file, columns=["partition", "offset", "leader_epoch"], filters=[("value", "=", value)]
        ).to_pylist()
    except (OSError, pa.ArrowException):
        return {}
    epochs_by_offset: dict[int, set[int]] = {}
    for row in rows:
        if row["partition"] == partition:
            epochs_by_offset.setdefault(row["offset"], set()).add(row["leader_epoch"])
    return {offset: tuple(sorted(epochs)) for offset, epochs in epochs_by_offset.items()}


def _near_us(offset: int, acknowledged: Collection[AcknowledgedWrite]) -> int | None:
    distances = [
        (abs(write.offset - offset), write.acknowledged_us) for write in acknowledged if write.offset is not None
    ]
    return min(distances)[1] if distances else None
