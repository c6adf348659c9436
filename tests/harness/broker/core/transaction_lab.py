"""Transactions on the simulated cluster, request by request, as tests of the core use them."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec.structs import replace

from harness.broker.core import messages
from harness.broker.core.messages import CreateTopic, Fetch, FetchPartition, ListOffsets, Produce, RecordBatch
from harness.broker.core.transaction_coordinator import LOG
from harness.broker.core.types import ACKS_ALL, CONTROLLER, NO_NODE, NONE, BrokerConfig, ErrorCode, TopicConfig
from tests.harness.broker.core.conftest import Lab
from tests.harness.worlds.simulated.driven import AT

NAME = "one"


class Identity(NamedTuple):
    """The producer id and epoch of a transactional producer."""

    producer_id: int
    producer_epoch: int


class TransactionLab(Lab):
    """Broker 0 leads a log partition, broker 1 the log of transactions; both are on all three."""

    def __init__(self, config: BrokerConfig | None = None, timeout_ms: int = 60_000) -> None:
        super().__init__(config, TopicConfig(min_insync_replicas=2))
        self.timeout_ms = timeout_ms
        self.create(0, 1, 2)
        self.ask(CONTROLLER, lambda c: CreateTopic(c, LOG.topic, 1, 3, self.topic, ((1, 2, 0),)))
        self.run(500)

    @property
    def coordinator(self) -> int:
        """The broker that leads the log of transactions."""
        state = self.image.partition(LOG)
        assert state is not None
        return state.leader

    def init(self, name: str = NAME) -> Identity:
        """Become the producer in charge, however often the coordinator says to come back."""
        answer: Any = None
        for _ in range(100):
            make = lambda c: messages.InitProducerId(c, name, self.timeout_ms)  # noqa: E731
            answer = self.ask(self.coordinator, make)
            if not answer.error:
                break
            self.run(50)
        assert not answer.error
        return Identity(answer.producer_id, answer.producer_epoch)

    def add(self, identity: Identity, name: str = NAME) -> ErrorCode:
        """Say that the partition will be written to, however often the coordinator says to come back."""
        adds = lambda c: messages.AddPartitionsToTxn(c, name, *identity, (AT,))  # noqa: E731
        error: ErrorCode = self.again(self.coordinator, adds).error
        return error

    def put(self, identity: Identity, payload: str, sequence: int) -> ErrorCode:
        """Write one record in the transaction."""
        batch = RecordBatch(1, 100, payload, NONE, NONE, *identity, sequence, transactional=True)
        error: ErrorCode = self.ask(0, lambda c: Produce(c, AT, ACKS_ALL, 5_000, batch)).error
        return error

    def end(self, identity: Identity, *, commit: bool, name: str = NAME) -> Any:
        """Ask for the end once; the answer."""
        return self.ask(self.coordinator, lambda c: messages.EndTxn(c, name, *identity, commit))

    def end_late(self, identity: Identity, *, commit: bool) -> messages.EndTxn:
        """The request for an end, to be delivered when a test wants."""
        return messages.EndTxn(self.correlation(), NAME, *identity, commit)

    def in_transaction(self, *payloads: str) -> Identity:
        """Begin a transaction and write these."""
        identity = self.init()
        assert self.add(identity) == ErrorCode.NONE
        for sequence, payload in enumerate(payloads):
            assert self.put(identity, payload, sequence) == ErrorCode.NONE
        return identity

    def read(self, node: int = 0, *, committed: bool = True) -> list[str]:
        """The records that a consumer gets from the start on, without what it passes over."""
        fetch = Fetch(0, NO_NODE, 0, (FetchPartition(AT, 0),), read_committed=committed)
        (part,) = self.ask(node, lambda c: replace(fetch, correlation=c)).partitions
        aborted = [(each.producer_id, each.first_offset, each.marker_offset) for each in part.aborted]
        return [
            batch.records
            for batch in part.batches
            if batch.marker is None
            and not any(
                batch.producer_id == producer_id and first <= batch.base_offset < marker
                for producer_id, first, marker in aborted
            )
        ]

    def stable_end(self, node: int = 0) -> int:
        """The last stable offset, as a leader names it."""
        offset: int = self.ask(node, lambda c: ListOffsets(c, AT, messages.LATEST, read_committed=True)).offset
        return offset

    def markers(self, node: int = 0) -> list[tuple[bool, int]]:
        """The markers on a broker's log: whether it commits, and the producer epoch."""
        return [(b.marker.commit, b.producer_epoch) for b in self.log(node).batches if b.marker is not None]

    def complete(self) -> None:
        """Wait until nothing is open."""
        self.wait(lambda: not self.log(0).producers.transactions.open)
        self.run(200)
