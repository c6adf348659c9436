"""Planned changes in clusters whose brokers take no request for them: before 2.4 they are written into ZooKeeper.

The operator's own tools of the time did nothing else (``kafka-reassign-partitions``, and
``kafka-preferred-replica-election``): they made a node with the wish, and the controller removed it when it was done.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError
from kazoo.handlers.threading import KazooTimeoutError

from harness.errors import HostError
from harness.hosts import Address

#: Since when brokers take requests to move leaders and replicas (KIP-183, KIP-455).
ASKED_SINCE: Final = (2, 4, 0)
REASSIGN: Final = "/admin/reassign_partitions"
ELECT: Final = "/admin/preferred_replica_election"
#: One answer of ZooKeeper, which may be frozen; and all that the controller does.
ANSWER_LIMIT_S: Final = 1.5
DONE_LIMIT_S: Final = 4.0
_LOOK_EVERY_S: Final = 0.05
#: Also how long a session with a frozen ZooKeeper takes to end.
_SESSION_S: Final = 2.0


class ZooKeeperAdministration:
    """Implements :class:`harness.worlds.real.leadership.ReassigningOperator`. ``address`` is ZooKeeper's."""

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
            with _session(self._address()) as client:
                client.create_async(path, json.dumps(wish).encode()).get(timeout=ANSWER_LIMIT_S)
                while client.exists_async(path).get(timeout=ANSWER_LIMIT_S):
                    if time.monotonic() > deadline:
                        raise HostError(f"the controller has not done {path} within {DONE_LIMIT_S:.0f} s")
                    time.sleep(_LOOK_EVERY_S)
        except NodeExistsError:
            return busy
        except (KazooException, KazooTimeoutError) as error:
            raise HostError(f"ZooKeeper does not answer ({str(error) or type(error).__name__})") from error
        return ""


@contextmanager
def _session(address: Address) -> Iterator[KazooClient]:
    client = KazooClient(f"{address.host}:{address.port}", timeout=_SESSION_S)
    try:
        client.start(ANSWER_LIMIT_S)
        yield client
    finally:
        client.stop()
        client.close()


def _wished(partition: str, **more: object) -> dict[str, Any]:
    topic, _, number = partition.rpartition("-")
    return {"version": 1, "partitions": [{"topic": topic, "partition": int(number), **more}]}
