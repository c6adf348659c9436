"""Holds and drops messages in the real world, where only whole connections can be stopped."""

from __future__ import annotations

from collections.abc import Collection

from nemesis.cluster import Link, Links, Messages
from nemesis.evidence import LinksCut


class HeldConnections(Messages, Links):
    """Holds whole links, because single messages in a connection cannot be told apart.

    TCP sends the messages under way again once the link is healed, unless one end closed the connection meanwhile, so
    dropping holds them too. Cuts and holds share the same ``links``: a link that one of them still needs is not healed.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self._cut: set[Link] = set()
        self._held: set[tuple[str, str, Link]] = set()

    def cut(self, links: Collection[Link]) -> LinksCut:
        """Cut these links."""
        self._cut.update(links)
        return self._links.cut(links)

    def heal(self, links: Collection[Link]) -> LinksCut:
        """Heal these links, but not those that are held."""
        self._cut.difference_update(links)
        held = {link for _, _, link in self._held}
        return self._links.heal([link for link in links if link not in held])

    def hold(self, links: Collection[Link], api: str = "") -> LinksCut:
        """Hold everything on these links."""
        return self._hold(links, "hold", api)

    def delay(self, links: Collection[Link], api: str = "") -> LinksCut:
        """Hold everything on these links, since nothing can overtake."""
        return self._hold(links, "delay", api)

    def drop(self, links: Collection[Link], api: str = "") -> LinksCut:
        """Hold everything on these links, since dropping is impossible."""
        return self._hold(links, "drop", api)

    def release(self, links: Collection[Link], action: str = "", api: str = "") -> LinksCut:
        """End an action on these links; links that are cut stay so."""
        ended = {held for held in self._held if held[2] in links and (not action or held[:2] == (action, api))}
        self._held -= ended
        lasting = self._cut | {link for _, _, link in self._held}
        return self._links.heal(sorted({link for _, _, link in ended} - lasting))

    def release_one(self, link: Link, *, newest: bool) -> LinksCut:  # noqa: ARG002 - a connection is held whole
        """Do nothing, because single messages cannot be told apart."""
        return {}

    def _hold(self, links: Collection[Link], action: str, api: str) -> LinksCut:
        self._held.update((action, api, link) for link in links)
        evidence = self._links.cut(links)
        return {**evidence, "whole_connection": True} if evidence else {}
