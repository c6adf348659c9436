"""Steps of a scope of transactions in words."""

from __future__ import annotations

from harness.broker.core import messages
from harness.broker.core.messages import Message
from harness.broker.core.types import ErrorCode
from harness.lab.explore.coordinator_node import COORDINATOR
from harness.lab.explore.searched import Action, State
from harness.lab.explore.transactions.producers import ProducerNode, name_of
from harness.lab.explore.transactions.servers import ABORT_MARKER, COMMIT_MARKER, CoordinatorCopy, PartitionCopy
from harness.lab.explore.transactions.space import TransactionSpace
from nemesis.cluster import CLIENTS

_MARKERS = {COMMIT_MARKER: "+", ABORT_MARKER: "-"}


def text_of(space: TransactionSpace, action: Action) -> str:
    """One step in a sentence."""
    kind, node = action.kind, action.broker
    if kind in {"deliver", "late"}:
        late = " late, after its sender has given it up" * (kind == "late")
        return f"{_described(space.nodes.messages[action.number])} arrives{late}"
    if node == COORDINATOR:
        return {
            "fetch": "the follower of the coordinator's log fetches",
            "look": "the coordinator goes on with what is decided",
            "look-late": "the coordinator sends the markers again, since no answer came",
            "expire": "the coordinator finds the transaction open for too long",
            "move": "the follower becomes the coordinator",
        }[kind]
    producer = f"producer {node - CLIENTS}"
    return {
        "init": f"{producer} asks for its identity",
        "write": f"{producer} begins to write to partition {action.peer}",
        "commit": f"{producer} asks to commit",
        "abort": f"{producer} asks to abort",
        "again": f"{producer} asks again, since no answer came",
        "give-up": f"{producer} gives its record up",
    }[kind]


def columns_of(space: TransactionSpace, state: State) -> tuple[str, ...]:
    """The coordinator, the log partitions and the producers of a state."""
    coordinator = _coordinator(space.nodes.coordinators[state[0]])
    parts = [_part(number, part) for number, part in enumerate(space.parts_in(state))]
    return (coordinator, *parts, *map(_producer, space.producers_in(state)))


def _coordinator(copy: CoordinatorCopy) -> str:
    record = copy.record
    last = "nothing" if record is None else f"{record.state.name} epoch {record.producer_epoch}"
    return f"coordinator {copy.leader_epoch}: {last}{'' if copy.committed else ', not committed'}"


def _part(number: int, part: PartitionCopy) -> str:
    """``partition 0: a+|b``: + and - are markers, and the bar is at the last stable offset."""
    names = [_MARKERS.get(batch) or name_of(batch) for batch in part.batches]
    names.insert(part.stable_end, "|")
    return f"partition {number}: {''.join(names)}"


def _producer(producer: ProducerNode) -> str:
    ends = " ".join(f"{''.join(map(name_of, each.records))} {each.end}" for each in producer.transactions)
    fenced = ", fenced" if producer.fenced else ""
    return f"producer {producer.number}: {ends or 'nothing'}{fenced}"


def _described(message: Message) -> str:
    match message:
        case messages.InitProducerId():
            words = "the question for an identity"
        case messages.AddPartitionsToTxn():
            words = f"the request to add partition {message.partitions[0].partition}"
        case messages.EndTxn():
            words = f"the request to {'commit' if message.commit else 'abort'} in epoch {message.producer_epoch}"
        case messages.WriteTxnMarkers(batch=batch):
            end = "commit" if batch.marker is not None and batch.marker.commit else "abort"
            words = f"the {end} marker in epoch {batch.producer_epoch} for partition {message.partition.partition}"
        case messages.Produce(batch=batch):
            words = f"the write of {name_of(batch.records)} to partition {message.partition.partition}"
        case messages.CoordinatorAnswer() | messages.ProduceResponse():
            error = f" {ErrorCode(message.error).name}" if message.error else ""
            words = f"the answer{error} to {type(message).__name__.removesuffix('Response')}"
        case _:
            words = type(message).__name__
    return words
