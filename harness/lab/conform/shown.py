"""The state that a cluster shows after a step of a story, in a form in which two worlds can be compared.

What is compared, and what is not:

- The controller's word: leader, leader epoch, partition epoch, ISR, eligible leader replicas, fenced brokers, the
  replicas in their order of preference. Epochs are compared as they are: the topic is made with the same replicas in
  the same order in both worlds, so its first state has the same epochs. Members of the ISR are compared as a set: the
  core writes them in the order of preference, Kafka in the order in which they came.
- Of each replica: its log record by record, each with its offset and the leader epoch under which it was appended; the
  leader epochs that it has written down with their first offsets, and its high watermark on disk; whether it leads in
  its own opinion, in which leader epoch, and with which ISR.
- What clients know of each record, with offset and error.
- Of a story with a coordinator, what is told: its log's leader, leader epochs since the story began, and ISR; the
  offset that the group remembers, its members, and which of them have the log partition, as the coordinator says, and
  as they say themselves; the last stable offset, as the leader tells readers; what a reader of the script got.
- Whether the step could be performed.

What Kafka does not show of a replica is not compared there: a dead broker has only its disk, and one that was started
again says of its role only when it takes one. What Kafka shows, the core must show. Not shown by Kafka at all: fetch
positions that a leader remembers, proposals under way, the state of producers, except the answers that they get.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

import msgspec

from harness.runs.stories import RecordEnd, Told, TraceEntry, record_name
from harness.worlds.contract import PlacedRecord, ReplicaState
from nemesis.cluster import PartitionView
from workloads import CLIENT_CLOSED, NEVER_SENT, TIME_LIMIT

#: Errors that a client finds by itself, where a broker did not answer. A coordinator that fences a producer says so of
#: the producer: its records are not sent, and librdkafka throws them out of its queue.
_SILENCE: Final = frozenset({
    CLIENT_CLOSED, NEVER_SENT, TIME_LIMIT, "KafkaConnectionError", "ProducerFencedError", "_FENCED", "_PURGE_QUEUE",
})  # fmt: skip
#: The table's names of what a leader answers, by librdkafka's.
_NAMES: Final = {"INVALID_PRODUCER_EPOCH": "InvalidProducerEpochError"}
#: The Java client's names end with this, and kafka-python's, else the same, with "Error".
_OF_JAVA: Final = "Exception"
NO_ANSWER: Final = "no answer"
#: A fact of a replica that the core does not show.
NOT_SHOWN: Final = "not shown"
#: Begins the name of a fact that is a client's answer.
ANSWER: Final = "answer to "


class ShownReplica(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One replica. ``log`` has "offset:record/leader epoch", ``epochs`` "leader epoch from offset".

    A field that is not shown is None.
    """

    log: tuple[str, ...] = ()
    epochs: tuple[str, ...] | None = None
    running: bool = True
    leading: bool | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    high_watermark: int | None = None
    written_high_watermark: int | None = None


class ShownState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The whole state; ``replicas`` by broker in ascending order, ``answers`` by record, what is ``told`` by fact."""

    leader: int | None
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    fenced: tuple[int, ...] = ()
    assigned: tuple[int, ...] = ()
    replicas: tuple[ShownReplica, ...] = ()
    answers: dict[str, str] = {}
    told: dict[str, Told] = {}

    def facts(self) -> dict[str, object]:
        """Every fact that is shown, by its name."""
        facts: dict[str, object] = {fact: getattr(self, name) for name, fact in _OWN}
        facts["number of replicas"] = len(self.replicas)
        for node, replica in enumerate(self.replicas):
            for name, fact in _of_replica(node):
                if (value := getattr(replica, name)) is not None:
                    facts[fact] = value
        return facts | {f"{ANSWER}{name}": text for name, text in self.answers.items()} | self.told


#: Fields of the state, each with the name of its fact.
_OWN: Final = tuple(
    (name, name.replace("_", " "))
    for name in ("leader", "leader_epoch", "partition_epoch", "isr", "elr", "fenced", "assigned")
)


@cache
def _of_replica(node: int) -> Sequence[tuple[str, str]]:
    """The fields of this broker's replica, each with the name of its fact."""
    return [(name, f"broker {node}: {name.replace('_', ' ')}") for name in ShownReplica.__struct_fields__]


def shown_after(entry: TraceEntry, names: Mapping[int, str]) -> ShownState:
    """The state at the end of a step; ``names`` are those of the records by their values."""
    state = shown(entry.view, entry.fenced, entry.replicas, names, entry.answers)
    return msgspec.structs.replace(state, told=dict(entry.told))


def shown(
    view: PartitionView,
    fenced: Iterable[int],
    replicas: Iterable[ReplicaState],
    names: Mapping[int, str],
    answers: Mapping[str, RecordEnd],
) -> ShownState:
    """The state that these parts make."""
    return ShownState(
        leader=view.leader,
        leader_epoch=view.leader_epoch,
        partition_epoch=view.partition_epoch,
        isr=tuple(sorted(view.isr)),
        elr=tuple(sorted(view.elr)),
        fenced=tuple(sorted(fenced)),
        assigned=view.replicas,
        replicas=tuple(_replica(replica, names) for replica in replicas),
        answers={name: _answer(end) for name, end in answers.items()},
    )


def _replica(state: ReplicaState, names: Mapping[int, str]) -> ShownReplica:
    says = state.running and state.leader_epoch is not None
    return ShownReplica(
        log=tuple(_placed(state.records, names)),
        epochs=None if state.epochs is None else tuple(f"{epoch} from {offset}" for epoch, offset in state.epochs),
        running=state.running,
        leading=state.leading if says else None,
        leader_epoch=state.leader_epoch if says else None,
        isr=tuple(sorted(state.isr)) if says and state.isr is not None else None,
        high_watermark=state.high_watermark if says else None,
        written_high_watermark=state.written_high_watermark,
    )


def _placed(records: Iterable[PlacedRecord], names: Mapping[int, str]) -> Iterator[str]:
    """Kafka's disk does not show a batch that is torn or damaged, so none is."""
    for record in records:
        if record.intact:
            yield f"{record.offset}:{record_name(names, record.value)}/{record.leader_epoch}"


def _answer(end: RecordEnd) -> str:
    """The broker's answer: the offset or the name of its error. A client's own word for silence does not count.

    Nor does it count whether an error means that the record is refused for certain: each client decides that.
    """
    if end.error is None:
        return end.outcome if end.offset is None else f"{end.outcome} at offset {end.offset}"
    error = end.error.partition(":")[0]
    error = f"{error.removesuffix(_OF_JAVA)}Error" if error.endswith(_OF_JAVA) else error
    return NO_ANSWER if error in _SILENCE else _NAMES.get(error, error)


def in_words(value: object) -> str:
    """A value of a fact as people read it."""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or "nothing"
    return "no broker" if value is None else str(value)
