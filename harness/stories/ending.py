"""The end of a performance: a leader is waited for, fresh clients write, and the log is read to its end."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from checkers import PartitionEnd
from harness.missing_nodes import missing_nodes
from harness.stories.story_world import StoryWorld
from harness.stories.writes import Writes
from workloads import Settings, WorkloadPlan
from workloads.driver import Drain, Workload

#: After the last answer: the high watermark of followers lags behind by one fetch (rule 6).
SETTLE_MS: Final = 300
#: For outstanding calls of closed clients to end in the history.
CLOSING_MS: Final = 50


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a story waits. ``answer_ms``: for an answer that comes if one is possible at all; ``limit_ms``: for a
    state; ``election_ms``: for a leader where one may be elected.
    """

    answer_ms: int
    limit_ms: int
    election_ms: int

    @classmethod
    def of(cls, settings: Settings, answer_ms: int = 100) -> Patience:
        """What follows from the cluster's own time limits; ``answer_ms`` is that of a world in virtual time."""
        session_ms, lag_ms = settings.broker_session_timeout_ms, settings.replica_lag_time_max_ms
        return cls(
            answer_ms=answer_ms,
            limit_ms=100 * answer_ms + 2 * session_ms + 2 * lag_ms,
            election_ms=2 * session_ms + 10 * answer_ms,
        )


class Ending:
    """What follows the script. ``abandoned`` are brokers that never return, and are not missed."""

    def __init__(
        self,
        story_world: StoryWorld,
        workload: Workload,
        writes: Writes,
        settings: Settings,
        *,
        plan: WorkloadPlan,
        patience: Patience,
    ) -> None:
        self._story_world = story_world
        self._workload = workload
        self._writes = writes
        self._settings = settings
        self._plan = plan
        self._patience = patience

    def leader_found(self) -> bool:
        """Wait for a leader as long as an election may take; True if there is one."""
        return self._story_world.until(
            lambda: self._story_world.leads(self._story_world.view.leader), self._patience.election_ms
        )

    def lacking(self, abandoned: Collection[int]) -> str:
        """What the log partition lacks; a broker that never returns is not missed."""
        view = self._story_world.view
        if not self._story_world.leads(view.leader):
            return "it has no leader"
        expected = tuple(node for node in view.replicas if node not in abandoned)
        return "" if self._story_world.all_in_sync(expected) else f"not all of {list(expected)} are in sync"

    def read_to_the_end(self, abandoned: Collection[int]) -> Drain:
        """Wait for answers, let fresh clients write, and fresh consumers read the log to its end."""
        limit_ms = self._settings.request_timeout_ms + self._patience.answer_ms
        self._story_world.until(lambda: all(record.answered for record in self._writes.records.values()), limit_ms)
        self._writes.end()
        self._story_world.let_pass(SETTLE_MS)
        fresh = self._workload.begin_recovery()
        self._story_world.until(lambda: fresh.finished, self._plan.recovery_limit_ms)
        fresh.end()
        self._story_world.until(lambda: not self.lacking(abandoned), self._patience.limit_ms)
        lacking = {self._story_world.partition: why} if (why := self.lacking(abandoned)) else {}
        drain = self._workload.begin_drain(lacking, fresh.values)
        self._story_world.until(lambda: drain.finished, self._plan.drain_limit_ms)
        drain.end()
        self._story_world.let_pass(CLOSING_MS)
        away = missing_nodes(self._story_world.target.view(), [self._story_world.partition], self._settings)
        self._workload.record_recovery(fresh, drain, lacking, away)
        self._workload.mark("end")
        return drain

    def end_of(self, drain: Drain) -> PartitionEnd:
        """The cluster's last word about the log partition."""
        view, running = self._story_world.view, self._story_world.running
        return PartitionEnd(
            leader=view.leader,
            isr=view.isr,
            running=tuple(node for node in view.isr if node in running),
            end_offset=drain.ends.get(self._story_world.partition),
        )
