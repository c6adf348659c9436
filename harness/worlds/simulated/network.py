"""The simulated network: a wire for each direction between two nodes, cuts and filters over them, clients' connections.

Clients have connections: they connect before they send, and a connection may be reset. Everybody hears of the death of
a peer's process after one network delay, no node of a cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

from harness.ground.choices import Choices
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.wires import (
    DELAYS,
    DELAYS_US,
    EVERY,
    SLOW_US,
    ClientReceiver,
    Cut,
    Filter,
    Receiver,
    Wire,
)
from nemesis.cluster import CLIENTS, Link


class Network:
    """All wires of a run. Nodes are numbers as in ``nemesis.cluster``."""

    def __init__(self, loop: Loop, choices: Choices) -> None:
        self._loop = loop
        self._choices = choices
        self._receivers: dict[int, Receiver | None] = {}
        self._clients: dict[int, ClientReceiver] = {}
        self._outgoing: dict[int, dict[int, Wire]] = {}
        self._cuts: dict[Link, Cut] = {}
        self._slow: set[Link] = set()
        self._filters: dict[Link, tuple[Filter, ...]] = {}

    def outgoing(self, source: int) -> dict[int, Wire]:
        """The wires from ``source`` by target, always up to date; a missing one is made by ``wire``."""
        return self._outgoing.setdefault(source, {})

    def wire(self, source: int, target: int) -> Wire | None:
        """The wire to the process that now runs on ``target``; None if none does."""
        wires = self.outgoing(source)
        if target not in wires:
            receiver = self._receivers.get(target)
            if receiver is None:
                return None
            link = Link(source, target)
            wires[target] = wire = Wire(self._loop, self._delays(link), link, receiver, self._reset_of(link))
            wire.late_us = self._late_us(link)
            cut = self._cut_over(link)
            if cut is not None:
                wire.sever(cut)
            wire.filter(self._filters.get(self._among_clients(link), ()))
        return wires[target]

    def _delays(self, link: Link) -> Callable[[int], int]:
        return self._choices.stream(f"delay {link.source}>{link.target}").draw

    def _reset_of(self, link: Link) -> Callable[[], None] | None:
        if link.source in self._clients:
            return partial(self._disconnect, link.source, link.target)
        if link.target in self._clients:
            return partial(self._disconnect, link.target, link.source)
        return None

    # --- processes ---------------------------------------------------------------------------------------------------

    def add_client(self, node: int, client: ClientReceiver) -> None:
        """A client appears; cuts of CLIENTS hold for it too."""
        self._clients[node] = client
        self._receivers[node] = client

    def abandon(self, client: int) -> None:
        """A client dies: what it has not sent stays unsent, and no broker hears of it."""
        for broker, wire in self.outgoing(client).items():
            wire.break_off()
            if (back := self.outgoing(broker).get(client)) is not None:
                back.break_off()

    def started(self, node: int, process: Receiver) -> None:
        """A process starts on a node of the cluster."""
        self._receivers[node] = process

    def died(self, node: int) -> None:
        """The process on ``node`` is gone: its sockets are closed and what is under way to it is lost."""
        self._receivers[node] = None
        for peer, receiver in self._receivers.items():
            wire = self.outgoing(node).get(peer)
            if peer in self._clients:
                self._disconnect(peer, node)
            elif receiver is not None and wire is not None:
                wire.notify(receiver.disconnected, node)
        for wires in self._outgoing.values():
            wires.pop(node, None)

    # --- connections of clients --------------------------------------------------------------------------------------

    def connect(self, client: int, broker: int) -> None:
        """A client asks for a connection; it hears of it, of the refusal, or, if either way is cut, nothing."""
        if self._cut_over(Link(client, broker)) is None:
            delay_us = DELAYS_US[self._delays(Link(client, broker))(DELAYS)]
            self._loop.push(self._loop.time_us + delay_us, self._accept, (client, broker))

    def _accept(self, link: tuple[int, int]) -> None:
        client, broker = link
        back = self.wire(broker, client)
        if self._cut_over(Link(client, broker)) is not None or back is None:
            return
        forth = self.wire(client, broker)
        if forth is None:
            back.notify(self._clients[client].disconnected, broker)
            return
        forth.connect()
        back.connect()
        back.notify(self._clients[client].connected, broker)

    def _disconnect(self, client: int, broker: int) -> None:
        forth, back = self.outgoing(client).get(broker), self.outgoing(broker).get(client)
        if forth is None or back is None or forth.broken:
            return
        forth.break_off()
        back.break_off()
        back.notify(self._clients[client].disconnected, broker)

    # --- cuts --------------------------------------------------------------------------------------------------------

    def cut(self, links: Collection[Link]) -> Cut | None:
        """Cut those of ``links`` that are whole; None if none was."""
        fresh = [link for link in sorted(links) if link not in self._cuts]
        if not fresh:
            return None
        # A cut is named by when and where it begins, so that no other cut decides what this one does.
        label = f"cut {fresh[0].source}>{fresh[0].target} at {self._loop.time_us} us"
        cut = Cut(len(fresh), retransmits=bool(self._choices.draw(label, 2)))
        for link in fresh:
            self._cuts[link] = cut
            for wire in self._wires_of(link):
                if wire.cut is None:
                    wire.sever(cut)
        return cut

    def heal(self, links: Collection[Link]) -> list[Cut]:
        """Heal ``links``; the cuts that ended with this, each once. CLIENTS heals those of single clients too."""
        ended: list[Cut] = []
        for link in sorted(links):
            for over in [over for over in self._cuts if self._covers(link, over)]:
                cut = self._cuts.pop(over)
                if cut not in ended:
                    ended.append(cut)
            for wire in self._wires_of(link):
                self._heal_wire(wire)
        return ended

    # --- single messages ---------------------------------------------------------------------------------------------

    def filter(
        self,
        links: Iterable[Link],
        wanted: Callable[[int, int, Any], bool],
        name: str = "",
        *,
        keeps: bool,
        most: int = EVERY,
    ) -> None:
        """Take the ``wanted`` messages (source, target, message) off ``links`` from now on; ``keeps``: see ``release``.

        No more than ``most`` of each link are taken.
        Filters that are there already look at a message first. Each link has a filter of its own.
        """
        for link in links:
            mine = Filter(self._loop, wanted, name, keeps=keeps, most=most)
            self._set_filters(link, (*self._filters.get(link, ()), mine))

    def release(self, links: Iterable[Link], name: str = "") -> list[Filter]:
        """Take the filters of that ``name`` off ``links`` (no name: all of them), and send what they kept.

        It is sent in the order in which it was sent at first; cuts, and filters that stay, hold for it too.
        """
        ended: list[Filter] = []
        for link in links:
            filters = self._filters.pop(link, ())
            ended += [held_by for held_by in filters if name in ("", held_by.name)]
            self._set_filters(link, tuple(held_by for held_by in filters if name not in ("", held_by.name)))
        # Sent only now: a filter that stays may take it again.
        for _, wire, message in sorted((kept for held_by in ended for kept in held_by.held), key=itemgetter(0)):
            wire.send(message)
        return ended

    def release_one(self, link: Link, *, newest: bool) -> Any:
        """Send the oldest or the ``newest`` message that ``link`` holds, past its filters; None where it holds none."""
        filters = self._filters.get(link, ())
        kept = [(message, held_by) for held_by in filters for message in held_by.held]
        if not kept:
            return None
        chosen, its_filter = (max if newest else min)(kept, key=lambda pair: pair[0][0])
        its_filter.held.remove(chosen)
        _, wire, message = chosen
        wire.filter(())
        wire.send(message)
        wire.filter(filters)
        return message

    def _set_filters(self, link: Link, filters: tuple[Filter, ...]) -> None:
        if filters:
            self._filters[link] = filters
        for wire in self._wires_of(link):
            wire.filter(filters)

    # --- slow links --------------------------------------------------------------------------------------------------

    def slow(self, links: Collection[Link]) -> list[Link]:
        """Deliver late over ``links``; those that were not slow before."""
        fresh = sorted(set(links) - self._slow)
        self._slow |= set(links)
        self._retime(links)
        return fresh

    def restore_link_speed(self, links: Collection[Link]) -> list[Link]:
        """Deliver as before; what is under way stays late, and what follows on its wire is not earlier."""
        slow = sorted(set(links) & self._slow)
        self._slow -= set(links)
        self._retime(links)
        return slow

    def _retime(self, links: Collection[Link]) -> None:
        for link in links:
            for wire in self._wires_of(link):
                wire.late_us = self._late_us(Link(wire.source, wire.target))

    def _late_us(self, link: Link) -> int:
        return SLOW_US if self._among_clients(link) in self._slow else 0

    def _among_clients(self, link: Link) -> Link:
        """The link with CLIENTS for a single client."""
        source = CLIENTS if link.source in self._clients else link.source
        return Link(source, CLIENTS if link.target in self._clients else link.target)

    def _heal_wire(self, wire: Wire) -> None:
        if wire.cut is None or self._cut_over(Link(wire.source, wire.target)) is not None or not wire.heal():
            return
        if wire.source in self._clients:
            self._disconnect(wire.source, wire.target)
        elif wire.target in self._clients:
            self._disconnect(wire.target, wire.source)

    def _covers(self, link: Link, other: Link) -> bool:
        return (link.source == other.source or (link.source == CLIENTS and other.source in self._clients)) and (
            link.target == other.target or (link.target == CLIENTS and other.target in self._clients)
        )

    def _cut_over(self, link: Link) -> Cut | None:
        return self._cuts.get(link) or self._cuts.get(self._among_clients(link))

    def _wires_of(self, link: Link) -> Iterator[Wire]:
        sources = self._clients if link.source == CLIENTS else (link.source,)
        targets = self._clients if link.target == CLIENTS else (link.target,)
        for source in sources:
            wires = self.outgoing(source)
            for target in targets:
                if target in wires:
                    yield wires[target]
