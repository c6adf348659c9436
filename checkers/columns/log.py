"""The log that all kernels look at: rows of log partitions, their version order, and the steps of their clients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from checkers.columns.group_rows import GroupRows, group_rows
from checkers.columns.log_rows import LogRows
from checkers.columns.record_keys import RecordKeys, record_keys
from checkers.columns.steps import Steps, inner_steps, poll_steps, send_steps
from checkers.columns.version_order import VersionOrder, version_order
from workloads.history import Kind


@dataclass(kw_only=True)
class Log(LogRows):
    """Rows of log partitions with what follows from them once."""

    @cached_property
    def order(self) -> VersionOrder:
        """The version order of every log partition."""
        return version_order(self)

    @cached_property
    def groups(self) -> GroupRows | None:
        """The rows of consumer groups, None where no group read."""
        return group_rows(self)

    @cached_property
    def keys(self) -> RecordKeys:
        """The record keys of the values that were sent, and what compaction may do to them."""
        return record_keys(self)

    @cached_property
    def poll_steps(self) -> Steps:
        """Consumers' steps from poll to poll."""
        return poll_steps(self, self.order)

    @cached_property
    def send_steps(self) -> Steps:
        """Producers' steps from send to send."""
        return send_steps(self, self.order)

    @cached_property
    def inner_reads(self) -> Steps:
        """Consumers' steps inside one operation."""
        return inner_steps(self, self.order, Kind.READ)

    @cached_property
    def inner_sends(self) -> Steps:
        """Producers' steps inside one operation."""
        return inner_steps(self, self.order, Kind.SEND)
