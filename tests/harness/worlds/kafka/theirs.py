"""Clusters that are somebody else's, for as long as a test's module lasts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from harness.run.healing import heal
from harness.worlds.real import RealWorld


class Theirs(Protocol):
    """A cluster that a world holds open."""

    world: RealWorld


Cluster = TypeVar("Cluster", bound=Theirs)


@contextmanager
def theirs_at(directory: Path, make: Callable[[Path], Cluster]) -> Iterator[Cluster]:
    """A cluster with its files in ``directory``; whatever happens, nothing of it is left."""
    try:
        theirs = make(directory)
        yield theirs
        theirs.world.close()
    finally:
        heal(directory)
