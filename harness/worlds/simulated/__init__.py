"""The simulated world: everything in virtual time, in one process, repeatable draw by draw."""

from harness.worlds.simulated.world import SimulatedWorld

__all__ = ["SimulatedWorld"]
