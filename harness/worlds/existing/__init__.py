"""The world of a Kafka cluster that exists already: somebody else's, reached over the network alone."""

from pathlib import Path

from harness.plan import RunSpec
from harness.worlds.existing.cluster import ExistingCluster
from harness.worlds.real import RealWorld

__all__ = ["existing_world"]


def existing_world(spec: RunSpec, directory: Path) -> RealWorld:
    """The world of the run ``spec``, whose files stand in ``directory``; not yet opened."""
    return RealWorld(spec, directory, ExistingCluster(spec, directory.absolute()))
