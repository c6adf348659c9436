"""The transactions of one log partition, as its log shows them (rules 34 and 35).

They are part of the producers' state, so each replica has them from the batches themselves:

    offset   0 1 2 3 4 5 6 7 8
             a a b p a A b B p        a, b: records of two transactions; A, B: their markers; p: plain records
    open after offset 4: a since 0, b since 2         last stable offset 0
    open after offset 5: b since 2                    last stable offset 2, once the marker A is committed

A transaction holds readers of committed records back until its *marker* is committed: a marker above the high watermark
may still be truncated, and another end be written. The aborted ones are an index that these readers get with what they
fetch, for the records of an aborted transaction stay in the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from harness.broker.core.messages import AbortedTransaction, Marker, RecordBatch
from harness.broker.core.types import NONE


def marker_batch(producer_id: int, producer_epoch: int, marker: Marker) -> RecordBatch:
    """The batch with which a coordinator ends the transaction of a producer in one log partition (rule 36)."""
    return RecordBatch(1, 0, (), NONE, NONE, producer_id, producer_epoch, transactional=True, marker=marker)


class PartitionTransactions:
    """The transactions of a log partition.

    ``open`` has the first offset of those without a marker, by producer id: one at a time is open of a producer.
    ``aborted`` are those that were aborted, in the order of their markers.
    """

    open: dict[int, int]
    aborted: list[AbortedTransaction]
    _ended: deque[tuple[int, int]]
    _coordinator_epochs: dict[int, int]

    def __init__(self) -> None:
        self.open = {}
        self.aborted = []
        self._ended = deque()
        self._coordinator_epochs = {}

    def record(self, batch: RecordBatch) -> None:
        """Take over a transactional batch that was appended: it opens a transaction, belongs to it, or ends it."""
        producer_id, marker = batch.producer_id, batch.marker
        if marker is None:
            self.open.setdefault(producer_id, batch.base_offset)
            return
        self._coordinator_epochs[producer_id] = marker.coordinator_epoch
        first = self.open.pop(producer_id, NONE)
        if first == NONE:
            return
        self._ended.append((first, batch.base_offset))
        if not marker.commit:
            self.aborted.append(AbortedTransaction(producer_id, first, batch.base_offset))

    def coordinator_epoch(self, producer_id: int) -> int:
        """The leader epoch of the coordinator that wrote the producer's last marker, NONE without any."""
        return self._coordinator_epochs.get(producer_id, NONE)

    def stable_end(self, high_watermark: int) -> int:
        """The last stable offset: below it all is committed, and belongs to no transaction that is open."""
        ended = self._ended
        while ended and ended[0][1] < high_watermark:
            ended.popleft()
        firsts = [*self.open.values(), *(first for first, _ in ended)]
        return min(high_watermark, *firsts) if firsts else high_watermark

    def is_aborted(self, batch: RecordBatch) -> bool:
        """The batch has records of a transaction that was aborted."""
        return any(
            each.producer_id == batch.producer_id and each.first_offset <= batch.base_offset < each.marker_offset
            for each in self.aborted
        )

    def keep_with_records(self, offset: int, batches: Sequence[RecordBatch]) -> None:
        """Forget the aborted ones below ``offset`` that have nothing in the ``batches`` that a cleaner left there.

        With its marker gone as well, a reader would take all that the producer wrote later for aborted.
        """
        left = {(batch.producer_id, batch.base_offset) for batch in batches if batch.marker is None}
        self.aborted = [
            each
            for each in self.aborted
            if each.marker_offset >= offset
            or any(id_ == each.producer_id and each.first_offset <= base < each.marker_offset for id_, base in left)
        ]

    def aborted_between(self, offset: int, end: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions that have records or their marker from ``offset`` to before ``end``, by marker."""
        return tuple(each for each in self.aborted if each.marker_offset >= offset and each.first_offset < end)
