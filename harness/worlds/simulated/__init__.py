"""The simulated world: everything in virtual time, in one process, repeatable choice by choice."""

from harness.worlds.simulated.cluster import OUT_OF_REACH
from harness.worlds.simulated.producer import ERROR_NAMES
from harness.worlds.simulated.world import SimulatedWorld

__all__ = ["ERROR_NAMES", "OUT_OF_REACH", "SimulatedWorld"]
