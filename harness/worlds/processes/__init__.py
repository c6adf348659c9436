"""The world of processes: the reference broker on this machine, with real clients over real sockets."""

from pathlib import Path

from harness.plan import Processes, RunSpec, require_kind
from harness.worlds.processes.distribution import ReferenceDistribution
from harness.worlds.real import RealWorld, StartedCluster, local_host

__all__ = ["processes_world"]


def processes_world(spec: RunSpec, directory: Path) -> RealWorld:
    """The world of the run ``spec``, whose files stand in ``directory``; not yet opened."""
    host = local_host(require_kind(spec.world, Processes).host)
    return RealWorld(spec, directory, StartedCluster(spec, directory, ReferenceDistribution(spec), host))
