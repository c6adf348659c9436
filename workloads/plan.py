"""The numbers of a workload: who writes and reads, how much and how fast."""

from __future__ import annotations

import msgspec


class WorkloadPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The workload of one run.

    ``name`` is a key of :data:`workloads.generators.WORKLOADS`. ``writes_per_second`` is the total over all producers;
    payloads are filled up to ``payload_bytes``, and are never shorter than what makes them checkable (some 40 bytes).
    Consumers begin a poll every ``poll_wait_ms`` and let it wait as long for a first record.
    The break phase lasts ``duration_ms``; then everything is healed. Of ``drain_limit_ms`` one half is for the cluster
    to recover and one for fresh consumers to read every partition to the log end offset asked after that.
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
