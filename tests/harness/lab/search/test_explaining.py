"""Explaining a loss: how it came about, and from when on it could not be avoided."""

from __future__ import annotations

import pytest

from harness.cli.app import exit_code_of
from harness.ground.errors import EXIT_PLAN
from harness.ground.observations import BecameLeader, Truncated, of_kind
from harness.lab.search import run_in_memory
from harness.lab.search.judged_run import OtherDraws
from harness.plan import parse_plan
from harness.records.cluster_file import read_observations
from harness.records.explanation_file import read_explanation
from harness.runs.run import perform_run

#: The leader alone has a write when it dies, and then returns too late.
PLAN = """
families = ["kill"]
chance = "none"
settings = { acks = 1, "min.insync.replicas" = 1, "unclean.leader.election.enable" = false }
workload = { duration_ms = 600, partitions = 1, producers = 1, consumers = 0 }
worlds = { simulated = {} }
[[schedule]]
begin_ms = 100
end_ms = 400
fault = "partition"
role = "leader"
shape = "from-brokers"
[[schedule]]
begin_ms = 300
end_ms = 500
fault = "kill"
role = "leader"
[[writes]]
at_ms = 200
"""


def recorded(tmp_path, text=PLAN):
    run = tmp_path / "run"
    assert perform_run(parse_plan(text, "plan.toml").runs()[0], run).status == "completed"
    return run


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    run = recorded(tmp_path_factory.mktemp("explained"))
    assert exit_code_of(["--debug", "explain", str(run), "--futures", "4"]) == 0
    return run, read_explanation(run)


def test_the_chain_goes_from_the_acknowledgement_to_what_stands_there_now(explained):
    run, explanation = explained
    seen = [*read_observations(run)]
    (truncated,) = of_kind(seen, Truncated)
    leader = of_kind(seen, BecameLeader)[-1]
    text = " ".join(explanation.sentences)
    assert "acknowledged at 0.215 s by broker 0, which led in epoch 0 with in-sync replicas {0, 1, 2}" in text
    assert f"At {leader.time_us / 1e6:.3f} s broker {leader.node} began to lead in epoch 1" in text
    assert f"broker {truncated.node} truncated its log from 1 to {truncated.fact.to_offset}" in text
    assert "Offset 0 now holds" in text


def test_the_loss_could_be_avoided_until_its_only_holder_died(explained):
    _, explanation = explained
    assert explanation.no_return.what.startswith("kill broker 0")
    assert explanation.avoidable_us < explanation.no_return_us
    before = [step for step in explanation.steps if step.time_us < explanation.no_return_us]
    after = [step for step in explanation.steps if step.time_us >= explanation.no_return_us]
    assert "the write is acknowledged" in [step.what for step in before]
    assert [step.if_healed for step in before] == [0] * len(before)
    assert [(step.as_planned, step.if_healed) for step in after] == [(4, 4)] * len(after)


def test_a_run_without_a_finding_cannot_be_explained(tmp_path, capsys):
    run = recorded(tmp_path, PLAN.replace("acks = 1", 'acks = "all"'))
    assert exit_code_of(["explain", str(run)]) == EXIT_PLAN
    assert "shows nothing" in capsys.readouterr().err
    assert read_explanation(run) is None


@pytest.mark.parametrize("chance", ["none", "drawn"])
def test_other_draws_change_the_future_and_not_the_past(chance):
    spec = parse_plan(PLAN.replace('chance = "none"', f'chance = "{chance}"'), "plan.toml").runs()[0]
    first = run_in_memory(spec)
    late = run_in_memory(spec, others=OtherDraws(10**12, 5))
    assert late.verdict == first.verdict
    assert late.recording.streams == first.recording.streams
    other = run_in_memory(spec, others=OtherDraws(300_000, 5))
    streams, others = first.recording.streams, other.recording.streams
    assert streams != others
    same = [label for label, drawn in streams.items() if drawn[:1] == others.get(label, [])[:1]]
    assert len(same) > len(streams) // 2
