"""The stage of a check: the program's process, its clients by number, and what the log really has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswerError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.ground.errors import HostError
from harness.lab.findings import PARTITIONS, OpenCluster
from harness.worlds.clients import ClientProcess
from harness.worlds.clients.programs import configuration
from harness.worlds.clients.programs.messages import Answer, End, Method, ProgramCall, ProgramHello, properties_of
from workloads import Fetched, IsolationLevel, Membership, Offsets, PollOutcome, Settings

#: A call that waits for nothing is answered within a moment; a busy machine gets this long.
ANSWER_LIMIT_S: Final = 20.0
#: The log partition of the check.
PARTITION: Final = PARTITIONS[0]
TOPIC: Final = PARTITION.rpartition("-")[0]
#: The settings that clients get: short limits, so that the check is short too.
SETTINGS: Final = Settings(request_timeout_ms=2_000, delivery_timeout_ms=4_000, session_timeout_ms=6_000)
#: The longest time in which SETTINGS let a send end, with as much again for a busy machine.
SEND_LIMIT_S: Final = 2 * (SETTINGS.delivery_timeout_ms + SETTINGS.request_timeout_ms) / 1_000


class BrokenPointError(Exception):
    """The program does not do as the protocol says: the text says what it did, and what to mend."""


@dataclass(frozen=True)
class CheckedClient:
    """A producer or consumer in the program."""

    process: ClientProcess
    number: int

    def begin(self, method: Method, **arguments: Any) -> Future[Answer | None]:
        """Begin a call; :meth:`answer` waits for its end."""
        events: list[Answer] = arguments.pop("events", [])
        call = ProgramCall(method=method, client=self.number, **arguments)
        try:
            return self.process.begin(call, ANSWER_LIMIT_S, events.append if method is Method.SUBSCRIBE else None)
        except OSError as error:
            raise BrokenPointError(self.process.problem) from error

    def answer(self, call: Future[Answer | None], method: Method, limit_s: float = ANSWER_LIMIT_S) -> Answer:
        """The answer of a call, however it ended.

        Raises:
            BrokenPointError: no answer came in time, or the program has ended.
        """
        try:
            answer = call.result(limit_s)
        except NoAnswerError:
            raise BrokenPointError(
                f"does not answer {method} within {limit_s:.0f} s; answer every call, if need be with info"
            ) from None
        if answer is None:
            raise BrokenPointError(self.process.problem)
        return answer

    def call(self, method: Method, limit_s: float = ANSWER_LIMIT_S, **arguments: Any) -> Answer:
        """Do a call; as :meth:`answer`."""
        return self.answer(self.begin(method, **arguments), method, limit_s)

    def done(self, method: Method, limit_s: float = ANSWER_LIMIT_S, **arguments: Any) -> Answer:
        """Do a call that must end well; else a BrokenPointError."""
        return require_ok(self.call(method, limit_s, **arguments), method)

    def send(self, value: bytes | None, key: bytes = b"key", topic: str = TOPIC, **more: Any) -> Future[Answer | None]:
        """Begin to send a record."""
        return self.begin(Method.SEND, topic=topic, partition=0, key=key, value=value, **more)

    def sent(self, sends: Sequence[Future[Answer | None]]) -> list[Answer]:
        """The answers to sends."""
        return [self.answer(send, Method.SEND, SEND_LIMIT_S) for send in sends]

    def close(self) -> None:
        """Close the client."""
        self.done(Method.CLOSE, timeout_ms=1_000)


def require_ok(answer: Answer, method: Method) -> Answer:
    """An answer that ended well; else a BrokenPointError with the error that it tells."""
    if answer.end is not End.OK:
        told = f"{answer.error}: {answer.words}" if answer.words else answer.error
        raise BrokenPointError(f"ends {method} with {answer.end} and {told}, though all brokers run")
    return answer


class CheckStage:
    """One check: the program, which is started again after a point that broke it, and the cluster."""

    def __init__(self, title: str, command: Sequence[str], cluster: OpenCluster) -> None:
        self.cluster = cluster
        self._title = title
        self._command = tuple(command)
        self._process: ClientProcess | None = None
        #: The latest first word of the program; None until it has said one.
        self.last_hello: ProgramHello | None = None
        self._names = iter(range(1_000_000))

    @property
    def process(self) -> ClientProcess:
        """The program, which runs."""
        if self._process is None or self._process.problem:
            self._process = ClientProcess(self._title, self._command)
            try:
                self._process.start(ANSWER_LIMIT_S)
            except HostError as error:
                self._process = None
                raise BrokenPointError(str(error).removeprefix(f"{self._title} ")) from error
            self.last_hello = self._process.hello
        return self._process

    @property
    def hello(self) -> ProgramHello:
        """The first word of the program."""
        return self.process.hello

    def close(self) -> None:
        """End the program, whatever it has done."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    @contextmanager
    def silence(self) -> Iterator[None]:
        """While no broker answers, though connections stay."""
        processes, brokers = self.cluster.target.processes, self.cluster.target.view().brokers
        if processes is None:
            raise TypeError("a cluster of processes can be paused")
        try:
            for broker in brokers:
                processes.pause(broker)
            yield
        finally:
            for broker in brokers:
                processes.resume(broker)
            self.cluster.wait("the brokers answer again", self.cluster.is_well)

    def name(self, what: str) -> str:
        """A name that nothing else has."""
        return f"check-{what}-{next(self._names)}"

    def producer(
        self,
        settings: Settings = SETTINGS,
        transactional_id: str | None = None,
        bootstrap: Sequence[str] = (),
    ) -> CheckedClient:
        """A new producer of the program."""
        servers = bootstrap or self.cluster.world.clients.bootstrap
        if transactional_id is not None:  # as in runs: a transactional producer is idempotent
            settings = replace(settings, enable_idempotence=True)
        properties = configuration.producer_configuration(settings, servers, 0, transactional_id)
        return self._new(Method.NEW_PRODUCER, properties)

    def consumer(
        self, membership: Membership | None = None, isolation: IsolationLevel = "read_uncommitted"
    ) -> CheckedClient:
        """A new consumer of the program."""
        servers = self.cluster.world.clients.bootstrap
        properties = configuration.consumer_configuration(SETTINGS, servers, 1, membership, isolation)
        return self._new(Method.NEW_CONSUMER, properties)

    def _new(self, method: Method, properties: Mapping[str, object]) -> CheckedClient:
        client = CheckedClient(self.process, self.process.new_client())
        client.done(method, properties=properties_of(properties))
        return client

    def log(self, partition: str = PARTITION, isolation: IsolationLevel = "read_uncommitted") -> list[Fetched]:
        """The records of a log partition that ends with a record, as a client of this harness reads them."""
        consumer = self.cluster.world.clients.consumer(self.cluster.next_process(), isolation=isolation)
        ends: list[Offsets] = []
        consumer.end_offsets([partition], ends.append)
        self.cluster.wait(f"{partition} tells its end", lambda: bool(ends) and partition in ends[0].offsets)
        last, records = ends[0].offsets[partition] - 1, list[Fetched]()

        def done(outcome: PollOutcome) -> None:
            records.extend(outcome.records)
            if not read():
                consumer.poll(100, done)

        def read() -> bool:
            return last < 0 or (bool(records) and records[-1].offset >= last)

        consumer.assign([partition], from_start=True)
        consumer.poll(100, done)
        self.cluster.wait(f"{partition} is read", read)
        consumer.close()
        return records


def eventually(holds: Callable[[], object], limit_s: float = ANSWER_LIMIT_S) -> bool:
    """True as soon as it holds, False if it has not in time."""
    deadline = time.monotonic() + limit_s
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(held)
