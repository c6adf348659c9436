"""An instance is cut off from one broker by a rule of the kernel; other instances, and other brokers, are not."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from harness.ground.errors import PlanError
from harness.records.journal import FILE_NAME, Journal, not_undone
from harness.worlds.hosts import Ports, undo_here
from harness.worlds.real import instance_links as module
from harness.worlds.real.instance_links import InstanceLinks, group_of, require_cuts
from tests.harness.needs import needs_root

HOST: Final = "127.77.7.7"
CALLS: Final = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 0.3)"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / FILE_NAME)
    yield journal
    journal.close()


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, int]]:
    """The ports of two servers on one address, as those of brokers 0 and 1."""
    with Ports() as allocated, ExitStack() as servers:
        ports = {broker: allocated.take(HOST).port for broker in (0, 1)}
        for port in ports.values():
            servers.enter_context(socket.create_server((HOST, port)))
        addresses = {broker: [(HOST, port)] for broker, port in ports.items()}
        monkeypatch.setattr(module, "_addresses", lambda _: addresses)
        yield ports


def reaches(instance: int, port: int) -> bool:
    words = [sys.executable, "-c", CALLS, HOST, str(port)]
    return subprocess.run(words, group=group_of(instance), check=False, stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.root
@needs_root("nft")
def test_an_instance_reaches_every_broker_but_that_from_which_it_is_cut_off(
    journal: Journal, brokers: dict[int, int]
) -> None:
    links = InstanceLinks("b:1", journal)
    assert not links.cut(0, 2), "nobody knows that broker"
    assert links.cut(0, 1)
    assert not links.cut(0, 0), "one at a time"
    assert (reaches(0, brokers[0]), reaches(0, brokers[1]), reaches(1, brokers[1])) == (True, False, True)
    assert (links.mend(0) or 0) > 0
    assert links.mend(0) is None
    assert reaches(0, brokers[1])
    assert not_undone(journal.path) == []


@pytest.mark.root
@needs_root("nft")
def test_heal_ends_the_cuts_of_a_dead_harness(journal: Journal, brokers: dict[int, int]) -> None:
    links = InstanceLinks("b:1", journal)
    links.cut(0, 1)
    (undone,) = undo_here(journal)
    assert undone.startswith("table ackproof_")
    assert reaches(0, brokers[1])
    assert undo_here(journal) == []


def test_a_machine_that_cannot_cut_instances_off_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "geteuid", lambda: 1000)
    with pytest.raises(PlanError, match="needs root; run as root, or leave instance-cut out"):
        require_cuts()
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(PlanError, match="install the package nftables"):
        require_cuts()
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/sbin/nft")
    monkeypatch.setattr(module, "_groups_here", lambda: [(0, 65_536)])
    with pytest.raises(PlanError, match="group ids that this container does not have"):
        require_cuts()
