"""The world of real processes: the reference broker as a cluster of nodes, real clients over real sockets."""

from harness.worlds.processes.world import ProcessesWorld

__all__ = ["ProcessesWorld"]
