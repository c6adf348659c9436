"""The simulated network: directed wires between nodes, with delay, order, cuts, and connections of clients.

What a wire does to a message is what TCP does to it. Messages of one wire arrive in the order in which they were sent,
those of different wires in any order. A cut wire delivers nothing; what was under way or is sent during the cut is
either lost for good (the connection did not live long enough) or delivered after the heal (it did, and retransmitted):
drawn once per cut.

Clients have connections: they connect before they send, and a connection may be reset. Everybody hears of the death of
a peer's process after one network delay, nobody of a cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from heapq import heappush
from typing import Any, Final, Protocol

from harness.choices import Choices
from harness.worlds.simulated.loop import Loop
from nemesis.cluster import CLIENTS, Link

#: One draw decides how long a message is under way; the last value resets a client's connection instead.
DELAYS: Final = 16_384
RESET: Final = DELAYS - 1
#: A local network: 0.2 ms at best, most under 1 ms, up to 2 ms; one message in 64 meets a queue or a lost packet, up to
#: 30 ms.
_ORDINARY: Final = DELAYS - DELAYS // 64
#: What a slow link adds: less than sessions and request time-outs, so that nothing breaks and everything is late.
SLOW_US: Final = 400_000
#: Messages that one cut wire holds back for retransmission: a socket's send buffer, some megabytes of small requests.
HELD_MAX: Final = 10_000


def _delay_us(choice: int) -> int:
    if choice < _ORDINARY:
        return 200 + 1_800 * choice**2 // _ORDINARY**2
    return 2_000 + 28_000 * (choice - _ORDINARY) ** 2 // (DELAYS - _ORDINARY) ** 2


DELAYS_US: Final = tuple(_delay_us(choice) for choice in range(DELAYS))


class Receiver(Protocol):
    """A process that messages reach: ``receive(source, message)``. A dead one drops them, a frozen one queues them."""

    receive: Callable[[int, Any], None]

    def disconnected(self, peer: int) -> None:
        """The connection to ``peer`` was refused, or broke."""
        ...


class ClientReceiver(Receiver, Protocol):
    """A client, which also hears when a connection that it asked for stands."""

    def connected(self, broker: int) -> None:
        """The connection to ``broker`` stands."""
        ...


class Cut:
    """One cut of some links: whether they retransmit after the heal, and what happened to messages meanwhile."""

    __slots__ = ("delayed", "dropped", "links", "retransmits")

    def __init__(self, links: int, retransmits: bool) -> None:
        self.links = links
        self.retransmits = retransmits
        self.dropped = 0
        self.delayed = 0


class Wire:
    """One direction between a node and one process of another node; a restarted target has new wires."""

    __slots__ = (
        "_arrive", "_draw", "_last_us", "_loop", "_lost", "_reset", "_stalled", "_unsent",
        "blocked", "broken", "cut", "late_us", "receiver", "source", "target",
    )  # fmt: skip

    def __init__(
        self,
        loop: Loop,
        draw: Callable[[int], int],
        link: Link,
        receiver: Receiver,
        reset: Callable[[], None] | None,
    ) -> None:
        self._loop = loop
        self._draw = draw
        self.source, self.target = link
        self.receiver = receiver
        self._reset = reset
        self._arrive = self._on_arrival
        self._last_us = 0
        self._stalled: list[Any] = []
        self._unsent: list[Any] = []
        self._lost = False
        self.cut: Cut | None = None
        self.late_us = 0
        self.broken = reset is not None
        self.blocked = self.broken

    def send(self, message: Any) -> None:
        """Put a message under way."""
        if self.blocked:
            self._hold(message, self._unsent)
            return
        choice = self._draw(DELAYS)
        if choice == RESET and self._reset is not None:
            self._reset()
            return
        loop = self._loop
        time_us = loop.time_us + DELAYS_US[choice] + self.late_us
        if time_us < self._last_us:
            time_us = self._last_us
        else:
            self._last_us = time_us
        heappush(loop.heap, (time_us, loop.next_sequence(), self._arrive, message))

    def _on_arrival(self, message: Any) -> None:
        if self.cut is not None:
            self._hold(message, self._stalled)
        else:
            self.receiver.receive(self.source, message)

    def _hold(self, message: Any, where: list[Any]) -> None:
        cut = self.cut
        if cut is None:
            return  # Sent on a connection that broke; its client is about to hear of that.
        if self.broken or not cut.retransmits or len(where) >= HELD_MAX:
            cut.dropped += 1
            self._lost = True
        else:
            cut.delayed += 1
            where.append(message)

    def notify(self, function: Callable[[int], None], argument: int) -> None:
        """Tell the operating system at the target, in order with the messages; lost if the wire is cut."""
        if self.cut is None:
            time_us = max(self._last_us, self._loop.time_us + DELAYS_US[self._draw(DELAYS)])
            self._loop.push(time_us, function, argument)

    def sever(self, cut: Cut) -> None:
        """Deliver nothing from now on."""
        self.cut = cut
        self.blocked = True

    def heal(self) -> bool:
        """Deliver again, first what was held back, in its order (what stalled on the way was sent before the rest).

        True if something was lost, so that a connection over this wire cannot have survived.
        """
        self.cut = None
        self.blocked = self.broken
        held = [] if self.broken else self._stalled + self._unsent
        lost, self._lost = self._lost, False
        self._stalled, self._unsent = [], []
        for message in held:
            self.send(message)
        return lost

    def break_off(self) -> None:
        """The client's connection is gone: nothing more is sent on it."""
        self.broken = self.blocked = True

    def connect(self) -> None:
        """A new connection; nothing orders it after the one before."""
        self.broken = False
        self.blocked = self.cut is not None
        self._last_us = 0


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
        return wires[target]

    def _delays(self, link: Link) -> Callable[[int], int]:
        return self._choices.stream(f"delay {link.source}>{link.target}").draw

    def _reset_of(self, link: Link) -> Callable[[], None] | None:
        if link.source in self._clients:
            return lambda: self._disconnect(link.source, link.target)
        if link.target in self._clients:
            return lambda: self._disconnect(link.target, link.source)
        return None

    # --- processes ---------------------------------------------------------------------------------------------------

    def add_client(self, node: int, client: ClientReceiver) -> None:
        """A client appears; cuts of CLIENTS hold for it too."""
        self._clients[node] = client
        self._receivers[node] = client

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
        """Mend ``links``; the cuts that ended with this, each once. CLIENTS heals those of single clients too."""
        ended: list[Cut] = []
        for link in sorted(links):
            for over in [over for over in self._cuts if self._covers(link, over)]:
                cut = self._cuts.pop(over)
                if cut not in ended:
                    ended.append(cut)
            for wire in self._wires_of(link):
                self._heal_wire(wire)
        return ended

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
