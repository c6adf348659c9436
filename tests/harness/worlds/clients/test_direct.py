"""The client without metadata: one request to the broker that is named, and what its answer proves."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka.record import MemoryRecords

from harness.broker.server.codec import decode_request, encode_response
from harness.worlds.clients import RealDirectClient
from harness.worlds.hosts import Address, Ports
from harness.worlds.real.clock import RealClock
from workloads import CLIENT_CLOSED, NEVER_SENT, PAYLOAD_HEADER, EventType, SendOutcome

LIMIT_US = 60_000_000
NOT_LEADER = 6
Answers = Callable[[Any], dict[str, Any] | None]


class OneBroker:
    """Listens on an own address and answers each Produce as ``answers`` says; None closes the connection."""

    def __init__(self, own: Address, answers: Answers) -> None:
        self.own = own
        self.listener = socket.create_server(own)
        self.requests: list[Any] = []
        self._answers = answers
        threading.Thread(target=self._serve, daemon=True).start()

    def address(self, broker: int) -> Address:
        assert broker == 2
        return self.own

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
                header, request = decode_request(memoryview(connection.recv(size, socket.MSG_WAITALL)))
                self.requests.append(request)
                fields = self._answers(request)
                if fields is not None:
                    connection.sendall(encode_response(header, fields))


def answer(**fields: Any) -> dict[str, Any]:
    part = {"index": 1, "error_code": 0, "base_offset": 7, "log_append_time_ms": -1} | fields
    return {"responses": [{"name": "t", "partition_responses": [part]}], "throttle_time_ms": 0}


@pytest.fixture
def serve(ports: Ports) -> Iterator[Callable[[Answers], OneBroker]]:
    brokers: list[OneBroker] = []

    def start(answers: Answers) -> OneBroker:
        brokers.append(OneBroker(ports.take("127.0.0.1"), answers))
        return brokers[-1]

    yield start
    for broker in brokers:
        broker.listener.close()


def outcome_at(address: Callable[[int], tuple[str, int]], acks: int = -1) -> SendOutcome:
    clock, outcomes = RealClock(), list[SendOutcome]()
    client = RealDirectClient(clock, address)
    client.produce(2, "t-1", b"key", b"value", acks=acks, timeout_ms=5_000, done=outcomes.append)
    assert clock.run(lambda: bool(outcomes), LIMIT_US)
    client.close()
    return outcomes[0]


def test_a_record_goes_to_the_broker_that_is_named_with_the_acks_that_are_chosen(
    serve: Callable[[Answers], OneBroker],
) -> None:
    broker = serve(lambda _: answer())
    assert outcome_at(broker.address) == SendOutcome(EventType.OK, offset=7, node=2)
    (request,) = broker.requests
    assert (request.acks, request.topic_data[0].name, request.topic_data[0].partition_data[0].index) == (-1, "t", 1)


def test_a_tombstone_has_no_value_and_its_payload_in_its_header(serve: Callable[[Answers], OneBroker]) -> None:
    broker, clock, outcomes = serve(lambda _: answer()), RealClock(), list[SendOutcome]()
    client = RealDirectClient(clock, broker.address)
    client.produce(2, "t-1", b"key", b"value", acks=1, timeout_ms=5_000, done=outcomes.append, tombstone=True)
    assert clock.run(lambda: bool(outcomes), LIMIT_US)
    client.close()
    (request,) = broker.requests
    (record,) = MemoryRecords(bytes(request.topic_data[0].partition_data[0].records)).next_batch()
    assert (record.key, record.value, list(record.headers)) == (b"key", None, [(PAYLOAD_HEADER, b"value")])


def test_an_error_of_the_broker_is_judged_by_the_table_of_errors(serve: Callable[[Answers], OneBroker]) -> None:
    broker = serve(lambda _: answer(error_code=NOT_LEADER, base_offset=-1))
    refused = outcome_at(broker.address)
    assert (refused.type, refused.error, refused.offset) == (EventType.INFO, "NotLeaderForPartitionError", None)


def test_a_connection_that_ends_without_an_answer_proves_nothing(serve: Callable[[Answers], OneBroker]) -> None:
    assert outcome_at(serve(lambda _: None).address).type is EventType.INFO


def test_without_acks_a_record_that_was_written_to_the_connection_counts(serve: Callable[[Answers], OneBroker]) -> None:
    broker = serve(lambda _: None)
    assert outcome_at(broker.address, acks=0) == SendOutcome(EventType.OK, node=2)


def test_where_nobody_listens_nothing_was_sent(ports: Ports) -> None:
    own = ports.take("127.0.0.1")
    refused = outcome_at(lambda _: own)
    assert refused.type is EventType.FAIL
    assert str(refused.error).startswith(NEVER_SENT)


def test_hanging_up_leaves_no_request_without_an_end(serve: Callable[[Answers], OneBroker]) -> None:
    asked, free = threading.Event(), threading.Event()

    def hold(_: Any) -> None:
        asked.set()
        free.wait(60)

    broker, clock, outcomes = serve(hold), RealClock(), list[SendOutcome]()
    client = RealDirectClient(clock, broker.address)
    client.produce(2, "t-1", b"key", b"value", acks=-1, timeout_ms=60_000, done=outcomes.append)
    assert asked.wait(60)
    client.close()
    assert clock.run(lambda: bool(outcomes), LIMIT_US)
    free.set()
    assert outcomes == [SendOutcome(EventType.INFO, error=CLIENT_CLOSED)]


@pytest.mark.parametrize(
    ("error", "kind", "name"), [(0, EventType.OK, None), (68, EventType.INFO, "NonEmptyGroupError")]
)
def test_a_group_is_deleted_by_the_broker_that_is_named(
    serve: Callable[[Answers], OneBroker], error: int, kind: EventType, name: str | None
) -> None:
    results = {"results": [{"group_id": "g", "error_code": error}], "throttle_time_ms": 0}
    broker, clock, outcomes = serve(lambda _: results), RealClock(), list[SendOutcome]()
    client = RealDirectClient(clock, broker.address)
    client.delete_group(2, "g", timeout_ms=5_000, done=outcomes.append)
    assert clock.run(lambda: bool(outcomes), LIMIT_US)
    client.close()
    assert outcomes == [SendOutcome(kind, error=name, node=2)]
    assert [request.groups_names for request in broker.requests] == [["g"]]
