"""Slow links, where nodes have interfaces of their own: rates and delays in the kernel's queueing (``tc``).

What a source sends to a target passes a class of its own with a small rate (``htb``), everything else passes as before.
Before that it waits in the class's own queue, its leaf: in :data:`LATE` for some time in any case, in :data:`FIFO` only
for what was there before. Nothing of it is journalled: a qdisc belongs to an interface that the journal knows, and ends
with it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from harness.errors import HostError
from harness.hosts.cut_links import link_name
from harness.hosts.processes import attempt, run
from nemesis.cluster import Link
from nemesis.evidence import Evidence

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
    """Find out what the kernel can, on a loopback interface of a namespace that ends with the command.

    The answer is the leaf for slow classes: one that delays where the kernel has it.

    Raises:
        HostError: what is missing.
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
    """The slow links of a run. Implements :class:`nemesis.cluster.LinkSpeed`.

    ``interfaces`` and ``addresses`` are by node, the clients' among them; ``leaf`` is what :func:`probe_slow_links`
    found; ``single_links`` gives the links between single nodes for those that a fault names.
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

    def slow(self, links: Collection[Link]) -> Evidence:
        """Deliver little at a time over these links, and late where the kernel can.

        Evidence: ``kbit`` by link, and ``delay_ms`` by link, as the kernel now has them; none of what it has not.
        """
        links = self._single_links(links)
        new = set(links) - self._slow
        self._keep_counts(new)
        self._passed.update({link: {} for link in new})
        self._slow |= new
        self._enforce(new)
        there = {Link(source, target): RATE_KBIT for source in _sources(links) for target in self._seen(source)}
        late = {Link(source, target): ms for source in _sources(links) for target, ms in self._late(source).items()}
        evidence: Evidence = {}
        if kbit := {link_name(link): there[link] for link in sorted(set(links) & there.keys())}:
            evidence["kbit"] = kbit
        if delay_ms := {link_name(link): late[link] for link in sorted(set(links) & late.keys())}:
            evidence["delay_ms"] = delay_ms
        return evidence

    def restore(self, links: Collection[Link]) -> Evidence:
        """Deliver as before. Evidence: ``passed`` by link since it became slow: bytes, and how often one waited."""
        slow = self._slow & set(self._single_links(links))
        self._keep_counts(slow)
        self._slow -= slow
        self._enforce(slow)
        return {"passed": {link_name(link): self._passed.pop(link) for link in sorted(slow)}} if slow else {}

    def _keep_counts(self, links: Collection[Link]) -> None:
        """Add up what the rules have counted that are to be made anew, which begin at 0."""
        for source in _sources(links):
            for target, counted in self._seen(source).items():
                passed = self._passed.setdefault(Link(source, target), {})
                passed.update({name: passed.get(name, 0) + number for name, number in counted.items()})

    def _enforce(self, links: Collection[Link]) -> None:
        """Make the rules of every source concerned anew; what waits in the old ones is lost, and TCP sends it again."""
        for source in _sources(links):
            interface = self._interfaces[source]
            targets = [link.target for link in self._slow if link.source == source]
            # This removes them all, with what waits in them; there is nothing to remove the first time.
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
    """Lines for ``tc -batch`` on a device without such rules: what goes to ``targets`` is slow. ``leaf`` queues it."""
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
    """From ``tc -s class show``: by target, ``bytes`` that passed, and how often a packet had to wait (``waits``)."""
    found = {int(number, 16): (int(sent), int(waits)) for number, sent, _, waits in _CLASS.findall(listing)}
    return {
        number - _FIRST_CLASS: {"bytes": sent, "waits": waits}
        for number, (sent, waits) in found.items()
        if f"1:{number:x}" != _OTHERS
    }


def delays_ms(listing: str) -> dict[int, int]:
    """From ``tc qdisc show``: by target, how late its packets are made; nothing where the leaf delays none."""
    return {int(number, 16) - _FIRST_CLASS: int(ms) for number, ms in _DELAY.findall(listing)}


def _tc(interface: Interface, *words: str) -> list[str]:
    return ["tc", *(("-n", interface.namespace) if interface.namespace else ()), *words]


def _run(command: list[str], text: str | None = None) -> str:
    return run(command, text, failure="slow links cannot be had here")
