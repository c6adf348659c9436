"""A run's journal, and two nodes in namespaces and two brokers' disks on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.records.journal import FILE_NAME, Journal
from harness.worlds.hosts.disks import MountedDisk, make_disks
from harness.worlds.hosts.namespaces import NamespaceHost
from harness.worlds.hosts.undo import undo_here


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / FILE_NAME)


@pytest.fixture
def host(journal: Journal) -> Iterator[NamespaceHost]:
    """Needs root and the commands ip and nft."""
    host = NamespaceHost(journal)
    try:
        host.open([0, 1])
        yield host
    finally:
        host.close()


@pytest.fixture
def disks(tmp_path: Path, journal: Journal) -> Iterator[dict[int, MountedDisk]]:
    """Needs root and the command mkfs.ext4."""
    try:
        yield make_disks(tmp_path / "data", [0, 1], journal)
    finally:
        undo_here(journal)
