"""Whatever a killed harness left behind is ended by heal, and nothing else is."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness.ground.errors import HostError, ResultsError
from harness.records.journal import FILE_NAME, Journal, PendingUndo, not_undone
from harness.runs.run.healing import heal
from harness.worlds.hosts.processes import Identity, boot_id, identify
from tests.waiting import wait_until

#: A little harness: three sleeping nodes, one of them paused and one killed, then it waits for its own end.
HARNESS = """
import sys, time
from pathlib import Path
from harness.worlds.hosts import Launch
from harness.worlds.hosts import LoopbackHost
from harness.records.journal import FILE_NAME, Journal
directory = Path(sys.argv[1])
host = LoopbackHost(Journal(directory / FILE_NAME))
host.open([0, 1, 2])
command = (sys.executable, "-c", "import time; time.sleep(120)")
nodes = [
    host.start(Launch(node=node, command=command, environment={}, directory=directory, log=directory / "log"))
    for node in (0, 1, 2)
]
nodes[1].pause()
nodes[2].kill()
print("in mid-run", flush=True)
time.sleep(120)
"""


def killed_harness(directory: Path) -> None:
    directory.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", HARNESS, str(directory)], stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"in mid-run\n"
        harness.send_signal(signal.SIGKILL)


def identities(actions: list[PendingUndo]) -> list[Identity]:
    facts = [action.facts for action in actions if action.kind == "process"]
    return [Identity(fact["pid"], fact["start_ticks"], fact["boot_id"]) for fact in facts]


def test_what_cannot_be_undone_stays_in_the_journal_and_the_rest_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, free = tmp_path / "ackproof-stuck", tmp_path / "ackproof-free"
    journal = Journal(tmp_path / FILE_NAME)
    for directory in (free, stuck):
        directory.mkdir()
        journal.intend("directory", {"path": str(directory)})
    rmtree = shutil.rmtree

    def refused(path: Path) -> None:
        if path == stuck:
            raise PermissionError("not yours")
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", refused)
    with pytest.raises(HostError, match=r"ackproof-stuck.*still there.*not yours.*as root"):
        heal(tmp_path)
    assert [action.facts["path"] for action in not_undone(tmp_path / FILE_NAME)] == [str(stuck)]
    assert not free.exists()
    monkeypatch.undo()
    assert heal(tmp_path) == [f"directory {stuck}"]
    assert heal(tmp_path) == []


@pytest.mark.system
def test_a_killed_harness_leaves_processes_which_heal_ends_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    killed_harness(run)
    left = not_undone(run / FILE_NAME)
    nodes = identities(left)
    assert [node.is_alive() for node in nodes] == [True, True]
    undone = heal(run)
    assert [node.is_alive() for node in nodes] == [False, False]
    assert [line.split()[0] for line in undone] == ["frozen", "process", "process", "directory"]
    assert heal(run) == []
    assert not_undone(run / FILE_NAME) == []


@pytest.mark.system
def test_healing_a_campaign_heals_every_run_in_it(tmp_path: Path) -> None:
    runs = [tmp_path / "campaign" / "runs" / "processes" / cell for cell in ("a", "b")]
    for run in runs:
        killed_harness(run)
    nodes = [node for run in runs for node in identities(not_undone(run / FILE_NAME))]
    assert len(nodes) == 4
    heal(tmp_path / "campaign")
    assert not any(node.is_alive() for node in nodes)


@pytest.mark.system
def test_a_process_whose_id_was_never_written_is_found_by_its_token(tmp_path: Path) -> None:
    """The harness may die between the start of a process and the writing of its id."""
    token = f"t-{os.getpid()}"  # not that of the same test beside this one
    Journal(tmp_path / FILE_NAME).intend("process", {"token": token, "node": 0, "command": []})
    command = [sys.executable, "-c", "import time; time.sleep(120)"]
    with subprocess.Popen(command, env=os.environ | {"ACKPROOF_RUN_TOKEN": token}) as child:
        wait_until_executed(child.pid)
        assert heal(tmp_path) == [f"process {child.pid} (node 0)"]
        assert child.wait(60) == -signal.SIGKILL


def wait_until_executed(pid: int) -> None:
    """Between fork and exec the environment is still the parent's."""
    environment = Path(f"/proc/{pid}/environ")
    wait_until(lambda: b"ACKPROOF_RUN_TOKEN" in environment.read_bytes(), "it has its own environment", pause_s=0.001)


@pytest.mark.system
def test_a_process_that_got_the_id_of_a_node_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"]) as stranger:
        who = identify(stranger.pid)
        assert who is not None
        for entry, kind in enumerate(("process", "frozen")):
            facts = msgspec.structs.asdict(who) | {"start_ticks": who.start_ticks - 1 - entry, "token": "t", "node": 0}
            Journal(tmp_path / FILE_NAME).intend(kind, facts)
        assert heal(tmp_path) == []
        assert who.is_alive()
        stranger.kill()


def test_only_names_of_the_harness_are_removed(tmp_path: Path) -> None:
    keep, remove = tmp_path / "precious", tmp_path / "ackproof-1"
    for directory in (keep, remove):
        directory.mkdir()
        Journal(tmp_path / FILE_NAME).intend("directory", {"path": str(directory)})
    Journal(tmp_path / FILE_NAME).intend("link", {"name": "eth0", "boot_id": boot_id()})
    assert heal(tmp_path) == [f"directory {remove}"]
    assert keep.is_dir()


def test_a_deed_of_unknown_kind_stays_in_the_journal(tmp_path: Path) -> None:
    Journal(tmp_path / FILE_NAME).intend("from a newer version", {})
    with pytest.raises(ResultsError, match="may remain"):
        heal(tmp_path)
    assert len(not_undone(tmp_path / FILE_NAME)) == 1


def test_a_directory_without_journals_needs_no_healing(tmp_path: Path) -> None:
    assert heal(tmp_path) == []


def test_a_directory_that_may_not_be_listed_is_no_all_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "runs"
    (closed / "kill").mkdir(parents=True)
    _refuse_to_list(closed, monkeypatch)
    with pytest.raises(ResultsError, match=r"runs cannot be listed \(Permission denied\): nodes' processes"):
        heal(tmp_path)


def test_the_disks_of_a_runs_nodes_need_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Journal(tmp_path / FILE_NAME).close()
    (tmp_path / "data" / "lost+found").mkdir(parents=True)
    _refuse_to_list(tmp_path / "data" / "lost+found", monkeypatch)
    assert heal(tmp_path) == []


def _refuse_to_list(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its mode would for everybody but root, who may run these tests."""
    listed = os.scandir

    def scandir(path: str) -> object:
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_healing_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="is not a directory"):
        heal(tmp_path / "nothing")


def two_runs_that_left_a_directory(tmp_path: Path) -> list[Path]:
    """Runs 0 and 1 below ``tmp_path``; the answer is what their journals say still stands."""
    left = [tmp_path / f"ackproof-{name}" for name in "ab"]
    for number, directory in enumerate(left):
        directory.mkdir()
        (tmp_path / str(number)).mkdir()
        journal = Journal(tmp_path / str(number) / FILE_NAME)
        journal.intend("directory", {"path": str(directory)})
        journal.close()
    return left


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("garbage", "1 line of .*journal.jsonl cannot be read"),
        ("[1, 2]", "1 line of .*journal.jsonl cannot be read"),
        ('{"entry":9,"kind":"alien","facts":{}}', r"of a kind that this version does not know \(alien\)"),
        ('{"entry":9,"kind":"process","facts":{}}', "is not an action that a harness writes"),
    ],
)
def test_a_journal_that_nobody_understands_is_no_all_clear(tmp_path: Path, line: str, reported: str) -> None:
    """All that can be understood is undone, in the same journal and in all others."""
    left = two_runs_that_left_a_directory(tmp_path)
    with (tmp_path / "0" / FILE_NAME).open("a") as file:
        file.write(line + "\n")
    with pytest.raises((ResultsError, HostError), match=reported) as caught:
        heal(tmp_path)
    assert str(left[1]) in str(caught.value), "it says what it undid"
    assert not any(directory.exists() for directory in left)


@pytest.mark.parametrize("torn", ["", "{", '{"entry":', '{"entry":3,"kind":"pro'])
def test_a_torn_line_announced_nothing(tmp_path: Path, torn: str) -> None:
    (tmp_path / FILE_NAME).write_text(torn)
    assert heal(tmp_path) == []


def test_a_journal_that_cannot_be_written_does_not_keep_the_others_from_being_healed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = two_runs_that_left_a_directory(tmp_path)

    def opened(path: Path) -> Journal:
        if path.parent.name == "0":
            raise PermissionError("not yours")
        return Journal(path)

    monkeypatch.setattr("harness.runs.run.healing.Journal", opened)
    with pytest.raises(ResultsError, match=r"0/.*cannot be written .*not yours.*undone: directory .*ackproof-b"):
        heal(tmp_path)
    assert [directory.exists() for directory in left] == [True, False]
