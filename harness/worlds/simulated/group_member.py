"""The contract of a membership: how a client in virtual time is a member of a group, by one of the two protocols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from harness.broker.core import messages
from harness.broker.core.types import ErrorCode, TopicPartition
from harness.worlds.simulated.coordinator_requests import CoordinatorRequests, Repeated
from harness.worlds.simulated.network_client import MICROSECONDS

#: The name and the generation (KIP-848: epoch) of a member.
Identity = tuple[str, int]


class MemberModel(ABC):
    """One membership, which reads ``topics``. It asks only when its client lets it: while that polls, or waits.

    A client that does neither is a process that stands still, and the coordinator gives it up.
    """

    def __init__(
        self, requests: CoordinatorRequests, client: str, topics: tuple[str, ...], session_timeout_ms: int
    ) -> None:
        """``client`` tells the client from all others of the run."""
        self._requests = requests
        self._client = client
        self._topics = topics
        self._session_ms = session_timeout_ms
        self._beats = Repeated()

    @property
    @abstractmethod
    def identity(self) -> Identity | None:
        """The one with which it commits; None where its client knows that it is no member now."""

    @property
    @abstractmethod
    def asks_as(self) -> Identity:
        """The one with which it asks where the group is."""

    @property
    @abstractmethod
    def told(self) -> Identity | None:
        """The one that the library tells, for a transaction that commits the member's offsets."""

    @abstractmethod
    def take_over(self, now_us: int, owned: Collection[TopicPartition]) -> tuple[TopicPartition, ...] | None:
        """The log partitions that its client reads from this poll on; None where it goes on with those ``owned``."""

    @abstractmethod
    def pursue(self, now_us: int, owned: Collection[TopicPartition]) -> None:
        """Ask what there is to ask now."""

    @abstractmethod
    def on_answer(self, now_us: int, answer: messages.GroupAnswer) -> None:
        """An answer to one of its own requests."""

    @abstractmethod
    def commits_again(self, error: ErrorCode) -> bool:
        """True if a commit that met this error is to be sent again: the member has another identity soon."""

    @abstractmethod
    def leaving(self) -> messages.GroupRequest | None:
        """The request with which it leaves; None of a client that is no member."""

    def _await_beat(self, now_us: int, beats_a_session: int) -> None:
        self._beats.ready_us = now_us + self._session_ms * MICROSECONDS // beats_a_session
