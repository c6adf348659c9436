"""What a world is: a place where a run happens. The nemesis, the workload and the phases of a run see only this.

A world is used once: ``open``, ``drive`` as often as needed, ``close``. It owns the run's clock, on whose one thread
all callbacks happen. ``close`` always leaves nothing behind, also after an error, and is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from harness.observations import Observation
from harness.records.replica_dump import ReplicaLogs
from nemesis.cluster import Target
from workloads import Clients, Clock


class NodeCrash(msgspec.Struct, frozen=True):
    """A node that ended by itself: nobody in the harness had asked it to.

    ``time_us`` is when that was noticed, on the run's clock; ``exit`` how it ended ("status 1", "signal 11"), ``words``
    the last of its log. ``returned_us`` is when it was seen to have been started again, None while it was not.
    """

    time_us: int
    node: int
    exit: str
    words: str
    returned_us: int | None = None


class World(Protocol):
    """One cluster and the clients that talk to it."""

    @property
    def clock(self) -> Clock:
        """The run's clock; it starts at 0 when the world is opened."""

    @property
    def clients(self) -> Clients:
        """Makes producers and consumers with the run's settings."""

    @property
    def target(self) -> Target:
        """The cluster, for the nemesis."""

    def open(self) -> None:
        """Start the cluster, create the run's topic, return when every partition has a leader and a full ISR.

        Raises:
            HarnessError: with what to do, if that does not happen within the world's own limit.
        """

    def drive(self, finished: Callable[[], bool], limit_us: int) -> bool:
        """Let time pass until ``finished()`` is true or the clock reads ``limit_us``; the answer is ``finished()``."""

    def observations(self) -> Sequence[Observation]:
        """What was observed of the cluster so far, in order of time."""

    def crashes(self) -> Sequence[NodeCrash]:
        """Every node that ended by itself so far, looked for afresh, in the order in which they were noticed."""

    def replica_logs(self) -> ReplicaLogs | None:
        """What the brokers' disks hold of the run's topic, once the world was closed; None if no disk is in reach."""

    def effective_configuration(self) -> dict[str, dict[str, Any]]:
        """What clients and brokers really work with, defaults included, by role: producer, consumer, broker.

        Known once the world is open, and after that.

        Raises:
            HarnessError: it never was.
        """

    def close(self) -> None:
        """End every process, remove every rule."""
