"""Requests of a client to the coordinator of its group, each repeated until it is answered for good. Sans-IO.

The coordinator is the leader of the log of groups, so it is found in the metadata.
"""

from __future__ import annotations

from harness.broker.core import messages
from harness.broker.core.groups.coordinator import LOG
from harness.worlds.simulated.network_client import NetworkClient


class Repeated:
    """Purpose of requests to the coordinator, one at a time: one is ``asked`` now, or may be at ``ready_us``.

    ``ambiguous``: one of them had no answer, so a commit may have been taken.
    """

    __slots__ = ("ambiguous", "asked", "ready_us")

    def __init__(self) -> None:
        self.asked = self.ambiguous = False
        self.ready_us = 0


class CoordinatorRequests:
    """Sends a client's requests about ``group`` over its connections ``net``. Times are microseconds."""

    def __init__(self, net: NetworkClient, group: str, backoff_us: int) -> None:
        self.net = net
        self.group = group
        self._backoff_us = backoff_us

    def coordinator(self) -> int | None:
        """The coordinator, as far as it is known, whether it can be reached or not."""
        leader = self.net.leader(LOG)
        return None if leader is None else leader[0]

    def reachable(self, now_us: int) -> int | None:
        """The coordinator, where there is an open connection to it."""
        return self.net.reachable_leader(now_us, LOG)

    def due(self, now_us: int, purpose: Repeated) -> int | None:
        """The coordinator, where a request for this purpose may be sent to it now."""
        if purpose.asked:
            return None
        if now_us < purpose.ready_us:
            self.net.wake_at(purpose.ready_us)
            return None
        return self.reachable(now_us)

    def ask(
        self, now_us: int, coordinator: int, request: messages.GroupRequest, purpose: Repeated, *, patience_us: int = 0
    ) -> None:
        """Send a request that may wait for its answer for ``patience_us`` longer than others."""
        purpose.asked = True
        self.net.send(now_us, coordinator, request, purpose, patience_us=patience_us)

    def repeat(self, now_us: int, purpose: Repeated) -> None:
        """Let the next request for this purpose be sent after a pause (``retry.backoff.ms``)."""
        purpose.ready_us = now_us + self._backoff_us
