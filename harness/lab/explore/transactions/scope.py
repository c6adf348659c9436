"""Scopes of transactions: producers of one transactional id, log partitions, and a coordinator that is moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from typing_extensions import override

from harness.ground.errors import PlanError
from harness.lab.explore.any_scope import Few, Times
from harness.lab.explore.coordinated_scope import CoordinatedConstants, CoordinatedScope
from workloads import Settings


class TransactionConstants(CoordinatedConstants, frozen=True):
    """The constants of a scope of transactions.

    ``producers`` have one transactional id: each is the successor of the one before, which may go on. ``transactions``
    are those that they begin, all together, with ``writes`` records each at most, in ``partitions``. ``expiries`` are
    transactions that the coordinator finds open for longer than their time-out.
    """

    delayed: Literal["any", "EndTxn", "WriteTxnMarkers", "Produce"] = "any"
    producers: Few = 1
    transactions: Times = 2
    writes: Few = 1
    partitions: Few = 1
    expiries: Times = 0


class TransactionScope(CoordinatedScope, frozen=True):
    """A scope of transactions. Its rules are :data:`harness.lab.explore.transactions.rules.TRANSACTION_RULES`."""

    constants: TransactionConstants = TransactionConstants()
    bounded: ClassVar[Mapping[str, str]] = {
        "producers": "producers of a transactional id",
        "transactions": "transactions",
        "writes": "records in a transaction",
        "partitions": "log partitions",
        "expiries": "transactions that are open for too long",
    }
    left_out: ClassVar[tuple[str, ...]] = (
        "replication of the log partitions that are written to: what is appended there is committed",
        "producers with several requests under way, or that add several partitions at once",
        "other transactional ids, offsets in transactions, consumers with a place, cleaned logs, epochs that run out",
    )

    @property
    @override
    def chosen(self) -> Settings:
        settings = super().chosen
        if settings.cleanup_policy != "delete":
            raise PlanError("scopes of transactions have no cleaners; leave out cleanup.policy")
        return settings
