"""The stage of a cell: clients under test behind a relay, what they were asked and answered, and what the log has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from harness.broker.server.codec.wire import ApiKey
from harness.lab.client_table.breach import Breach
from harness.lab.client_table.relay import Relay, Strike
from harness.lab.findings import PARTITIONS, NotObservedError, OpenCluster
from harness.worlds.clients import ClientLibrary
from nemesis.cluster import require
from workloads import (
    TIME_LIMIT,
    Assignment,
    Clients,
    Commits,
    Consumer,
    EventType,
    Fetched,
    IsolationLevel,
    LogPartition,
    Membership,
    Offsets,
    PollOutcome,
    Producer,
    SendOutcome,
    Settings,
)

#: The log partition of plain records, and that of records in transactions.
PLAIN, OTHER, INPUT = PARTITIONS
TOPIC: Final = LogPartition.named(PLAIN)[0]
#: Limits of a client in most cells: no machine is so busy that an answer takes this long.
PATIENT: Final = {"acks": "all", "request.timeout.ms": 15_000, "delivery.timeout.ms": 40_000}
#: The limit of every wait.
LIMIT_US: Final = 45_000_000
_CLOSE_S: Final = 5.0
_POLL_MS: Final = 100
#: A client that does not pipeline a request is not waited for any longer.
_UNDER_WAY_US: Final = 3_000_000

Answer = TypeVar("Answer")
#: Clients in the place of those of a library: the control of a cell puts a fault into them.
Planted = Callable[[Clients], Clients]


class CellStage:
    """One play of a cell with one client."""

    def __init__(self, cluster: OpenCluster, library: ClientLibrary, name: str, planted: Planted | None = None) -> None:
        self.cluster = cluster
        self.history: list[str] = []
        self.sent = Sent()
        self._library = library
        self._planted: Planted = planted or (lambda clients: clients)
        # Nothing that another play wrote is taken for this one's.
        self._name = f"{name}-{cluster.next_process()}"
        self._pipelines = True
        self._ending = ExitStack()
        self._numbers = iter(range(1_000_000))
        self.relay: Relay = self._relayed(())

    def strike(self, *strikes: Strike) -> None:
        """Strike requests of clients that are made from now on; call it first."""
        self.relay = self._relayed(strikes)

    def _relayed(self, strikes: Sequence[Strike]) -> Relay:
        servers = [server.rpartition(":") for server in self.cluster.world.clients.bootstrap]
        addresses = {broker: (host, int(port)) for broker, (host, _, port) in enumerate(servers)}
        relay = Relay(addresses, strikes, self.tell)
        self._ending.callback(relay.close)
        return relay

    def tell(self, event: str) -> None:
        """Write an event into the history."""
        self.history.append(event)

    def name(self, what: str) -> str:
        """A name that nothing else has."""
        return f"{self._name}-{what}-{next(self._numbers)}"

    def clients(self, settings: Mapping[str, Any] = PATIENT) -> Clients:
        """Clients under test with these settings, behind the relay."""
        clients = self._library.clients(
            self.cluster.world.clock, Settings.from_mapping({**PATIENT, **settings}), self.relay.servers
        )
        self._ending.callback(clients.close, _CLOSE_S)
        return self._planted(clients)

    def close(self) -> None:
        """End what is under test."""
        self._ending.close()

    def move(self, partition: str) -> None:
        """Move the leader of a log partition, as operators do."""
        leader = self.cluster.leads(partition)
        new = min(set(self.cluster.target.view().partitions[partition].isr) - {leader})
        require(self.cluster.target.leadership).move_leader(partition, new)
        self.wait(f"broker {new} leads {partition}", lambda: self.cluster.leader(partition) == new)
        self.tell(f"broker {new} leads {partition} now, and no more broker {leader}")

    # --- calls -------------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], bool], limit_us: int = LIMIT_US) -> bool:
        """Let time pass until it holds; the answer says if it does."""
        return self.cluster.until(condition, limit_us)

    def wait(self, awaited: str, condition: Callable[[], bool]) -> None:
        """Let time pass until it holds; else a NotObservedError, and the cell is not met."""
        self.cluster.wait(awaited, condition, LIMIT_US)

    def ask(self, what: str, call: Callable[[Callable[[Answer], None]], None]) -> Answer:
        """The answer to a call of a client under test; a NotObservedError where it gives none."""
        answers: list[Answer] = []
        call(answers.append)
        if not self.until(lambda: bool(answers)):
            self.sent.breaches.append((Breach.UNANSWERED, f"{what} was not answered within {LIMIT_US // 1_000_000} s"))
            raise NotObservedError(f"{what} was not answered")
        self.tell(f"{what}: {_words(answers[0])}")
        return answers[0]

    def producer(self, settings: Mapping[str, Any] = PATIENT, transactional_id: str | None = None) -> Producer:
        """A new producer under test."""
        return self.clients(settings).producer(self.cluster.next_process(), transactional_id)

    def consumer(
        self,
        membership: Membership | None = None,
        isolation: IsolationLevel = "read_uncommitted",
        settings: Mapping[str, Any] = PATIENT,
    ) -> Consumer:
        """A new consumer under test."""
        return self.clients(settings).consumer(self.cluster.next_process(), membership, isolation)

    def send(
        self, producer: Producer, count: int = 1, partition: str = PLAIN, size: int = 0, *, apart: bool = True
    ) -> list[bytes]:
        """Send records and give their payloads.

        If ``apart``, each is a request of its own where the client has several under way.
        """
        payloads: list[bytes] = []
        for _ in range(count):
            payloads.append(self.sent.new(partition, self._name, size))
            before = len(self.relay.of(ApiKey.PRODUCE))
            producer.send(partition, b"key", payloads[-1], partial(self._ended, payloads[-1]))
            if apart and self._pipelines:
                self._pipelines = self.until(partial(self._moved_on, before, payloads[-1]), _UNDER_WAY_US)
        return payloads

    def _moved_on(self, before: int, payload: bytes) -> bool:
        return len(self.relay.of(ApiKey.PRODUCE)) > before or payload in self.sent.ends

    def _ended(self, payload: bytes, outcome: SendOutcome) -> None:
        self.sent.ends[payload] = outcome
        self.tell(f"{self.sent.title(payload)}: {_words(outcome)}")

    def reported(self, payloads: Sequence[bytes]) -> bool:
        """Wait until the client has reported these records; False where it does not within the limit."""
        return self.until(lambda: all(payload in self.sent.ends for payload in payloads))

    def read(self, consumer: Consumer, enough: Callable[[list[Fetched]], bool]) -> list[Fetched]:
        """The records that a client under test hands over, until there are enough."""
        records: list[Fetched] = []

        def polled(outcome: PollOutcome) -> None:
            records.extend(outcome.records)
            for record in outcome.records:
                self.tell(f"read {record.payload[:60]!r} at {record.partition} {record.offset}")
            if not enough(records):
                consumer.poll(_POLL_MS, polled)

        consumer.poll(_POLL_MS, polled)
        if not self.until(lambda: enough(records)):
            self.sent.breaches.append((Breach.SKIPPED, f"the reader was given {len(records)} records, and no more"))
        return records

    @contextmanager
    def successor(self, membership: Membership) -> Iterator[Commits]:
        """A member of the cluster's own, without the relay, that has come to its assignment; its commits."""
        member = self.cluster.world.clients.consumer(self.cluster.next_process(), membership)
        own, assigned = member.commits, list[Assignment]()
        polls = True

        def polled(_: object) -> None:
            if polls:
                member.poll(_POLL_MS, polled)

        assert member.subscription is not None  # noqa: S101 - the cluster's own client joins groups
        assert own is not None  # noqa: S101 - and commits
        member.subscription.subscribe([TOPIC], assigned.append)
        member.poll(_POLL_MS, polled)
        try:
            self.wait("another member is assigned", lambda: any(each.partitions for each in assigned))
            self.tell("another member is assigned")
            yield own
        finally:
            polls = False
            member.close()

    # --- what is true ------------------------------------------------------------------------------------------------

    def log(self, partition: str = PLAIN, isolation: IsolationLevel = "read_uncommitted") -> list[Fetched]:
        """The records of a log partition as a client of the cluster's own reads them, without the relay."""
        mark = self.write(partition)
        clients = self.cluster.world.clients
        consumer = clients.consumer(self.cluster.next_process(), isolation=isolation)
        records: list[Fetched] = []

        def polled(outcome: PollOutcome) -> None:
            records.extend(outcome.records)
            if not ended():
                consumer.poll(_POLL_MS, polled)

        def ended() -> bool:
            return any(record.payload == mark for record in records)

        consumer.assign([partition], from_start=True)
        consumer.poll(_POLL_MS, polled)
        self.wait(f"{partition} is read", ended)
        consumer.close()
        return records

    def write(self, partition: str, count: int = 1) -> bytes:
        """Write records with a client of the cluster's own; the payload of the last one."""
        producer, ends = self.cluster.world.clients.producer(self.cluster.next_process()), list[SendOutcome]()
        for _ in range(count):
            payload = self.name("own").encode()
            producer.send(partition, b"own", payload, ends.append)
        self.wait("own records are written", lambda: len(ends) == count)
        producer.close()
        if any(end.type is not EventType.OK for end in ends):
            raise NotObservedError("a record of the harness was not written")
        return payload

    def committed(self, group: str, partition: str = INPUT) -> int | None:
        """The offset that the group has, by its coordinator's word to the cluster's own client."""
        return self._own(group, lambda own, done: own.ask_committed([partition], done)).get(partition)

    def commit(self, group: str, offset: int, partition: str = INPUT) -> None:
        """Let the group remember an offset, with a client of the cluster's own that is no member."""
        self._own(group, lambda own, done: own.commit({partition: offset}, done))

    def _own(self, group: str, call: Callable[[Commits, Callable[[Offsets], None]], None]) -> dict[str, int]:
        """The answer to a call of the cluster's own client about a group, made until it is answered well."""
        consumer = self.cluster.world.clients.consumer(self.cluster.next_process(), Membership(group))
        own, answers = consumer.commits, list[Offsets]()
        assert own is not None  # noqa: S101 - the cluster's own client commits

        def answered(answer: Offsets) -> None:
            answers.append(answer)
            if answer.error:
                call(own, answered)

        call(own, answered)
        self.wait(f"{group} answers", lambda: bool(answers) and answers[-1].error is None)
        consumer.close()
        return answers[-1].offsets

    def join(self, consumer: Consumer, partition: str = INPUT) -> list[Assignment]:
        """Have a client under test join its group and poll until it has ``partition``; its assignments, as they come.

        What it reads meanwhile is in :attr:`Sent.read`.
        """
        assigned: list[Assignment] = []
        ended = False
        assert consumer.subscription is not None  # noqa: S101 - cells say that they need it
        consumer.subscription.subscribe([TOPIC], assigned.append)

        def has() -> bool:
            return any(partition in each.partitions for each in assigned)

        def polled(outcome: PollOutcome) -> None:
            nonlocal ended
            self.sent.read += outcome.records
            if ended := has():
                return
            consumer.poll(_POLL_MS, polled)

        consumer.poll(_POLL_MS, polled)
        self.wait("the member is assigned", lambda: ended)
        return assigned


class Sent:
    """The records that were sent in a cell, in their order, and how each ended; ``read`` is what a member was given."""

    def __init__(self) -> None:
        self.order: list[bytes] = []
        self.ends: dict[bytes, SendOutcome] = {}
        self.read: list[Fetched] = []
        self.breaches: list[tuple[Breach, str]] = []

    def new(self, partition: str, name: str, size: int = 0) -> bytes:
        """The payload of the next record."""
        payload = f"{name} {len(self.order)} to {partition} ".encode()
        self.order.append(payload.ljust(size, b"x"))
        return self.order[-1]

    def title(self, payload: bytes) -> str:
        """The record in the history."""
        return f"record {self.order.index(payload)}"

    def judged(self, log: Sequence[Fetched], sent: Sequence[bytes] | None = None) -> list[tuple[Breach, str]]:
        """Hold what was reported against the log of the records' partition."""
        own = [record for record in log if record.payload in self.ends or record.payload in self.order]
        offsets: dict[bytes, list[int]] = {}
        for record in own:
            offsets.setdefault(record.payload, []).append(record.offset)
        payloads = self.order if sent is None else sent
        breaches = [each for payload in payloads for each in self._of_record(payload, offsets.get(payload, []))]
        first = [payload for payload in offsets if payload in payloads]
        if first != sorted(first, key=self.order.index):
            numbers = ", ".join(str(self.order.index(payload)) for payload in first)
            breaches.append(
                (Breach.REORDERED, f"records 0 to {len(payloads) - 1} are in the log in the order {numbers}")
            )
        return breaches

    def _of_record(self, payload: bytes, offsets: Sequence[int]) -> list[tuple[Breach, str]]:
        title, end, told = self.title(payload), self.ends.get(payload), list[tuple[Breach, str]]()
        if end is None or (end.error or "").startswith(TIME_LIMIT):
            told.append((Breach.UNANSWERED, f"{title} was never reported"))
        elif end.type is EventType.OK and not offsets:
            told.append((Breach.LOST, f"{title} was reported as delivered and is not in the log"))
        elif end.type is EventType.OK and end.offset is not None and end.offset not in offsets:
            told.append((Breach.MISPLACED, f"{title} was reported at offset {end.offset} and has {offsets[0]}"))
        elif end.type is EventType.FAIL and offsets:
            told.append((Breach.DENIED, f"{title} was reported as certainly not written, and is at {offsets[0]}"))
        if len(offsets) > 1:
            told.append((Breach.DOUBLED, f"{title} is in the log {len(offsets)} times: at {offsets}"))
        return told


def _words(answer: object) -> str:
    if isinstance(answer, SendOutcome):
        if answer.type is EventType.OK:
            return "ok" if answer.offset is None else f"ok at {answer.offset}"
        return f"{answer.type}, {answer.error}"
    if isinstance(answer, Offsets):
        return ", ".join([*(f"{name}: {offset}" for name, offset in answer.offsets.items()), answer.error or ""])
    return str(answer)
