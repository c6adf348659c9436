"""Portfolios of what a coordinator decides: transactions, consumer groups, and pipelines, which have both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from harness.lab.search.portfolios import (
    BRIEF,
    CLEANED,
    COMPACTED,
    IDEMPOTENT,
    MOVES,
    SINGLE_LINKS,
    WORKLOAD,
    Portfolio,
)
from workloads import WorkloadPlan, kind_of

#: Many are aborted, or left to a successor, and there are more of them than plain writes would be.
IN_TRANSACTIONS: Final = msgspec.structs.replace(
    WORKLOAD,
    name="transactions",
    writes_per_second=80.0,
    sends_per_transaction=4,
    aborts_percent=40,
    takeover_every_ms=1_500,
)
#: Members come and go all the time, and commit what little they have read.
IN_GROUPS: Final = msgspec.structs.replace(
    WORKLOAD, name="groups", writes_per_second=60.0, consumers=3, member_change_ms=1_500
)
#: The same; what they write is aborted now and then. After it, offsets that are pending for long have their end.
IN_PIPELINES: Final = msgspec.structs.replace(
    IN_GROUPS, name="consume-transform-produce", aborts_percent=25, drain_limit_ms=60_000
)
#: Members live for longer than a group without members would.
FOR_LONG: Final = msgspec.structs.replace(
    IN_GROUPS, consumers=2, writes_per_second=3.0, duration_ms=110_000, member_change_ms=100_000, poll_wait_ms=500
)
#: The prices of a run, in runs of plain writes.
OF_TRANSACTION_RUN: Final = 2.5
OF_GROUP_RUN: Final = 2.2
OF_PIPELINE_RUN: Final = 8.0
_PROTOCOLS: Final[Mapping[str, tuple[Any, ...]]] = {"group.protocol": ("classic", "consumer")}


def _coordinated(name: str, family: str, common: Mapping[str, Any]) -> tuple[Portfolio, Portfolio]:
    """The portfolios of what a coordinator decides, which ``family`` attacks."""
    return (
        Portfolio(name=name, families=(family, "kill", "pause", "partition"), **common),
        Portfolio(name=f"{name}-and-moves", kinds=MOVES, shapes=SINGLE_LINKS, faults=(5, 10), **common, **BRIEF),
    )


def _of(workload: WorkloadPlan, price: float, partitions: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that all portfolios of a workload have."""
    return {
        "settings": settings,
        "drawn": _PROTOCOLS if kind_of(workload).grouped else {},
        "workload": workload,
        "partitions": partitions,
        "price": price,
    }


_COMMITTED: Final = IDEMPOTENT | {"isolation.level": "read_committed"}
_IN_TRANSACTIONS: Final = _of(IN_TRANSACTIONS, OF_TRANSACTION_RUN, 2, _COMMITTED)
#: The requests of a transaction, late, and overtaken by their repetition.
_LATE_REQUESTS: Final = tuple(
    f"{how}-{what}" for how in ("late", "overtaken") for what in ("end", "marker", "add", "produce")
)
TRANSACTIONAL: Final = (
    *_coordinated("transactions", "transaction-coordinator", _IN_TRANSACTIONS),
    Portfolio(
        name="late-messages-of-transactions",
        kinds=("hold", "hold", "move", "cut", "kill"),
        **_IN_TRANSACTIONS,
        **BRIEF,
    ),
    Portfolio(
        name="late-requests-of-transactions",
        kinds=(*_LATE_REQUESTS, "move", "kill"),
        **_IN_TRANSACTIONS,
        **BRIEF,
    ),
    # A transaction has some of the log partitions only, so that who was superseded adds another.
    Portfolio(
        name="wide-transactions",
        kinds=("move", "move", "kill", "pause", "late-add"),
        **_of(msgspec.structs.replace(IN_TRANSACTIONS, takeover_every_ms=700), OF_TRANSACTION_RUN * 1.5, 5, _COMMITTED),
        **BRIEF,
    ),
    # Each record is a batch of its own, one after the other: those of several transactions lie among each other, and a
    # reader that waited for one is inside another.
    Portfolio(
        name="long-transactions",
        kinds=("move", "kill", "slow", "pause", "cut"),
        **_of(
            msgspec.structs.replace(
                IN_TRANSACTIONS, sends_per_transaction=8, writes_per_second=60.0, takeover_every_ms=700
            ),
            OF_TRANSACTION_RUN,
            1,
            _COMMITTED | {"batch.size": 1, "max.in.flight.requests.per.connection": 1},
        ),
        producers=4,
        **BRIEF,
    ),
    # Coordinators load from a log that was cleaned.
    Portfolio(
        name="cleaned-log-of-transactions",
        kinds=("kill", "stop", "stop", "pause", "move"),
        **_of(IN_TRANSACTIONS, OF_TRANSACTION_RUN, 2, {**_COMMITTED, **CLEANED}),
        **BRIEF,
    ),
    # Keys are written, aborted and deleted in transactions, and cleaners pass what has ended.
    Portfolio(
        name="compacted-transactions",
        kinds=("kill", "stop", "cut", "pause", "move", "wipe"),
        **_of(
            msgspec.structs.replace(IN_TRANSACTIONS, name="keyed-transactions", keys=6),
            OF_TRANSACTION_RUN,
            2,
            {**_COMMITTED, **COMPACTED},
        ),
        dead_brokers_max=1,
        healed_ms_min=1_500,
    ),
)

_MEMBERS: Final = IDEMPOTENT | {"session.timeout.ms": 1_500}
_IN_GROUPS: Final = _of(IN_GROUPS, OF_GROUP_RUN, 3, _MEMBERS)
GROUPED: Final = (
    *_coordinated("groups", "coordinator", _IN_GROUPS),
    # Only what a library commits by itself is on its way when the group has another generation.
    Portfolio(
        name="late-commits-of-groups",
        kinds=("late-commit", "late-commit", "late-commit", "overtaken-commit", "move", "kill"),
        **_of(IN_GROUPS, OF_GROUP_RUN, 3, _MEMBERS | {"commit.mode": "auto"}),
        **BRIEF,
    ),
    # Coordinators load from a log that was cleaned.
    Portfolio(
        name="cleaned-log-of-groups",
        kinds=("move", "move", "kill", "stop", "pause"),
        **_of(IN_GROUPS, OF_GROUP_RUN, 3, {**_MEMBERS, **CLEANED}),
        **BRIEF,
    ),
    # For some of that time nothing is written, and so nothing is committed.
    Portfolio(
        name="long-lived-groups",
        kinds=("late-produce",),
        **_of(FOR_LONG, OF_GROUP_RUN * 2.5, 1, _MEMBERS | {"offsets.retention.minutes": 1}),
        fault_ms_max=90_000,
    ),
)
_PIPING: Final = _COMMITTED | _MEMBERS | {"delivery.timeout.ms": 3_000, "transaction.timeout.ms": 4_000}
_PIPED: Final = _of(IN_PIPELINES, OF_PIPELINE_RUN, 3, _PIPING)
#: Nothing is cut: a coordinator that missed its election answers who is no member from what it knew (rule 44), and this
#: workload asks so in its midst.
PIPELINED: Final = (
    Portfolio(name="pipelines", families=("coordinator", "transaction-coordinator", "kill", "pause"), **_PIPED),
    Portfolio(name="pipelines-and-moves", kinds=("move", "move", "kill", "stop", "pause"), **_PIPED),
    # A producer repeats what has no answer within a fault, so offsets arrive when their transaction has ended.
    Portfolio(
        name="late-offsets-of-pipelines",
        kinds=("overtaken-offsets", "overtaken-offsets", "move"),
        faults=(2, 5),
        **_of(IN_PIPELINES, OF_PIPELINE_RUN, 3, _PIPING | {"request.timeout.ms": 400}),
        **BRIEF,
        share=2.0,
    ),
)
