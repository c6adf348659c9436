"""Cells of readers: fetches that are refused, lost or answered with errors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec.wire import ApiKey
from harness.lab.client_table.breach import Breach
from harness.lab.client_table.cell import CellSeen, ClientCell
from harness.lab.client_table.cells.batches import Strikes, unmet
from harness.lab.client_table.relay import Do, SeenRequest, Strike
from harness.lab.client_table.stage import INPUT, CellStage
from workloads import Fetched

_ORDER: Final = "Kafka's protocol: an assigned reader is given every record once, in the order of the log"
_RECORDS: Final = 6


def reads(stage: CellStage, strikes: Strikes) -> CellSeen:
    """Have a reader read a log partition from its start, and more records that are written meanwhile."""
    stage.write(INPUT, _RECORDS)
    before = stage.log(INPUT)
    stage.strike(*strikes())
    reader = stage.consumer()
    reader.assign([INPUT], from_start=True)
    first = stage.read(reader, partial(_has_read, before[-1].offset))
    stage.write(INPUT, _RECORDS)
    log = stage.log(INPUT)
    more = stage.read(reader, partial(_has_read, log[-1].offset))
    reader.close()
    given = [record.offset for record in (*first, *more)]
    expected = [record.offset for record in log]
    missed = sorted(set(expected) - set(given))
    breaches = list(stage.sent.breaches)
    if missed and not breaches:
        breaches.append((Breach.SKIPPED, f"the reader was not given offsets {missed[0]} to {missed[-1]}"))
    if given != sorted(set(given)):
        again = next(after for each, after in pairwise(given) if after <= each)
        breaches.append((Breach.REPEATED, f"the reader was given offset {again} again"))
    return CellSeen(breaches, unmet=unmet(stage))


def _has_read(last: int, records: Sequence[Fetched]) -> bool:
    return any(record.offset >= last for record in records)


def _later(request: SeenRequest) -> bool:
    """True of a fetch that goes on behind the start."""
    return any(part.fetch_offset > 0 for topic in request.body.topics for part in topic.partitions)


def _cell(
    name: str, happens: str, do: Do, error: ErrorCode = ErrorCode.NONE, times: int = 2, **more: Any
) -> ClientCell:
    def strikes() -> list[Strike]:
        return [Strike(ApiKey.FETCH, do, error, times, _later)]

    return ClientCell(name, happens, _ORDER, partial(reads, strikes=strikes), Breach.SKIPPED, **more)


CELLS: Final = (
    _cell(
        "fetch-out-of-range",
        "a reader is told OFFSET_OUT_OF_RANGE, as by a log that was cut back; auto.offset.reset=earliest",
        Do.ANSWER,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        1,
        permits={Breach.REPEATED: "auto.offset.reset=earliest begins at the start again"},
    ),
    _cell(
        "fetch-not-leader",
        "a reader is told NOT_LEADER_OR_FOLLOWER twice",
        Do.ANSWER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ),
    _cell("fetch-fenced-epoch", "a reader is told FENCED_LEADER_EPOCH twice", Do.ANSWER, ErrorCode.FENCED_LEADER_EPOCH),
    _cell(
        "fetch-unknown-epoch", "a reader is told UNKNOWN_LEADER_EPOCH twice", Do.ANSWER, ErrorCode.UNKNOWN_LEADER_EPOCH
    ),
    _cell("fetch-closed", "a reader's connection is closed before the answer, twice", Do.CUT),
)
