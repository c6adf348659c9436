"""`ackproof shrink` leaves a plan and a story that show the same."""

from __future__ import annotations

import msgspec

from harness.cli.app import exit_code_of
from harness.ground.errors import EXIT_PLAN
from harness.lab.search import run_in_memory
from harness.plan import parse_plan, read_plan
from harness.runs.run import perform_run

PLAN = """
families = ["kill"]
settings = { acks = 1, "min.insync.replicas" = 1, "unclean.leader.election.enable" = false }
workload = { duration_ms = 3_000, writes_per_second = 20.0, partitions = 1 }
worlds = { simulated = {} }
[[schedule]]
begin_ms = 500
end_ms = 900
fault = "partition"
role = "leader"
shape = "from-brokers"
[[schedule]]
begin_ms = 800
end_ms = 1_600
fault = "kill"
role = "leader"
"""


def recorded(tmp_path, text=PLAN):
    run = tmp_path / "run"
    assert perform_run(parse_plan(text, "plan.toml").runs()[0], run).status == "completed"
    return run


def test_a_run_is_shrunk_to_a_plan_and_a_story(tmp_path, capsys):
    run = recorded(tmp_path)
    assert exit_code_of(["shrink", str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "what it shows: lost-write (destroyed, permitted)"
    assert lines[-1].startswith("2 faults, 1 operation (of 2 and 60, ")
    assert lines[-1].endswith(f"runs): {run / 'shrunk.toml'}")
    smaller = run_in_memory(read_plan(run / "shrunk.toml").runs()[0])
    assert smaller.verdict.counts["lost-write"] == 1
    column = lines[-2].split("--settings ")[1]
    assert exit_code_of(["--debug", "stories", str(run / "shrunk-story.toml"), "--settings", column, "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["lost"] == ["w1"]


def test_a_run_without_a_finding_is_refused_in_one_sentence(tmp_path, capsys):
    run = recorded(tmp_path, PLAN[: PLAN.index("[[schedule]]")])
    quiet = parse_plan(PLAN.replace("acks = 1", 'acks = "all"'), "quiet.toml").runs()[0]
    assert perform_run(quiet, tmp_path / "quiet").status == "completed"
    assert exit_code_of(["shrink", str(tmp_path / "quiet")]) == EXIT_PLAN
    assert "shows nothing: no write is lost and no promise is broken" in capsys.readouterr().err
    assert not (tmp_path / "quiet" / "shrunk.toml").exists()
    assert exit_code_of(["shrink", str(run), "--finding", "divergent-replicas"]) == EXIT_PLAN
    assert "shows no divergent-replicas" in capsys.readouterr().err
