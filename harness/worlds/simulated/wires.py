"""The wires of the simulated network: delay, order, cuts, and messages that are held back or thrown away.

What a wire does to a message is what TCP does to it. Messages of one wire arrive in the order in which they were sent,
those of different wires in any order. A cut wire delivers nothing; what was under way or is sent during the cut is
either lost for good (the connection did not live long enough) or delivered after the heal (it did, and retransmitted):
drawn once per cut.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from typing import Any, Final, Protocol

from harness.worlds.simulated.loop import Loop
from nemesis.cluster import Link

#: One draw decides how long a message is under way; the last value resets a client's connection instead.
DELAYS: Final = 16_384
RESET: Final = DELAYS - 1
#: A local network: 0.2 ms at best, most under 1 ms, up to 2 ms; one message in 64 meets a queue or a lost packet, up to
#: 30 ms.
_ORDINARY: Final = DELAYS - DELAYS // 64
#: The delay of a slow link: less than sessions and request time-outs, so that nothing breaks and everything is late.
SLOW_US: Final = 400_000
#: A filter takes every message that it wants.
EVERY: Final = 2**62
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
    """A client, which also hears when a connection that it asked for is open."""

    def connected(self, broker: int) -> None:
        """The connection to ``broker`` is open."""
        ...


class Cut:
    """One cut of some links: whether they retransmit after the heal, and what happened to messages meanwhile."""

    __slots__ = ("delayed", "dropped", "links", "retransmits")

    def __init__(self, links: int, retransmits: bool) -> None:
        self.links = links
        self.retransmits = retransmits
        self.dropped = 0
        self.delayed = 0


class Filter:
    """A rule for the ``wanted`` messages of a link: they are kept until the filter is taken away, or dropped.

    It takes ``most`` of them, the first ones; what is sent later overtakes those. ``held`` are the kept ones, each with
    its place in the order of all that was ever sent, and its wire; ``dropped`` counts the others. ``name`` tells the
    filters of one link apart.
    """

    __slots__ = ("_left", "_loop", "dropped", "held", "keeps", "name", "wanted")

    def __init__(
        self, loop: Loop, wanted: Callable[[int, int, Any], bool], name: str, *, keeps: bool, most: int = EVERY
    ) -> None:
        self._loop = loop
        self._left = most
        self.wanted = wanted
        self.name = name
        self.keeps = keeps
        self.held: list[tuple[int, Wire, Any]] = []
        self.dropped = 0

    def takes(self, wire: Wire, message: Any) -> bool:
        """Take ``message`` off its ``wire`` if it is wanted; the answer says whether it was."""
        if not self._left or not self.wanted(wire.source, wire.target, message):
            return False
        self._left -= 1
        if self.keeps:
            self.held.append((self._loop.next_sequence(), wire, message))
        else:
            self.dropped += 1
        return True


class Wire:
    """One direction between a node and one process of another node; a restarted target has new wires.

    ``draw`` gives this link's delays; ``reset`` breaks the connection of a client, None between nodes. ``late_us`` is
    what a slow link adds. ``blocked`` is looked at for every message: true while the wire is cut, broken or filtered.
    """

    __slots__ = (
        "_arrive", "_draw", "_filters", "_last_us", "_loop", "_lost", "_reset", "_stalled", "_unsent",
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
        self._filters: tuple[Filter, ...] = ()
        self.cut: Cut | None = None
        self.late_us = 0
        self.broken = reset is not None
        self.blocked = self.broken

    def send(self, message: Any) -> None:
        """Put a message under way."""
        if self.blocked and self._stopped(message):
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

    def filter(self, by: tuple[Filter, ...]) -> None:
        """Let these, one after the other, look at every message that is sent from now on until one takes it."""
        self._filters = by
        self._look()

    def _stopped(self, message: Any) -> bool:
        if any(message_filter.takes(self, message) for message_filter in self._filters):
            return True
        if self.broken or self.cut is not None:
            self._hold(message, self._unsent)
            return True
        return False

    def _look(self) -> None:
        self.blocked = self.broken or self.cut is not None or bool(self._filters)

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
        """Let the target's operating system know, in order with the messages; lost if the wire is cut."""
        if self.cut is None:
            time_us = max(self._last_us, self._loop.time_us + DELAYS_US[self._draw(DELAYS)])
            self._loop.push(time_us, function, argument)

    def sever(self, cut: Cut) -> None:
        """Deliver nothing from now on."""
        self.cut = cut
        self._look()

    def heal(self) -> bool:
        """Deliver again, first what was held back, in its order (what stalled on the way was sent before the rest).

        True if something was lost, so that a connection over this wire cannot have survived.
        """
        self.cut = None
        self._look()
        held = [] if self.broken else self._stalled + self._unsent
        lost, self._lost = self._lost, False
        self._stalled, self._unsent = [], []
        for message in held:
            self.send(message)
        return lost

    def break_off(self) -> None:
        """The client's connection is gone: nothing more is sent on it."""
        self.broken = True
        self._look()

    def connect(self) -> None:
        """A new connection; nothing orders it after the one before."""
        self.broken = False
        self._look()
        self._last_us = 0
