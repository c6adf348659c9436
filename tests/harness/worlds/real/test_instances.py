"""Instances of an application as processes: what they print, start, ignore or leave behind harms nobody."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.ground.errors import HostError, PlanError
from harness.records.journal import FILE_NAME, Journal, not_undone
from harness.worlds.hosts import Ports, undo_here
from harness.worlds.real import instances as module
from harness.worlds.real.instances import LocalInstances, require_command
from tests.waiting import wait_until
from workloads import ApplicationPlan

Made = Callable[..., LocalInstances]
WORDS = {"bootstrap": "b:1,b:2", "input": "in", "output": "out", "group": "g"}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """Makes instances of a Python program, and ends all of them."""
    journal, every = Journal(tmp_path / FILE_NAME), []

    def make(program: str, *words: str, **plan: object) -> LocalInstances:
        application = ApplicationPlan(command=(sys.executable, "-c", program, *words), **plan)  # type: ignore[arg-type]
        directory = tmp_path / "application"
        directory.mkdir(exist_ok=True)
        every.append(LocalInstances(application, WORDS, directory, journal, ("in", "out")))
        return every[-1]

    yield make
    for instances in every:
        instances.close()
    assert not_undone(tmp_path / FILE_NAME) == []
    journal.close()


def ended(instances: LocalInstances, number: int = 0) -> str:
    wait_until(lambda: instances.exit(number) is not None, "it ends")
    return instances.exit(number) or ""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_words_and_environment_have_their_placeholders_replaced_and_each_instance_its_own_directory(
    made: Made, tmp_path: Path
) -> None:
    shown = "import os, sys; print(sys.argv[1:], os.environ['WHERE'])"
    instances = made(shown, "{bootstrap}", "{instance}", environment={"WHERE": "{directory}"})
    instances.start(1)
    assert ended(instances, 1) == "status 0"
    own = tmp_path / "application" / "instance-1"
    assert instances.words(1) == f"['b:1,b:2', '1'] {own}\n"
    assert own.is_dir()


def test_a_program_that_prints_without_end_is_not_held_up_and_its_log_has_a_limit(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 100_000)
    instances = made("import sys\nfor number in range(200_000): print('line', number)\nprint('the end')")
    instances.start(0)
    assert ended(instances) == "status 0"
    assert instances.words(0).endswith("line 199999\nthe end\n")
    instances.kill(0)
    log = tmp_path / "application" / "instance-0.log"
    wait_until(lambda: log.read_bytes().endswith(b"the end\n"), "the end is written")
    assert len(log.read_bytes()) < 100_000 + module.END_BYTES + 100


def test_a_program_that_prints_half_a_character_or_nothing_is_quoted_all_the_same(made: Made) -> None:
    instances = made("import os; os.write(1, b'\\xff\\xfe')")
    instances.start(0)
    ended(instances)
    assert instances.words(0) == "\ufffd\ufffd"


@pytest.mark.parametrize("leaves", ["", "os.setsid()"])
def test_what_an_instance_started_ends_with_it_even_in_a_session_of_its_own(made: Made, leaves: str) -> None:
    program = f"""
import os, time
child = os.fork()
if child == 0:
    {leaves or "pass"}
    os.write(1, b'%d\\n' % os.getpid())
    time.sleep(600)
time.sleep(600)
"""
    instances = made(program)
    instances.start(0)
    wait_until(lambda: instances.words(0).endswith("\n"), "the child is there")
    child = int(instances.words(0))
    assert is_alive(child)
    instances.kill(0)
    assert not is_alive(child)
    assert instances.exit(0) == "signal 9"


def test_a_child_that_outlives_an_instance_does_not_work_on_beside_its_successor(made: Made) -> None:
    program = "import os, time\nif os.fork() == 0:\n    os.write(1, b'%d\\n' % os.getpid())\n    time.sleep(600)\n"
    instances = made(program)
    instances.start(0)
    assert ended(instances) == "status 0"
    wait_until(lambda: instances.words(0).endswith("\n"), "the child is there")
    child = int(instances.words(0))
    instances.kill(0)
    assert not is_alive(child)


def test_an_instance_that_ignores_sigterm_is_killed_all_the_same(made: Made) -> None:
    program = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"
    )
    instances = made(program, ready="^up$")
    instances.start(0)
    wait_until(lambda: instances.is_ready(0, "^up$"), "it is ready")
    instances.ask_to_end(0)
    assert instances.exit(0) is None
    instances.kill(0)
    instances.kill(0)
    assert instances.exit(0) == "signal 9"


def test_a_frozen_instance_stands_still_with_its_child_and_goes_on(made: Made) -> None:
    instances = made("import os, time\nos.fork()\nos.write(1, b'%d\\n' % os.getpid())\ntime.sleep(600)")
    instances.start(0)
    wait_until(lambda: instances.words(0).count("\n") == 2, "both are there")
    pids = [int(line) for line in instances.words(0).split()]

    def states() -> set[str]:
        return {Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] for pid in pids}

    instances.freeze(0)
    wait_until(lambda: states() == {"T"}, "both stand still")
    instances.thaw(0)
    wait_until(lambda: "T" not in states(), "both go on")
    instances.freeze(0)
    instances.kill(0)
    assert not any(map(is_alive, pids))


def test_it_is_ready_when_it_listens(made: Made, ports: Ports) -> None:
    address = ports.take("127.0.0.1")
    program = (
        f"import socket, time\nserver = socket.create_server({(address.host, address.port)})\n"
        "print(server.getsockname()[1], flush=True)\ntime.sleep(600)"
    )
    instances = made(program, ready="port:1")
    instances.start(0)
    wait_until(lambda: instances.words(0).endswith("\n"), "it says its port")
    assert instances.is_ready(0, f"port:{int(instances.words(0))}")
    assert not instances.is_ready(0, "port:1")


def test_the_command_that_prints_effects_is_read_and_what_is_wrong_with_it_is_said(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed(program: str) -> tuple[list[str], str]:
        lines, why = made("", effects=(sys.executable, "-c", program, "{directory}")).printed_effects()
        return [*lines], why

    assert printed("import sys; print('a'); print(sys.argv[1])") == (["a", str(tmp_path / "application")], "")
    lines, why = printed("print('a'); raise SystemExit(3)")
    assert (lines, why) == (["a"], "the command under [application] effects ended with status 3")
    monkeypatch.setattr(module, "EFFECTS_BYTES", 4)
    assert "printed more than 4 bytes" in printed("print('abcdef')")[1]
    monkeypatch.setattr(module, "EFFECTS_LIMIT_S", 0.1)
    assert "did not end within 0 s" in printed("import os, time; os.fork(); time.sleep(600)")[1]
    assert "effects cannot be started with no-such" in made("", effects=("no-such",)).printed_effects()[1]


def test_heal_ends_what_a_dead_harness_left_and_all_that_it_started(made: Made, tmp_path: Path) -> None:
    instances = made(
        "import os, time\nif os.fork() == 0: os.setsid()\nos.write(1, b'%d\\n' % os.getpid())\ntime.sleep(600)"
    )
    instances.start(0)
    wait_until(lambda: instances.words(0).count("\n") == 2, "both are there")
    pids = [int(line) for line in instances.words(0).split()]
    with_journal = Journal(tmp_path / FILE_NAME)
    undone = undo_here(with_journal)
    with_journal.close()
    assert len(undone) == 2
    assert all("instance 0" in what for what in undone)
    wait_until(lambda: not any(map(is_alive, pids)), "both are gone")


def test_a_command_that_is_not_there_is_refused_before_anything_starts_and_where_it_vanished_meanwhile(
    tmp_path: Path,
) -> None:
    plan = ApplicationPlan(command=("no-such-program-here", "{input}"))
    with pytest.raises(PlanError, match="there is no command 'no-such-program-here' here; write the path"):
        require_command(plan)
    journal = Journal(tmp_path / FILE_NAME)
    instances = LocalInstances(plan, WORDS, tmp_path, journal, ())
    with pytest.raises(HostError, match="instance 0 cannot be started with no-such-program-here"):
        instances.start(0)
    assert not_undone(tmp_path / FILE_NAME) == []
    journal.close()


def test_a_command_by_its_path_or_in_a_path_of_its_own_is_not_refused(tmp_path: Path) -> None:
    (program := tmp_path / "mine").write_text("#!/bin/sh\n")
    program.chmod(0o755)
    require_command(ApplicationPlan(command=(str(program),)))
    require_command(ApplicationPlan(command=("mine",), environment={"PATH": str(tmp_path)}))
