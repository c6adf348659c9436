"""Reads from a history what the clients of a run saw of one log partition."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from workloads import Function
from workloads.history import FUNCTION_CODE, NONE, OK, Columns, Kind, or_none, read_rows

_COLUMNS: Final = (
    "index", "position", "kind", "type", "function", "time_us", "invoke_us", "offset", "value", "node", "error",
)  # fmt: skip
_SENDS: Final = (FUNCTION_CODE[Function.SEND], FUNCTION_CODE[Function.TXN])

#: The name of OUT_OF_ORDER_SEQUENCE_NUMBER in histories, whichever the client library.
OUT_OF_ORDER: Final = "OutOfOrderSequenceNumberError"


class AcknowledgedWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One write as its producer saw it.

    ``node`` is the broker that answered, None if it is not known: as the client says (``node_certain``), or the one
    that must have been, by what brokers reported. ``offset`` is None where the producer got none (acks=0).
    """

    value: int
    invoked_us: int
    acknowledged_us: int
    offset: int | None
    node: int | None
    node_certain: bool = True


class ClientSide(msgspec.Struct):
    """Everything that clients saw of one log partition.

    ``acknowledged`` is by value; ``reads`` holds for each offset the value that was read there last; ``end_offset`` is
    as in :class:`Timeline`. ``out_of_order`` counts the writes that ended with OUT_OF_ORDER_SEQUENCE_NUMBER.
    """

    acknowledged: dict[int, AcknowledgedWrite] = {}
    reads: dict[int, int] = {}
    end_offset: int | None = None
    out_of_order: int = 0


def client_side(history: Path, partition: str) -> ClientSide:
    """Acknowledgements, last reads and the final log end offset of ``partition``.

    Rows are looked at, column by column: a history may have millions of events.

    Raises:
        HistoryError: the history cannot be read.
    """
    columns, names = read_rows(history)
    here = np.isin(columns["key"], [code for code, name in enumerate(names["key"]) if name == partition])
    rows = {name: columns[name][here] for name in _COLUMNS}
    order = np.lexsort((rows["position"], rows["index"]))
    rows = {name: column[order] for name, column in rows.items()}
    kind, answered = rows["kind"], rows["type"] == OK
    read = kind == Kind.READ
    drained = answered & (kind == Kind.LISTED) & (rows["function"] == FUNCTION_CODE[Function.DRAIN])
    refused = [code for code, name in enumerate(names["error"]) if name.startswith(OUT_OF_ORDER)]
    ends = rows["offset"][drained].tolist()
    return ClientSide(
        acknowledged=_acknowledged(rows, answered & (kind == Kind.SEND) & np.isin(rows["function"], _SENDS)),
        reads=dict(zip(rows["offset"][read].tolist(), rows["value"][read].tolist(), strict=True)),
        end_offset=or_none(ends[-1]) if ends else None,
        out_of_order=int(np.count_nonzero((kind == Kind.SEND) & np.isin(rows["error"], refused))),
    )


def _acknowledged(rows: Columns, sends: npt.NDArray[np.bool_]) -> dict[int, AcknowledgedWrite]:
    """The acknowledged writes among ``rows``, by value."""
    fields = (rows[name][sends].tolist() for name in ("value", "invoke_us", "time_us", "offset", "node"))
    return {
        value: AcknowledgedWrite(
            value=value,
            invoked_us=time_us if invoke_us == NONE else invoke_us,
            acknowledged_us=time_us,
            offset=or_none(offset),
            node=or_none(node),
        )
        for value, invoke_us, time_us, offset, node in zip(*fields, strict=True)
    }
