"""The part of every Kafka client below its API: connections, requests under way, and who leads what. Sans-IO.

Modelled on the Java client's ``NetworkClient``: a connection per broker, opened when first needed and again after a
backoff; a request without an answer within ``request.timeout.ms`` closes its connection, and with it every other
request there; metadata is asked for when a leader is unknown or an answer says so, at most once per
``retry.backoff.ms``, from one broker after the other, and anyway after ``metadata.max.age.ms``. A leader of an older
epoch than the known one is not believed (KIP-320), so a broker with stale metadata cannot lead a client back.

Effects collect in ``effects`` until the owner takes them. Everything that has to wait asks for one wake-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from harness.broker.core.effects import Arm, Deliver, Timer
from harness.broker.core.messages import CommittedOffset, Message, Metadata, MetadataResponse
from harness.broker.core.types import NONE, BrokerState, ErrorCode, Image, NodeId, TopicPartition
from workloads import Settings

MICROSECONDS: Final = 1_000
#: metadata.max.age.ms, Kafka's default: a client that hears nothing else keeps writing to a deposed leader.
METADATA_MAX_AGE_US: Final = 300_000 * MICROSECONDS
#: reconnect.backoff.ms and reconnect.backoff.max.ms, Kafka's defaults.
RECONNECT_BACKOFF_US: Final = 50 * MICROSECONDS
RECONNECT_BACKOFF_MAX_US: Final = 1_000 * MICROSECONDS
NEVER_US: Final = 2**62
#: Errors of a broker that does not coordinate, or not yet: the client asks for metadata, and comes back.
NOT_COORDINATING: Final = frozenset({
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
})  # fmt: skip

WAKE: Final = Timer("wake")
_deadline_us: Final = attrgetter("deadline_us")


class Connect(msgspec.Struct, frozen=True, gc=False):
    """Effect: ask for a connection to ``broker``; ``on_connected`` or ``on_disconnected`` answers, or nothing does."""

    broker: int


class Completed(msgspec.Struct, frozen=True, gc=False):
    """Effect: the call whose ``done`` this was has ended with ``outcome``."""

    done: Any
    outcome: Any


ClientEffect = Deliver | Arm | Connect | Completed


class Request:
    """A request under way. ``purpose`` is its owner's; ``None`` marks metadata."""

    __slots__ = ("broker", "correlation", "deadline_us", "purpose")

    def __init__(self, correlation: int, broker: int, deadline_us: int, purpose: Any) -> None:
        self.correlation = correlation
        self.broker = broker
        self.deadline_us = deadline_us
        self.purpose = purpose


class BrokerConnection:
    """A connection to one broker, open or not."""

    __slots__ = ("connecting_until_us", "failures", "in_flight", "open", "retry_at_us")

    def __init__(self) -> None:
        self.open = False
        self.connecting_until_us = 0
        self.retry_at_us = 0
        self.failures = 0
        self.in_flight = 0


class NetworkClient:
    """See the module's text. ``brokers`` are the bootstrap servers; times of arguments are microseconds."""

    def __init__(
        self, brokers: Sequence[int], first: int, topics: Sequence[str], request_timeout_us: int, backoff_us: int
    ) -> None:
        self.effects: list[ClientEffect] = []
        self._brokers = tuple(brokers)
        self._turn = first
        self._topics = tuple(topics)
        self._timeout_us = request_timeout_us
        self._backoff_us = backoff_us
        self._connections = {broker: BrokerConnection() for broker in brokers}
        self._requests: dict[int, Request] = {}
        self._correlation = 0
        self._leaders: dict[TopicPartition, tuple[int, int]] = {}
        self._image: Image | None = None
        self._armed_us = NEVER_US
        self._metadata_wanted = True
        self._metadata_under_way = False
        self._metadata_not_before_us = 0
        self._metadata_expires_us = 0

    @property
    def known_brokers(self) -> Mapping[NodeId, BrokerState]:
        """The brokers by the newest metadata, none before the first."""
        return {} if self._image is None else self._image.brokers

    def take_effects(self) -> list[ClientEffect]:
        """Give what there is to do since the last call."""
        effects, self.effects = self.effects, []
        return effects

    # --- time --------------------------------------------------------------------------------------------------------

    def wake_at(self, time_us: int) -> None:
        """Make sure of a wake-up at ``time_us`` or before."""
        if time_us < self._armed_us:
            self._armed_us = time_us
            self.effects.append(Arm(time_us, WAKE))

    def woken(self, now_us: int) -> list[Request] | None:
        """A wake-up: None if it was superseded, else the requests lost because their broker did not answer in time."""
        if now_us < self._armed_us:
            return None
        self._armed_us = NEVER_US
        lost: list[Request] = []
        while self._requests:
            next_lost = min(self._requests.values(), key=_deadline_us)
            if next_lost.deadline_us > now_us:
                self.wake_at(next_lost.deadline_us)
                break
            lost += self.disconnected(now_us, next_lost.broker)
        for connection in self._connections.values():
            if 0 < connection.connecting_until_us <= now_us:
                self._close(now_us, connection)
            elif connection.connecting_until_us:
                self.wake_at(connection.connecting_until_us)
        return lost

    # --- connections -------------------------------------------------------------------------------------------------

    def ready(self, now_us: int, broker: int) -> BrokerConnection | None:
        """The open connection to ``broker``; without one, see to it that there will be one, and a wake-up."""
        connection = self._connections[broker]
        if connection.open:
            return connection
        if not connection.connecting_until_us:
            if now_us < connection.retry_at_us:
                self.wake_at(connection.retry_at_us)
            else:
                connection.connecting_until_us = now_us + self._timeout_us
                self.wake_at(connection.connecting_until_us)
                self.effects.append(Connect(broker))
        return None

    def connected(self, broker: int) -> None:
        """The broker's kernel accepted."""
        connection = self._connections[broker]
        connection.open = True
        connection.connecting_until_us = 0
        connection.failures = 0

    def disconnected(self, now_us: int, broker: int) -> list[Request]:
        """The connection was refused, broke or is given up: the owner's requests that were under way on it."""
        self._close(now_us, self._connections[broker])
        lost = [request for request in self._requests.values() if request.broker == broker]
        for request in lost:
            del self._requests[request.correlation]
            if request.purpose is None:
                self._metadata_under_way = False
        return [request for request in lost if request.purpose is not None]

    def _close(self, now_us: int, connection: BrokerConnection) -> None:
        backoff_us = min(RECONNECT_BACKOFF_US << min(connection.failures, 10), RECONNECT_BACKOFF_MAX_US)
        connection.open = False
        connection.in_flight = 0
        connection.connecting_until_us = 0
        connection.failures += 1
        connection.retry_at_us = now_us + backoff_us
        self._metadata_wanted = True

    # --- requests ----------------------------------------------------------------------------------------------------

    def next_correlation(self) -> int:
        """The correlation that the next ``send`` must carry."""
        return self._correlation

    def send(self, now_us: int, broker: int, message: Message, purpose: Any, *, patience_us: int = 0) -> None:
        """Send a request over an open connection and wait for its answer, ``patience_us`` longer than for others."""
        correlation = self._correlation
        self._correlation = correlation + 1
        deadline_us = now_us + self._timeout_us + patience_us
        self._requests[correlation] = Request(correlation, broker, deadline_us, purpose)
        self._connections[broker].in_flight += 1
        self.effects.append(Deliver(NodeId(broker), message))
        if deadline_us < self._armed_us:
            self.wake_at(deadline_us)

    def send_only(self, broker: int, message: Message) -> None:
        """Send a request that is never answered (acks=0)."""
        self._correlation += 1
        self.effects.append(Deliver(NodeId(broker), message))

    def answered(self, correlation: int) -> Request | None:
        """The request that this correlation answers; None if it was given up before."""
        request = self._requests.pop(correlation, None)
        if request is not None:
            self._connections[request.broker].in_flight -= 1
        return request

    # --- metadata ----------------------------------------------------------------------------------------------------

    def partitions_of(self, topic: str) -> int:
        """The number of log partitions of a topic, 0 of one that is not known."""
        state = None if self._image is None else self._image.topics.get(topic)
        return 0 if state is None else len(state.partitions)

    def leader(self, partition: TopicPartition) -> tuple[int, int] | None:
        """(leader, leader epoch) as known here; None, and metadata wanted, where it is not known."""
        leader = self._leaders.get(partition)
        if leader is None or leader[0] not in self._connections:
            self._metadata_wanted = True
            return None
        return leader

    def learn_epoch(self, partition: TopicPartition, epoch: int) -> None:
        """There is a leader of this epoch: a leader of an older epoch is not believed any more (KIP-320)."""
        leader = self._leaders.get(partition)
        if leader is None or leader[1] < epoch:
            self._leaders[partition] = (NONE, epoch)
            self._metadata_wanted = True

    def reachable_leader(self, now_us: int, partition: TopicPartition) -> int | None:
        """The leader, where the connection to it is open; else see to it that there will be one."""
        leader = self.leader(partition)
        return None if leader is None or self.ready(now_us, leader[0]) is None else leader[0]

    def want_metadata(self) -> None:
        """Something contradicts what is known of the cluster."""
        self._metadata_wanted = True

    def pursue_metadata(self, now_us: int) -> None:
        """Ask for metadata if it is wanted or old, and it is time to."""
        if self._metadata_under_way or not (self._metadata_wanted or now_us >= self._metadata_expires_us):
            return
        if now_us < self._metadata_not_before_us:
            self.wake_at(self._metadata_not_before_us)
            return
        broker = self._any_ready(now_us)
        if broker is not None:
            self._metadata_under_way = True
            self._metadata_wanted = False
            self._metadata_not_before_us = now_us + self._backoff_us
            self.send(now_us, broker, Metadata(self._correlation, self._topics), None)

    def on_metadata(self, now_us: int, response: MetadataResponse) -> None:
        """Believe what is not older than what is known."""
        if self.answered(response.correlation) is None:
            return
        self._metadata_under_way = False
        self._metadata_expires_us = now_us + METADATA_MAX_AGE_US
        image = response.image
        if image is self._image:
            return
        self._image = image
        for name in self._topics:
            topic = image.topics.get(name)
            for number, state in enumerate(topic.partitions if topic else ()):
                partition = TopicPartition(name, number)
                leader = self._leaders.get(partition)
                if leader is None or state.leader_epoch >= leader[1]:
                    self._leaders[partition] = (state.leader, state.leader_epoch)

    def _any_ready(self, now_us: int) -> int | None:
        """The open connection with the fewest requests under way; else open one to the first that may be tried."""
        in_turn = list(self._in_turn())
        self._turn += 1
        ready = [broker for broker in in_turn if self._connections[broker].open]
        if ready:
            return min(ready, key=lambda broker: self._connections[broker].in_flight)
        for broker in in_turn:
            connection = self._connections[broker]
            if connection.connecting_until_us or now_us >= connection.retry_at_us:
                self.ready(now_us, broker)
                return None
        self.wake_at(min(connection.retry_at_us for connection in self._connections.values()))
        return None

    def _in_turn(self) -> Iterator[int]:
        for step in range(len(self._brokers)):
            yield self._brokers[(self._turn + step) % len(self._brokers)]


class ClientModel:
    """The common part of the models of producer and consumer. Sans-IO; times are microseconds.

    One instance for the run's ``topics``; ``first`` is the broker that it asks first, by position in ``brokers``.
    """

    def __init__(self, brokers: Sequence[int], first: int, topics: Sequence[str], settings: Settings) -> None:
        self._backoff_us = settings.retry_backoff_ms * MICROSECONDS
        request_timeout_us = settings.request_timeout_ms * MICROSECONDS
        self._net = NetworkClient(brokers, first, topics, request_timeout_us, self._backoff_us)

    def on_message(self, now_us: int, sender: int, message: Message) -> list[ClientEffect]:
        """An answer arrived."""
        raise NotImplementedError

    def on_timer(self, now_us: int, _timer: Timer) -> list[ClientEffect]:
        """Do what a wake-up brings."""
        lost = self._net.woken(now_us)
        if lost is None:
            return []
        self._lost(now_us, lost)
        self._expire(now_us)
        return self._advance(now_us)

    def on_connected(self, now_us: int, broker: int) -> list[ClientEffect]:
        """The connection to ``broker`` was accepted."""
        self._net.connected(broker)
        return self._advance(now_us)

    def on_disconnected(self, now_us: int, broker: int) -> list[ClientEffect]:
        """The connection to ``broker`` was refused or broke."""
        self._lost(now_us, self._net.disconnected(now_us, broker))
        return self._advance(now_us)

    def close(self, why: str) -> list[ClientEffect]:
        """Give up: every call that is open ends as INFO, with the error ``why``."""
        raise NotImplementedError

    def _lost(self, now_us: int, requests: list[Request]) -> None:
        """Requests under way on a connection that is gone."""
        raise NotImplementedError

    def _expire(self, now_us: int) -> None:
        """Give up what has waited too long."""

    def _advance(self, now_us: int) -> list[ClientEffect]:
        """Do what can be done now; the answer is everything that there is to do since the last time."""
        raise NotImplementedError


def commits(offsets: Mapping[TopicPartition, int]) -> tuple[tuple[TopicPartition, CommittedOffset], ...]:
    """These offsets, as a request to commit them has them."""
    return tuple((partition, CommittedOffset(offset)) for partition, offset in offsets.items())
