"""`ackproof plan`: what would be run, for how long, and what it promises; nothing is started."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.campaigns.campaign import estimating
from harness.cli.app import exit_code_of
from harness.ground.errors import HostError

PLANS = Path(__file__).parents[3] / "plans"


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "cores", lambda: 2)
    monkeypatch.chdir(tmp_path)


def test_a_plan_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["plan", str(PLANS / "default.toml")]) == 0
    assert capsys.readouterr().out == (
        "default: 3,648 runs of 96 cells: 16 choices of settings × 3 families of faults (kill, pause, partition) × "
        "2 worlds, about 4 min\n"
    )


def test_explained_it_has_worlds_promises_and_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["plan", str(PLANS / "kafka.toml"), "--explain"]) == 0
    shown = capsys.readouterr().out
    assert "the plan's times" in shown
    assert "acks=1, enable.idempotence=false under kill: Acknowledged writes may be lost: acks=1" in shown
    assert "acks=all, enable.idempotence=true under kill: No acknowledged write may be lost" in shown
    assert "acks=all, enable.idempotence=true under power: Acknowledged writes may be lost: a copy was" in shown
    assert "\nrule n: docs/reference/replication-rules.md#rule-n\n" in shown
    assert "\nseed 20240607; the seed of every run follows from it; the first run: runs/kafka/acks=1," in shown


def test_machines_get_every_run_with_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["plan", str(PLANS / "demo.toml"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["cells"], len(shown["runs"])) == (4, 206)
    assert len({(run["world"], run["cell"], run["seed"]) for run in shown["runs"]}) == 206


def test_a_scripted_story_refers_to_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["plan", str(PLANS / "stories" / "S40.toml"), "--explain"]) == 0
    assert "its outcome under each choice of settings: ackproof stories S40" in capsys.readouterr().out


def test_a_script_that_its_world_cannot_perform_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.toml").write_text('story = "S54"\n[workload]\npartitions = 1\n[worlds.processes]\nruns = 1\n')
    assert exit_code_of(["plan", "p.toml"]) == 64
    assert 'the story S54 says "release last 0>controller"' in capsys.readouterr().err


def test_a_plan_that_cannot_be_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.toml").write_text("famillies = []\n")
    assert exit_code_of(["plan", "p.toml"]) == 64
    assert "families" in capsys.readouterr().err


NIGHT = """
families = ["kill", "partition"]
[worlds.kafka]
host = "loopback"
"""


@pytest.mark.parametrize(
    "command",
    [["plan"], ["plan", "--explain"], ["campaign"], ["soak", "--for", "1m"], ["run", "--family", "partition"]],
)
def test_a_family_of_which_the_host_can_do_nothing_is_refused(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.toml").write_text(NIGHT)
    assert exit_code_of([*command, "p.toml"]) == 64
    assert capsys.readouterr().err.endswith(
        'the world kafka with host = "loopback" can perform no fault of partition: links of Apache Kafka are cut with '
        'host = "namespaces" only, which needs root; write host = "namespaces" under [worlds.kafka], or leave '
        "partition out\n"
    )
    assert not (tmp_path / "results").exists()


def test_beside_other_worlds_a_plan_of_its_own_helps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.toml").write_text('families = ["kill", "clock", "slow-disk"]\n[worlds.simulated]\n[worlds.kafka]\n')
    assert exit_code_of(["plan", "p.toml"]) == 64
    assert "the world simulated can perform no fault of clock: the reference" in (shown := capsys.readouterr().err)
    assert "a plan of its own without clock; and the world simulated can perform no fault of slow" in shown


def test_what_is_only_done_in_part_is_said_and_the_plan_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.worlds.kafka.release_for", lambda *_: None)
    (tmp_path / "p.toml").write_text(NIGHT.replace(', "partition"', ""))
    assert exit_code_of(["plan", "p.toml"]) == 0
    sentence = (
        'In the world kafka with host = "loopback", kill goes without partition in 2 scenarios (leader-ahead, '
        'last-in-sync): links of Apache Kafka are cut with host = "namespaces" only, which needs root.'
    )
    assert capsys.readouterr().out.splitlines()[1:] == [sentence]
    assert exit_code_of(["plan", "p.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["limits"] == [sentence]


def test_a_release_that_is_not_here_is_said_and_the_plan_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "p.toml").write_text('families = ["kill", "pause"]\n[worlds.kafka]\nversion = "4.1.1"\n')
    assert exit_code_of(["plan", "p.toml"]) == 0
    (sentence,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("On this machine"))
    assert sentence == (
        'On this machine the world kafka with host = "loopback" cannot run: Apache Kafka 4.1.1 is not in '
        f"{tmp_path}/ackproof/kafka; get it with: ackproof kafka install 4.1.1; ackproof doctor says what is there."
    )


def test_what_this_machine_lacks_is_said_of_this_machine_and_the_plan_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.worlds.hosts.namespaces.os.geteuid", lambda: 1000)
    monkeypatch.setattr("harness.worlds.hosts.clocks.LIBRARIES", ())
    (tmp_path / "p.toml").write_text(
        'families = ["clock"]\n[faults]\nexercised_min = 1\n[worlds.processes]\n[worlds.kafka]\nhost = "namespaces"\n'
    )
    assert exit_code_of(["plan", "p.toml", "--explain"]) == 0
    host, fault = capsys.readouterr().out.splitlines()[-2:]
    assert host.startswith(
        'On this machine the world kafka with host = "namespaces" cannot run: host "namespaces" needs'
    )
    assert fault == (
        'On this machine the world processes with host = "loopback" can perform no fault of clock: wrong clocks need '
        "libfaketime; install the package faketime; run it elsewhere, or leave clock out."
    )


def test_a_host_is_tried_once_however_many_cells_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[None] = []
    monkeypatch.setattr("harness.worlds.limits.probe_namespaces", lambda: tried.append(None))
    matrix = 'families = ["kill", "pause"]\n[matrix]\nacks = [1, "all"]\n'
    (tmp_path / "p.toml").write_text(f'{matrix}[worlds.processes]\nhost = "namespaces"\n')
    assert exit_code_of(["plan", "p.toml"]) == 0
    assert len(tried) == 1


@pytest.mark.parametrize("command", [["campaign"], ["soak", "--for", "1m"]])
def test_a_host_that_cannot_be_had_here_is_refused_before_anything_is_started(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.worlds.hosts.namespaces.os.geteuid", lambda: 0)
    which = shutil.which
    monkeypatch.setattr("shutil.which", lambda tool, *_, **__: None if tool == "nft" else which(tool))
    (tmp_path / "p.toml").write_text('[worlds.processes]\nhost = "namespaces"\n')
    assert exit_code_of([*command, "p.toml"]) == 70
    assert 'cannot run on this machine: host "namespaces" needs the command nft; install the package nftables' in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("command", [["plan", "--explain"], ["campaign"], ["soak", "--for", "1m"]])
def test_a_budget_without_room_for_a_family_is_said_with_the_number_that_helps(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def begin(*_: object, **__: object) -> None:
        raise HostError("it began")

    monkeypatch.setattr("harness.cli.campaign.Campaign.new", begin)
    monkeypatch.setattr("harness.cli.soak.perform_soak", begin)
    (tmp_path / "p.toml").write_text(
        'families = ["kill+pause+partition"]\nworkload = { duration_ms = 20_000 }\n[worlds.simulated]\n'
    )
    assert exit_code_of([*command, "p.toml"]) == (0 if command[0] == "plan" else 70)
    printed = capsys.readouterr()
    assert (
        "In the world simulated, a run of kill+pause+partition may have room for 2 of its 3 families; "
        "raise count from 4 to 5.\n"
    ) in printed.out + printed.err


@pytest.mark.parametrize("command", [["campaign"], ["soak", "--for", "1m"]])
def test_what_is_not_done_is_said_at_the_begin(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.worlds.hosts.disks.os.geteuid", lambda: 1000)

    def begin(*_: object, **__: object) -> None:
        raise HostError("it began")

    monkeypatch.setattr("harness.cli.campaign.Campaign.new", begin)
    monkeypatch.setattr("harness.cli.soak.perform_soak", begin)
    (tmp_path / "p.toml").write_text('families = ["power"]\n[worlds.processes]\n')
    assert exit_code_of([*command, "p.toml"]) == 70
    said, *_, last = capsys.readouterr().err.splitlines()
    assert said.startswith(
        'On this machine the world processes with host = "loopback" can perform no fault of power: faults on'
    )
    assert last == "ackproof: it began"


@pytest.mark.parametrize("command", ["plan", "run", "campaign"])
def test_a_release_that_never_was_is_a_wrong_plan_in_every_command(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.toml").write_text('families = ["kill"]\n[worlds.kafka]\nruns = 1\nversion = "3.12.0"\n')
    assert exit_code_of([command, "p.toml"]) == 64
    said = " ".join(capsys.readouterr().err.split())
    assert "there is no Apache Kafka 3.12.0: the last releases of 3 are those of 3.9" in said
    assert [file.name for file in tmp_path.iterdir()] == ["p.toml"]
