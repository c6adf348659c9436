"""Recovery of a log after everything was healed: the writes and reads of fresh clients."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from checkers.columns.phases import RunMarks

#: The reason for unread log partitions in older histories, which do not say whether it was still being read.
NOT_READ = "the final readers did not reach its end"


class Recovery(msgspec.Struct, kw_only=True):
    """The success of fresh clients after healing, by log partition.

    ``tried`` is false where no client tried, as in histories of older versions: then nothing is claimed. ``unwritten``
    and ``unread`` say why they failed; ``lacking`` what the cluster still lacked at the end, a leader or members of the
    ISR; ``absent`` the nodes that it may wait for and that did not run; ``starved`` why the machine gave it no chance.
    A log partition in ``unread`` lacks nothing: where something was lacking, its end was not waited for. ``retired``
    counts the producers that were replaced because they had stopped working.
    """

    tried: bool = False
    unwritten: dict[str, str] = {}
    unread: dict[str, str] = {}
    lacking: dict[str, str] = {}
    absent: dict[str, str] = {}
    starved: dict[str, str] = {}
    retired: int = 0


def recovery(phases: RunMarks, undrained: Iterable[str]) -> Recovery:
    """Measure one history; ``undrained`` are its log partitions that no final reader read to their end."""
    fresh, retired = phases.fresh_writes, len(phases.retirements)
    if fresh is None:
        return Recovery(retired=retired)
    unread = fresh.unread
    if unread is None:
        unread = {key: NOT_READ for key in undrained if key not in fresh.lacking}
    return Recovery(
        tried=True,
        unwritten=fresh.unwritten,
        unread=unread,
        lacking=fresh.lacking,
        absent=fresh.absent,
        starved=fresh.starved,
        retired=retired,
    )
