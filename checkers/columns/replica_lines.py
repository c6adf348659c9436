"""The replicas' own logs of a run in the JSON lines of its exported history, so that it is judged as the run was.

Lines of a log, each with a part of one replica's, and last a line with the facts beside the records
(:class:`checkers.columns.replica_file.Ends`)::

    {"process": "harness", "type": "info", "f": "replica", "node": 1, "value": ["t-0", [[0, 3, 40, -1, 0, -1, -1, 0]]]}
    {"process": "harness", "type": "info", "f": "replicas", "detail": {"version": 2, "partitions": ...}}

A record has the columns of the file from ``offset`` on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np
import pyarrow as pa

from checkers.columns.replica_file import REPLICAS_FILE, REPLICAS_SCHEMA, Ends, read_replicas
from checkers.errors import CheckError
from checkers.histories import HISTORY, stores
from checkers.histories.stores import Place
from workloads.history import REPLICA_LINES

#: Records of one line.
RECORDS_MAX: Final = 1_000
_OF_RECORD: Final = REPLICAS_SCHEMA.names[2:]


class _Log(msgspec.Struct, tag_field="f", tag="replica", omit_defaults=True):
    """A part of the log of one replica."""

    node: int
    value: tuple[str, list[list[int]]]
    type: Literal["info"] = "info"
    process: Literal["harness"] = "harness"


class _Facts(msgspec.Struct, tag_field="f", tag="replicas", omit_defaults=True):
    """The facts beside the records."""

    detail: Ends
    type: Literal["info"] = "info"
    process: Literal["harness"] = "harness"


def replicas_beside(history: Place) -> tuple[Ends, pa.Table] | None:
    """The replicas' logs of the run that a stored history is of, None without any.

    Raises:
        CheckError: they cannot be read.
    """
    lines = stores.read_bytes(history / REPLICA_LINES)
    if lines is not None:
        return _read(lines.splitlines(), history / REPLICA_LINES)
    return read_replicas(history.parent / REPLICAS_FILE) if history.name == HISTORY else None


def replica_lines(history: Path) -> Iterator[bytes]:
    """The lines for an export of the stored history ``history``.

    Raises:
        CheckError: the replicas' logs cannot be read.
    """
    if (replicas := replicas_beside(history)) is None:
        return
    ends, table = replicas
    keys, nodes = table.column("partition").to_pylist(), table.column("node").to_pylist()
    records = np.stack([table.column(name).to_numpy().astype(np.int64) for name in _OF_RECORD], axis=1)
    begin = 0
    while begin < len(nodes):
        end = begin
        here = keys[begin], nodes[begin]
        while end < min(len(nodes), begin + RECORDS_MAX) and (keys[end], nodes[end]) == here:
            end += 1
        yield _line(_Log(nodes[begin], (keys[begin], records[begin:end].tolist())))
        begin = end
    yield _line(_Facts(ends))


def _line(part: msgspec.Struct) -> bytes:
    return msgspec.json.encode({"process": "harness", "type": "info", **msgspec.to_builtins(part, str_keys=True)})


def _read(lines: Iterable[bytes], path: Place) -> tuple[Ends, pa.Table]:
    decoder = msgspec.json.Decoder(_Log | _Facts)
    ends: Ends | None = None
    keys: list[str] = []
    nodes: list[int] = []
    records: list[Any] = []
    try:
        for line in lines:
            part = decoder.decode(line)
            if isinstance(part, _Facts):
                ends = part.detail
                continue
            key, mine = part.value
            keys += [key] * len(mine)
            nodes += [part.node] * len(mine)
            records += mine
        columns = np.array(records, dtype=np.int64).reshape(-1, len(_OF_RECORD))
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as error:
        raise CheckError(f"the lines of replicas in {path} cannot be read: {error}; export the run again") from error
    if ends is None:
        raise CheckError(f"the last line of replicas, with f replicas, is not in {path}; export the run again")
    arrays = [pa.array(keys, pa.string()).dictionary_encode(), pa.array(nodes, pa.int32())]
    arrays += [pa.array(columns[:, n], REPLICAS_SCHEMA.field(name).type) for n, name in enumerate(_OF_RECORD)]
    return ends, pa.Table.from_arrays(arrays, schema=REPLICAS_SCHEMA)
