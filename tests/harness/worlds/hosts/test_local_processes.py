"""Processes on this machine: their states, their ends, and that nobody else's is touched."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.ground.errors import HostError
from harness.records.journal import Journal, not_undone
from harness.worlds.hosts.contract import Launch, NodeState
from harness.worlds.hosts.local import LoopbackHost, loopback_address
from harness.worlds.hosts.ports import Ports
from harness.worlds.hosts.processes import Identity, boot_id, end, identify, marked_with, read_stat

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
def host(journal: Journal) -> Iterator[LoopbackHost]:
    host = LoopbackHost(journal)
    yield host
    host.close()


def launch(tmp_path: Path, command: tuple[str, ...] = SLEEPER) -> Launch:
    return Launch(node=0, command=command, environment={}, directory=tmp_path, log=tmp_path / "node.log")


def test_every_harness_process_and_run_has_an_address_of_its_own() -> None:
    addresses = [loopback_address(pid, run) for pid in (1, 2, 4711, 4_194_302) for run in range(4)]
    assert len(set(addresses)) == len(addresses)
    assert all(address.startswith("127.") for address in addresses)


def test_the_first_and_last_address_of_loopback_are_not_used() -> None:
    assert loopback_address(0, 0) == "127.0.0.2"
    assert loopback_address(2**22 - 1, 3) == "127.255.255.254"


def test_the_state_of_this_process_is_read_from_proc() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert me.boot_id == boot_id()
    assert me.is_alive()


def test_a_process_that_never_was_has_no_state() -> None:
    assert read_stat(2**22 + 1) is None


def test_a_reused_process_id_is_not_the_process_that_was_meant() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert not end(msgspec.structs.replace(me, start_ticks=me.start_ticks - 1))
    assert not end(msgspec.structs.replace(me, boot_id="another boot"))


@pytest.mark.system
def test_a_killed_process_shows_its_signal_and_killing_again_is_harmless(host: LoopbackHost, tmp_path: Path) -> None:
    process = host.start(launch(tmp_path))
    assert process.state() is NodeState.RUNNING
    assert process.kill()["exit"] == "signal 9"
    assert process.kill()["exit"] == "signal 9"
    assert process.state() is NodeState.DEAD


@pytest.mark.system
def test_a_paused_process_stands_still_until_resumed(host: LoopbackHost, tmp_path: Path) -> None:
    process = host.start(launch(tmp_path))
    assert process.pause()["state"] == "T"
    assert process.state() is NodeState.PAUSED
    assert process.resume()["state"] in ("S", "R", "D")
    assert process.state() is NodeState.RUNNING


@pytest.mark.system
def test_a_paused_process_can_be_killed(host: LoopbackHost, journal: Journal, tmp_path: Path) -> None:
    process = host.start(launch(tmp_path))
    process.pause()
    assert {undo.kind for undo in not_undone(journal.path)} == {"process", "frozen"}
    assert process.kill()["exit"] == "signal 9"
    assert not_undone(journal.path) == []


@pytest.mark.system
def test_the_processors_time_of_nodes_is_that_of_those_that_live(host: LoopbackHost, tmp_path: Path) -> None:
    assert host.processor_s() == 0
    process = host.start(launch(tmp_path, (sys.executable, "-c", "while True: pass")))
    limit_s = time.monotonic() + 240
    while host.processor_s() < 0.1 and time.monotonic() < limit_s:
        time.sleep(0.01)
    used_s = host.processor_s()
    process.pause()
    assert 0.1 <= used_s <= host.processor_s()
    process.kill()
    assert host.processor_s() == 0


@pytest.mark.system
def test_closing_the_host_ends_what_it_started_and_the_journal_says_so(journal: Journal, tmp_path: Path) -> None:
    host = LoopbackHost(journal)
    host.open([0])
    sockets = Path(host.control_path(0)).parent
    process = host.start(launch(tmp_path))
    assert sockets.is_dir()
    host.close()
    host.close()
    assert process.state() is NodeState.DEAD
    assert not sockets.exists()
    assert not_undone(journal.path) == []


@pytest.mark.system
def test_a_process_is_found_by_its_runs_token_alone(host: LoopbackHost, journal: Journal, tmp_path: Path) -> None:
    host.start(launch(tmp_path))
    (action,) = not_undone(journal.path)
    processes = list(marked_with(action.facts["token"]))
    assert [who.pid for who in processes] == [action.facts["pid"]]
    assert list(marked_with(action.facts["token"] + "0")) == []
    assert processes[0] == Identity(action.facts["pid"], action.facts["start_ticks"], action.facts["boot_id"])


def test_a_command_that_does_not_exist_is_a_host_error(host: LoopbackHost, journal: Journal, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="node 0 cannot be started"):
        host.start(launch(tmp_path, ("/nonexistent/broker",)))
    assert not_undone(journal.path) == []


def test_two_runs_at_one_address_share_no_port_and_give_theirs_back_at_their_end(
    host: LoopbackHost, journal: Journal, ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = loopback_address(os.getpid(), 2)
    monkeypatch.setattr("harness.worlds.hosts.local.loopback_address", lambda *_: own)
    nodes, other = (0, 1, 2, 100), LoopbackHost(journal)
    host.open(nodes)
    other.open(nodes)
    addresses = [each.address(node) for each in (host, other) for node in nodes]
    assert len(set(addresses)) == 8
    other.close()
    assert ports.take(own) == addresses[4]
