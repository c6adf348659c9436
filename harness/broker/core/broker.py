"""One broker: routes messages to the parts that understand them and applies the controller's images.

Nothing waits in here. Everything between brokers may be lost: each request is repeated by its sender's timer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from harness.broker.core import messages, transaction_coordinator
from harness.broker.core.cleaner import EVERYTHING, Cleaner, cleaned_everywhere, cleaner_of
from harness.broker.core.coordinator import LOOK, Coordinator
from harness.broker.core.effects import Context, Effect, Node, Timer
from harness.broker.core.fetcher import Fetcher
from harness.broker.core.follower import CleanedFollower
from harness.broker.core.groups.coordinator import ANSWERS, GroupCoordinator
from harness.broker.core.groups.coordinators import GroupCoordinators
from harness.broker.core.groups.group import Group
from harness.broker.core.log import Log
from harness.broker.core.planted import with_bug
from harness.broker.core.replica import Replica
from harness.broker.core.request_handler import DEADLINES, RequestHandler
from harness.broker.core.retention import Retention, retention_of
from harness.broker.core.session import HEARTBEAT, Forwarding, ProducerIds, Session
from harness.broker.core.transaction_coordinator import TransactionCoordinator, TransactionRecord
from harness.broker.core.types import (
    CONTROLLER,
    NONE,
    OFFSETS_TOPIC,
    BrokerConfig,
    ErrorCode,
    Image,
    NodeId,
    Outside,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)
from harness.ground.observations import LogCleaned, LogExpired

ISR_CHECK: Final = Timer("isr")
CHECKPOINT: Final = Timer("checkpoint")
FLUSH: Final = Timer("flush")
CLEAN: Final = Timer("clean")
EXPIRE: Final = Timer("expire")
#: A flush.ms beyond this (about 31 years) means never; Kafka's default is the largest long.
_NEVER_MS: Final = 10**12


class Broker(Node):
    """One broker: ``replicas`` it hosts, its ``session`` with the controller, parked requests, its fetchers.

    Args:
        node: its number.
        config: its settings.
        make_log: gives the log of a partition, recovered; called once per partition and life of the broker.
        incarnation: unique per process start.
        host, port: where clients reach it, for the controller's image.
        rack: its broker.rack, "" for none (rule 26).
        previous_epoch: the broker epoch of the incarnation before, if that one stopped cleanly (rule 15).
        offline: the partitions that it has in log directories which failed before it started (rule 29).
        observe: whether facts for the story are produced.
    """

    replicas: dict[TopicPartition, Replica]
    session: Session
    _context: Context
    _requests: RequestHandler
    _fetchers: dict[NodeId, Fetcher]
    _flush_ms: dict[TopicPartition, int]
    _cleaners: Outside[dict[TopicPartition, Cleaner]]
    _retentions: Outside[dict[TopicPartition, Retention]]
    _controller_lost: bool
    _transactions: TransactionCoordinator
    _groups: GroupCoordinators
    _forwarding: Outside[Forwarding]
    _producer_ids: Outside[ProducerIds]
    _make_log: Outside[Callable[[TopicPartition], Log]]
    _make_replica: Outside[type[Replica]]
    _make_fetcher: Outside[type[Fetcher]]
    _make_cleaner: Outside[type[Cleaner]]
    _make_retention: Outside[type[Retention]]
    _timers: Outside[dict[str, Callable[..., None]]]

    def __init__(  # noqa: PLR0917  (the address belongs to the process as much as its number)
        self,
        node: NodeId,
        config: BrokerConfig,
        make_log: Callable[[TopicPartition], Log],
        incarnation: int,
        host: str = "",
        port: int = 0,
        *,
        rack: str = "",
        previous_epoch: int = NONE,
        offline: Collection[TopicPartition] = (),
        observe: bool = True,
    ) -> None:
        self._context = context = Context(node, config, observing=observe, incarnation=incarnation)
        context.offline = frozenset(offline)
        self._make_log = make_log
        self._make_replica = with_bug(Replica, config.planted_bug)
        self.replicas = {}
        self._make_fetcher = with_bug(Fetcher, config.planted_bug)
        self._fetchers = {}
        self._flush_ms = {}
        self._make_cleaner = with_bug(Cleaner, config.planted_bug)
        self._cleaners = {}
        self._make_retention = with_bug(Retention, config.planted_bug)
        self._retentions = {}
        self._controller_lost = False
        registration = messages.RegisterBroker(node, incarnation, host, port, rack, previous_epoch)
        self.session = Session(context, registration)
        self._forwarding = Forwarding(context)
        self._producer_ids = ProducerIds(context)
        self._requests = with_bug(RequestHandler, config.planted_bug)(context, self.replicas)
        of_transactions = with_bug(TransactionCoordinator, config.planted_bug)
        self._transactions = of_transactions(context, self._write_own, self._producer_ids.take)
        self._groups = GroupCoordinators(context, self._write_own, with_bug(GroupCoordinator, config.planted_bug))
        self._handlers = self._handlers_by_kind()
        self._timers = self._handlers_by_timer()

    def _handlers_by_kind(self) -> dict[type[messages.Message], Callable[[Any], None]]:
        return {
            messages.Produce: self._requests.produce,
            messages.Fetch: self._on_fetch_of_cleaned if self._waits_for_replicas else self._requests.fetch,
            messages.FetchResponse: self._on_fetched,
            messages.HeartbeatResponse: self._on_heartbeat,
            messages.MetadataUpdate: self._on_metadata_update,
            messages.AlterPartitionResponse: self._on_proposal_answered,
            messages.ListOffsets: self._requests.list_offsets,
            messages.ListOffsetsResponse: self._on_offset,
            messages.OffsetForLeaderEpoch: self._requests.epoch_end,
            messages.OffsetForLeaderEpochResponse: self._on_epoch_end,
            messages.LogEnd: self._requests.log_end,
            messages.Metadata: self._on_metadata,
            messages.InitProducerId: self._on_init_producer_id,
            messages.AddPartitionsToTxn: self._transactions.add_partitions,
            messages.EndTxn: self._transactions.end,
            messages.WriteTxnMarkers: self._on_marker,
            **dict.fromkeys(ANSWERS, self._groups.ask),
            messages.ProduceResponse: self._on_written,
            messages.CreateTopic: self._forwarding.forward,
            messages.DeleteTopic: self._forwarding.forward,
            messages.MoveLeader: self._forwarding.forward,
            messages.TopicResponse: self._forwarding.on_answer,
            messages.RegisterBrokerResponse: self._on_registered,
            messages.AllocateProducerIdsResponse: self._producer_ids.on_block,
        }

    def _handlers_by_timer(self) -> dict[str, Callable[..., None]]:
        return {
            HEARTBEAT.name: self._on_heartbeat_timer,
            DEADLINES.name: self._requests.expire,
            "fetch": self._on_fetch_timer,
            ISR_CHECK.name: self._on_isr_timer,
            CHECKPOINT.name: self._on_checkpoint_timer,
            FLUSH.name: self._on_flush_timer,
            CLEAN.name: self._on_clean_timer,
            EXPIRE.name: self._on_expire_timer,
            LOOK: self._on_coordinator_timer,
        }

    # --- entries ---------------------------------------------------------------------------------------------------

    def start(self, now_us: int) -> list[Effect]:
        """Register with the controller and wind up the timers. Replicas appear with the first image."""
        config = self._context.config
        self._context.begin(now_us)
        self.session.tick()
        self._context.remind(config.replica_lag_time_max_ms / 2, ISR_CHECK)
        self._context.remind(config.replica_high_watermark_checkpoint_interval_ms, CHECKPOINT)
        return self._context.take()

    def on_timer(self, now_us: int, timer: Timer) -> list[Effect]:
        """Take one reminder."""
        self._context.begin(now_us)
        handler = self._timers.get(timer.name)
        if handler is not None:
            handler() if timer.subject is None else handler(timer.subject)
        return self._context.take()

    def on_disconnect(self, now_us: int, peer: NodeId) -> list[Effect]:
        """The connection to ``peer`` broke: its answers will not come. Optional; timers notice too, later."""
        self._context.begin(now_us, peer)
        if peer == CONTROLLER:
            self._controller_lost = True
        fetcher = self._fetchers.get(peer)
        if fetcher is not None:
            fetcher.on_disconnect()
        return self._context.take()

    def on_directory_failure(self, now_us: int, partitions: Collection[TopicPartition]) -> list[Effect]:
        """A log directory failed, with these partitions in it: neither lead nor follow them any more (rule 29).

        The controller hears of it in every heartbeat, the first of them now. Other partitions go on.
        """
        self._context.begin(now_us)
        self._context.offline |= frozenset(partitions)
        for partition in partitions:
            self._let_go(partition)
        if self._context.broker_epoch != NONE:
            self.session.beat()
        return self._context.take()

    def leave(self, now_us: int) -> list[Effect]:
        """Begin controlled shutdown: ask for leadership to be moved away until ``may_leave`` is true."""
        self._context.begin(now_us)
        self.session.leaving = True
        if self._context.broker_epoch != NONE:
            self.session.beat()
        return self._context.take()

    @property
    def broker_epoch(self) -> int:
        """The epoch under which it is registered, NONE while it is not."""
        return self._context.broker_epoch

    # --- what the controller decided -----------------------------------------------------------------------------

    def _on_metadata_update(self, message: messages.MetadataUpdate) -> None:
        self._apply(message.image)

    def _on_heartbeat(self, message: messages.HeartbeatResponse) -> None:
        image = self.session.on_heartbeat(message)
        if image is not None:
            self._apply(image)
        if self._controller_lost and self._context.broker_epoch != NONE:
            self._controller_lost = False
            for replica in self.replicas.values():
                replica.repeat_proposal()

    def _apply(self, image: Image) -> None:
        """Obey an image if it is newer, and made since this incarnation registered: earlier ones are about the last."""
        context = self._context
        if image.version <= context.image.version or context.broker_epoch == NONE:
            return
        if image.version < context.broker_epoch:
            return
        before, context.image = context.image, image
        for name, old in before.topics.items():
            new = image.topics.get(name)
            if new is None or new.identity != old.identity:
                self._drop(name, old)
        for name, topic in image.topics.items():
            if topic is not before.topics.get(name):
                self._apply_topic(name, topic)
        for fetcher in self._fetchers.values():
            fetcher.pump()
        if image.brokers[context.node].fenced:
            self.session.beat()  # Up to date now: no need to stay fenced for another heartbeat interval.

    def _apply_topic(self, name: str, topic: TopicState) -> None:
        for number, state in enumerate(topic.partitions):
            partition = TopicPartition(name, number)
            if self._context.node not in state.replicas or partition in self._context.offline:
                continue
            replica = self.replicas.get(partition)
            if replica is None:
                replica = self.replicas[partition] = self._make_replica(
                    partition, self._make_log(partition), self._context
                )
                self._flush_regularly(partition, topic.config.flush_ms)
                self._clean_regularly(partition, topic.config)
                self._expire_regularly(partition, topic.config)
            if state.partition_epoch > replica.partition_epoch:
                self._apply_partition(replica, state, topic)

    def _apply_partition(self, replica: Replica, state: PartitionState, topic: TopicState) -> None:
        led, followed, epoch = replica.leading, replica.leader, replica.leader_epoch
        replica.apply(state, topic.config)
        if replica.leader_epoch != epoch:
            if led:
                self._requests.abandon(replica)
            if not led and followed in self._fetchers:
                self._fetchers[followed].unfollow(replica.partition)
            if not replica.leading and replica.leader != NONE:
                self._fetcher(replica.leader).follow(replica)
            self._coordinate(replica)
        if replica.leading:
            self._requests.wake(replica)

    def _drop(self, name: str, topic: TopicState) -> None:
        """The topic was deleted, or deleted and made again: its logs are gone."""
        for number in range(len(topic.partitions)):
            replica = self._let_go(TopicPartition(name, number))
            if replica is not None:
                replica.log.reset_to(0)

    def _let_go(self, partition: TopicPartition) -> Replica | None:
        """Neither lead nor follow a partition any more; returns the replica that it had, if any."""
        replica = self.replicas.pop(partition, None)
        if replica is None:
            return None
        for fetcher in self._fetchers.values():
            fetcher.unfollow(partition)
        replica.resign()
        self._requests.abandon(replica)
        self._flush_ms.pop(partition, None)
        self._cleaners.pop(partition, None)
        self._retentions.pop(partition, None)
        self._coordinate(replica)
        return replica

    def _coordinate(self, replica: Replica) -> None:
        """The broker leads a partition since now, or no longer; one of them makes it a coordinator."""
        coordinator = self._coordinator(replica.partition)
        if coordinator is not None and replica.leading:
            coordinator.lead(replica)
        elif coordinator is not None:
            coordinator.resign()

    def _coordinator(self, log: TopicPartition) -> Coordinator | None:
        """The part of this broker that coordinates while it leads this log partition; None for most."""
        if log.topic == OFFSETS_TOPIC:
            return self._groups.on(log)
        return self._transactions if log == transaction_coordinator.LOG else None

    def _fetcher(self, leader: NodeId) -> Fetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = self._make_fetcher(leader, self._context)
        return fetcher

    def _on_registered(self, message: messages.RegisterBrokerResponse) -> None:
        self.session.on_registered(message)
        self._producer_ids.refill()

    def _on_proposal_answered(self, message: messages.AlterPartitionResponse) -> None:
        replica = self.replicas.get(message.partition)
        if replica is not None:
            replica.on_proposal_answered(message)
            self._requests.wake(replica)

    # --- answers and questions -------------------------------------------------------------------------------------

    def _on_epoch_end(self, message: messages.OffsetForLeaderEpochResponse) -> None:
        fetcher = self._fetchers.get(self._context.sender)
        if fetcher is not None:
            fetcher.on_epoch_end(message)

    def _on_offset(self, message: messages.ListOffsetsResponse) -> None:
        fetcher = self._fetchers.get(self._context.sender)
        if fetcher is not None:
            fetcher.on_offset(message)

    def _on_fetched(self, message: messages.FetchResponse) -> None:
        fetcher = self._fetchers.get(self._context.sender)
        if fetcher is not None:
            fetcher.on_fetched(message)
        if self._context.config.follower_fetching:
            for answer in message.partitions:  # Consumers may wait here for the high watermark (rule 22).
                replica = self.replicas.get(answer.partition)
                if replica is not None:
                    self._requests.wake(replica)

    def _on_init_producer_id(self, message: messages.InitProducerId) -> None:
        if message.transactional_id is None:
            self._producer_ids.serve(message)
        else:
            self._transactions.init(message)
            self._producer_ids.refill()

    def _on_marker(self, message: messages.WriteTxnMarkers) -> None:
        """Have a marker written; on a log of groups it ends what is pending there, too."""
        partition = message.partition
        write = self._groups.on(partition).end if partition.topic == OFFSETS_TOPIC else self._requests.produce
        write(message)

    @property
    def transactional_ids(self) -> tuple[ErrorCode, dict[str, TransactionRecord]]:
        """The transactional ids that it knows as their coordinator, or why it knows none (rule 50)."""
        return self._transactions.described()

    @property
    def groups(self) -> tuple[ErrorCode, dict[str, Group]]:
        """The groups that it knows as their coordinator, or that it reads about them just now."""
        return self._groups.described()

    @property
    def transaction_coordinator(self) -> TransactionCoordinator:
        """Its coordinator of transactions, for invariants: reading it has no effect."""
        return self._transactions

    @property
    def group_coordinators(self) -> list[GroupCoordinator]:
        """Its coordinators of groups that coordinate now, for invariants: reading them has no effect."""
        return self._groups.ready()

    def group(self, name: str) -> tuple[ErrorCode, Group]:
        """A group as a client would be told of it, without members and offsets where it is not known; or why not."""
        error, groups = self._groups.of(name).described()
        return error, groups.get(name, Group())

    def _on_written(self, message: messages.ProduceResponse) -> None:
        """One of the coordinators has asked for it."""
        self._transactions.on_written(message)
        if message.partition.topic == OFFSETS_TOPIC:
            self._groups.on(message.partition).on_written(message)

    def _write_own(self, message: messages.Produce) -> None:
        """Append to a log of this broker; the answer is a message to itself."""
        self._requests.produce_for(self._context.node, message)

    def _on_metadata(self, message: messages.Metadata) -> None:
        """Answer from the own image, however old: a broker that is cut off from the controller has no newer one."""
        self._context.answer(messages.MetadataResponse(message.correlation, self._context.image))

    # --- timers ----------------------------------------------------------------------------------------------------

    def _on_heartbeat_timer(self) -> None:
        self.session.tick()
        self._producer_ids.refill()
        for replica in self.replicas.values():
            replica.repeat_overdue_proposal()

    def _on_coordinator_timer(self, look: tuple[TopicPartition, int]) -> None:
        log, leader_epoch = look
        coordinator = self._coordinator(log)
        if coordinator is not None:
            coordinator.on_timer(leader_epoch)

    def _on_fetch_timer(self, leader: NodeId) -> None:
        fetcher = self._fetchers.get(leader)
        if fetcher is not None:
            fetcher.on_timer()

    def _on_isr_timer(self) -> None:
        """Rule 10: twice per replica.lag.time.max.ms, so a follower that stops is out after 1 to 1.5 times as long."""
        self._context.remind(self._context.config.replica_lag_time_max_ms / 2, ISR_CHECK)
        for replica in self.replicas.values():
            if replica.leading:
                replica.check_isr()
                self._requests.wake(replica)

    def _on_checkpoint_timer(self) -> None:
        """Write every high watermark down (rule 25)."""
        self._context.remind(self._context.config.replica_high_watermark_checkpoint_interval_ms, CHECKPOINT)
        for replica in self.replicas.values():
            replica.log.checkpoint_high_watermark(replica.high_watermark)

    def _flush_regularly(self, partition: TopicPartition, flush_ms: int) -> None:
        if flush_ms <= _NEVER_MS:
            self._flush_ms[partition] = flush_ms
            self._context.remind(flush_ms, Timer(FLUSH.name, partition))

    def _on_flush_timer(self, partition: TopicPartition) -> None:
        """Flush one partition, as flush.ms promises (rule 24)."""
        flush_ms, replica = self._flush_ms.get(partition), self.replicas.get(partition)
        if flush_ms is None or replica is None:
            return
        if replica.log.flushed_offset < replica.log.end_offset:
            replica.log.flush()
        self._context.remind(flush_ms, Timer(FLUSH.name, partition))

    @property
    def _waits_for_replicas(self) -> bool:
        return self._context.config.tombstones_wait_for_replicas

    def _on_fetch_of_cleaned(self, message: messages.Fetch) -> None:
        """Answer, and remember how far a follower's cleaners were, where its fetch counts (rule 32)."""
        self._requests.fetch(message)
        for wanted in message.partitions:
            replica = self.replicas.get(wanted.partition)
            follower = None if replica is None else replica.followers.get(message.replica_id)
            counts = follower is not None and follower.broker_epoch == message.broker_epoch
            if counts and type(wanted) is messages.CleanedFetchPartition and type(follower) is CleanedFollower:
                follower.cleaned_to = wanted.cleaned_to

    def _clean_regularly(self, partition: TopicPartition, config: TopicConfig) -> None:
        cleaner = cleaner_of(self._make_cleaner, config)
        if cleaner is not None:
            self._cleaners[partition] = cleaner
            self._context.remind(self._context.config.log_cleaner_backoff_ms, Timer(CLEAN.name, partition))

    def _on_clean_timer(self, partition: TopicPartition) -> None:
        """Clean one partition, whatever its other replicas do (rule 31)."""
        cleaner, replica = self._cleaners.get(partition), self.replicas.get(partition)
        if cleaner is None or replica is None or replica.log.cleanable is None:
            return
        removable_to = cleaned_everywhere(replica) if self._waits_for_replicas else EVERYTHING
        done = cleaner.clean(replica.log.cleanable, replica.high_watermark, self._context.now_us, removable_to)
        if done is not None and self._context.observing:
            self._context.observe(
                LogCleaned(partition=str(partition), upto=done.bound, records=done.records, tombstones=done.tombstones)
            )
        self._context.remind(self._context.config.log_cleaner_backoff_ms, Timer(CLEAN.name, partition))

    def _expire_regularly(self, partition: TopicPartition, config: TopicConfig) -> None:
        retention = retention_of(self._make_retention, config)
        if retention is not None:
            self._retentions[partition] = retention
            self._context.remind(self._context.config.log_retention_check_interval_ms, Timer(EXPIRE.name, partition))

    def _on_expire_timer(self, partition: TopicPartition) -> None:
        """Let one log start later, whatever its other replicas do (rule 47)."""
        retention, replica = self._retentions.get(partition), self.replicas.get(partition)
        if retention is None or replica is None or replica.log.cleanable is None:
            return
        begin = retention.expire(replica.log.cleanable, replica.high_watermark, self._context.now_us)
        if begin is not None and self._context.observing:
            self._context.observe(LogExpired(partition=str(partition), offset=begin.offset, records=begin.records))
        self._context.remind(self._context.config.log_retention_check_interval_ms, Timer(EXPIRE.name, partition))
