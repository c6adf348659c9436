"""One broker over its disk, what may happen to it, and what the invariants look at of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations
from typing import Final, NamedTuple

from harness.broker.core import messages
from harness.broker.core.broker import CHECKPOINT, CLEAN, ISR_CHECK, Broker
from harness.broker.core.effects import Effect, Timer
from harness.broker.core.follower import NEVER_US
from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import AlterPartition, Message
from harness.broker.core.replica import Replica
from harness.broker.core.request_handler import DEADLINES
from harness.broker.core.session import HEARTBEAT
from harness.broker.core.types import CONTROLLER, NO_NODE, NONE, BrokerConfig, ErrorCode, NodeId
from harness.lab.explore.events import AT, CLEAN_EVENTS, WRITE_EVENTS, NodeEvent, sent
from harness.lab.explore.keys import Kept, content_of, numbers_of
from harness.lab.explore.normal_form import (
    LIMIT_US,
    NOW_US,
    config_of,
    let_fetches_wait_no_longer,
    settle_broker,
    start_counting,
    timers_of,
)
from harness.lab.explore.scope import Constants
from harness.worlds.simulated.disks import Disk
from nemesis.cluster import CLIENTS

#: The one producer that writes with sequence numbers: the number of a record is its own.
_PRODUCER_ID: Final = 1
#: Records with keys are written so far apart that each begins a segment: no segment.ms is longer.
_APART_US: Final = 10**22


class WritingClient(NamedTuple):
    """The way in which a client writes: with which ``acks``, ``keys`` of records, and sequence numbers or none."""

    acks: int
    keys: str = ""
    numbered: bool = False

    def batch(self, record: int) -> messages.RecordBatch:
        """A record on its way to a leader."""
        content = (content_of(self.keys, record),)
        if not self.numbered:
            return messages.RecordBatch(1, 1, content)
        return messages.RecordBatch(1, 1, content, NONE, NONE, _PRODUCER_ID, 0, record)


class BrokerCopy(NamedTuple):
    """A broker as the invariants see it. ``log`` is (leader epoch, record) by offset; a dead one leads nothing.

    Where a cleaner has removed a record, ``log`` has None.

    ``away``: its disk lost something when that number of others was out of the ISR, and it has not registered since;
    NONE where nothing was lost. ``registered`` is its broker epoch, ``version`` that of its metadata. ``flushed`` is
    the offset up to which nothing can be lost.
    """

    number: NodeId
    alive: bool
    away: int
    incarnation: int
    log: tuple[Kept, ...]
    flushed: int
    leader: NodeId = NO_NODE
    leader_epoch: int = NONE
    leading: bool = False
    high_watermark: int = 0
    maximal_isr: frozenset[NodeId] = frozenset()
    registered: int = NONE
    version: int = NONE


class BrokerNode:
    """A broker's ``process``, None while it is dead, and its ``disk``. The ``incarnation`` counts its starts."""

    node: NodeId
    incarnation: int
    away: int
    disk: Disk
    process: Broker | None

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.incarnation = 0
        self.away = NONE
        self.disk = Disk()
        self.process = None

    def start(self, config: BrokerConfig, broker_epoch: int) -> Broker:
        """A new process, registered under ``broker_epoch``, that has heard no decision of the controller yet."""
        self.incarnation += 1
        self.away = NONE
        previous = self.disk.take_clean_shutdown()
        process = Broker(self.node, config, self.disk.open, self.incarnation, previous_epoch=previous, observe=False)
        start_counting(process)
        process.start(NOW_US)
        answer = messages.RegisterBrokerResponse(ErrorCode.NONE, self.incarnation, broker_epoch)
        process.on_message(NOW_US, CONTROLLER, answer)
        settle_broker(process, {}, NONE, self.incarnation)
        self.process = process
        return process

    def crash(self, kept: int, away: int, *, wipes: bool) -> None:
        """The process ends; of the log ``kept`` offsets are left. ``wipes``: with none of them the disk is empty.

        ``away`` others are out of the ISR.
        """
        self.process = None
        log = self.disk.log(AT)
        if log is None or kept >= log.end_offset:
            return
        self.away = away
        if wipes and kept == 0:
            self.disk.wipe()
        else:
            log.truncate_to(kept)

    def offers(self, constants: Constants) -> list[NodeEvent]:
        """Return the events that happen to the process by itself: a write, timers that are set, time that passes."""
        if self.process is None:
            return []
        events = [
            event for replica in self.process.replicas.values() for event in _offers_of_replica(replica, constants)
        ]
        events += map(NodeEvent, CLEAN_EVENTS if constants.cleanings else ())
        return [*events, *timers_of(self.process)]

    def copy(self) -> BrokerCopy:
        """It as the invariants see it."""
        log = self.disk.log(AT)
        records = () if log is None else _records_of(log)
        flushed = 0 if log is None else log.durable_offset  # what the disk has, whatever the core believes
        copy = BrokerCopy(self.node, self.process is not None, self.away, self.incarnation, records, flushed)
        if self.process is None:
            return copy
        copy = copy._replace(registered=self.process.broker_epoch, version=self.process.image.version)
        replica = self.process.replicas.get(AT)
        if replica is None:
            return copy
        return copy._replace(
            leader=replica.leader,
            leader_epoch=replica.leader_epoch,
            leading=replica.leading,
            high_watermark=replica.high_watermark,
            maximal_isr=frozenset(replica.maximal_isr if replica.leading else ()),
        )


def _records_of(log: MemoryLog) -> tuple[Kept, ...]:
    left = {batch.base_offset: (batch.leader_epoch, number) for batch in log.batches for number in numbers_of(batch)}
    return tuple(left.get(offset) for offset in range(log.end_offset))


def happen(
    broker: Broker, event: NodeEvent, message: Message | None, writes: WritingClient
) -> tuple[list[Effect], bool]:
    """Let a process take one event; ``message`` is what arrives, if that is the event. Also whether it was *idle*."""
    if event.kind == "silent":
        return _find_silent(broker, members(event.number))
    return _take(broker, event, message, writes), False


def _take(broker: Broker, event: NodeEvent, message: Message | None, writes: WritingClient) -> list[Effect]:
    config = config_of(broker)
    if message is not None:
        return broker.on_message(NOW_US, NodeId(event.peer), message)
    if event.kind in WRITE_EVENTS:
        produce = messages.Produce(event.number, AT, writes.acks, 2**31, writes.batch(event.number))
        return broker.on_message(NOW_US + event.number * _APART_US * bool(writes.keys), NodeId(CLIENTS), produce)
    after_us, timer = {
        "retry": (config.replica_fetch_backoff_ms * 1000, Timer("fetch", event.peer)),
        "again": (config.replica_socket_timeout_ms * 1000, Timer("fetch", event.peer)),
        "repeat": (config.replica_socket_timeout_ms * 1000, HEARTBEAT),
        "expire": (1, DEADLINES),
        "checkpoint": (0, CHECKPOINT),
        "clean": (0, Timer(CLEAN.name, AT)),
        "clean-late": (LIMIT_US, Timer(CLEAN.name, AT)),
    }[event.kind]
    if timer is DEADLINES:
        let_fetches_wait_no_longer(broker)
    return broker.on_timer(NOW_US + after_us, timer)


def _find_silent(broker: Broker, nodes: Collection[NodeId]) -> tuple[list[Effect], bool]:
    """Let a leader find followers silent; also whether this was *idle*: for one of them nothing changed.

    Something changes where the leader proposes to remove a follower, or waits no longer for one that was about to
    join. Of others the silence is forgotten: they may as well be found silent later, or together with fewer. Where it
    comes to anything else, which only a wrong core does, nothing is forgotten.
    """
    replica = broker.replicas[AT]
    end, before = replica.log.end_offset, _waited_for(replica)
    silent = {node: replica.followers[node] for node in nodes}
    clocks = {node: (follower.caught_up_us, follower.fetched_us) for node, follower in silent.items()}
    joining = {node for node in nodes if node not in replica.maximal_isr and replica.about_to_join(silent[node], end)}
    for follower in silent.values():
        follower.caught_up_us = follower.fetched_us = NEVER_US
    effects = broker.on_timer(NOW_US, ISR_CHECK)
    after, proposed = _waited_for(replica), replica.proposal
    kept = {member.broker for member in proposed.isr} if proposed is not None else set(replica.isr)
    removed = set(nodes) - kept if proposed != before[0] else set()
    gone = {node for node in joining if not replica.about_to_join(silent[node], end)}
    if (after != before or sent(effects)) and not removed | gone:
        return effects, False
    idle = [node for node in nodes if node not in removed | gone]
    for node in idle:
        silent[node].caught_up_us, silent[node].fetched_us = clocks[node]
    return effects, bool(idle)


def _waited_for(replica: Replica) -> tuple[AlterPartition | None, tuple[NodeId, ...], tuple[NodeId, ...], int]:
    """A leader's proposal, its ISR, the maximal one, and its high watermark."""
    return replica.proposal, replica.isr, replica.maximal_isr, replica.high_watermark


def members(mask: int) -> list[NodeId]:
    """The brokers of a set that is written as a number: 2 to the power of each, added."""
    return [NodeId(node) for node in range(mask.bit_length()) if mask >> node & 1]


def _offers_of_replica(replica: Replica, constants: Constants) -> list[NodeEvent]:
    events = [NodeEvent("write")] if replica.leading else []
    events += [NodeEvent("silent", number=sum(1 << node for node in nodes)) for nodes in _silent(replica)]
    if replica.proposal is not None and replica.proposal.correlation != NONE:
        events.append(NodeEvent("repeat"))
    if constants.checkpoints and replica.log.checkpointed_high_watermark() != replica.high_watermark:
        events.append(NodeEvent("checkpoint"))
    return events


def _silent(replica: Replica) -> Iterator[tuple[NodeId, ...]]:
    """Followers that the leader may find silent together: any of those that it waits for, or another one alone.

    Whether that changes anything is for the core to say (:func:`happen`).
    """
    in_sync = sorted(node for node in replica.followers if node in replica.maximal_isr)
    for count in range(len(in_sync)):
        yield from combinations(in_sync, count + 1)
    yield from ((node,) for node in sorted(replica.followers) if node not in replica.maximal_isr)


def exposed(before: BrokerCopy, after: BrokerCopy) -> tuple[Kept, ...] | None:
    """Return the records that consumers can read of a leader since this step, None where nothing is new."""
    if not after.leading or not after.high_watermark:
        return None
    same = before.leading and before.leader_epoch == after.leader_epoch
    return None if same and before.high_watermark == after.high_watermark else after.log[: after.high_watermark]
