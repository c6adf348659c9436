"""Runs that perform a scripted story: in files, receipts and verdicts they are runs like all others."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers import Outcome, check_one, judge
from harness.campaigns.campaign import Campaign, replay
from harness.ground.errors import PlanError
from harness.ground.progress import Progress
from harness.plan import Existing, Kafka, Namespaces, Processes, RunSpec, Ssh, read_plan
from harness.records.files import HISTORY, PLAN_FILE, STORY_FILE
from harness.records.run_record import read_record
from harness.runs.run import choices_of, perform_run
from harness.runs.run.story_run import story_of
from harness.runs.stories import Trace, perform_script
from harness.worlds.contract import NodeCrash
from harness.worlds.simulated import SimulatedWorld
from harness.worlds.simulated.leaders_and_messages import SimulatedLeadership
from nemesis.receipts import Receipt
from workloads.operations import Function

PLAN = Path(__file__).parents[4] / "plans" / "stories" / "S40.toml"


def missed_epoch(rule: str, **changes: object) -> RunSpec:
    """The run of the plan in virtual time, with ``rule`` for a leader that missed an epoch."""
    spec = read_plan(PLAN, {"missed.epoch": rule}).single(None, "simulated", None)
    return msgspec.structs.replace(spec, **changes)


@pytest.mark.parametrize(
    ("rule", "outcome", "lost"), [("kafka", Outcome.BROKEN_PROMISE, 1), ("forget", Outcome.HELD, 0)]
)
def test_the_missed_epoch_breaks_a_promise_by_kafka_s_rule_and_no_other(
    tmp_path: Path, rule: str, outcome: Outcome, lost: int
) -> None:
    """S40: acks=all, min ISR 2, no unclean election; links are cut and leaders moved, and nobody dies."""
    spec = missed_epoch(rule)
    ended = perform_run(spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    judgement = judge(spec.chosen(), check_one(tmp_path / "run" / HISTORY), 1, ["S40"])
    assert (judgement.outcome, judgement.lost) == (outcome, lost)


def test_everything_that_a_script_does_leaves_a_receipt(tmp_path: Path) -> None:
    perform_run(missed_epoch("forget"), tmp_path / "run")
    report = read_record(tmp_path / "run").ended.report
    assert report is not None
    faults = [msgspec.convert(fault, Receipt) for fault in report["faults"]]
    assert [fault.fault for fault in faults] == ["partition", "partition", "moveleader", "moveleader", "moveleader"]
    assert all(fault.took_effect and fault.family == "S40" for fault in faults)
    assert all(fault.ended_us is not None for fault in faults)


def test_how_a_story_went_is_kept_step_by_step(tmp_path: Path) -> None:
    perform_run(missed_epoch("kafka"), tmp_path / "run")
    trace = msgspec.json.decode((tmp_path / "run" / STORY_FILE).read_bytes(), type=Trace)
    assert trace.problems == ()
    assert {name: record.outcome for name, record in trace.records.items()} == dict.fromkeys(
        ("base", "b"), "acknowledged"
    )


class _Dying(SimulatedWorld):
    """Broker 2 is said to have ended by itself once half a second of the run has passed."""

    def crashes(self) -> tuple[NodeCrash, ...]:
        return (NodeCrash(500_000, 2, "signal 11", ""),) if self.clock.now_us() > 500_000 else ()


def test_a_node_that_ended_by_itself_is_written_down_while_the_script_is_performed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: Any
) -> None:
    """As in every run: when it was seen, and not once the run is over."""
    spec = own_story(tmp_path, "write x to 0", "wait 5 s")
    report = perform_script(story_of(spec), spec, _Dying(spec, choices_of(spec)), events).report
    (written,) = events.of(Function.FAULT)
    assert msgspec.json.decode(written.detail)["fault"] == "died"
    assert written.time_us < report.healed_us
    assert [death.node for death in report.deaths] == [2]
    assert events.events[-1].function is Function.PHASE


def test_a_leader_that_no_step_has_moved_has_a_receipt_of_its_own(tmp_path: Path, events: Any) -> None:
    """As in every run: a promise does not rest on what nobody asked for."""
    spec = own_story(tmp_path, "write x to 0", "wait 5 s")
    world = SimulatedWorld(spec, choices_of(spec))
    leadership = world.target.leadership
    assert leadership is not None
    world.clock.call_at(4_000_000, lambda: leadership.move_leader("ackproof-0", 1) and None)
    perform_script(story_of(spec), spec, world, events)
    assert [msgspec.json.decode(event.detail)["fault"] for event in events.of(Function.FAULT)] == ["unasked"]


def test_a_story_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    ended = perform_run(missed_epoch("forget", story="S998"), tmp_path / "run")
    assert ended.status == "harness-failed"
    assert "S40" in str(ended.reason)


def test_a_run_without_the_settings_of_its_story_is_refused(tmp_path: Path) -> None:
    spec = missed_epoch("forget")
    hasty = msgspec.structs.replace(spec, settings=spec.settings | {"replica.lag.time.max.ms": 1_500})
    ended = perform_run(hasty, tmp_path / "run")
    assert ended.reason == "the story S40 needs replica.lag.time.max.ms=30000; write it in the plan"


def own_story(directory: Path, *steps: str, above: str = "", settings: str = "") -> RunSpec:
    """The run of a plan that names a story of its own with these steps."""
    script = "\n".join(steps)
    (directory / "my.toml").write_text(f'number = "M1"\ntitle = "t"\nsteps = """\n{script}\n"""\n')
    (directory / "p.toml").write_text(
        f'story = "my.toml"\n{above}\n[settings]\n{settings}\n[workload]\npartitions = 1\n[worlds.simulated]\n'
    )
    return read_plan(directory / "p.toml").single(None, None, None)


def test_a_story_that_needs_several_disks_is_refused_before_a_run_without_them(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="the story M1 lets a disk of several fail; write log_dirs = 2 in the plan"):
        story_of(own_story(tmp_path, "fail 0"))
    assert story_of(own_story(tmp_path, "fail 0", above="log_dirs = 2")).number == "M1"


def test_a_story_that_writes_with_an_acks_of_its_own_is_refused_where_the_promise_has_another(tmp_path: Path) -> None:
    """The promise of a run is that of its settings: a loss of a write with acks=1 would break that of acks=all."""
    sentence = 'the story M1 says "write x to 0 acks=1"; in a plan every write has the acks of the settings'
    with pytest.raises(PlanError, match=sentence):
        story_of(own_story(tmp_path, "write x to 0 acks=1"))
    assert story_of(own_story(tmp_path, "write x to 0 acks=1", settings="acks = 1")).number == "M1"


ON_KAFKA = {
    "ssh": Kafka(host=Ssh(machines=())),
    "existing": Existing(bootstrap=("b:9092",)),
    "loopback": Kafka(),
    "namespaces": Kafka(host=Namespaces()),
    "processes": Processes(),
}


@pytest.mark.parametrize(
    ("where", "step", "advice"),
    [
        ("ssh", "kill 0", 'on this machine; write [worlds.kafka] with host = "namespaces", and run as root'),
        ("existing", "kill 0", 'on this machine; write [worlds.kafka] with host = "namespaces", and run as root'),
        ("loopback", "cut 0-1", 'write host = "namespaces" under [worlds.kafka], and run as root'),
        ("namespaces", "wait until high watermark of 0 misses base", "wait until replicas have the record"),
        ("namespaces", "try wait until high watermark of 0 misses base", "wait until replicas have the record"),
        ("namespaces", "drop Produce 0>clients", "which would not come about; leave [worlds.kafka] out"),
        ("namespaces", "fail 0", "leave all worlds but [worlds.simulated] out"),
        ("processes", "release first 0>1", "leave all worlds but [worlds.simulated] out"),
    ],
)
def test_a_step_that_a_world_cannot_do_is_refused_before_anything_starts(
    tmp_path: Path, where: str, step: str, advice: str
) -> None:
    spec = own_story(tmp_path, step, above="log_dirs = 2")
    assert story_of(spec).number == "M1"
    with pytest.raises(PlanError) as caught:
        story_of(msgspec.structs.replace(spec, world=ON_KAFKA[where]))
    assert advice in str(caught.value)


@pytest.mark.parametrize("path", sorted(PLAN.parent.glob("*.toml")), ids=lambda path: path.stem)
def test_every_cell_of_the_projects_plans_can_be_performed_in_its_world(path: Path) -> None:
    runs = read_plan(path).runs()
    assert {story_of(run).number for run in runs} == {path.stem}
    not_there = {"kafka"} if path.stem == "S22" else set()
    assert {run.world.name for run in runs} == {"simulated", "processes", "kafka"} - not_there


def test_a_run_in_which_a_record_was_not_sent_has_failed_and_holds_nothing(tmp_path: Path) -> None:
    spec = own_story(tmp_path, "never start all", "kill all", "wait until 0 is fenced", "write x to leader")
    ended = perform_run(spec, tmp_path / "run")
    assert ended.status == "harness-failed"
    assert str(ended.reason).endswith('line 7, "write x to leader": not sent: no broker leads')


def test_a_log_that_waits_for_a_broker_which_never_returns_is_not_stalled(tmp_path: Path) -> None:
    """S07: the last in-sync replica is gone for good, and nobody else may lead."""
    plan = tmp_path / "S07.toml"
    plan.write_text('story = "S07"\n[workload]\npartitions = 1\n[worlds.simulated]\nruns = 1\n')
    spec = read_plan(plan).single(None, None, None)
    assert perform_run(spec, tmp_path / "run").status == "completed"
    verdict = check_one(tmp_path / "run" / HISTORY)
    assert list(verdict.recovery.absent.values()) == ["broker 0 did not run"]
    assert judge(spec.chosen(), verdict, 1, ["S07"]).outcome is not Outcome.STALLED


OWN = '''
number = "M1"
title = "The leader dies while one follower is slow"
steps = """
drop Fetch 0>1
write x to 0
kill 0
wait until 0 is fenced
"""
'''


def test_a_campaign_with_a_story_of_its_own_is_complete_in_itself(tmp_path: Path) -> None:
    """It is judged, replayed and planned again where neither the plan nor the story file is any more."""
    (given := tmp_path / "given").mkdir()
    (given / "my.toml").write_text(OWN)
    (given / "p.toml").write_text(
        'story = "my.toml"\n[settings]\nacks = 1\n[workload]\npartitions = 1\n[worlds.simulated]\nruns = 1\n'
    )
    plan = read_plan(given / "p.toml")
    (begun := tmp_path / "begun").mkdir()
    Campaign.new(plan, plan.runs(), begun).perform_stages(Progress(), stages=[])
    shutil.rmtree(given)
    moved = begun.rename(tmp_path / "moved")
    (spec,) = read_plan(moved / PLAN_FILE).runs()
    assert spec == plan.runs()[0]
    result = replay(run := moved / spec.directory(), tmp_path / "again")
    assert result.identical
    assert read_record(run).spec() == spec
    judgement = judge(spec.chosen(), check_one(run / HISTORY), 1, [spec.family])
    assert (judgement.outcome, judgement.lost) == (Outcome.PERMITTED_LOSS, 1)
    assert Campaign.continued(read_plan(moved / PLAN_FILE), moved).missing == []


def test_a_run_whose_decisive_step_was_in_vain_has_failed_and_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S40 tries to move the leader back, as some columns refuse it; where it is refused here, no epoch is missed."""
    move = SimulatedLeadership.move_leader
    monkeypatch.setattr(
        SimulatedLeadership,
        "move_leader",
        lambda self, partition, broker: {"refused": "timed out"} if broker == 0 else move(self, partition, broker),
    )
    ended = perform_run(missed_epoch("kafka"), tmp_path / "run")
    assert ended.status == "harness-failed"
    assert "move leader to 0" in str(ended.reason)
