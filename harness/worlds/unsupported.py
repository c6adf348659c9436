"""What a world cannot do to its cluster: the parts of a target that observe nothing, and the words that say why.

A world names the kinds of fault that it lacks in :attr:`nemesis.cluster.ClusterView.unavailable`, so the player skips
them with the reason in their receipts and never calls these. What is called all the same does nothing and observes
nothing, which claims nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from nemesis.cluster import Evidence, Link

#: Kinds of fault (their tags) by the part of a target that does them.
STORAGE_KINDS: Final = ("wipedisk", "corruptrecord", "fulldisk", "slowdisk")
LEADERSHIP_KINDS: Final = ("moveleader", "reassign")
#: Why the reference broker's worlds have no ``reassign``.
NO_REASSIGNMENT: Final = "the reference broker's controller never changes who replicates a log partition"


def lacking(kinds: Collection[str], reason: str) -> Mapping[str, str]:
    """``reason`` for each of these kinds, for :attr:`ClusterView.unavailable`."""
    return dict.fromkeys(kinds, reason)


class NoStorage:
    """Implements :class:`nemesis.cluster.Storage` where disks are out of reach."""

    def wipe(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def corrupt(self, node: int, partition: str, pick: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def fill(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def free(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def slow(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def restore_disk_speed(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}


class NoNodes:
    """The part of :class:`nemesis.cluster.Target` that stops nodes and cuts links, where neither is in reach."""

    def kill(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def power_off(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def stop(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def restart(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def pause(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def resume(self, node: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def cut(self, links: Collection[Link]) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def heal(self, links: Collection[Link]) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def slow_links(self, links: Collection[Link]) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def restore_link_speed(self, links: Collection[Link]) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def set_clock(self, node: int, offset_ms: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}


class NoLeadership:
    """Implements :class:`nemesis.cluster.Leadership` where there is no administration."""

    def move_leader(self, partition: str, broker: int) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}

    def reassign(self, partition: str, replicas: Sequence[int]) -> Evidence:  # noqa: ARG002
        """Nothing."""
        return {}
