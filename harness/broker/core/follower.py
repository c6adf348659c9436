"""A leader's view of one follower: how far its log goes, and when it was caught up last (rules 6 and 9)."""

from __future__ import annotations

from typing import Final

import msgspec

from harness.broker.core.types import NONE, NodeId

#: Caught up so long ago that no lag time covers it, also at the start of a clock that begins at 0.
NEVER_US: Final = -(2**62)


class Follower(msgspec.Struct, eq=False):
    """A leader's view of one follower. Unknown offsets are NONE, which holds the high watermark back.

    ``end_offset`` is the follower's log end by its last fetch, which came at ``fetched_us`` when the leader's own log
    end was ``leader_end_at_fetch``; ``caught_up_us`` is the last time at which it had everything (rule 9), and
    ``broker_epoch`` that of the incarnation that fetched. ``sent_high_watermark`` went out with the last response.
    """

    node: NodeId
    caught_up_us: int
    end_offset: int = NONE
    fetched_us: int = 0
    leader_end_at_fetch: int = NONE
    broker_epoch: int = NONE
    sent_high_watermark: int = NONE

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
        """The leader stays in a new epoch, as Kafka has it: ISR members get a full lag time again, the others none."""
        self.caught_up_us = self.fetched_us = now_us if in_sync else NEVER_US
        self.leader_end_at_fetch = leader_end

    def caught_up(self, now_us: int, leader_end: int, lag_us: int) -> bool:
        """Rule 9: at the leader's log end, or there within the last ``lag_us`` (replica.lag.time.max.ms)."""
        return self.end_offset == leader_end or now_us - self.caught_up_us <= lag_us


class CleanedFollower(Follower, eq=False):
    """A follower for which tombstones wait: its cleaner has been through all below ``cleaned_to`` (rule 32)."""

    cleaned_to: int = NONE
