"""Against real OpenSSH servers: who is trusted, what a node's process does, what is cut, what is left."""

import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.ground.errors import HostError
from harness.plan import Kafka, Machine, Ssh
from harness.records.journal import FILE_NAME, Journal, not_undone
from harness.runs.run.healing import heal
from harness.worlds.hosts.contract import Launch, NodeState
from harness.worlds.hosts.processes import identify
from harness.worlds.hosts.ssh.connection import Connection, ShellSession
from harness.worlds.hosts.ssh.host import LocalFiles, SshHost
from nemesis.cluster import CLIENTS, Link
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.xdist_group("ssh")]
WAIT_S = 120.0
#: Over a link that is cut no answer ever comes.
NOBODY_S = 0.5

#: A node: says so and greets whoever connects; with an address, connects there and says what it meets.
NODE = """
import socket, sys, time
server = socket.create_server(("0.0.0.0", 9092))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(b"hello")
    connection.close()
"""


@pytest.fixture
def local_files(tmp_path: Path) -> LocalFiles:
    run, release = tmp_path / "run", tmp_path / "9.9.9"
    run.mkdir()
    (release / "libs").mkdir(parents=True)
    (release / "libs" / "a.jar").write_bytes(b"x" * 1000)
    return LocalFiles(run, release, Path(sys.executable))


@pytest.fixture
def journal(local_files: LocalFiles, farm) -> Journal:
    (local_files.run / "run.json").write_bytes(msgspec.json.encode({"world": Kafka(host=Ssh(tuple(farm.machines())))}))
    return Journal(local_files.run / FILE_NAME)


@pytest.fixture
def host(local_files: LocalFiles, journal: Journal, farm) -> Iterator[SshHost]:
    host = SshHost(farm.machines(), journal, local_files)
    try:
        host.open([0, 1])
        yield host
    finally:
        host.close()


def started(host: SshHost, local_files: LocalFiles, node: int, program: str = NODE):
    (local_files.run / "logs").mkdir(exist_ok=True)
    (local_files.run / "data" / str(node)).mkdir(parents=True, exist_ok=True)
    file = local_files.run / "data" / str(node) / "a 'quoted' $(name)"
    file.write_text("pushed")
    launch = Launch(
        node=node,
        command=(sys.executable, "-c", program),
        environment={"WITH": "a blank; and $more"},
        directory=local_files.run / "data",
        log=local_files.run / "logs" / f"node-{node}.log",
        files=(file,),
    )
    process = host.start(launch)
    wait_until(lambda: launch.log.exists() and b"listening" in launch.log.read_bytes(), "the node listens", WAIT_S)
    return process


def knock(host: SshHost, node: int, patience_s: float = WAIT_S) -> str:
    try:
        with socket.create_connection(host.address(node), patience_s) as connection:
            return connection.recv(5).decode()
    except OSError as error:
        return type(error).__name__


def test_an_unknown_host_key_is_refused_and_the_sentence_names_it(farm, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for known_hosts in ("empty", "missing"):
        machine = farm.machine(0, known_hosts=str(tmp_path / known_hosts))
        with pytest.raises(HostError, match=r"is not in .*if that is its key") as error:
            Connection(machine).run(("true",))
        assert farm.fingerprints[0] in str(error.value)


def test_a_pinned_fingerprint_is_enough_and_another_one_is_refused(farm, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "missing")
    pinned = Connection(farm.machine(0, known_hosts=nowhere, fingerprint=farm.fingerprints[0]))
    assert pinned.run(("echo", "a  b", "$HOME")).out == "a  b $HOME\n"
    pinned.close()
    with pytest.raises(HostError, match="the plan pins"):
        Connection(farm.machine(0, fingerprint=farm.fingerprints[1])).run(("true",))


def test_a_host_key_that_changed_is_refused(farm, tmp_path: Path) -> None:
    keys = tmp_path / "known"
    keys.write_text(
        farm.known_hosts.read_text().replace(farm.address(0), "1.1.1.1").replace(farm.address(1), farm.address(0))
    )
    with pytest.raises(HostError, match="has changed"):
        Connection(farm.machine(0, known_hosts=str(keys))).run(("true",))


def test_a_key_that_the_machine_does_not_know_is_refused(farm, tmp_path: Path) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True, timeout=WAIT_S
    )
    with pytest.raises(HostError, match="does not accept the user with key"):
        Connection(farm.machine(0, key=str(tmp_path / "other"))).run(("true",))


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An SSH agent without keys. The path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="ackt-") as directory:
        socket = Path(directory) / "agent"
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
        try:
            wait_until(socket.exists, "the directory is there", WAIT_S)
            yield
        finally:
            agent.terminate()
            agent.wait(WAIT_S)


@pytest.mark.usefixtures("agent")
def test_the_keys_of_an_agent_let_the_user_in_where_the_plan_names_none(farm) -> None:
    with pytest.raises(HostError, match="does not accept the user with the keys of the SSH agent"):
        Connection(farm.machine(0, key="")).run(("true",))
    subprocess.run(["ssh-add", "-q", farm.key], check=True, timeout=WAIT_S, capture_output=True)
    connection = Connection(farm.machine(0, key=""))
    assert connection.run(("echo", "in")).out == "in\n"
    connection.close()


def test_a_key_that_is_missing_or_locked_or_none_is_told_as_that(farm, tmp_path: Path) -> None:
    locked, none = tmp_path / "locked", tmp_path / "none"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", locked], check=True, timeout=WAIT_S)
    none.write_text("no key")
    for key, sentence in (
        ("missing", "no key is at"),
        ("locked", "has a passphrase"),
        ("none", "could not begin an SSH session"),
    ):
        with pytest.raises(HostError, match=sentence):
            Connection(farm.machine(0, key=str(tmp_path / key))).run(("true",))


def test_a_machine_that_is_not_there_is_named(farm) -> None:
    with pytest.raises(HostError, match=r"root@127\.0\.0\.9:1 cannot be reached over SSH"):
        Connection(Machine(node=0, address="127.0.0.9", port=1, user="root")).run(("true",))


def test_words_arrive_as_they_were_given(farm) -> None:
    words = ["printf", "%s|", "a b", "$(reboot)", "`id`", "it's", '"', "*", "", "\\", "x\ny", ";", "é"]
    connection = Connection(farm.machine(0))
    assert connection.run(words).out == "|".join(words[2:]) + "|"
    connection.close()


def test_a_lost_connection_is_made_anew_before_the_next_command(farm) -> None:
    connection = Connection(farm.machine(0))
    connection.run(("true",))
    connection._client.get_transport().close()
    assert connection.run(("echo", "again")).out == "again\n"
    connection.close()


def test_a_command_that_was_interrupted_leaves_no_answer_for_the_next_one(farm, monkeypatch) -> None:
    connection = Connection(farm.machine(0))

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ShellSession, "_output", interrupted)
        with pytest.raises(KeyboardInterrupt):
            connection.run(("echo", "first"))
    assert connection.run(("echo", "second")).out == "second\n"
    connection.close()


def test_a_node_is_started_stopped_frozen_and_killed(host: SshHost, local_files: LocalFiles) -> None:
    process = started(host, local_files, 0)
    assert knock(host, 0) == "hello"
    assert process.pause()["state"] == "T"
    assert process.state() is NodeState.PAUSED
    assert process.resume()["state"] in "RS"
    assert process.state() is NodeState.RUNNING
    assert process.exit() is None
    evidence = process.kill()
    assert evidence["exit"] == "signal 9"
    assert isinstance(evidence["pid"], int)
    assert process.state() is NodeState.DEAD
    assert process.kill() == evidence, "killing a dead node is nothing"
    assert knock(host, 0) == "ConnectionRefusedError"
    again = started(host, local_files, 0)
    assert again.terminate()["signal"] == 15
    wait_until(lambda: again.exit() in ("signal 15", "status 143"), "the node has ended as it was asked to")


def test_a_node_that_cannot_be_started_says_why_in_its_log(host: SshHost, local_files: LocalFiles) -> None:
    (local_files.run / "logs").mkdir()
    log = local_files.run / "logs" / "node-0.log"
    launch = Launch(node=0, command=("nothing-like-this",), environment={}, directory=local_files.run, log=log)
    process = host.start(launch)
    wait_until(lambda: process.exit() is not None, "the process has ended", WAIT_S)
    assert process.exit() == "status 127"
    wait_until(lambda: log.exists() and b"not found" in log.read_bytes(), "the log says so", WAIT_S)


def test_a_cut_drops_brokers_packets_in_one_direction_and_leaves_ssh_alone(
    host: SshHost, local_files: LocalFiles, farm
) -> None:
    process = started(host, local_files, 0)
    assert host.links.cut([Link(CLIENTS, 0)], alive=[0]) == {"dropped": {"1000>0": 0}}
    assert knock(host, 0, NOBODY_S) == "TimeoutError"
    assert process.state() is NodeState.RUNNING, "the SSH port is in no rule"
    fresh = Connection(farm.machine(0))
    assert fresh.run(("true",)).status == 0
    fresh.close()
    assert host.links.heal([Link(CLIENTS, 0)], alive=[0])["dropped"]["1000>0"] > 0
    assert knock(host, 0) == "hello"
    host.links.cut([Link(0, CLIENTS)], alive=[0])
    assert knock(host, 0, NOBODY_S) == "TimeoutError"
    host.links.heal([Link(0, CLIENTS)], alive=[0])
    assert knock(host, 0) == "hello"


def test_links_between_machines_are_cut_too_with_sudo_where_the_plan_says_so(
    host: SshHost, local_files: LocalFiles, farm
) -> None:
    started(host, local_files, 1)

    def from_machine_0(patience_s: float = WAIT_S) -> str:
        address = f"('{farm.address(1)}', 9092)"
        script = f"import socket; print(socket.create_connection({address}, {patience_s}).recv(5).decode())"
        answer = host._shells[0].run((sys.executable, "-c", script))
        return answer.out.strip() or answer.err.strip().splitlines()[-1]

    assert from_machine_0() == "hello"
    host.links.cut([Link(0, 1)], alive=[0, 1])
    assert "timed out" in from_machine_0(NOBODY_S)
    assert knock(host, 1) == "hello"
    host.links.heal([Link(0, 1)], alive=[0, 1])
    assert from_machine_0() == "hello"


def test_closing_brings_files_home_and_leaves_only_the_release(
    host: SshHost, local_files: LocalFiles, journal: Journal, farm
) -> None:
    writer = "open('0/written', 'w').write('there'); " + "print('listening', flush=True); import time; time.sleep(600)"
    process = started(host, local_files, 0, writer)
    host.links.cut([Link(1, 0)], alive=[0])
    who = identify(process.pid)
    assert who is not None
    assert who.is_alive()
    host.close()
    assert (local_files.run / "data" / "0" / "written").read_text() == "there"
    assert b"listening" in (local_files.run / "logs" / "node-0.log").read_bytes()
    assert not who.is_alive()
    assert "ackproof" not in farm.tables(0)
    left = [path.relative_to(farm.directory / "machine-0") for path in (farm.directory / "machine-0").rglob("*")]
    assert sorted(map(str, left)) == ["kafka", "kafka/9.9.9", "kafka/9.9.9/libs", "kafka/9.9.9/libs/a.jar", "runs"]
    assert not_undone(journal.path) == []


def test_what_a_dead_harness_left_is_healed_once(local_files: LocalFiles, journal: Journal, farm) -> None:
    host = SshHost(farm.machines(), journal, local_files)
    host.open([0, 1])
    try:
        started(host, local_files, 0)
        frozen = started(host, local_files, 1)
        frozen.pause()
        host.links.cut([Link(0, 1), Link(1, 0)], alive=[0])
        assert "ackproof" in farm.tables(0)
        undone = heal(local_files.run)  # as another process would, without the host's own close
        kinds = [line.split()[0] for line in undone]
        assert sorted(set(kinds)) == ["ssh-directory", "ssh-process", "ssh-rules"]
        assert frozen.state() is NodeState.DEAD
        assert "ackproof" not in farm.tables(0) + farm.tables(1)
        assert list((farm.directory / "machine-0" / "runs").iterdir()) == []
        assert (local_files.run / "data" / "0").is_dir()
        assert heal(local_files.run) == []
    finally:
        host.close()


def test_what_is_out_of_reach_at_the_end_is_healed_when_it_is_back(
    local_files: LocalFiles, journal: Journal, farm
) -> None:
    host = SshHost(farm.machines(), journal, local_files)
    host.open([0, 1])
    process = started(host, local_files, 0)
    who = identify(process.pid)
    assert who is not None
    farm.stop_server(0)
    try:
        with pytest.raises(HostError, match="over SSH"):
            process.state()
        with pytest.raises(HostError, match=r"is still there .*cannot be reached over SSH.*heal"):
            host.close()
        left = not_undone(journal.path)
        assert {action.facts["node"] for action in left} == {0}, "the other machine was undone"
        assert who.is_alive()
    finally:
        farm.start_server(0)
        farm.wait_for_server(0)
        undone = heal(local_files.run)
    assert {line.split()[0] for line in undone} == {"ssh-process", "ssh-directory"}
    assert not who.is_alive()
    assert heal(local_files.run) == []


def test_a_machine_that_carries_another_run_is_left_alone(
    host: SshHost, local_files: LocalFiles, farm, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    second = SshHost(farm.machines(), Journal(other / FILE_NAME), local_files._replace(run=other))
    with pytest.raises(HostError, match="carries another run"):
        second.open([0])
    second.close()
    assert len(list((farm.directory / "machine-0" / "runs").iterdir())) == 1


def test_heal_speaks_to_no_machine_that_is_not_in_the_runs_inventory(
    local_files: LocalFiles, journal: Journal, farm
) -> None:
    stranger = msgspec.to_builtins(farm.machine(0, directory="/elsewhere"))
    journal.intend("ssh-process", {"machine": stranger, "node": 0, "token": "t"})
    with pytest.raises(HostError, match="is in the journal but not in the inventory"):
        heal(local_files.run)
    assert len(not_undone(journal.path)) == 1


def test_an_unreachable_machine_stays_in_the_journal(local_files: LocalFiles, farm) -> None:
    gone = farm.machine(0, port=2)
    (local_files.run / "run.json").write_bytes(msgspec.json.encode({"world": Kafka(host=Ssh((gone,)))}))
    journal = Journal(local_files.run / FILE_NAME)
    journal.intend("ssh-rules", {"machine": msgspec.to_builtins(gone), "node": 0, "table": "ackproof_x"})
    with pytest.raises(HostError, match="cannot be reached over SSH"):
        heal(local_files.run)
    assert len(not_undone(journal.path)) == 1


def test_a_machine_without_java_is_refused_before_anything_is_made(
    local_files: LocalFiles, journal: Journal, farm
) -> None:
    machine = farm.machine(2, java="no-java-here")
    host = SshHost([machine], journal, local_files)
    with pytest.raises(HostError, match='no Java at "no-java-here"'):
        host.open([2])
    host.close()
    assert not Path(machine.directory).exists()


def test_only_what_is_missing_of_a_release_is_copied(
    host: SshHost, local_files: LocalFiles, journal: Journal, farm
) -> None:
    jar = farm.directory / "machine-0" / "kafka" / "9.9.9" / "libs" / "a.jar"
    before = jar.stat().st_mtime_ns
    host.close()
    (local_files.release / "libs" / "b.jar").write_bytes(b"y")
    again = SshHost(farm.machines(), journal, local_files)
    again.open([0])
    again.close()
    assert jar.stat().st_mtime_ns == before
    assert jar.with_name("b.jar").read_bytes() == b"y"
    shutil.rmtree(farm.directory / "machine-0" / "kafka")
