"""Planned changes that are written into ZooKeeper: which nodes are made, and what is said where they are not."""

import json
import socket
import struct
import threading
from collections.abc import Iterator, Sequence

import pytest

from harness.errors import HostError
from harness.hosts.contract import Address
from harness.kafka import keeper
from harness.kafka.keeper import ELECT, REASSIGN, KeeperOperator

DONE, NO_NODE, NODE_EXISTS = 0, -101, -110
CREATE, EXISTS, CLOSE = 1, 3, -11


class FakeKeeper:
    """Speaks ZooKeeper's protocol to one client after the other. ``created`` are the nodes, with their content."""

    def __init__(self, answers: dict[int, list[int]]) -> None:
        self.created: list[tuple[str, object]] = []
        self.closed = 0
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._listener.getsockname()[:2])
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._speak(connection)

    def _speak(self, connection: socket.socket) -> None:
        hello = frame(connection)
        assert struct.unpack_from(">iqiq", hello) == (0, 0, 5_000, 0)
        send(connection, struct.pack(">iiq", 0, 5_000, 7) + struct.pack(">i", 16) + bytes(16))
        while body := frame(connection):
            asked, kind = struct.unpack_from(">ii", body)
            if kind == CLOSE:
                self.closed += 1
                return
            path, rest = text(body[8:])
            if kind == CREATE:
                content, rights = text(rest)
                self.created.append((path, json.loads(content)))
                assert rights == struct.pack(">ii", 1, 31) + pascal("world") + pascal("anyone") + struct.pack(">i", 0)
            answers = self._answers.get(kind, [])
            send(connection, struct.pack(">iqi", asked, 1, answers.pop(0) if answers else NO_NODE))


def frame(connection: socket.socket) -> bytes:
    size = connection.recv(4, socket.MSG_WAITALL)
    return connection.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL) if len(size) == 4 else b""


def send(connection: socket.socket, body: bytes) -> None:
    connection.sendall(struct.pack(">i", len(body)) + body)


def pascal(words: str) -> bytes:
    return struct.pack(">i", len(words)) + words.encode()


def text(body: bytes) -> tuple[str, bytes]:
    (size,) = struct.unpack_from(">i", body)
    return body[4 : 4 + size].decode(), body[4 + size :]


@pytest.fixture
def zookeeper() -> Iterator:
    made: list[FakeKeeper] = []

    def answering(creates: Sequence[int], exists: Sequence[int] = ()) -> FakeKeeper:
        made.append(FakeKeeper({CREATE: list(creates), EXISTS: list(exists)}))
        return made[-1]

    yield answering
    for one in made:
        one.stop()


def test_a_leader_is_moved_by_the_order_of_replicas_and_an_election(zookeeper) -> None:
    server = zookeeper([DONE, DONE], [DONE, NO_NODE])
    assert KeeperOperator(lambda: server.address).move_leader("a-b-3", 2, [0, 1, 2]) == ""
    place = {"topic": "a-b", "partition": 3}
    assert server.created == [
        (REASSIGN, {"version": 1, "partitions": [place | {"replicas": [2, 0, 1]}]}),
        (ELECT, {"version": 1, "partitions": [place]}),
    ]


def test_what_is_under_way_is_named_and_nobody_is_elected_then(zookeeper) -> None:
    server = zookeeper([NODE_EXISTS])
    assert KeeperOperator(lambda: server.address).move_leader("t-0", 1, [0, 1]) == "its replicas are being reassigned"
    assert [path for path, _ in server.created] == [REASSIGN]


def test_another_error_is_quoted_by_its_number(zookeeper) -> None:
    server = zookeeper([-4])
    assert KeeperOperator(lambda: server.address).reassign("t-0", [1, 0]) == "ZooKeeper's error -4"


def test_a_controller_that_does_not_do_it_in_time_is_no_refusal(zookeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "DONE_LIMIT_S", 0.0)
    server = zookeeper([DONE], [DONE] * 50)
    with pytest.raises(HostError, match="the controller has not done /admin/reassign_partitions"):
        KeeperOperator(lambda: server.address).reassign("t-0", [1, 0])


def test_silence_of_zookeeper_is_no_refusal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = Address(*free.getsockname()[:2])
    with pytest.raises(HostError, match="ZooKeeper does not answer"):
        KeeperOperator(lambda: address).reassign("t-0", [1, 0])
