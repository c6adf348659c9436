"""Which offset ends a leader epoch (rule 17), and where a follower has to truncate because of it.

Both sides keep (leader epoch, start offset) pairs, ascending. An epoch ends where the next known one starts, the last
one at the log end offset. KIP-101 introduced the question, KIP-279 the epoch in its answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from harness.reference.core.types import NONE, EpochEnd

UNDEFINED = EpochEnd(NONE, NONE)


def end_of_epoch(epochs: Sequence[tuple[int, int]], epoch: int, end_offset: int) -> EpochEnd:
    """The largest known epoch not above ``epoch`` and its end; UNDEFINED above the last known or without any.

    An epoch below the first known one ends where the first starts.
    """
    if epoch == NONE or not epochs or epoch > epochs[-1][0]:
        return UNDEFINED
    if epoch == epochs[-1][0]:
        return EpochEnd(epoch, end_offset)
    above = bisect_right(epochs, epoch, key=lambda pair: pair[0])
    found = epochs[above - 1][0] if above else epoch
    return EpochEnd(found, epochs[above][1])


def truncation_offset(epochs: Sequence[tuple[int, int]], end_offset: int, leader: EpochEnd) -> tuple[int, bool]:
    """Where a follower truncates, told the ``leader``'s epoch end (KIP-279), and whether the logs then agree.

    They may not agree yet where the follower does not know the leader's epoch: it drops what is above and asks again.
    """
    own = end_of_epoch(epochs, leader.leader_epoch, end_offset)
    if own.leader_epoch == NONE:
        return min(leader.end_offset, end_offset), True
    if own.leader_epoch != leader.leader_epoch:
        return min(own.end_offset, end_offset), False
    return min(own.end_offset, leader.end_offset, end_offset), True
