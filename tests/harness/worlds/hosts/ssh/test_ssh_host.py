"""Requests to machines, and requests that are never made. No connection is opened here."""

import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.ground.errors import HostError
from harness.plan import Kafka, Machine, Ssh
from harness.plan.machines import DIRECTORY
from harness.records.journal import FILE_NAME, Journal, not_undone
from harness.worlds.hosts.contract import Launch, NodeState
from harness.worlds.hosts.cut_links import dropped_packets
from harness.worlds.hosts.ssh import commands, undo
from harness.worlds.hosts.ssh.dry_run import DryShell
from harness.worlds.hosts.ssh.host import LocalFiles, SshHost, ended_with
from harness.worlds.hosts.ssh.shell import ShellAnswer, must
from harness.worlds.hosts.ssh.undo import allowed_machine
from nemesis.cluster import CLIENTS, Capability, Link

NASTY = ["a b", "$(reboot)", "`id`", "it's", '"', "*", "", "\\", "x\ny", "; rm -rf /", "&&", "|", "-rf", "é", "~root"]
MACHINES = tuple(Machine(node=node, address=f"10.0.0.{node + 1}", user="kafka", sudo=node == 1) for node in (0, 1, 2))


class FakeShell(DryShell):
    """A willing machine; ``answers`` replaces what it says to commands that begin so."""

    def __init__(self, machine, show):
        super().__init__(machine, show)
        self.answers: dict[str, ShellAnswer] = {}

    def run(self, words, text=""):
        message = super().run(words, text)
        return next(
            (answer for begin, answer in self.answers.items() if commands.line(words).startswith(begin)), message
        )


def with_answers(shell: FakeShell, answers: dict[str, ShellAnswer]) -> FakeShell:
    shell.answers = answers
    return shell


@pytest.fixture
def message() -> list[str]:
    return []


@pytest.fixture
def local_files(tmp_path: Path) -> LocalFiles:
    run = tmp_path / "acks=1,isr=2" / "7"
    run.mkdir(parents=True)
    (tmp_path / "4.3.1" / "libs").mkdir(parents=True)
    return LocalFiles(run, tmp_path / "4.3.1", Path("/opt/java/bin/java"))


@pytest.fixture
def journal(local_files: LocalFiles) -> Journal:
    return Journal(local_files.run / FILE_NAME)


@pytest.fixture
def make(local_files: LocalFiles, journal: Journal, message: list[str]) -> Callable[..., SshHost]:
    def make(answers: dict[str, ShellAnswer] | None = None, machines: tuple[Machine, ...] = MACHINES) -> SshHost:
        def connect(machine: Machine) -> FakeShell:
            return with_answers(FakeShell(machine, message.append), {} if answers is None else answers)

        return SshHost(machines, journal, local_files, connect)

    return make


def launch(local_files: LocalFiles, host: SshHost, node: int = 0) -> Launch:
    (local_files.run / "data").mkdir(exist_ok=True)
    file = local_files.run / "data" / "0.properties"
    file.write_text("x=1")
    command = (
        host.path_on(node, local_files.java),
        "-cp",
        host.path_on(node, local_files.release / "libs" / "a.jar"),
        *NASTY,
    )
    return Launch(
        node=node,
        command=command,
        environment={"WORDS": "a b"},
        directory=file.parent,
        log=local_files.run / "logs" / "node-0.log",
        files=(file,),
    )


def test_every_word_is_quoted() -> None:
    assert shlex.split(commands.line(NASTY)) == NASTY
    assert commands.line(["rm", "a b; reboot"]) == "rm 'a b; reboot'"


def test_root_is_asked_for_only_where_the_plan_says_so_and_never_with_a_password() -> None:
    assert commands.nft(MACHINES[0], "-f", "-") == ("nft", "-f", "-")
    assert commands.nft(MACHINES[1], "-f", "-") == ("sudo", "-n", "--", "nft", "-f", "-")


def test_a_node_is_started_with_every_word_quoted_and_a_mark(make, local_files: LocalFiles, message: list[str]) -> None:
    host = make()
    host.open([0])
    host.start(launch(local_files, host))
    (line,) = [line for line in message if "machine.sh start" in line]
    words = shlex.split(line.partition("$ ")[2])
    assert words[-len(NASTY) :] == NASTY
    assert words[:2] == ["env", "WORDS=a b"]
    assert words[2].startswith("ACKPROOF_RUN_TOKEN=ackproof-")
    assert words[2].endswith("/0")


def test_files_are_called_by_the_names_that_they_have_there(make, local_files: LocalFiles) -> None:
    host = make()
    host.open([1])
    path = host.path_on(1, local_files.run / "data" / "1" / "meta.properties")
    assert path.startswith(f"{DIRECTORY}/runs/ackproof-")
    assert path.endswith("/data/1/meta.properties")
    assert "," not in path, "the run's own name has commas, which Kafka takes for separators"
    assert host.path_on(1, local_files.release / "libs" / "a.jar") == f"{DIRECTORY}/kafka/4.3.1/libs/a.jar"
    assert host.path_on(1, local_files.java) == "java"
    with pytest.raises(HostError, match=r"is not copied to kafka@10\.0\.0\.2"):
        host.path_on(1, Path("/etc/passwd"))


def test_what_is_made_is_announced_first_and_undone_at_the_end(
    make, local_files: LocalFiles, journal: Journal, message
) -> None:
    host = make()
    host.open([0, 1])
    host.start(launch(local_files, host))
    host.links.cut([Link(0, 1), Link(CLIENTS, 0)], alive=[])
    kinds = [action.kind for action in not_undone(journal.path)]
    assert kinds == ["ssh-directory", "ssh-directory", "ssh-process", "ssh-rules", "ssh-rules"]
    before = len(message)
    host.close()
    assert not_undone(journal.path) == []
    undone = [line.partition("$ ")[2].split()[0:4] for line in message[before:] if "$ " in line]
    assert ["nft", "delete", "table", "ip"] in undone
    assert ["sudo", "-n", "--", "nft"] in undone
    assert sum(words[:2] == ["rm", "-rf"] for words in undone) == 2
    host.close()
    assert len(message) > before, "closing twice is nothing"


def test_no_secret_is_in_the_journal(make, journal: Journal) -> None:
    host = make()
    host.open([0])
    (action,) = not_undone(journal.path)
    assert action.facts["machine"] == msgspec.to_builtins(MACHINES[0])
    host.close()


def test_a_node_is_dead_paused_or_running_as_its_machine_says(make, local_files: LocalFiles) -> None:
    host = make()
    host.open([0])
    process = host.start(launch(local_files, host))
    assert process.state() is NodeState.RUNNING
    assert process.pause() == {"pid": "PID", "state": "T"}
    assert process.state() is NodeState.PAUSED
    assert process.resume() == {"pid": "PID", "state": "S"}
    assert process.kill() == {"pid": "PID", "exit": "signal 9"}
    assert process.state() is NodeState.DEAD
    assert process.terminate() == {}
    host.close()


def test_rules_name_broker_ports_and_never_a_whole_address(make, local_files: LocalFiles, message: list[str]) -> None:
    host = make()
    host.open([0, 1, 2])
    host.links.cut([Link(1, 0), Link(0, CLIENTS)], alive=[])
    rules = [line.strip(" <") for line in "\n".join(message).splitlines() if " drop " in line]
    assert rules == [
        'ip saddr 10.0.0.2 tcp dport 9092 counter drop comment "1>0"',
        'ip saddr 10.0.0.2 tcp sport 9092 counter drop comment "1>0"',
        'ip daddr HARNESS tcp sport 9092 counter drop comment "0>1000"',
    ]
    host.close()


def test_links_that_were_never_cut_are_healed_without_a_word(make, message: list[str]) -> None:
    host = make()
    host.open([0, 1])
    before = len(message)
    host.links.heal([Link(0, 1), Link(1, 0)], alive=[])
    assert message[before:] == []
    host.close()


def test_drops_of_both_ports_count_for_one_link() -> None:
    rules = [{"rule": {"comment": "1>0", "expr": [{"counter": {"packets": n}}]}} for n in (2, 3)]
    assert dropped_packets(msgspec.json.encode({"nftables": rules}).decode()) == {Link(1, 0): 5}


def test_a_machine_that_cannot_cut_links_says_why_and_the_rest_works(make) -> None:
    host = make({"nft": ShellAnswer(1, "", "Operation not permitted (you must be root)\n")})
    host.open([0])
    assert "you must be root" in host.lacks()[Capability.LINKS]
    host.close()


REFUSED = [
    ({"java": ShellAnswer(127, "", "sh: java: not found")}, 'has no Java at "java" .*not found.*install openjdk'),
    ({"java": ShellAnswer(0, "", 'openjdk version "11.0.2"')}, "has Java 11, and 17 or later is needed"),
    (
        {"printenv": ShellAnswer(0, "fe80::1 1 fe80::2 22\n", "")},
        "is reached over fe80::1, and links can only be cut between IPv4",
    ),
    ({"test": ShellAnswer(1, "", "")}, "is another user's; name another directory"),
    ({"ls": ShellAnswer(0, "ackproof-1-ab\n", "")}, "carries another run .ackproof-1-ab in .*heal"),
    (
        {"mkdir": ShellAnswer(1, "", "mkdir: /var: Permission denied")},
        "Permission denied.*correct this on the machine",
    ),
]


@pytest.mark.parametrize(("answers", "sentence"), REFUSED)
def test_an_unsuitable_machine_is_refused_in_one_sentence(make, journal: Journal, answers, sentence) -> None:
    host = make(answers)
    with pytest.raises(HostError, match=sentence):
        host.open([0])
    assert not_undone(journal.path) == [], "nothing was made"


def test_of_two_runs_that_begin_at_once_one_sees_the_other(make, journal: Journal, message: list[str]) -> None:
    answers: dict[str, ShellAnswer] = {}
    host = make(answers)

    def other_run(line: str) -> None:
        if "/data" in line:  # our directory is made: now it is too late for the other to see nothing
            answers["ls"] = ShellAnswer(0, f"{line.partition('/runs/')[2].partition('/')[0]}\nackproof-1-ab\n", "")
        message.append(line)

    host._connect = lambda machine: with_answers(FakeShell(machine, other_run), answers)
    with pytest.raises(HostError, match=r"carries another run .ackproof-1-ab in .*heal"):
        host.open([0])
    assert not any("copy" in line for line in message), "nothing is brought to a machine that is not ours"
    assert [action.kind for action in not_undone(journal.path)] == ["ssh-directory"]
    host.close()
    assert not_undone(journal.path) == []
    assert not any("ackproof-1-ab" in line for line in message)


def test_a_node_without_a_machine_is_refused(make) -> None:
    with pytest.raises(HostError, match="no machine for node 7"):
        make().open([7])


def test_only_machines_of_the_runs_own_inventory_are_spoken_to(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"run\.json does not name"):
        allowed_machine(tmp_path, MACHINES[0])
    (tmp_path / "run.json").write_bytes(msgspec.json.encode({"world": Kafka(host=Ssh(tuple(MACHINES[:1])))}))
    assert allowed_machine(tmp_path, MACHINES[0]) == MACHINES[0]
    with pytest.raises(HostError, match="not in the inventory"):
        allowed_machine(tmp_path, MACHINES[1])


@pytest.mark.parametrize("path", ["/", "/home/kafka", f"{DIRECTORY}/runs/../../ackproof-x", "/home/ackproof-x"])
def test_nothing_but_directories_of_runs_is_removed(tmp_path: Path, message: list[str], path: str) -> None:
    shell = FakeShell(MACHINES[0], message.append)
    assert undo.remove_directory(shell, {"path": path, "node": 0}, tmp_path) == []
    assert not any("rm" in line for line in message)


def test_nothing_but_tables_of_runs_is_removed(tmp_path: Path, message: list[str]) -> None:
    shell = FakeShell(MACHINES[0], message.append)
    shell.answers = {"nft list": ShellAnswer(0, "table ip filter\ntable ip ackproof_1\n", "")}
    assert undo.remove_rules(shell, {"table": "filter", "node": 0}, tmp_path) == []
    assert undo.remove_rules(shell, {"table": "ackproof_2", "node": 0}, tmp_path) == []
    assert undo.remove_rules(shell, {"table": "ackproof_1", "node": 0}, tmp_path) != []
    assert [line for line in message if "delete" in line] == ["kafka@10.0.0.1: $ nft delete table ip ackproof_1"]


def test_a_command_that_fails_is_quoted_with_its_complaint(message: list[str]) -> None:
    shell = FakeShell(MACHINES[0], message.append)
    shell.answers = {"nft": ShellAnswer(1, "", "Error:\n no such file\n")}
    with pytest.raises(HostError, match=r'kafka@10\.0\.0\.1: "nft -f -" ended with status 1 \(Error: no such file\)'):
        must(shell, commands.nft(MACHINES[0], "-f", "-"))


def test_a_shells_status_tells_how_a_node_ended() -> None:
    assert [ended_with(status) for status in (0, 1, 137, 143, 139)] == [
        "status 0",
        "status 1",
        "signal 9",
        "status 143",
        "signal 11",
    ]
