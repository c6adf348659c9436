"""A connection to one broker: answers in the order of requests, and an end of every wait."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from kafka.protocol.admin import ListGroupsRequest

from harness.worlds.clients import DirectConnection
from harness.worlds.hosts import Address, Ports

REQUEST = ListGroupsRequest[0]
SHORT_S = 0.05
LIMIT_S = 60.0


class Broker:
    """Answers the requests of one connection with these errors, and hangs up after the last; None is no answer."""

    def __init__(self, address: Address, errors: tuple[int | None, ...]) -> None:
        self.address = address
        self._listener = socket.create_server(address)
        self._errors = errors
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._listener.close()
        self._thread.join(LIMIT_S)

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            for error in self._errors:
                (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
                (correlation,) = struct.unpack(">i", connection.recv(size, socket.MSG_WAITALL)[4:8])
                if error is None:
                    self._closing.wait(LIMIT_S)
                    return
                answer = struct.pack(">ihi", correlation, error, 0)  # no groups
                connection.sendall(struct.pack(">i", len(answer)) + answer)


@pytest.fixture
def connect(ports: Ports) -> Iterator[Callable[..., DirectConnection]]:
    brokers: list[Broker] = []
    connections: list[DirectConnection] = []

    def start(*errors: int | None) -> DirectConnection:
        brokers.append(Broker(ports.take("127.0.0.1"), errors))
        connections.append(DirectConnection(brokers[-1].address, "test", LIMIT_S))
        return connections[-1]

    yield start
    for connection in connections:
        connection.close()
    for broker in brokers:
        broker.close()


def test_answers_come_in_the_order_of_the_requests(connect: Callable[..., DirectConnection]) -> None:
    connection = connect(16, 0)
    connection.send(REQUEST())
    connection.send(REQUEST())
    assert select.select([connection], [], [], LIMIT_S)[0] == [connection]
    assert [connection.answer(LIMIT_S).error_code for _ in range(2)] == [16, 0]


def test_without_an_answer_the_wait_ends(connect: Callable[..., DirectConnection]) -> None:
    connection = connect(None)
    connection.send(REQUEST())
    assert select.select([connection], [], [], SHORT_S)[0] == []
    with pytest.raises(TimeoutError):
        connection.answer(SHORT_S)


def test_a_broker_that_hangs_up_is_no_broker_that_is_slow(connect: Callable[..., DirectConnection]) -> None:
    connection = connect(0)
    assert connection.ask(REQUEST()).error_code == 0
    with pytest.raises(ConnectionError):
        connection.ask(REQUEST())
