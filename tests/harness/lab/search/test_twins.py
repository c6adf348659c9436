"""A run on real processes is shrunk and explained by a simulated run with its faults and its writes."""

from __future__ import annotations

import pytest

from harness.cli.app import exit_code_of
from harness.ground.errors import EXIT_UNKNOWN
from harness.lab.search import twins
from harness.plan import Loopback, Processes, parse_plan
from harness.records.explanation_file import read_explanation
from harness.records.run_record import read_record, write_record
from harness.runs.run import perform_run
from tests.harness.lab.search.test_explaining import PLAN
from workloads.history import read_events


@pytest.fixture
def real(tmp_path):
    """The files of a run on real processes, which a simulated one has written."""
    run = tmp_path / "real"
    spec = parse_plan(PLAN, "plan.toml").runs()[0]
    assert perform_run(spec, run, observe=True).status == "completed"
    record = read_record(run)
    values = {name: getattr(spec, name) for name in spec.__struct_fields__} | {
        "world": Processes(host=Loopback()),
        "chance": "drawn",
    }
    write_record(run, type(spec)(**values), record.ended)
    return run


def test_its_twin_has_its_faults_at_their_times_and_its_writes(real):
    twin = twins.twin_of(real, read_record(real))
    assert twin.tries == 1
    steps = twin.run.schedule.steps
    assert [(step.fault.kind, step.begin_ms, step.end_ms) for step in steps] == [
        ("partition", 100, 400),
        ("kill", 300, 500),
    ]
    assert [str(step.fault.role) for step in steps] == ["broker 0", "broker 0"]
    assert [write.due_us for write in twin.run.spec.workload.writes] == [200_000]
    sends = [event for event in read_events(real / "history") if event.type == "invoke" and event.function == "send"]
    assert len(sends) > 1  # the others are those of the fresh producers at the end


def test_it_is_shrunk_and_explained_by_its_twin(real, capsys):
    assert exit_code_of(["--debug", "explain", str(real), "--futures", "2"]) == 0
    assert "A simulated twin shows it: the first of the runs" in capsys.readouterr().out
    explanation = read_explanation(real)
    assert explanation.no_return.what.startswith("kill broker 0")
    assert (real / "twin" / "shrunk.toml").is_file()


def test_a_run_that_no_twin_shows_says_how_often_it_was_tried(real, capsys, monkeypatch):
    whole = twins.run_in_memory(parse_plan(PLAN.replace("acks = 1", 'acks = "all"'), "whole.toml").runs()[0])
    monkeypatch.setattr(twins, "run_in_memory", lambda spec: whole)
    assert exit_code_of(["shrink", str(real)]) == EXIT_UNKNOWN
    assert "of 20 runs with its faults and writes in virtual time none showed it" in capsys.readouterr().err
    assert not (real / "shrunk.toml").exists()
