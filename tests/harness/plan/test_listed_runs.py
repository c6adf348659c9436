"""Plans that say exactly which faults and which writes happen."""

from __future__ import annotations

import pytest

from harness.ground.errors import PlanError
from harness.plan import parse_plan
from harness.runs.run import choices_of, perform_run
from nemesis.faults import HoldMessages, Kill
from nemesis.roles import Role, RoleKind
from nemesis.topology import Shape
from workloads import LISTED, PlannedWrite, Send
from workloads.history import read_events

HEAD = """
seed = 7
families = ["kill"]
chance = "none"
settings = { acks = 1, "min.insync.replicas" = 1, "unclean.leader.election.enable" = false }
workload = { partitions = 1, producers = 1, duration_ms = 4_000 }
worlds = { simulated = { runs = 2 } }
"""
FAULTS = """
[[schedule]]
begin_ms = 1_000
end_ms = 2_500
fault = "kill"
broker = 0
[[schedule]]
begin_ms = 500
end_ms = 1_200
fault = "holdmessages"
role = "followers"
shape = "no-fetch"
api = "Fetch"
scenario = "kill/leader-ahead"
"""
WRITES = """
[[writes]]
at_ms = 900.5
[[writes]]
at_ms = 100
key = "k"
"""


def plan(text):
    return parse_plan(text, "given.toml")


def test_the_faults_and_the_writes_are_those_of_the_plan():
    first, second = plan(HEAD + FAULTS + WRITES).runs()
    hold, kill = first.schedule.steps
    assert hold.fault == HoldMessages(Role(RoleKind.FOLLOWERS), Shape.NO_FETCH, "Fetch")
    assert kill.fault == Kill(Role(RoleKind.NAMED, 0, 0))
    assert (hold.family, hold.scenario, kill.scenario) == ("kill", "leader-ahead", "given")
    assert hold.group == kill.group == 0  # they overlap
    assert first.workload.name == LISTED
    assert first.workload.writes == (PlannedWrite(due_us=100_000, key="k"), PlannedWrite(due_us=900_500))
    assert first.seed == 7 != second.seed


def test_older_plans_call_the_scenario_of_a_fault_its_story():
    older = FAULTS.replace("scenario = ", "story = ")
    assert plan(HEAD + older).schedule == plan(HEAD + FAULTS).schedule


def test_faults_that_do_not_overlap_are_scenarios_of_their_own_unless_the_plan_says_otherwise():
    apart = FAULTS.replace("end_ms = 1_200", "end_ms = 900")
    assert [step.group for step in plan(HEAD + apart).runs()[0].schedule.steps] == [0, 1]
    together = apart.replace("end_ms = 900", "end_ms = 900\ngroup = 1")
    assert [step.group for step in plan(HEAD + together).runs()[0].schedule.steps] == [1, 1]


def test_a_run_makes_exactly_the_listed_writes_and_faults(tmp_path):
    spec = plan(HEAD + FAULTS + WRITES).runs()[0]
    ended = perform_run(spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    events = [*read_events(tmp_path / "run" / "history")]
    begun_us = next(e.time_us for e in events if e.detail and '"mark":"break"' in e.detail)
    healed_us = next(e.time_us for e in events if e.detail and '"mark":"heal"' in e.detail)
    sent = [e.time_us - begun_us for e in events if e.type == "invoke" and e.micro and isinstance(e.micro[0], Send)]
    assert [time_us for time_us in sent if time_us < healed_us - begun_us] == [100_000, 900_500]
    assert healed_us - begun_us == 4_000_000
    begins = [fault["begun_us"] - begun_us for fault in ended.report["faults"]]
    assert begins == [500_000, 1_000_000]


def test_a_run_without_chance_is_the_same_with_every_seed(tmp_path):
    first, second = plan(HEAD + FAULTS + WRITES).runs()
    delays = [
        {tuple(drawn) for drawn in choices.recording().streams.values()}
        for spec in (first, second)
        if perform_run(spec, tmp_path / str(spec.seed), choices=(choices := choices_of(spec))).status == "completed"
    ]
    assert delays[0] == delays[1]
    assert all(len(set(drawn)) == 1 for drawn in delays[0])


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('fault = "kill"', 'fault = "kil"', 'schedule[0].fault: unknown fault "kil"; did you mean "kill"?'),
        ('fault = "kill"\n', "", 'schedule[0]: "fault" is missing; add fault = ...'),
        ("broker = 0", "broker = 3", "schedule[0].broker: broker 3 does not exist; the plan has brokers 0 to 2"),
        (
            "broker = 0",
            'broker = 0\nrole = "leader"',
            "schedule[0].role: the fault names its broker; leave this key out",
        ),
        (
            'role = "followers"',
            'role = "follower"\npartition = 1',
            "schedule[1].partition: partition 1 does not exist; the workload has only partition 0",
        ),
        ('role = "followers"', 'role = "leadr"', 'schedule[1].role: unknown role "leadr"; did you mean "leader"?'),
        ('shape = "no-fetch"\n', "", 'schedule[1]: a fault "holdmessages" needs shape; add shape = ...'),
        ('shape = "no-fetch"', "shape = 3", "schedule[1].shape: takes one of "),
        (
            "at_ms = 100\n",
            "at_ms = 100\nproducer = 4\n",
            "writes[1].producer: producer 4 does not exist; the workload has only producer 0",
        ),
        ("end_ms = 1_200", "end_ms = 400", "schedule[1].end_ms: 400 is before begin_ms=500"),
        ("end_ms = 1_200", "end_ms = 5_000", "schedule[1].end_ms: 5000 is after the end of the writes"),
        ("leader-ahead", "", "schedule[1].scenario: write FAMILY/NAME"),
        ("begin_ms = 500", "begin = 500", 'schedule[1].begin: unknown key "begin"; did you mean "begin_ms"?'),
        ("scenario = ", "storys = ", 'schedule[1].storys: unknown key "storys"; there are begin_ms, end_ms, '),
        ("at_ms = 100\n", "", 'writes[1]: "at_ms" is missing; add at_ms = ...'),
        (
            "at_ms = 100\n",
            "at_ms = 100\npartition = 1\n",
            "writes[1].partition: partition 1 does not exist; the workload has only partition 0",
        ),
        ("at_ms = 100\n", "at_ms = 4_000\n", "writes[1].at_ms: 4000 is after the end of the writes"),
        ('["kill"]', '["kill", "pause"]', "families: a [[schedule]] has one family"),
        ("producers = 1", "keys = 1", "workload.keys: the plan lists its writes ([[writes]]); leave this key out"),
        ("producers = 1", 'name = "listed"', "workload.name: "),
        (FAULTS, "", "chance: without chance no fault is drawn; list the faults under [[schedule]]"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(old, new, sentence):
    text = HEAD + FAULTS + WRITES
    assert old in text
    with pytest.raises(PlanError) as error:
        plan(text.replace(old, new, 1)).runs()
    assert f"given.toml: {sentence}" in str(error.value)


def test_more_brokers_dead_than_the_budget_are_refused():
    text = (HEAD + FAULTS).replace("runs = 2", "faults = { dead_brokers_max = 1 }, runs = 2")
    more = text + '[[schedule]]\nbegin_ms = 1_500\nend_ms = 2_000\nfault = "pause"\nbroker = 1\n'
    with pytest.raises(PlanError, match="2 brokers are stopped at once; raise dead_brokers_max from 1"):
        plan(more)
