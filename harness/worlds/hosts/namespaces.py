"""The namespace host gives every node a network namespace and an address of its own.

::

    root namespace            hub namespace               node namespaces
    harness, clients          bridge 10.77.n.0/24
    10.77.n.254 ── veth ────── port ── ports ── veth ───── 10.77.n.1, .2, ... and .101 for the controller

The bridge lives in a namespace of its own, so that rules and settings of the root namespace (a firewall, Docker's
forwarding rules) do not reach it, and deleting the namespaces deletes everything but the one interface in the root
namespace. Partitions are nftables rules in the nodes' namespaces. Needs root, ``ip`` and ``nft``.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from typing_extensions import override

from harness.ground.errors import HostError
from harness.records.journal import Journal
from harness.worlds.hosts.connection_holds import ConnectionHolds
from harness.worlds.hosts.contract import Address
from harness.worlds.hosts.cut_links import REPLACE, DroppedLinks, ruleset
from harness.worlds.hosts.link_speed import Interface, Shaper, probe_slow_links
from harness.worlds.hosts.local import LocalHost
from harness.worlds.hosts.packet_loss import PacketLoss
from harness.worlds.hosts.processes import NAME_PREFIX, attempt, boot_id, run
from nemesis.cluster import CLIENTS, Link

#: The port of every node; nodes differ by address.
PORT: Final = 9_092
#: The harness's and all clients' own end of a run's network; a node's is its number + 1.
CLIENT_HOST: Final = 254
NETWORKS: Final = 256
_NAME_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_calls = itertools.count()


def probe() -> None:
    """Check that this machine can do it, by making and deleting one namespace with one rule.

    Raises:
        HostError: something is missing; the text says what to do.
    """
    if os.geteuid() != 0:
        raise HostError('host "namespaces" needs root; run as root, or use host = "loopback"')
    for tool, package in (("ip", "iproute2"), ("nft", "nftables"), ("nsenter", "util-linux")):
        if shutil.which(tool) is None:
            raise HostError(f'host "namespaces" needs the command {tool}; install the package {package}')
    name = f"{NAME_PREFIX}{_unique()}t"
    try:
        _run(["ip", "netns", "add", name])
        _inside(name, ("nft", *REPLACE), ruleset(0, [Link(1, 0)], {1: "10.77.0.2"}))
    finally:
        attempt(["ip", "netns", "delete", name])


class NamespaceHost(LocalHost):
    """Nodes as processes in network namespaces of this machine."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self._suffix = _unique()
        self._ips: dict[int, str] = {}
        # Links of single clients, which share an address, are cut by the nodes themselves.
        self.links = DroppedLinks(self._addresses, lambda _: self._ips, self._nft, rest=self.links)

    @override
    def open(self, nodes: Collection[int]) -> None:
        probe()
        self._make_control(nodes)
        hub = self._make_namespace("h")
        _batch(hub, ["link add bridge type bridge", "link set bridge up"])
        network = self._join_harness(hub)
        self._ips[CLIENTS] = f"10.77.{network}.{CLIENT_HOST}"
        for node in sorted(nodes):
            self._ips[node] = f"10.77.{network}.{node + 1}"
            self._join_node(hub, node)
            self._addresses[node] = Address(self._ips[node], PORT)

    def shaper(self, single_links: Callable[[Collection[Link]], Collection[Link]] = sorted) -> Shaper:
        """The shaper that makes links of this host slow; ``single_links`` as for :class:`Shaper`.

        Raises:
            HostError: as for :func:`probe_slow_links`.
        """
        leaf = probe_slow_links()
        return Shaper(self.interfaces(), self._ips, leaf, single_links)

    def connection_holds(
        self, single_links: Callable[[Collection[Link]], Collection[Link]] = sorted
    ) -> ConnectionHolds:
        """The part that holds connections to nodes of this host; ``single_links`` as for :class:`ConnectionHolds`."""
        return ConnectionHolds(self._ips, PORT, self._in_namespace, single_links)

    def packet_loss(self, single_links: Callable[[Collection[Link]], Collection[Link]] = sorted) -> PacketLoss:
        """The part that loses packets of this host's nodes; ``single_links`` as for :class:`PacketLoss`."""
        return PacketLoss(self._addresses, self._ips, self._nft, single_links)

    def interfaces(self) -> dict[int, Interface]:
        """By node, the interface by which its packets leave; the clients' one too."""
        nodes = {node: Interface(self._namespace(str(node)), "eth0") for node in self._addresses}
        return {**nodes, CLIENTS: Interface("", self._namespace("r"))}

    def _prefix(self, node: int) -> tuple[str, ...]:
        # `ip netns exec` would give the node its own copy of all mounts, and keep those of other nodes' disks busy.
        return ("nsenter", f"--net=/run/netns/{self._namespace(str(node))}", "--")

    def _namespace(self, role: str) -> str:
        return f"{NAME_PREFIX}{self._suffix}{role}"

    def _make_namespace(self, role: str) -> str:
        name = self._namespace(role)
        self._journal.intend("namespace", {"name": name, "boot_id": boot_id()})
        _run(["ip", "netns", "add", name])
        _batch(name, ["link set lo up"])
        return name

    def _join_harness(self, hub: str) -> int:
        """Put an interface of the root namespace on the bridge; the answer is the number of this run's own network."""
        outside, inside = self._namespace("r"), self._namespace("i")
        self._journal.intend("link", {"name": outside, "boot_id": boot_id()})
        _run(["ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", hub])
        _batch(hub, [f"link set {inside} master bridge", f"link set {inside} up"])
        _run(["ip", "link", "set", outside, "up"])
        begin = time.time_ns() // 1_000_000
        for number in ((begin + step) % NETWORKS for step in range(NETWORKS)):
            if _networks().count(number):
                continue
            address = f"10.77.{number}.{CLIENT_HOST}/24"
            _run(["ip", "address", "add", address, "dev", outside])
            # Another harness may have chosen the same number at the same moment; one that sees two takes the next.
            if _networks().count(number) == 1:
                return number
            _run(["ip", "address", "delete", address, "dev", outside])
        raise HostError(
            "all networks from 10.77.0.0/24 to 10.77.255.0/24 are in use; heal old runs with `ackproof heal`"
        )

    def _join_node(self, hub: str, node: int) -> None:
        name, port = self._make_namespace(str(node)), f"port{node}"
        _run(["ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", hub])
        _batch(hub, [f"link set {port} master bridge", f"link set {port} up"])
        _batch(name, [f"address add {self._ips[node]}/24 dev eth0", "link set eth0 up"])

    def _in_namespace(self, node: int, command: Sequence[str], text: str) -> str:
        return _inside(self._namespace(str(node)), command, text)

    def _nft(self, node: int, words: Sequence[str], text: str = "") -> str:
        return self._in_namespace(node, ("nft", *words), text)


def _unique() -> str:
    """Five letters that no other run has had for hours: milliseconds, moved by process and by call.

    Interface names have at most 15 letters. The kernel refuses a name that exists: a collision is an error, no mix-up.
    """
    number = time.time_ns() // 1_000_000 + 1_009 * os.getpid() + 10_007 * next(_calls)
    digits = [_NAME_DIGITS[number // 36**position % 36] for position in range(5)]
    return "".join(reversed(digits))


def _networks() -> list[int]:
    """The numbers n of all addresses 10.77.n.x in the root namespace."""
    interfaces: list[dict[str, Any]] = json.loads(_run(["ip", "-json", "-4", "address", "show"]))
    addresses = [info.get("local", "") for interface in interfaces for info in interface.get("addr_info", [])]
    return [int(address.split(".")[2]) for address in addresses if address.startswith("10.77.")]


def _batch(namespace: str, lines: list[str]) -> None:
    _run(["ip", "-n", namespace, "-batch", "-"], "\n".join(lines) + "\n")


def _inside(namespace: str, command: Sequence[str], text: str) -> str:
    return _run(["ip", "netns", "exec", namespace, *command], text)


def _run(command: list[str], text: str | None = None) -> str:
    return run(command, text, failure='host "namespaces" does not work on this machine, use host = "loopback"')
