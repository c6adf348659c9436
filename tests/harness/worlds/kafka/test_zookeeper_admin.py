"""Planned changes that are written into ZooKeeper: which nodes are made, and what is said where they are not.

ZooKeeper itself answers in the tests of old releases.
"""

import json
from collections.abc import Iterator

import pytest
from kazoo.exceptions import ConnectionLoss, NodeExistsError
from kazoo.handlers.threading import KazooTimeoutError

from harness.ground.errors import HostError
from harness.worlds.hosts import Address
from harness.worlds.kafka import zookeeper as module
from harness.worlds.kafka.zookeeper import ELECT, REASSIGN, ZooKeeperAdministration

PLACE = {"topic": "a-b", "partition": 3}


class Answer:
    def __init__(self, answer: object) -> None:
        self._answer = answer

    def get(self, timeout: float) -> object:
        assert timeout > 0
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class ZooKeeper:
    """A client whose nodes stay for ``looks`` looks. ``made`` are the nodes, with their content."""

    def __init__(self) -> None:
        self.made: list[tuple[str, object]] = []
        self.answer: object = "done"
        self.looks = 1
        self.open = 0

    def __call__(self, hosts: str, timeout: float) -> "ZooKeeper":
        assert (hosts, timeout > 0) == ("127.0.0.1:2181", True)
        return self

    def start(self, timeout: float) -> None:
        assert timeout > 0
        self.open += 1

    def stop(self) -> None:
        self.open -= 1

    def close(self) -> None:
        assert self.open == 0

    def create_async(self, path: str, content: bytes) -> Answer:
        self.made.append((path, json.loads(content)))
        self._left = self.looks
        return Answer(self.answer)

    def exists_async(self, path: str) -> Answer:
        assert path == self.made[-1][0]
        self._left -= 1
        return Answer("there" if self._left >= 0 else None)


@pytest.fixture
def zookeeper(monkeypatch: pytest.MonkeyPatch) -> Iterator[ZooKeeper]:
    client = ZooKeeper()
    monkeypatch.setattr(module, "KazooClient", client)
    yield client
    assert client.open == 0, "every session was ended"


@pytest.fixture
def operator() -> ZooKeeperAdministration:
    return ZooKeeperAdministration(lambda: Address("127.0.0.1", 2181))


def test_a_leader_is_moved_by_the_order_of_replicas_and_an_election(zookeeper, operator) -> None:
    assert operator.move_leader("a-b-3", 2, [0, 1, 2]) == ""
    assert zookeeper.made == [
        (REASSIGN, {"version": 1, "partitions": [PLACE | {"replicas": [2, 0, 1]}]}),
        (ELECT, {"version": 1, "partitions": [PLACE]}),
    ]


def test_what_is_under_way_is_named_and_nobody_is_elected_then(zookeeper, operator) -> None:
    zookeeper.answer = NodeExistsError()
    assert operator.move_leader("a-b-3", 1, [0, 1]) == "its replicas are being reassigned"
    assert [path for path, _ in zookeeper.made] == [REASSIGN]


def test_a_controller_that_does_not_do_it_in_time_is_no_refusal(zookeeper, operator, monkeypatch) -> None:
    monkeypatch.setattr(module, "DONE_LIMIT_S", 0.0)
    zookeeper.looks = 50
    with pytest.raises(HostError, match="the controller has not done /admin/reassign_partitions"):
        operator.reassign("a-b-3", [1, 0])


@pytest.mark.parametrize("error", [ConnectionLoss(), KazooTimeoutError("Connection time-out")])
def test_silence_of_zookeeper_is_no_refusal(zookeeper, operator, error) -> None:
    zookeeper.answer = error
    with pytest.raises(HostError, match=r"ZooKeeper does not answer \((ConnectionLoss|Connection time-out)\)"):
        operator.reassign("a-b-3", [1, 0])


def test_where_no_zookeeper_is_nobody_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_LIMIT_S", 0.1)
    with pytest.raises(HostError, match="ZooKeeper does not answer"):
        ZooKeeperAdministration(lambda: Address("127.0.0.1", 1)).reassign("a-b-3", [1, 0])
