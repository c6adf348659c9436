"""Plans whose workload has consumer groups: which of them cannot be as they are written."""

from __future__ import annotations

import pytest

from harness.ground.errors import PlanError
from harness.plan import Plan, parse_plan, plans_here, read_plan
from workloads import LISTED

PLAN = """
families = ["{family}"]
[settings]
group.protocol = "consumer"
session.timeout.ms = {session_ms}
[workload]
name = "{name}"
consumers = {consumers}
{change}
[worlds.simulated]
"""


def plan(
    name: str = "groups",
    family: str = "kill",
    consumers: int = 2,
    session_ms: int = 6_000,
    change_ms: int | None = None,
) -> Plan:
    change = f"member_change_ms = {change_ms}" if change_ms is not None else ""
    text = PLAN.format(name=name, family=family, consumers=consumers, session_ms=session_ms, change=change)
    return parse_plan(text, "p.toml")


@pytest.mark.parametrize(
    ("family", "name", "words"),
    [
        ("coordinator", "steady", 'the workload "steady" has none; choose "groups" or "consume-transform-produce"'),
        ("kill+coordinator", "transactions", "coordinator strikes the coordinator of a group"),
        ("transaction-coordinator", "groups", 'choose "consume-transform-produce" or "transactions"'),
    ],
)
def test_no_fault_strikes_a_coordinator_that_a_workload_does_not_have(family: str, name: str, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan(name, family)
    assert str(caught.value).startswith("p.toml: families: ")
    assert words in str(caught.value)


def test_each_coordinator_is_struck_where_there_is_one() -> None:
    for name in ("groups", "consume-transform-produce"):
        assert plan(name, "coordinator").runs()
    for name in ("transactions", "consume-transform-produce"):
        assert plan(name, "transaction-coordinator").runs()


def test_faults_that_are_given_say_themselves_what_they_strike() -> None:
    text = (
        'families = ["coordinator"]\n[[schedule]]\nfault = "kill"\nbegin_ms = 1\nend_ms = 9\nbroker = 0\n[[writes]]\n'
        "at_ms = 1\n[worlds.simulated]\n"
    )
    (run,) = parse_plan(text, "p.toml").runs()
    assert run.workload.name == LISTED


def test_a_group_has_a_member() -> None:
    with pytest.raises(PlanError, match=r"workload.consumers: 0 is too small; the members .*: write at least 1"):
        plan(consumers=0)
    assert plan("steady", consumers=0).runs()


def test_a_member_that_died_is_given_up_before_the_run_ends() -> None:
    with pytest.raises(PlanError, match=r"session.timeout.ms=45000 is more than half of drain_limit_ms=20000"):
        plan(session_ms=45_000)
    assert plan(session_ms=45_000, change_ms=0).runs()
    assert plan("steady", session_ms=45_000).runs()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "workload.aborts_percent = 9",
            'workload.aborts_percent: does nothing in the workload "steady"; write name = ',
        ),
        (
            "workload = {name='transactions', static_members=true}",
            '"groups" or "consume-transform-produce" under [work',
        ),
        ("[worlds.simulated.workload]\ntakeover_every_ms = 9", "p.toml: worlds.simulated.workload.takeover_every_ms: "),
        (
            "[matrix]\ncommit.mode = ['auto', 'after-processing']",
            "p.toml: matrix.commit.mode: does nothing in the work",
        ),
        ("[matrix]\ntransaction.timeout.ms = [9_000, 8_000]", 'name = "consume-transform-produce" or "transactions"'),
    ],
)
def test_a_key_that_no_workload_looks_at_is_refused(text: str, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_plan(f"{text}\n[worlds.simulated]\n" if "worlds" not in text else text, "p.toml")
    assert words in str(caught.value)


def test_a_key_is_for_the_worlds_whose_workload_looks_at_it() -> None:
    text = "workload.aborts_percent = 9\n[worlds.processes]\n[worlds.simulated]\nworkload.name = 'transactions'\n"
    assert parse_plan(text, "p.toml").worlds[1].workload.aborts_percent == 9


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('family = "paus"', 'expected[0].family: the plan has no family "paus"; it has "kill" and "pause"'),
        ('world = "kafka"', 'expected[0].world: the plan has no world "kafka"; it has "simulated"'),
        ('anomalies = ["lost-writes"]', 'unknown anomaly "lost-writes"; did you mean "lost-write"?'),
        ("settings.acks = 7", 'expected[0].settings: acks=7 is not possible; choose one of "all", 0, 1'),
        ("settings.'linger.ms' = -1", "expected[0].settings: linger.ms=-1 is too small; the least is 0"),
        ('some = "stalled"', '"stalled" is not among the outcomes; add it there'),
    ],
)
def test_an_expectation_that_fits_no_cell_is_refused(entry: str, words: str) -> None:
    text = f'families = ["kill", "pause"]\n[worlds.simulated]\n[[expected]]\noutcomes = ["held"]\n{entry}\n'
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "p.toml")
    assert words in str(caught.value)


def test_the_plans_of_the_repository_can_be() -> None:
    assert all(read_plan(path).choices for path in plans_here().values())
