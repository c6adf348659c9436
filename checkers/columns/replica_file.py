"""``replicas.parquet``: the records of all replicas of a run's topic once the run had ended, beside the history.

One row a record, replica after replica, offsets ascending within one:

| column | meaning |
|---|---|
| partition | log partition |
| node | the broker whose disk holds the record |
| offset, leader_epoch | its place |
| value | as in the history; of a record that is not sound for its place, -2 minus the CRC-32C of its key and payload |
| record_key, tombstone | the number of the record's key, and whether it deletes it; -1 where records have no key |
| producer_id, producer_epoch | of the record's batch, -1 for none |
| part | what it is of a transaction: :class:`TransactionPart` |

So two records are the same exactly if their values are; of unsound ones, as far as a checksum tells. Layout 1 has no
columns from record_key on, and no markers. The file's
metadata holds an :class:`Ends` under the key ``ackproof.replicas``.
"""

from __future__ import annotations

import io
from enum import IntEnum
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from checkers.errors import CheckError
from checkers.histories import stores
from checkers.histories.stores import Place

#: The file's name in a run directory.
REPLICAS_FILE: Final = "replicas.parquet"
REPLICAS_META: Final = b"ackproof.replicas"
#: Layout; a reader refuses a newer one.
VERSION: Final = 2


class TransactionPart(IntEnum):
    """The part of a row in a transaction: a record outside of any, a record of one, or the marker that ends it."""

    RECORD = 0
    IN_TRANSACTION = 1
    ABORT = 2
    COMMIT = 3


REPLICAS_SCHEMA: Final = pa.schema(
    [
        pa.field("partition", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("node", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("value", pa.int64(), nullable=False),
        pa.field("record_key", pa.int64(), nullable=False),
        pa.field("tombstone", pa.int8(), nullable=False),
        pa.field("producer_id", pa.int64(), nullable=False),
        pa.field("producer_epoch", pa.int32(), nullable=False),
        pa.field("part", pa.int8(), nullable=False),
    ]
)
#: The columns that layout 1 has not, with what its rows have there.
OF_TRANSACTIONS_AND_KEYS: Final = {
    "record_key": -1,
    "tombstone": 0,
    "producer_id": -1,
    "producer_epoch": -1,
    "part": int(TransactionPart.RECORD),
}


class PartitionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's last word about a log partition.

    ``end_offset`` is the high watermark that its leader named when it was healthy and its final readers reached it,
    None where they did not; ``isr`` are the in-sync replicas, ``running`` those of them whose process ran. A
    ``compacted`` log partition keeps the last record of each key.
    """

    leader: int | None
    isr: tuple[int, ...]
    running: tuple[int, ...]
    end_offset: int | None
    compacted: bool = False


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the logs in the file, beside the records.

    ``held`` are the brokers whose disk has a log of the partition, an empty one too; ``damage`` says by log partition
    and broker what could not be read of it, and ``unreadable`` by broker why nothing could.
    """

    version: int = VERSION
    partitions: dict[str, PartitionEnd] = {}
    held: dict[str, list[int]] = {}
    damage: dict[str, dict[int, str]] = {}
    unreadable: dict[int, str] = {}


def read_replicas(path: Place) -> tuple[Ends, pa.Table] | None:
    """Read the file at ``path``; None if it does not exist.

    Raises:
        CheckError: it cannot be read.
    """
    try:
        content = stores.read_bytes(path)
        if content is None:
            return None
        table = pq.ParquetFile(io.BytesIO(content)).read(use_threads=False)
        ends = msgspec.json.decode((table.schema.metadata or {}).get(REPLICAS_META, b""), type=Ends)
    except (OSError, pa.ArrowException, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckError(f"{path} cannot be read: {error}; remove it to judge the history without it") from error
    if not 1 <= ends.version <= VERSION:
        why = f"it has layout {ends.version}, and this version reads layouts up to {VERSION}"
        raise CheckError(f"{path} cannot be read: {why}; remove it to judge the history without it")
    for name, usual in OF_TRANSACTIONS_AND_KEYS.items():
        if name not in table.column_names:
            kind = REPLICAS_SCHEMA.field(name).type
            table = table.append_column(name, pa.repeat(pa.scalar(usual, kind), table.num_rows))
    return ends, table
