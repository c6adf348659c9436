"""The words of a diagram about a message, and the records that it carries; none where it changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from harness.broker.core import messages as m
from harness.broker.core.types import NONE, ErrorCode, Image, PartitionState, TopicPartition
from harness.runs.stories.stage.trace import broker_words, leader_words, record_name
from harness.worlds.simulated.watching import SeenMessage
from nemesis.cluster import CLIENTS
from workloads import ACKS_ALL
from workloads.values import decode

_ACKS: Final = {ACKS_ALL: "all"}


class Wording(NamedTuple):
    """The words about one message; ``records`` are those that it carries, by the names of the script."""

    text: str
    records: tuple[str, ...] = ()


class MessageWords:
    """Says of each message, in the order of their arrival, what is new in it.

    Followers fetch all the time, and metadata is sent to everybody; what is the same as the last one on its way is
    left out. ``names`` are those of the records by their values.
    """

    def __init__(self, partition: TopicPartition, names: Mapping[int, str]) -> None:
        self._partition = partition
        self._names = names
        self._last: dict[tuple[int, int, type], str] = {}

    def of(self, seen: SeenMessage) -> Wording | None:
        """The words, None where there is nothing new."""
        words = self._words(seen.message, seen.target)
        if words is None:
            return None
        way = seen.source, seen.target, type(seen.message)
        again = self._last.get(way) == words.text and not words.records
        self._last[way] = words.text
        return None if again else words

    def _words(self, message: m.Message, target: int) -> Wording | None:
        words: Wording | None = None
        match message:
            case m.Produce(acks=acks, batch=batch):
                records = self._records([batch])
                words = Wording(f"Produce {' '.join(records)}, acks={_ACKS.get(acks, acks)}", records)
            case m.ProduceResponse(error=ErrorCode.NONE, base_offset=offset):
                words = Wording(f"acknowledged at offset {offset}")
            case m.Fetch(replica_id=replica, partitions=wanted) if replica != NONE:
                words = next(
                    (Wording(f"Fetch from {part.fetch_offset}") for part in wanted if self._is_ours(part)), None
                )
            case m.FetchResponse(partitions=answers):
                words = next((self._fetched(part, target) for part in answers if self._is_ours(part)), None)
            case m.AlterPartition(isr=isr):
                words = Wording(f"AlterPartition: ISR {broker_words(member.broker for member in isr)}")
            case m.AlterPartitionResponse(error=ErrorCode.NONE, state=PartitionState(isr=isr)):
                words = Wording(f"accepted: ISR {broker_words(isr)}")
            case m.MetadataUpdate(image=image) | m.HeartbeatResponse(image=Image() as image):
                state = image.partition(self._partition)
                words = None if state is None else Wording(_decided(state))
            case m.RegisterBroker():
                words = Wording("register")
            case m.MoveLeader(leader=leader):
                words = Wording(f"move the leader to {leader}")
            case m.ProduceResponse(error=error) | m.AlterPartitionResponse(error=error):
                words = Wording(error.name)
        return words

    def _is_ours(self, part: m.FetchPartition | m.FetchedPartition) -> bool:
        return part.partition == self._partition

    def _fetched(self, part: m.FetchedPartition, target: int) -> Wording | None:
        records = self._records(part.batches)
        if target >= CLIENTS:
            return Wording(f"reads {' '.join(records)}", records) if records else None
        if part.error != ErrorCode.NONE:
            return Wording(part.error.name)
        if part.diverging is not None:
            end = part.diverging
            return Wording(f"diverging: epoch {end.leader_epoch} ends at {end.end_offset}")
        return Wording(", ".join((*records, f"high watermark {part.high_watermark}")), records)

    def _records(self, batches: Iterable[m.RecordBatch]) -> tuple[str, ...]:
        pairs = [pair for batch in batches for pair in batch.records]
        values = (decode(payload, str(self._partition), key)[0] for key, payload in pairs)
        return tuple(record_name(self._names, value) for value in values)


def _decided(state: PartitionState) -> str:
    who = leader_words(None if state.leader == NONE else state.leader)
    return f"{who}, epoch {state.leader_epoch}, ISR {broker_words(state.isr)}"
