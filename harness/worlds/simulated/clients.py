"""The clients of a simulated run: models of producer and consumer behind the contracts of ``workloads.client``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from heapq import heappush
from typing import Any, Final, Generic, TypeVar, cast

from harness.clients import client_settings
from harness.plan import Simulated
from harness.reference.core.effects import Arm, Deliver, Timer
from harness.reference.core.types import TopicPartition
from harness.worlds.simulated import network_client
from harness.worlds.simulated.consumer import FETCH_MAX_WAIT_MS, MAX_POLL_RECORDS, ConsumerModel
from harness.worlds.simulated.group_consumer import GroupConsumerModel
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.network import Network
from harness.worlds.simulated.producer import ProducerModel
from harness.worlds.simulated.transactional_producer import TransactionalProducerModel, What
from nemesis.cluster import CLIENTS
from workloads import (
    CLIENT_CLOSED,
    CLIENT_CRASHED,
    Assignment,
    ClientCapability,
    Commits,
    Epochs,
    EventType,
    GroupProtocol,
    IsolationLevel,
    LogPartition,
    Membership,
    MemberToken,
    Offsets,
    OwnCommit,
    OwnCommits,
    PollOutcome,
    ProducerEpoch,
    SendOutcome,
    Settings,
    Subscription,
    Transactions,
)

Model = TypeVar("Model", bound=network_client.ClientModel)


class SimulatedClient(Generic[Model]):
    """A client on a node of its own: it carries out the effects of its model. Times are microseconds of the loop.

    The outcomes of calls go through the loop, so no caller is called back before its call has returned.
    """

    def __init__(self, node: int, model: Model, loop: Loop, network: Network) -> None:
        self._node = node
        self._model = model
        self._loop = loop
        self._network = network
        self._outgoing = network.outgoing(node)
        self._fire = self._on_timer
        self._closed = False
        self.receive: Callable[[int, Any], None] = self._on_message
        network.add_client(node, self)

    def _on_message(self, source: int, message: Any) -> None:
        self._apply(self._model.on_message(self._loop.time_us, source, message))

    def _on_timer(self, timer: Timer) -> None:
        if not self._closed:
            self._apply(self._model.on_timer(self._loop.time_us, timer))

    def connected(self, broker: int) -> None:
        """Tell the model that its connection to ``broker`` is open."""
        if not self._closed:
            self._apply(self._model.on_connected(self._loop.time_us, broker))

    def disconnected(self, broker: int) -> None:
        """Tell the model that its connection to ``broker`` is broken."""
        if not self._closed:
            self._apply(self._model.on_disconnected(self._loop.time_us, broker))

    def close(self) -> None:
        """End every call that is open, as INFO, and do nothing any more. Idempotent."""
        self._close(CLIENT_CLOSED)

    def _close(self, why: str) -> None:
        if not self._closed:
            self._apply(self._model.close(why))
            self._closed = True
            self.receive = _ignore

    def _refuse(self, done: Callable[[Any], None], outcome: object) -> None:
        """End the call whose ``done`` this is with ``outcome``; the model does not hear of it."""
        self._loop.push(self._loop.time_us, done, outcome)

    def _apply(self, effects: Sequence[network_client.ClientEffect]) -> None:
        """Do what the model asks, in its order."""
        loop = self._loop
        for effect in effects:
            kind = type(effect)
            if kind is Deliver:
                wire = self._outgoing.get(effect.target)  # type: ignore[union-attr]
                if wire is not None:
                    wire.send(effect.message)  # type: ignore[union-attr]
            elif kind is network_client.Completed:
                loop.push(loop.time_us, effect.done, effect.outcome)  # type: ignore[union-attr]
            elif kind is Arm:
                heappush(loop.heap, (effect.at_us, loop.next_sequence(), self._fire, effect.timer))  # type: ignore[union-attr]
            elif kind is network_client.Connect:
                self._network.connect(self._node, effect.broker)  # type: ignore[union-attr]


def _ignore(_source: int, _message: Any) -> None:
    """Drop a message to a closed client."""


class SimulatedProducer(SimulatedClient[ProducerModel]):
    """Implements the contract :class:`workloads.client.Producer`."""

    @property
    def tombstones(self) -> SimulatedProducer:
        """The producer itself."""
        return self

    @property
    def transactions(self) -> Transactions | None:
        """None: this producer has no transactional id."""
        return None

    @property
    def epochs(self) -> Epochs | None:
        """None: this producer has no transactional id."""
        return None

    def send(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """Have the model send a record; a closed client ends the call as INFO."""
        self._send(partition, key, payload, done, tombstone=False)

    def send_tombstone(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """Have the model send a record that deletes its key."""
        self._send(partition, key, payload, done, tombstone=True)

    def _send(
        self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None], *, tombstone: bool
    ) -> None:
        if self._closed:
            self._refuse(done, SendOutcome(EventType.INFO, None, CLIENT_CLOSED))
        else:
            sent = self._model.send(self._loop.time_us, parsed(partition), key, payload, done, tombstone=tombstone)
            self._apply(sent)

    def crash(self) -> None:
        """Close, and break every connection off without a word to its broker."""
        if not self._closed:
            self._close(CLIENT_CRASHED)
            self._network.abandon(self._node)


class SimulatedTransactionalProducer(SimulatedProducer):
    """A producer with a transactional id, and its transactions (:class:`workloads.client.Transactions`)."""

    def __init__(self, node: int, model: TransactionalProducerModel, loop: Loop, network: Network) -> None:
        super().__init__(node, model, loop, network)
        self._transactional = model

    @property
    def transactions(self) -> Transactions | None:
        """The transactions of this producer."""
        return self

    @property
    def epochs(self) -> Epochs | None:
        """The producer itself."""
        return self

    def told_epoch(self) -> ProducerEpoch | None:
        """Give the model's id and epoch."""
        return self._transactional.epoch

    def init(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the model ask for its id."""
        self._ask("init", done)

    def begin(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the model open a transaction; a closed client ends the call as INFO."""
        if self._closed:
            self._refuse(done, SendOutcome(EventType.INFO, None, CLIENT_CLOSED))
        else:
            self._apply(self._transactional.begin(self._loop.time_us, done))

    def send_offsets(
        self, offsets: Mapping[str, int], member: MemberToken, done: Callable[[SendOutcome], None]
    ) -> None:
        """Have the model hand them over; a closed client ends the call as INFO."""
        if self._closed:
            self._refuse(done, SendOutcome(EventType.INFO, None, CLIENT_CLOSED))
        else:
            named = cast("tuple[str, str, int]", member.token)
            parts = {parsed(name): offset for name, offset in offsets.items()}
            self._apply(self._transactional.send_offsets(self._loop.time_us, named, parts, done))

    def commit(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the model ask for the commit."""
        self._ask("commit", done)

    def abort(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the model ask for the abort."""
        self._ask("abort", done)

    def _ask(self, what: What, done: Callable[[SendOutcome], None]) -> None:
        if self._closed:
            self._refuse(done, SendOutcome(EventType.INFO, None, CLIENT_CLOSED))
        else:
            self._apply(self._transactional.call(self._loop.time_us, what, done))


class SimulatedConsumer(SimulatedClient[ConsumerModel]):
    """Implements the contract :class:`workloads.client.Consumer`."""

    @property
    def own_commits(self) -> OwnCommits | None:
        """None: this consumer is of no group."""
        return None

    @property
    def subscription(self) -> Subscription | None:
        """None: this consumer is of no group."""
        return None

    @property
    def commits(self) -> Commits | None:
        """None: this consumer is of no group."""
        return None

    def assign(self, partitions: Sequence[str], *, from_start: bool) -> None:
        """Have the model read ``partitions`` from now on."""
        self._model.assign([parsed(partition) for partition in partitions], from_start=from_start)

    def poll(self, max_wait_ms: int, done: Callable[[PollOutcome], None]) -> None:
        """Have the model poll; a closed client ends the call as INFO."""
        if self._closed:
            self._refuse(done, PollOutcome(EventType.INFO, (), CLIENT_CLOSED))
        else:
            self._apply(self._model.poll(self._loop.time_us, max_wait_ms, done))

    def end_offsets(self, partitions: Sequence[str], done: Callable[[Offsets], None]) -> None:
        """See :meth:`workloads.client.Consumer.end_offsets`: high watermarks, from the current leaders."""
        if self._closed:
            self._refuse(done, Offsets({}, CLIENT_CLOSED))
        else:
            asked = [parsed(partition) for partition in partitions]
            self._apply(self._model.end_offsets(self._loop.time_us, asked, done))


class SimulatedGroupConsumer(SimulatedConsumer):
    """A consumer of a group, its membership and its commits (:class:`workloads.client.Commits`, `OwnCommits`)."""

    def __init__(self, node: int, model: GroupConsumerModel, loop: Loop, network: Network) -> None:
        super().__init__(node, model, loop, network)
        self._member = model

    @property
    def subscription(self) -> Subscription | None:
        """The consumer itself."""
        return self

    @property
    def commits(self) -> Commits | None:
        """The consumer itself."""
        return self

    @property
    def own_commits(self) -> OwnCommits | None:
        """The consumer itself."""
        return self

    def watch_own_commits(self, told: Callable[[OwnCommit], None]) -> None:
        """Have the model tell of each commit that it makes by itself."""
        self._member.watch_own_commits(told)

    def subscribe(self, topics: Sequence[str], changed: Callable[[Assignment], None]) -> None:
        """Have the model join the group."""
        self._member.subscribe(topics, changed)

    def commit(self, offsets: Mapping[str, int], done: Callable[[Offsets], None]) -> None:
        """Have the model commit; a closed client ends the call without any."""
        if self._closed:
            self._refuse(done, Offsets({}, CLIENT_CLOSED))
        else:
            asked = {parsed(name): offset for name, offset in offsets.items()}
            self._apply(self._member.commit(self._loop.time_us, asked, done))

    def ask_committed(self, partitions: Sequence[str], done: Callable[[Offsets], None]) -> None:
        """Have the model ask the coordinator; a closed client ends the call without an answer."""
        if self._closed:
            self._refuse(done, Offsets({}, CLIENT_CLOSED))
        else:
            self._apply(self._member.ask_committed(self._loop.time_us, [parsed(name) for name in partitions], done))

    def ask_member(self, done: Callable[[MemberToken], None]) -> None:
        """Give the member and its epoch."""
        self._refuse(done, self._member.token())


class SimulatedClients:
    """``workloads.client.Clients``: process p is node CLIENTS + 1 + p."""

    lacks: Final[Mapping[ClientCapability, str]] = {}
    protocols: Final[Sequence[GroupProtocol]] = Simulated.protocols

    def __init__(
        self, brokers: Sequence[int], topics: Sequence[str], settings: Settings, loop: Loop, network: Network
    ) -> None:
        self._brokers = brokers
        self._topics = topics
        self._settings = settings
        self._loop = loop
        self._network = network

    def name_of(self, process: int) -> str:  # noqa: ARG002 - all are models
        """The word for all of them: a model has no version."""
        return "simulated"

    def producer(self, process: int, transactional_id: str | None = None) -> SimulatedProducer:
        """A new producer; with a ``transactional_id`` it has transactions."""
        node, common = CLIENTS + 1 + process, (self._brokers, process, self._topics, self._settings)
        if transactional_id is None:
            return SimulatedProducer(node, ProducerModel(*common), self._loop, self._network)
        model = TransactionalProducerModel(*common, transactional_id)
        return SimulatedTransactionalProducer(node, model, self._loop, self._network)

    def consumer(
        self, process: int, membership: Membership | None = None, isolation: IsolationLevel = "read_uncommitted"
    ) -> SimulatedConsumer:
        """A new consumer.

        Raises:
            ValueError: its group has a protocol that brokers in virtual time do not have.
        """
        node, common = CLIENTS + 1 + process, (self._brokers, process, self._topics, self._settings, isolation)
        if membership is None:
            return SimulatedConsumer(node, ConsumerModel(*common), self._loop, self._network)
        if membership.protocol not in self.protocols:
            raise ValueError(f'in virtual time groups have the protocol "{self.protocols[0]}"')
        return SimulatedGroupConsumer(
            node, GroupConsumerModel(*common, membership=membership), self._loop, self._network
        )

    def effective_configuration(self) -> dict[str, dict[str, Any]]:
        """Give the values that the models use, by role, under the names that kafka-python gives these settings."""
        settings = self._settings
        common = {
            "request_timeout_ms": settings.request_timeout_ms,
            "retry_backoff_ms": settings.retry_backoff_ms,
            "reconnect_backoff_ms": network_client.RECONNECT_BACKOFF_US // network_client.MICROSECONDS,
            "reconnect_backoff_max_ms": network_client.RECONNECT_BACKOFF_MAX_US // network_client.MICROSECONDS,
            "metadata_max_age_ms": network_client.METADATA_MAX_AGE_US // network_client.MICROSECONDS,
        }
        consumer = {
            "group_id": None,
            "isolation_level": settings.isolation_level,
            "fetch_max_wait_ms": min(FETCH_MAX_WAIT_MS, settings.request_timeout_ms // 2),
            "max_poll_records": MAX_POLL_RECORDS,
        }
        producer = {name.replace(".", "_"): value for name, value in client_settings(settings).items()}
        return {"producer": common | producer, "consumer": common | consumer}


@lru_cache(maxsize=4_096)
def parsed(partition: str) -> TopicPartition:
    """The log partition that "topic-number" names."""
    return TopicPartition(*LogPartition.named(partition))
