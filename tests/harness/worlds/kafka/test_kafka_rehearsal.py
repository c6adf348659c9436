"""`--dry-run`: what a run on machines over SSH would do, in its order, and nothing done."""

import socket
from pathlib import Path

import paramiko
import pytest

from harness.cli import campaign
from harness.cli.app import exit_code_of
from harness.ground.choices import Choices
from harness.ground.errors import EXIT_HELD, EXIT_PLAN
from harness.plan import parse_plan
from harness.runs.run import planned
from harness.worlds.kafka import distribution
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.rehearsal import rehearse
from harness.worlds.kafka.releases import Version

PLAN = """
families = ["kill", "pause", "partition", "move"]
[worlds.kafka]
host = "ssh"
workload = { duration_ms = 20_000, topic = "mine" }
faults = { count = 2 }
[worlds.kafka.inventory]
user = "kafka"
machines = [
  { node = 0, address = "10.0.0.11" },
  { node = 1, address = "10.0.0.12" },
  { node = 2, address = "10.0.0.13" },
  { node = "controller", address = "10.0.0.14" },
]
"""


@pytest.fixture(autouse=True)
def kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that is only a name, and no way to any machine."""
    libs = tmp_path / "4.3.1" / "libs"
    libs.mkdir(parents=True)
    (libs / "kafka_2.13-4.3.1.jar").touch()
    made = libs.parent / "made"
    made.mkdir()
    for name in ("first-eligible-0-transaction-2", "first-eligible-1-transaction-2"):
        (made / name).mkdir()
        (made / name / "bootstrap.checkpoint").touch()
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    monkeypatch.setattr(distribution, "find", lambda _: Installation(Version(4, 3, 1), libs.parent))
    monkeypatch.setattr(distribution, "make_archive", lambda _: None)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(paramiko.SSHClient, "connect", refuse)


def message(family: str, text: str = PLAN) -> list[str]:
    spec = next(run for run in parse_plan(text, "p.toml").runs() if run.family == family)
    lines: list[str] = []
    rehearse(spec, planned(spec, Choices(spec.seed).draw), lines.append)
    return lines


def places(lines: list[str], *parts: str) -> list[int]:
    """The number of the first line with each of these parts."""
    return [next(number for number, line in enumerate(lines) if part in line) for part in parts]


def test_everything_is_said_in_its_order() -> None:
    lines = message("kill")
    order = places(
        lines,
        "java -version",
        "copy machine.sh",
        "each of the 1 files in",
        "machine.sh start",
        "create topic mine",
        "machine.sh signal PID TICKS BOOT KILL",
        "# everything is healed",
        "tar -C",
        "rm -rf -- /var/tmp/ackproof/runs/ackproof-",
    )
    assert order == sorted(order)
    starts = [line for line in lines if "machine.sh start" in line]
    assert len(starts) > 4, "the killed broker is started again"


def test_only_the_machines_and_the_topic_of_the_plan_are_named() -> None:
    lines = message("partition")
    machines = {line.partition(": ")[0] for line in lines if line.startswith("kafka@")}
    assert machines == {f"kafka@10.0.0.{number}" for number in (11, 12, 13, 14)}
    assert any("write to and read from topic mine, and no other" in line for line in lines)
    assert any("nft delete table" in line for line in lines)


def test_pauses_end_and_leaders_move() -> None:
    assert any("BOOT STOP" in line for line in message("pause"))
    assert any("BOOT CONT" in line for line in message("pause"))
    assert any("let broker" in line for line in message("move"))


def test_the_command_line_says_it_and_other_hosts_have_nothing_to_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = tmp_path / "p.toml"
    plan.write_text(PLAN)
    assert exit_code_of(["run", str(plan), "--family", "kill", "--dry-run"]) == EXIT_HELD
    assert "no connection is opened" in capsys.readouterr().out
    assert exit_code_of(["campaign", str(plan), "--dry-run"]) == EXIT_HELD
    assert capsys.readouterr().out.count("## runs/kafka/") == 4
    plan.write_text("[worlds.simulated]\n")
    assert exit_code_of(["campaign", str(plan), "--dry-run"]) == EXIT_PLAN
    shown = capsys.readouterr()
    assert "--dry-run is for machines over SSH" in shown.err
    assert shown.out == "", "it refuses before it says anything"
    assert not (tmp_path / "results").exists()


def test_what_a_release_cannot_do_is_refused_before_anything_is_said_or_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(campaign, "usable_java", lambda: None)
    plan = tmp_path / "p.toml"
    plan.write_text(PLAN.replace("[worlds.kafka]\n", "[matrix]\nstrict.min.isr = [true, false]\n[worlds.kafka]\n"))
    for asked in (["--dry-run"], []):
        assert exit_code_of(["campaign", str(plan), *asked]) == EXIT_PLAN
        shown = capsys.readouterr()
        assert "strict.min.isr" in shown.err
        assert shown.out == ""
    assert not (tmp_path / "results").exists()
