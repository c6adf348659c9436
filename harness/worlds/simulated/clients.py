"""The clients of a simulated run: models of producer and consumer behind the contracts of ``workloads.client``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from heapq import heappush
from typing import Any, Final, Generic, TypeVar

from harness.broker.core.effects import Arm, Deliver, Timer
from harness.broker.core.types import TopicPartition
from harness.plan import Simulated
from harness.worlds.clients import client_settings
from harness.worlds.simulated import network_client
from harness.worlds.simulated.consumer import FETCH_MAX_WAIT_MS, MAX_POLL_RECORDS, ConsumerModel
from harness.worlds.simulated.group_consumer import GroupConsumerModel
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.network import Network
from harness.worlds.simulated.producer import ProducerModel
from harness.worlds.simulated.transactional_producer import TransactionalProducerModel
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

#: The ends of calls of a closed client.
_NOT_SENT: Final = SendOutcome(EventType.INFO, None, CLIENT_CLOSED)
_NOT_POLLED: Final = PollOutcome(EventType.INFO, (), CLIENT_CLOSED)
_NO_OFFSETS: Final = Offsets({}, CLIENT_CLOSED)


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

    def _ask(self, ask: Callable[..., Sequence[network_client.ClientEffect]], *given: Any, unanswered: object) -> None:
        """Have the model do a call, whose ``given`` arguments end with its callback; a closed client ends it so."""
        if self._closed:
            self._answer(given[-1], unanswered)
        else:
            self._apply(ask(self._loop.time_us, *given))

    def _answer(self, done: Callable[[Any], None], outcome: object) -> None:
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
    """Implements the contract :class:`workloads.client.Producer`. A closed one ends each call as INFO."""

    transactions: Transactions | None = None
    epochs: Epochs | None = None

    @property
    def tombstones(self) -> SimulatedProducer:
        """The producer itself."""
        return self

    def send(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """Have the model send a record."""
        self._ask(self._model.send, parsed(partition), key, payload, done, unanswered=_NOT_SENT)

    def send_tombstone(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """Have the model send a record that deletes its key."""
        send = partial(self._model.send, tombstone=True)
        self._ask(send, parsed(partition), key, payload, done, unanswered=_NOT_SENT)

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
        self.transactions = self.epochs = self

    def told_epoch(self) -> ProducerEpoch | None:
        """Give the model's id and epoch."""
        return self._transactional.epoch

    def init(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the model ask for its id."""
        self._ask(self._transactional.call, "init", done, unanswered=_NOT_SENT)

    def begin(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the model open a transaction."""
        self._ask(self._transactional.begin, done, unanswered=_NOT_SENT)

    def send_offsets(
        self, offsets: Mapping[str, int], member: MemberToken, done: Callable[[SendOutcome], None]
    ) -> None:
        """Have the model hand them over."""
        self._ask(self._transactional.send_offsets, member.token, _parsed_keys(offsets), done, unanswered=_NOT_SENT)

    def commit(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the model ask for the commit."""
        self._ask(self._transactional.call, "commit", done, unanswered=_NOT_SENT)

    def abort(self, done: Callable[[SendOutcome], None]) -> None:
        """Have the model ask for the abort."""
        self._ask(self._transactional.call, "abort", done, unanswered=_NOT_SENT)


class SimulatedConsumer(SimulatedClient[ConsumerModel]):
    """Implements the contract :class:`workloads.client.Consumer`. A closed one answers nothing."""

    own_commits: OwnCommits | None = None
    subscription: Subscription | None = None
    commits: Commits | None = None

    def assign(self, partitions: Sequence[str], *, from_start: bool) -> None:
        """Have the model read ``partitions`` from now on."""
        self._model.assign([parsed(partition) for partition in partitions], from_start=from_start)

    def poll(self, max_wait_ms: int, done: Callable[[PollOutcome], None]) -> None:
        """Have the model poll."""
        self._ask(self._model.poll, max_wait_ms, done, unanswered=_NOT_POLLED)

    def end_offsets(self, partitions: Sequence[str], done: Callable[[Offsets], None]) -> None:
        """See :meth:`workloads.client.Consumer.end_offsets`: high watermarks, from the current leaders."""
        self._ask(self._model.end_offsets, [*map(parsed, partitions)], done, unanswered=_NO_OFFSETS)


class SimulatedGroupConsumer(SimulatedConsumer):
    """A consumer of a group, its membership and its commits (:class:`workloads.client.Commits`, `OwnCommits`)."""

    def __init__(self, node: int, model: GroupConsumerModel, loop: Loop, network: Network) -> None:
        super().__init__(node, model, loop, network)
        self._member = model
        self.subscription = self.commits = self.own_commits = self

    def watch_own_commits(self, told: Callable[[OwnCommit], None]) -> None:
        """Have the model tell of each commit that it makes by itself."""
        self._member.watch_own_commits(told)

    def subscribe(self, topics: Sequence[str], changed: Callable[[Assignment], None]) -> None:
        """Have the model join the group."""
        self._member.subscribe(topics, changed)

    def commit(self, offsets: Mapping[str, int], done: Callable[[Offsets], None]) -> None:
        """Have the model commit."""
        self._ask(self._member.commit, _parsed_keys(offsets), done, unanswered=_NO_OFFSETS)

    def ask_committed(self, partitions: Sequence[str], done: Callable[[Offsets], None]) -> None:
        """Have the model ask the coordinator."""
        self._ask(self._member.ask_committed, [*map(parsed, partitions)], done, unanswered=_NO_OFFSETS)

    def ask_member(self, done: Callable[[MemberToken], None]) -> None:
        """Give the member and its epoch."""
        self._answer(done, self._member.token())


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
        """A new consumer."""
        node, common = CLIENTS + 1 + process, (self._brokers, process, self._topics, self._settings, isolation)
        if membership is None:
            return SimulatedConsumer(node, ConsumerModel(*common), self._loop, self._network)
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


def _parsed_keys(offsets: Mapping[str, int]) -> dict[TopicPartition, int]:
    return {parsed(name): offset for name, offset in offsets.items()}
