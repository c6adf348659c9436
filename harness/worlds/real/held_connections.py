"""Holds and drops messages in the real world, where only whole connections can be stopped."""

from __future__ import annotations

from collections.abc import Collection

from nemesis.cluster import Link, Links
from nemesis.evidence import Evidence


class HeldConnections:
    """Implements :class:`nemesis.cluster.Messages` over connections that cannot be looked into: all of a link is held.

    What is under way is sent again by TCP once the link is healed, unless somebody closed the connection meanwhile, so
    dropping is holding too. It implements :class:`nemesis.cluster.Links` as well: both cut the same ``links``, and one
    that either still wants cut is not healed.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self._cut: set[Link] = set()
        self._held: set[tuple[str, str, Link]] = set()

    def cut(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Links.cut`. Evidence: as of ``links``."""
        self._cut.update(links)
        return self._links.cut(links)

    def heal(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Links.heal`; what is held stays so. Evidence: as of ``links``."""
        self._cut.difference_update(links)
        held = {link for _, _, link in self._held}
        return self._links.heal([link for link in links if link not in held])

    def hold(self, links: Collection[Link], api: str = "") -> Evidence:
        """See :meth:`Messages.hold`. Evidence: as of the cut, and ``whole_connection``."""
        return self._hold(links, "hold", api)

    def drop(self, links: Collection[Link], api: str = "") -> Evidence:
        """See :meth:`Messages.drop`. Evidence: as of :meth:`hold`."""
        return self._hold(links, "drop", api)

    def release(self, links: Collection[Link], action: str = "", api: str = "") -> Evidence:
        """See :meth:`Messages.release`; what is cut stays so. Evidence: as of healing."""
        ended = {held for held in self._held if held[2] in links and (not action or held[:2] == (action, api))}
        self._held -= ended
        lasting = self._cut | {link for _, _, link in self._held}
        return self._links.heal(sorted({link for _, _, link in ended} - lasting))

    def release_one(self, link: Link, *, newest: bool) -> Evidence:  # noqa: ARG002 - a connection is held whole
        """See :meth:`Messages.release_one`: nothing."""
        return {}

    def _hold(self, links: Collection[Link], action: str, api: str) -> Evidence:
        self._held.update((action, api, link) for link in links)
        evidence = self._links.cut(links)
        return {**evidence, "whole_connection": True} if evidence else {}
