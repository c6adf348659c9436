"""The log that all kernels look at: rows of log partitions, their version order, and the steps of their clients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from checkers.columns.effects import EffectRows, effect_rows
from checkers.columns.expiry import expired
from checkers.columns.group_rows import GroupRows, group_rows
from checkers.columns.ids import Flags, Numbers
from checkers.columns.log_rows import LogRows
from checkers.columns.record_keys import RecordKeys, record_keys
from checkers.columns.steps import (
    FIRST_LEVEL,
    OTHER_LEVEL,
    Steps,
    inner_reads,
    inner_sends,
    poll_steps,
    send_steps,
)
from checkers.columns.version_order import VersionOrder, version_order


@dataclass(kw_only=True)
class Log(LogRows):
    """Rows of log partitions with what follows from them once."""

    @cached_property
    def order(self) -> VersionOrder:
        """The version order of every log partition, as readers of all levels show it."""
        return version_order(self, self.all_reads)

    @cached_property
    def order_of_first(self) -> VersionOrder:
        """The version order that readers of the first level step through."""
        if not len(self.other_reads):
            return self.order
        return version_order(self, self._visible(self.reads, self.uncommitted_first))

    @cached_property
    def order_of_other(self) -> VersionOrder:
        """The version order that readers of the other isolation level step through."""
        return version_order(self, self._visible(self.other_reads, ~self.uncommitted_first))

    def _visible(self, reads: Numbers, uncommitted: Flags) -> Numbers:
        """These reads; where they are of readers of uncommitted records, those of both levels, for they see all."""
        visible = np.zeros(len(self.partition), dtype=bool)
        visible[reads] = True
        visible[self.all_reads[uncommitted[self.partition[self.all_reads]]]] = True
        return np.flatnonzero(visible)

    @cached_property
    def groups(self) -> GroupRows | None:
        """The rows of consumer groups, None where no group read."""
        return group_rows(self)

    @cached_property
    def effects(self) -> EffectRows | None:
        """The inputs of applications and their effects, None where no history has an application."""
        return effect_rows(self)

    @cached_property
    def keys(self) -> RecordKeys | None:
        """The record keys of the values that were sent, None where no history has any."""
        return record_keys(self)

    @cached_property
    def removable(self) -> Flags:
        """``bool[value]``: a cleaner or its age may have removed it, so that its absence proves nothing."""
        return self.expired if self.keys is None else self.keys.removable | self.expired

    @cached_property
    def expired(self) -> Flags:
        """``bool[value]``: it was older than retention.ms when the log was looked at last, so that it may be gone."""
        return expired(self)

    @cached_property
    def poll_steps(self) -> Steps:
        """Consumers' steps from poll to poll."""
        return poll_steps(self, self.order_of_first, FIRST_LEVEL)

    @cached_property
    def other_poll_steps(self) -> Steps:
        """Consumers' steps from poll to poll, of the other isolation level."""
        return poll_steps(self, self.order_of_other, OTHER_LEVEL)

    @cached_property
    def send_steps(self) -> Steps:
        """Producers' steps from send to send."""
        return send_steps(self, self.order)

    @cached_property
    def inner_reads(self) -> Steps:
        """Consumers' steps inside one operation."""
        return inner_reads(self, self.order_of_first, FIRST_LEVEL)

    @cached_property
    def other_inner_reads(self) -> Steps:
        """Consumers' steps inside one operation, of the other isolation level."""
        return inner_reads(self, self.order_of_other, OTHER_LEVEL)

    @cached_property
    def inner_sends(self) -> Steps:
        """Producers' steps inside one operation."""
        return inner_sends(self, self.order)
