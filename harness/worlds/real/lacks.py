"""Says which faults are impossible here, and why, before a cluster is started.

Three parts decide it: a distribution (:meth:`harness.worlds.real.started.Distribution.lacks`), a host
(:meth:`harness.worlds.hosts.contract.Host.lacks`), and this module for the machine. :mod:`harness.worlds.limits` asks
the same about a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from harness.ground.errors import HostError
from harness.worlds.hosts import Clocks, Host, LocalHost, NamespaceHost, find_limit, probe_disks, probe_slow_links
from nemesis.cluster import Capability

#: The capabilities for which each broker needs a disk of its own.
ON_DISKS: Final = (Capability.POWER, Capability.WRITE_CACHES, Capability.DISK_SPACE, Capability.DISK_SPEED)
_NO_INTERFACES: Final = 'links can be slow with host = "namespaces" only, which needs root'
_NO_RULES: Final = 'connections can be held, and packets lost, with host = "namespaces" only, which needs root'
_CLOCKS_ELSEWHERE: Final = "clocks can be wrong only for nodes on this machine"
_DISKS_ELSEWHERE: Final = "the disks of machines over SSH are left alone"


def out_of_reach(distribution_lacks: Mapping[Capability, str], host: type[Host]) -> dict[Capability, str]:
    """The capabilities that nodes of a distribution with these lacks do not have on such a host, on any machine."""
    lacks = dict(distribution_lacks)
    if not issubclass(host, NamespaceHost):
        lacks |= {Capability.LINK_SPEED: _NO_INTERFACES}
        lacks |= dict.fromkeys((Capability.CONNECTIONS, Capability.PACKETS), _NO_RULES)
    if not issubclass(host, LocalHost):
        lacks |= dict.fromkeys((Capability.FILES, *ON_DISKS), _DISKS_ELSEWHERE) | {Capability.CLOCKS: _CLOCKS_ELSEWHERE}
    if Capability.LINKS in lacks:
        lacks[Capability.MESSAGES] = lacks[Capability.LINKS]
    return lacks


def machine_lacks(capabilities: Iterable[Capability]) -> dict[Capability, str]:
    """The capabilities among these that this machine cannot offer its nodes, and why; the probes leave nothing behind.

    A run may still find that disks or slow links are impossible when it makes them.
    """
    complaints = ((capability, _complaint(_PROBES[capability])) for capability in capabilities if capability in _PROBES)
    return {capability: why for capability, why in complaints if why}


def _complaint(probes: Iterable[Callable[[], object]]) -> str:
    try:
        for probe in probes:
            probe()
    except HostError as error:
        return str(error)
    return ""


def _probe_clocks() -> None:
    with TemporaryDirectory(prefix="ackproof-clocks-") as directory:
        Clocks(Path(directory))


#: The probes, the same as a run's, of what this machine needs for faults of a capability.
_PROBES: Final[Mapping[Capability, tuple[Callable[[], object], ...]]] = {
    **dict.fromkeys(ON_DISKS, (probe_disks,)),
    Capability.DISK_SPEED: (probe_disks, find_limit),
    Capability.LINK_SPEED: (probe_slow_links,),
    Capability.CLOCKS: (_probe_clocks,),
}
