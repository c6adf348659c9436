"""Replay: a simulated run comes out byte for byte, and what differs is told finding by finding."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from checkers import REPLICAS_FILE, Recovery, Verdict
from harness.campaigns.campaign.replaying import differences, replay, trace_missing
from harness.cli.app import exit_code_of
from harness.cli.replay import FINDINGS_MAX, described
from harness.ground.errors import ResultsError
from harness.plan import Processes, parse_plan
from harness.records.cluster_file import read_observations
from harness.records.files import CLUSTER_FILE
from harness.records.run_record import Ended, write_record
from harness.runs.run.performing import lacks_observations, perform_run
from tests.checkers.findings import a_finding

PLAN = """
families = ["kill"]
[settings]
acks = 1
[worlds.simulated]
workload = { writes_per_second = 20.0, duration_ms = 6_000 }
faults = { count = 2 }
"""
STORY_PLAN = Path(__file__).parents[4] / "plans" / "stories" / "S40.toml"
SPEC = parse_plan(PLAN, "p.toml").runs()[0]


@pytest.fixture
def losing_run(tmp_path: Path) -> Path:
    directory = tmp_path / "run"
    ended = perform_run(SPEC, directory)
    assert ended.status == "completed", ended.reason
    return directory


def test_a_losing_run_is_reproduced_byte_for_byte(losing_run: Path, tmp_path: Path) -> None:
    result = replay(losing_run, tmp_path / "again")
    assert result.identical
    assert result.differences == ()
    assert result.again.anomalies == result.recorded.anomalies
    assert result.again.counts["lost-write"] > 0


@pytest.mark.parametrize(
    ("story", "settings", "losses"),
    [("S01", {"acks": 1, "enable.idempotence": False}, 1), ("S40", {}, None), ("S40", {"missed.epoch": "kafka"}, 1)],
)
def test_a_run_that_performs_a_story_is_reproduced_byte_for_byte_from_its_seed_and_from_its_choices(
    *, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, story: str, settings: dict[str, object], losses: int | None
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = parse_plan(STORY_PLAN.read_text().replace("S40", story), "p.toml", settings)
    spec = plan.single(None, "simulated", None)
    ended = perform_run(spec, run := tmp_path / "run")
    assert ended.status == "completed", ended.reason
    result = replay(run, tmp_path / "again")
    assert result.identical
    assert result.again.counts.get("lost-write") == losses
    assert exit_code_of(["replay", str(run), "--choices", str(run / "choices.json")]) == 0
    (again,) = Path("results").rglob("clustered.parquet")
    assert again.read_bytes() == (run / "history" / "clustered.parquet").read_bytes()


def test_a_replay_leaves_the_story_of_the_cluster(losing_run: Path, tmp_path: Path) -> None:
    assert not (losing_run / "cluster.jsonl").exists()
    trace_missing(losing_run)
    lines = [json.loads(line) for line in (losing_run / "cluster.jsonl").read_text().splitlines()]
    assert lines
    assert {"time_us", "node", "fact"} == set(lines[0])
    assert [line["time_us"] for line in lines] == sorted(line["time_us"] for line in lines)


@pytest.mark.parametrize("world", ["processes", "kafka"])
def test_a_real_run_whose_harness_was_killed_tells_of_its_cluster_from_the_nodes_files(
    tmp_path: Path, world: str
) -> None:
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    write_record(run, msgspec.structs.replace(SPEC, world=world), Ended(status="running"))
    line = {"node": 1, "fact": {"what": "registered", "broker": 1}}
    began_us = 1_795_255_289_000_000
    trace = [json.dumps({"time_us": began_us + after_us, **line}) for after_us in (700, 500)]
    (run / "logs" / "trace-1.jsonl").write_text("\n".join([*trace, '{"time_us": 18']))
    kafka = "2026-11-21T10:01:29.620 INFO kafka.cluster.Partition [Partition t-0 broker=1] ISR updated to 2,1 "
    (run / "logs" / "node-1.log").write_text(f"{kafka} and version updated to 3\n")
    assert not lacks_observations(run), "nobody knows when its clock began"
    (run / "clock.json").write_text(json.dumps({"wall_begin_us": began_us}))
    assert lacks_observations(run)
    trace_missing(run)
    reported = [seen.time_us for seen in read_observations(run)]
    assert reported == ([500, 700] if world == "processes" else [620_000])
    assert not lacks_observations(run)


def test_a_run_that_was_recorded_with_another_seed_is_not_reproduced(losing_run: Path, tmp_path: Path) -> None:
    other = msgspec.structs.replace(SPEC, seed=SPEC.seed + 1)
    write_record(losing_run, other, Ended(status="completed"))
    result = replay(losing_run, tmp_path / "again")
    assert not result.identical
    assert not result.same_bytes
    assert not (losing_run / CLUSTER_FILE).exists(), "what another run did is no evidence here"


def test_a_run_of_very_many_writes_is_not_done_again_for_a_trace(
    losing_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took six minutes for a million of them; a replay, which is asked for, does it."""
    performed = "harness.campaigns.campaign.replaying.perform_run"
    monkeypatch.setattr(performed, lambda *_, **__: pytest.fail("it was done again"))
    for rate in (10_000.0, 10_001.0):
        workload = msgspec.structs.replace(SPEC.workload, writes_per_second=rate, duration_ms=10_000)
        write_record(losing_run, msgspec.structs.replace(SPEC, workload=workload), Ended(status="completed"))
        expected = "it was done again" if rate == 10_000 else "100010 writes are too many"
        with pytest.raises((ResultsError, pytest.fail.Exception), match=expected):
            trace_missing(losing_run)
    assert not (losing_run / CLUSTER_FILE).exists()


def test_a_run_that_does_not_repeat_itself_keeps_what_it_has(losing_run: Path) -> None:
    (losing_run / REPLICAS_FILE).unlink()
    write_record(losing_run, msgspec.structs.replace(SPEC, seed=SPEC.seed + 1), Ended(status="completed"))
    with pytest.raises(ResultsError, match="does not repeat itself"):
        trace_missing(losing_run)
    assert not (losing_run / CLUSTER_FILE).exists()
    assert not (losing_run / REPLICAS_FILE).exists()


def test_the_command_says_reproduced_and_exits_with_0(losing_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["replay", str(losing_run)]) == 0
    out = capsys.readouterr().out
    assert "lost-write: " in out
    assert out.splitlines()[-1].startswith("reproduced identically, history and findings")


def test_a_run_is_performed_from_its_recorded_choices_and_never_beyond_them(
    losing_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replay records the whole run; where a draw was taken out of it, nothing is made up."""
    monkeypatch.chdir(tmp_path)
    history = Path("history", "clustered.parquet")
    assert exit_code_of(["replay", str(losing_run)]) == 0
    recorded = json.loads((losing_run / "choices.json").read_text())
    assert exit_code_of(["replay", str(losing_run), "--choices", str(losing_run / "choices.json")]) == 0
    (again,) = Path("results").rglob(str(history))
    assert again.read_bytes() == (losing_run / history).read_bytes()
    link = next(label for label, draws in recorded["streams"].items() if label.startswith("delay 1001>") and draws)
    recorded["streams"][link] = []
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(recorded))
    capsys.readouterr()
    assert exit_code_of(["replay", str(losing_run), "--choices", str(changed)]) == 70
    assert f'the recorded choices end after 0 of "{link}"' in capsys.readouterr().err


def test_the_command_exits_with_70_where_nothing_is_reproduced(
    losing_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_record(losing_run, msgspec.structs.replace(SPEC, seed=SPEC.seed + 1), Ended(status="completed"))
    assert exit_code_of(["replay", str(losing_run), "--json"]) == 70
    assert json.loads(capsys.readouterr().out)["same_bytes"] is False


HELD = Verdict(history="h", valid=True, recovery=Recovery(tried=True))
STALLED = Verdict(history="h", valid=True, recovery=Recovery(tried=True, unwritten={"t-0": "no answer"}))
LOST = Verdict(history="h", valid=False, counts={"lost-write": 3}, recovery=Recovery(tried=True))


@pytest.mark.parametrize(
    ("before", "again", "code", "words"),
    [
        (STALLED, STALLED, 0, "the same outcome, and every kind of finding showed again"),
        (STALLED, HELD, 2, "stalled before, unknown now; did not show again: stalled t-0"),
        (HELD, STALLED, 2, "unknown before, stalled now; new: stalled t-0"),
        (HELD, LOST, 2, "unknown before, broken promise now; new: lost-write"),
        (LOST, HELD, 2, "broken promise before, unknown now; did not show again: lost-write"),
    ],
)
def test_a_run_that_is_done_again_is_judged_again_and_exits_with_2_where_anything_is_new_or_gone(
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    before: Verdict,
    again: Verdict,
    code: int,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.cli.replay.rerun", lambda *_: (before, again))
    run = tmp_path / "run"
    run.mkdir()
    write_record(run, msgspec.structs.replace(SPEC, world=Processes()), Ended(status="completed"))
    assert exit_code_of(["replay", str(run)]) == code
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"{words}: ")


def test_a_run_without_history_cannot_be_compared(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_record(tmp_path / "run", SPEC, Ended(status="running"))
    with pytest.raises(ResultsError, match="No such file or directory"):
        replay(tmp_path / "run", tmp_path / "again")


def test_a_real_cluster_does_not_repeat_itself(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_record(tmp_path / "run", msgspec.structs.replace(SPEC, world=Processes()), Ended(status="completed"))
    with pytest.raises(ResultsError, match="which does not repeat itself"):
        replay(tmp_path / "run", tmp_path / "again")


def test_differences_name_counts_and_the_first_finding_that_differs() -> None:
    first = Verdict(
        history="a",
        valid=False,
        anomalies={"lost-write": [a_finding("lost-write", key="t-0", value=1)]},
        counts={"lost-write": 1},
    )
    second = Verdict(
        history="b",
        valid=False,
        anomalies={"lost-write": [a_finding("lost-write", key="t-0", value=2)]},
        counts={"lost-write": 1},
    )
    none = Verdict(history="c", valid=True)
    assert differences(first, first) == ()
    a, b = (msgspec.json.encode(verdict.anomalies["lost-write"][0]).decode() for verdict in (first, second))
    assert differences(first, second) == (f"lost-write: {a} recorded, {b} now",)
    assert differences(first, none) == ("lost-write: 1 finding recorded, none now", "valid: False recorded, True now")


def test_findings_that_are_not_shown_are_not_kept_quiet() -> None:
    kinds = {"lost-write": FINDINGS_MAX + 1, "unseen": FINDINGS_MAX}
    anomalies = {name: [a_finding(name, value=value) for value in range(count)] for name, count in kinds.items()}
    counts = {name: len(findings) for name, findings in anomalies.items()}
    lines = [*described(Verdict(history="a", valid=False, anomalies=anomalies, counts=counts))]
    assert lines[0] == f"lost-write: {FINDINGS_MAX + 1}, the first {FINDINGS_MAX} of them:"
    assert [line for line in lines if line.startswith("unseen")] == [f"unseen: {FINDINGS_MAX}"]
    assert len(lines) == 2 + 2 * FINDINGS_MAX
