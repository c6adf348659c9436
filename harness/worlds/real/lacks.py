"""Says which faults are impossible here, and why, before a cluster is started.

Three places decide it, each next to the part that does it: a distribution
(:meth:`harness.worlds.real.started.Distribution.lacks`), a host (:meth:`harness.hosts.contract.Host.lacks`), and this
module for what the machine cannot make ready. Plans are asked the same: :mod:`harness.worlds.limits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from harness.errors import HostError
from harness.hosts import Clocks, Host, LocalHost, NamespaceHost, find_limit, probe_disks, probe_slow_links
from nemesis.cluster import Capability

#: What needs a disk of each broker's own.
ON_DISKS: Final = (Capability.POWER, Capability.WRITE_CACHES, Capability.DISK_SPACE, Capability.DISK_SPEED)
_NO_INTERFACES: Final = 'links are slowed down with host = "namespaces" only, which needs root'
_CLOCKS_ELSEWHERE: Final = "clocks are set on this machine only"
_DISKS_ELSEWHERE: Final = "disks of machines that are reached over SSH are left alone"


def out_of_reach(distribution_lacks: Mapping[Capability, str], host: type[Host]) -> dict[Capability, str]:
    """What is not done to nodes of a distribution with these lacks on such a host, however this machine is."""
    lacks = dict(distribution_lacks)
    if not issubclass(host, NamespaceHost):
        lacks[Capability.LINK_SPEED] = _NO_INTERFACES
    if not issubclass(host, LocalHost):
        lacks |= dict.fromkeys((Capability.FILES, *ON_DISKS), _DISKS_ELSEWHERE) | {Capability.CLOCKS: _CLOCKS_ELSEWHERE}
    if Capability.LINKS in lacks:
        lacks[Capability.MESSAGES] = lacks[Capability.LINKS]
    return lacks


def machine_lacks(capabilities: Iterable[Capability]) -> dict[Capability, str]:
    """Which of these this machine cannot make ready for nodes on it, and what to do; nothing is left behind.

    Disks and slow links may still turn out to be impossible when a run makes them: what is known before is found.
    """
    found = ((one, _complaint(_PROBES[one])) for one in capabilities if one in _PROBES)
    return {one: why for one, why in found if why}


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


#: What finds out, as a run does, whether this machine has what faults of a capability need.
_PROBES: Final[Mapping[Capability, tuple[Callable[[], object], ...]]] = {
    **dict.fromkeys(ON_DISKS, (probe_disks,)),
    Capability.DISK_SPEED: (probe_disks, find_limit),
    Capability.LINK_SPEED: (probe_slow_links,),
    Capability.CLOCKS: (_probe_clocks,),
}
