"""The numbers of a workload: who writes and reads, how much and how fast."""

from __future__ import annotations

from typing import Final

import msgspec

#: The name of the workload that makes the writes of a list, and no others.
LISTED: Final = "listed"


class PlannedWrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One write of a list: ``due_us`` after the workload began, by which producer, to which log partition."""

    due_us: int
    producer: int = 0
    partition: int = 0
    key: str = "key-0"


class WorkloadPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The workload of one run.

    ``name`` is a key of :data:`workloads.generators.WORKLOADS`; with the name LISTED it makes exactly ``writes``, which
    are in order of time. ``writes_per_second`` is the total over all producers;
    payloads are filled up to ``payload_bytes``, and are never shorter than what makes them checkable (some 40 bytes).
    Consumers begin a poll every ``poll_wait_ms`` and let it wait as long for a first record.
    A producer without an acknowledgement for ``replace_silent_ms`` is replaced; 0 stands for half a second more than
    delivery.timeout.ms: until that has passed, the client's own retries are under test, and then it has half a second
    to report what it could not deliver.
    The break phase lasts ``duration_ms``; then everything is healed. Of ``drain_limit_ms`` one half is for the cluster
    to recover and one for fresh consumers to read every partition to the log end offset asked after that; between them
    fresh producers have ``recovery_limit_ms`` to write to every log partition, by default enough for four of them, one
    after the other (:data:`workloads.recovery.RENEW_MS`), whatever delivery.timeout.ms is.
    """

    name: str = "steady"
    topic: str = "ackproof"
    partitions: int = 3
    producers: int = 3
    consumers: int = 2
    writes_per_second: float = 100.0
    payload_bytes: int = 0
    keys: int = 10
    duration_ms: int = 10_000
    poll_wait_ms: int = 250
    drain_limit_ms: int = 20_000
    replace_silent_ms: int = 0
    recovery_limit_ms: int = 10_000
    writes: tuple[PlannedWrite, ...] = ()

    @property
    def ending_limit_ms(self) -> int:
        """The most that what comes after healing may take, beside answers to what was sent before."""
        return self.drain_limit_ms + self.recovery_limit_ms
