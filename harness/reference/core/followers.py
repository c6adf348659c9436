"""What a leader knows of one follower: how far it is and since when it has been caught up (rule 9)."""

from __future__ import annotations

from harness.reference.core.types import NONE, NodeId


class Follower:
    """A leader's view of one follower. Unknown offsets are NONE, which holds the high watermark back.

    ``sent_high_watermark`` is the one that went out with the last fetch response.
    """

    __slots__ = (
        "broker_epoch",
        "caught_up_us",
        "end_offset",
        "fetched_us",
        "leader_end_at_fetch",
        "node",
        "sent_high_watermark",
    )

    def __init__(self, node: NodeId, caught_up_us: int) -> None:
        self.node = node
        self.end_offset = NONE
        self.caught_up_us = caught_up_us
        self.fetched_us = 0
        self.leader_end_at_fetch = NONE
        self.broker_epoch = NONE
        self.sent_high_watermark = NONE

    def fetched(self, now_us: int, offset: int, leader_end: int, broker_epoch: int) -> None:
        """Take a fetch at ``offset`` into account: everything below it is on the follower (rule 6).

        A fetch that reaches the leader's end of the *previous* fetch proves that the follower was caught up then.
        """
        if offset >= leader_end:
            self.caught_up_us = now_us
        elif offset >= self.leader_end_at_fetch != NONE:
            self.caught_up_us = max(self.caught_up_us, self.fetched_us)
        self.end_offset = offset
        self.fetched_us = now_us
        self.leader_end_at_fetch = leader_end
        self.broker_epoch = broker_epoch

    def restart_clock(self, now_us: int, leader_end: int, in_sync: bool) -> None:
        """The leader stays in a new epoch: ISR members get a full lag time again, the others none."""
        self.caught_up_us = self.fetched_us = now_us if in_sync else NEVER_US
        self.leader_end_at_fetch = leader_end

    def caught_up(self, now_us: int, leader_end: int, lag_us: int) -> bool:
        """Rule 9."""
        return self.end_offset == leader_end or now_us - self.caught_up_us <= lag_us


#: Caught up so long ago that no lag time covers it, also at the start of a clock that begins at 0.
NEVER_US = -(2**62)
