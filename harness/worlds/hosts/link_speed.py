"""Makes links slow between nodes with interfaces of their own, by the kernel's queueing (``tc``).

The packets from a source to a target pass a class of their own with a small rate (``htb``); all others pass as before.
They first wait in the class's own queue, its leaf: :data:`LATE` delays every packet, in :data:`FIFO` a packet waits
only for those before it. None of this is journalled: a qdisc ends with its interface, and the journal has that.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from harness.ground.errors import HostError
from harness.worlds.hosts.processes import attempt, run
from nemesis.cluster import Link, link_name
from nemesis.evidence import LinksSlowed

#: Less than a few dozen small writes a second: followers fall behind without a connection breaking.
RATE_KBIT: Final = 16
#: A class must be able to hold two full packets, or it delivers none.
_BURST_BYTES: Final = 3_000
#: A queue that delays every packet by a fifth of a second, give or take, as over an ocean: much less than a session.
#: Packets may overtake one another in it, which TCP repairs. Not every kernel has it (sch_netem).
LATE: Final = "netem limit 1000 delay 200ms 50ms"
#: The queue that a class has anyway.
FIFO: Final = "pfifo limit 1000"
_OTHERS: Final = "1:fff"
#: Class numbers are hexadecimal; a target's is its node number and this.
_FIRST_CLASS: Final = 0x10
_CLASS: Final = re.compile(
    r"^class htb 1:([0-9a-f]+) .*?^ Sent (\d+) bytes \d+ pkt \(dropped (\d+), overlimits (\d+)", re.M | re.S
)
_DELAY: Final = re.compile(r"^qdisc netem [0-9a-f]+: parent 1:([0-9a-f]+) .*?\bdelay (\d+)(?:\.\d+)?ms", re.M)


class Interface(NamedTuple):
    """The way out of a node's packets: the device, and its network namespace (empty for the harness's own)."""

    namespace: str
    device: str


def probe_slow_links() -> str:
    """The best leaf for slow classes that this kernel has, tried in a namespace that ends with the command.

    Raises:
        HostError: something is missing; the text says what.
    """
    for tool, package in (("tc", "iproute2"), ("unshare", "util-linux")):
        if shutil.which(tool) is None:
            raise HostError(f"slow links need the command {tool}; install the package {package}")
    _try(FIFO)
    try:
        _try(LATE)
    except HostError:
        return FIFO
    return LATE


def _try(leaf: str) -> None:
    _run(["unshare", "--net", "tc", "-batch", "-"], rules("lo", [0], {0: "127.0.0.1"}, leaf))


class Shaper:
    """Makes links of a run slow. Implements :class:`nemesis.cluster.LinkSpeed`.

    ``interfaces`` and ``addresses`` are by node, and hold the clients' too; ``leaf`` comes from
    :func:`probe_slow_links`; ``single_links`` gives the links between single nodes for those that a fault names.
    """

    def __init__(
        self,
        interfaces: Mapping[int, Interface],
        addresses: Mapping[int, str],
        leaf: str,
        single_links: Callable[[Collection[Link]], Collection[Link]] = sorted,
    ) -> None:
        self._interfaces = interfaces
        self._addresses = addresses
        self._leaf = leaf
        self._single_links = single_links
        self._slow: set[Link] = set()
        self._passed: dict[Link, dict[str, int]] = {}

    def slow(self, links: Collection[Link]) -> LinksSlowed:
        """Deliver at a small rate over these links, and late where the kernel can delay."""
        links = self._single_links(links)
        new = set(links) - self._slow
        self._keep_counts(new)
        self._passed.update({link: {} for link in new})
        self._slow |= new
        self._enforce(new)
        limited = {Link(source, target): RATE_KBIT for source in _sources(links) for target in self._seen(source)}
        late = {Link(source, target): ms for source in _sources(links) for target, ms in self._late(source).items()}
        evidence: LinksSlowed = {}
        if kbit := {link_name(link): limited[link] for link in sorted(set(links) & limited.keys())}:
            evidence["kbit"] = kbit
        if delay_ms := {link_name(link): late[link] for link in sorted(set(links) & late.keys())}:
            evidence["delay_ms"] = delay_ms
        return evidence

    def restore(self, links: Collection[Link]) -> LinksSlowed:
        """Deliver as before."""
        slow = self._slow & set(self._single_links(links))
        self._keep_counts(slow)
        self._slow -= slow
        self._enforce(slow)
        return {"passed": {link_name(link): self._passed.pop(link) for link in sorted(slow)}} if slow else {}

    def _keep_counts(self, links: Collection[Link]) -> None:
        """Add up the counts of these links' rules, which begin at 0 once they are made again."""
        for source in _sources(links):
            for target, counted in self._seen(source).items():
                passed = self._passed.setdefault(Link(source, target), {})
                passed.update({name: passed.get(name, 0) + number for name, number in counted.items()})

    def _enforce(self, links: Collection[Link]) -> None:
        """Make the rules of every source again; packets that wait in the old ones are lost, and TCP resends them."""
        for source in _sources(links):
            interface = self._interfaces[source]
            targets = [link.target for link in self._slow if link.source == source]
            # This removes all rules and the packets that wait in them; the first time it fails, without effect.
            attempt(_tc(interface, "qdisc", "del", "dev", interface.device, "root"))
            if targets:
                _run(_tc(interface, "-batch", "-"), rules(interface.device, targets, self._addresses, self._leaf))

    def _seen(self, source: int) -> dict[int, dict[str, int]]:
        interface = self._interfaces[source]
        return counted(_run(_tc(interface, "-s", "class", "show", "dev", interface.device)))

    def _late(self, source: int) -> dict[int, int]:
        interface = self._interfaces[source]
        return delays_ms(_run(_tc(interface, "qdisc", "show", "dev", interface.device)))


def _sources(links: Collection[Link]) -> list[int]:
    return sorted({link.source for link in links})


def rules(device: str, targets: Collection[int], addresses: Mapping[int, str], leaf: str) -> str:
    """Lines for ``tc -batch`` that slow packets to ``targets``, on a device without rules; ``leaf`` queues them."""
    slow = f"htb rate {RATE_KBIT}kbit burst {_BURST_BYTES} quantum 1514"
    lines = [
        f"qdisc add dev {device} root handle 1: htb default {_OTHERS[2:]}",
        f"class add dev {device} parent 1: classid {_OTHERS} htb rate 10gbit quantum 60000",
    ]
    for target in sorted(targets):
        own = f"{target + _FIRST_CLASS:x}"
        number = f"1:{own}"
        match = f"u32 match ip dst {addresses[target]}/32"
        lines += [
            f"class add dev {device} parent 1: classid {number} {slow}",
            f"qdisc add dev {device} parent {number} handle {own}: {leaf}",
            f"filter add dev {device} parent 1: protocol ip prio 1 {match} flowid {number}",
        ]
    return "\n".join(lines) + "\n"


def counted(listing: str) -> dict[int, dict[str, int]]:
    """By target, the ``bytes`` that passed and the packets that waited (``waits``), from ``tc -s class show``."""
    by_class = {int(number, 16): (int(sent), int(waits)) for number, sent, _, waits in _CLASS.findall(listing)}
    return {
        number - _FIRST_CLASS: {"bytes": sent, "waits": waits}
        for number, (sent, waits) in by_class.items()
        if f"1:{number:x}" != _OTHERS
    }


def delays_ms(listing: str) -> dict[int, int]:
    """By target, the delay of its packets, from ``tc qdisc show``; empty if the leaf delays none."""
    return {int(number, 16) - _FIRST_CLASS: int(ms) for number, ms in _DELAY.findall(listing)}


def _tc(interface: Interface, *words: str) -> list[str]:
    return ["tc", *(("-n", interface.namespace) if interface.namespace else ()), *words]


def _run(command: list[str], text: str | None = None) -> str:
    return run(command, text, failure="links cannot be made slow on this machine")
