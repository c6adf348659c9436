"""Planned changes in clusters whose brokers take no request for them: before 2.4 they are written into ZooKeeper.

The operator's own tools of the time did nothing else (``kafka-reassign-partitions``, and
``kafka-preferred-replica-election``): they made a node with the wish, and the controller removed it when it was done.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from harness.errors import HostError
from harness.hosts.contract import Address

#: Since when brokers take requests to move leaders and replicas (KIP-183, KIP-455).
ASKED_SINCE: Final = (2, 4, 0)
REASSIGN: Final = "/admin/reassign_partitions"
ELECT: Final = "/admin/preferred_replica_election"
#: One answer of ZooKeeper, which may be frozen; and all that the controller does.
ANSWER_LIMIT_S: Final = 1.5
DONE_LIMIT_S: Final = 4.0
_LOOK_EVERY_S: Final = 0.05
_SESSION_MS: Final = 5_000
#: Numbers of ZooKeeper's protocol (org.apache.zookeeper.ZooDefs, KeeperException).
_CREATE, _EXISTS, _CLOSE = 1, 3, -11
_DONE, _NO_NODE, _NODE_EXISTS = 0, -101, -110
_ALL_RIGHTS: Final = 31
_ZEROES: Final = bytes(16)


class KeeperOperator:
    """Implements :class:`harness.worlds.processes.leadership.Operator`. ``address`` is ZooKeeper's."""

    def __init__(self, address: Callable[[], Address]) -> None:
        self._address = address

    def move_leader(self, partition: str, broker: int, replicas: Sequence[int]) -> str:
        """See :meth:`Operator.move_leader`: first in the order of replicas, then elected."""
        order = [broker, *(other for other in replicas if other != broker)]
        refused = self.reassign(partition, order)
        return refused or self._wish(ELECT, _wished(partition), "an election is under way")

    def reassign(self, partition: str, replicas: Sequence[int]) -> str:
        """See :meth:`Operator.reassign`. What is under way cannot be called off."""
        return self._wish(REASSIGN, _wished(partition, replicas=list(replicas)), "its replicas are being reassigned")

    def _wish(self, path: str, wish: Mapping[str, Any], busy: str) -> str:
        """Make the node, and wait until the controller has removed it; ``busy`` is the answer if there is one."""
        deadline = time.monotonic() + DONE_LIMIT_S
        try:
            with _session(self._address()) as keeper:
                error = keeper.create(path, json.dumps(wish).encode())
                if error == _NODE_EXISTS:
                    return busy
                if error != _DONE:
                    return f"ZooKeeper's error {error}"
                while keeper.exists(path):
                    if time.monotonic() > deadline:
                        raise HostError(f"the controller has not done {path} within {DONE_LIMIT_S:.0f} s")
                    time.sleep(_LOOK_EVERY_S)
        except OSError as error:
            raise HostError(f"ZooKeeper does not answer ({error})") from error
        return ""


class Keeper:
    """A session with ZooKeeper, as much of one as a wish needs. Every method may raise OSError."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._asked = 0
        self._send(struct.pack(">iqiq", 0, 0, _SESSION_MS, 0) + _field(_ZEROES))
        self._receive()

    def create(self, path: str, data: bytes) -> int:
        """Make a node that stays, which everybody may change. The answer is ZooKeeper's error, 0 for none."""
        rights = struct.pack(">ii", 1, _ALL_RIGHTS) + _field(b"world") + _field(b"anyone")
        return self._ask(_CREATE, _field(path.encode()) + _field(data) + rights + struct.pack(">i", 0))

    def exists(self, path: str) -> bool:
        """Whether there is such a node."""
        return self._ask(_EXISTS, _field(path.encode()) + b"\0") != _NO_NODE

    def close(self) -> None:
        """End the session; nobody waits for the answer."""
        self._send(struct.pack(">ii", self._asked + 1, _CLOSE))

    def _ask(self, kind: int, body: bytes) -> int:
        self._asked += 1
        self._send(struct.pack(">ii", self._asked, kind) + body)
        _, _, error = struct.unpack_from(">iqi", self._receive())
        return int(error)

    def _send(self, body: bytes) -> None:
        self._connection.sendall(_field(body))

    def _receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            more = self._connection.recv(size - len(received))
            if not more:
                raise ConnectionError("the connection ended")
            received += more
        return received


@contextmanager
def _session(address: Address) -> Iterator[Keeper]:
    with socket.create_connection((address.host, address.port), ANSWER_LIMIT_S) as connection:
        keeper = Keeper(connection)
        yield keeper
        keeper.close()


def _field(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def _wished(partition: str, **more: object) -> dict[str, Any]:
    topic, _, number = partition.rpartition("-")
    return {"version": 1, "partitions": [{"topic": topic, "partition": int(number), **more}]}
