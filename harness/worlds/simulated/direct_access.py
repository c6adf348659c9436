"""What scripted stories need of the simulated world: single writes, replicas that can be looked at, no chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from harness.choices import Choices, Stream
from harness.reference.core import messages
from harness.reference.core.messages import Produce, ProduceResponse, RecordBatch
from harness.reference.core.replica import Replica
from harness.reference.core.types import NONE, TopicPartition
from harness.worlds.contract import Delivery, DirectWrite, PlacedRecord, ReplicaState
from harness.worlds.simulated.clients import parsed
from harness.worlds.simulated.cluster import Cluster
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.network import Network
from harness.worlds.simulated.producer import ACCEPTED, CONNECTION_LOST, NAMES, REFUSALS
from harness.worlds.simulated.wires import DELAYS_US, Wire
from nemesis.cluster import CLIENTS, Evidence
from workloads import EventType, SendOutcome
from workloads.values import decode

#: The first node of direct clients, far above those of a run's producers and consumers.
FIRST_NODE: Final = CLIENTS + 1_000_000
_ONE_MS: Final = min(range(len(DELAYS_US)), key=lambda choice: abs(DELAYS_US[choice] - 1_000))
#: How long every message is on its way where nothing is left to chance.
STEADY_DELAY_US: Final = DELAYS_US[_ONE_MS]


class Steady(Choices):
    """Every message takes a millisecond and no cut retransmits, until ``scattered``."""

    scattered = False

    def reseed(self, seed: int) -> None:
        """See :meth:`Choices.reseed`: from now on chance decides."""
        self.scattered = True
        super().reseed(seed)

    def stream(self, label: str) -> Stream:
        """See :meth:`Choices.stream`."""
        stream = super().stream(label)
        if not isinstance(stream, SteadyStream):
            stream = self._streams[label] = SteadyStream(label, self._fractions(label), self)
        return stream


class SteadyStream(Stream):
    """The draws of :class:`Steady` on one subject."""

    def __init__(self, label: str, fraction: Callable[[], float], choices: Steady) -> None:
        super().__init__(label, fraction)
        self._choices = choices

    def draw(self, bound: int) -> int:
        """See :meth:`Stream.draw`."""
        if self._choices.scattered:
            return super().draw(bound)
        value = _ONE_MS if self.label.startswith("delay") else 0
        self._keep(value)
        return value


class SimulatedDirectClient:
    """Implements :class:`harness.worlds.contract.DirectClient`: each write is a client of its own."""

    def __init__(self, loop: Loop, network: Network) -> None:
        self._loop = loop
        self._network = network
        self._next_node = FIRST_NODE

    def produce(self, broker: int, write: DirectWrite, done: Callable[[SendOutcome], None]) -> None:
        """See :meth:`harness.worlds.contract.DirectClient.produce`."""
        if write.acks == 0:
            self._loop.push(self._loop.time_us, done, SendOutcome(EventType.OK, node=broker))
        ended = done if write.acks else _nobody_waits
        node, self._next_node = self._next_node, self._next_node + 1
        self._network.add_client(node, _OneWrite(self._network, node, write, ended))
        self._network.connect(node, broker)


class _OneWrite:
    """A connection to one broker with one request."""

    def __init__(self, network: Network, node: int, write: DirectWrite, done: Callable[[SendOutcome], None]) -> None:
        self._network = network
        self._node = node
        self._write = write
        self._done: Callable[[SendOutcome], None] | None = done
        self.receive: Callable[[int, Any], None] = self._on_message

    def connected(self, broker: int) -> None:
        """See :class:`~harness.worlds.simulated.wires.ClientReceiver`."""
        write, wire = self._write, self._network.wire(self._node, broker)
        record = ((write.key, write.payload),)
        idempotence = (write.producer_id, write.producer_epoch, write.sequence)
        batch = RecordBatch(1, len(write.payload), record, NONE, NONE, *idempotence)
        if wire is not None:
            wire.send(Produce(0, parsed(write.partition), write.acks, write.timeout_ms, batch))

    def disconnected(self, peer: int) -> None:
        """See :class:`~harness.worlds.simulated.wires.ClientReceiver`."""
        self._end(SendOutcome(EventType.INFO, error=CONNECTION_LOST, node=peer))

    def _on_message(self, source: int, message: messages.Message) -> None:
        if type(message) is not ProduceResponse:
            return
        if message.error in ACCEPTED:
            self._end(SendOutcome(EventType.OK, message.base_offset, node=source))
        else:
            kind = EventType.FAIL if message.error in REFUSALS else EventType.INFO
            self._end(SendOutcome(kind, error=NAMES.get(message.error, "UnknownError"), node=source))

    def _end(self, outcome: SendOutcome) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(outcome)


class SeenMessage(NamedTuple):
    """A message that arrived, at ``time_us`` of the run's clock. Nodes are those of :mod:`nemesis.cluster`."""

    time_us: int
    source: int
    target: int
    message: messages.Message


class Arrivals:
    """Every message between nodes, or between one and a client, as it arrives; from the first look on."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._next: Callable[[Callable[[Any], object], Any], object] | None = None
        self._begun = False
        self.seen: Final[list[SeenMessage]] = []
        self._taken = 0

    def take(self) -> list[SeenMessage]:
        """What arrived since the last call; nothing at the first, with which the watching begins."""
        if not self._begun:
            self._begun, self._next, self._loop.on_step = True, self._loop.on_step, self._step
        arrived, self._taken = self.seen[self._taken :], len(self.seen)
        return arrived

    def _step(self, function: Callable[[Any], object], argument: Any) -> None:
        wire = getattr(function, "__self__", None)
        # What comes to a cut on its way does not arrive.
        if type(wire) is Wire and wire.cut is None and isinstance(argument, messages.Message):
            self.seen.append(SeenMessage(self._loop.time_us, wire.source, wire.target, argument))
        if self._next is not None:
            self._next(function, argument)


class SimulatedReplicas:
    """Implements :class:`harness.worlds.contract.Replicas`: it sees everything at once."""

    def __init__(self, cluster: Cluster, loop: Loop) -> None:
        self._cluster = cluster
        self.arrivals: Final = Arrivals(loop)

    def state(self, node: int, partition: str) -> ReplicaState:
        """See :meth:`harness.worlds.contract.Replicas.state`."""
        at, broker = parsed(partition), self._cluster.broker(node)
        log = self._cluster.log(node, at)
        if log is None:
            return ReplicaState(node=node, running=broker is not None, log_end=0)
        records = tuple(record for batch in log.batches for record in _placed(partition, batch))
        replica: Replica | None = None if broker is None else broker.replicas.get(at)
        if replica is None:
            return ReplicaState(node=node, running=broker is not None, log_end=log.end_offset, records=records)
        return ReplicaState(
            node=node,
            running=True,
            log_end=log.end_offset,
            records=records,
            leading=replica.leading,
            leader_epoch=replica.leader_epoch,
            high_watermark=replica.high_watermark,
            isr=replica.isr if replica.leading else None,
        )

    def fenced(self) -> frozenset[int]:
        """See :meth:`harness.worlds.contract.Replicas.fenced`."""
        known = self._cluster.image().brokers
        return frozenset(node for node in self._cluster.brokers if node not in known or known[node].fenced)

    def flush(self, node: int) -> Evidence:
        """See :meth:`harness.worlds.contract.Replicas.flush`. Evidence: ``flushed``, log end offsets by partition."""
        broker = self._cluster.broker(node)
        if broker is None:
            return {}
        for replica in broker.replicas.values():
            replica.log.flush()
            replica.log.checkpoint_high_watermark(replica.high_watermark)
        return {"flushed": {str(at): replica.log.end_offset for at, replica in broker.replicas.items()}}

    def deliveries(self) -> Sequence[Delivery]:
        """See :meth:`harness.worlds.contract.Replicas.deliveries`."""
        return [found for one in self.arrivals.take() for found in _delivery(one)]


def _delivery(seen: SeenMessage) -> Iterator[Delivery]:
    """What a message says of the one log partition of a story; one that says nothing of it is left out."""
    time_us, source, target, message = seen
    make = partial(Delivery, time_us=time_us, source=source, target=target, what=type(message).__name__)
    match message:
        case messages.Produce(batch=batch):
            yield make(values=_values(message.partition, [batch]))
        case messages.ProduceResponse(base_offset=offset, error=error):
            yield make(offset=offset, error=error.name if error else None)
        case messages.Fetch(partitions=(wanted,)):
            yield make(offset=wanted.fetch_offset, leader_epoch=wanted.current_leader_epoch)
        case messages.FetchResponse(partitions=(found,)):
            end = found.diverging
            yield make(
                offset=None if end is None else end.end_offset,
                leader_epoch=None if end is None else end.leader_epoch,
                high_watermark=found.high_watermark,
                values=_values(found.partition, found.batches),
                error=found.error.name if found.error else None,
            )
        case messages.OffsetForLeaderEpochResponse(end=end):
            yield make(offset=end.end_offset, leader_epoch=end.leader_epoch)
        case messages.AlterPartition(leader_epoch=epoch):
            yield make(leader_epoch=epoch)
        case messages.AlterPartitionResponse(error=error):
            yield make(error=error.name if error else None)
        case messages.MetadataUpdate():
            yield make()


def _values(partition: TopicPartition, batches: Iterable[RecordBatch]) -> tuple[int, ...]:
    return tuple(record.value for batch in batches for record in _placed(str(partition), batch))


def _placed(partition: str, batch: RecordBatch) -> list[PlacedRecord]:
    return [
        PlacedRecord(offset, batch.leader_epoch, _value(payload, partition, key), batch.intact)
        for offset, (key, payload) in enumerate(batch.records, batch.base_offset)
    ]


@lru_cache(maxsize=4_096)
def _value(payload: bytes, partition: str, key: bytes) -> int:
    return decode(payload, partition, key)[0]


def _nobody_waits(_outcome: SendOutcome) -> None:
    """With acks=0 the write was over when it was handed over."""
