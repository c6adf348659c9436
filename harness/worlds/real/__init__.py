"""The common part of all worlds with real clients: the run around a cluster, and the cluster started for it."""

from harness.worlds.real.lacks import machine_lacks, out_of_reach
from harness.worlds.real.started import Distribution, StartedCluster, lifetime_s, local_host
from harness.worlds.real.world import Opened, Opening, RealCluster, RealWorld

__all__ = [
    "Distribution",
    "Opened",
    "Opening",
    "RealCluster",
    "RealWorld",
    "StartedCluster",
    "lifetime_s",
    "local_host",
    "machine_lacks",
    "out_of_reach",
]
