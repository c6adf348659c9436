"""The time that a story waits for an answer, for a state and for a leader."""

from __future__ import annotations

from typing import Final

import msgspec

from harness.plan import RunSpec

#: An answer that can come at all comes within this: in virtual time, and on real machines.
VIRTUAL_ANSWER_MS: Final = 100
REAL_ANSWER_MS: Final = 2_000
#: Polls of a turn that brings nothing, on real machines: as long as a turn is waited for.
REAL_POLLS: Final = 40


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """The times that a story waits.

    ``answer_ms``: for an answer that comes if one is possible at all; ``limit_ms``: for a state; ``tried_ms``: for one
    that may never come, in virtual time the same; ``election_ms``: for a leader where one may be elected. A turn of a
    member has ``polls_max``: a real library is assigned log partitions, and fetches, between its polls.
    """

    answer_ms: int
    limit_ms: int
    tried_ms: int
    election_ms: int
    polls_max: int

    @classmethod
    def of(cls, spec: RunSpec) -> Patience:
        """The patience that follows from the cluster's own time limits, and from the clock of the run's world."""
        settings = spec.chosen()
        answer_ms = VIRTUAL_ANSWER_MS if spec.world.virtual_time else REAL_ANSWER_MS
        # Members that die are in their group for a session more.
        of_members_ms = 2 * settings.session_timeout_ms if spec.workload.name == "groups" else 0
        session_ms, lag_ms = settings.broker_session_timeout_ms, settings.replica_lag_time_max_ms
        reactions_ms = 2 * session_ms + 2 * lag_ms + of_members_ms
        return cls(
            answer_ms=answer_ms,
            limit_ms=100 * answer_ms + reactions_ms,
            tried_ms=100 * VIRTUAL_ANSWER_MS + reactions_ms,
            election_ms=2 * session_ms + 10 * answer_ms,
            polls_max=1 if spec.world.virtual_time else REAL_POLLS,
        )
