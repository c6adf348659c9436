"""The end of runs in virtual time: what is read under each leader, and asked of each coordinator, in turn."""

from pathlib import Path

import pytest

from checkers import check_one
from harness.plan import parse_plan
from harness.records.files import HISTORY
from harness.runs.run.performing import perform_run
from workloads import Event, EventType, Function
from workloads.history import read_events

PLAN = """
seed = 1
families = ["client-crash"]
[settings]
min.insync.replicas = 2
isolation.level = "read_committed"
group.protocol = "consumer"
planted.bug = "{bug}"
[workload]
name = "{workload}"
[worlds.simulated]
runs = 1
workload = {{ writes_per_second = 40.0, duration_ms = 3_000, drain_limit_ms = 60_000 }}
[[schedule]]
begin_ms = 1_000
end_ms = 1_500
fault = "clientcrash"
role = "producer"
"""
BROKERS = (0, 1, 2)


def performed(directory: Path, workload: str, bug: str = "none") -> tuple[list[Event], dict[str, int]]:
    (spec,) = parse_plan(PLAN.format(workload=workload, bug=bug), "p.toml").runs()
    assert perform_run(spec, directory).status == "completed"
    return list(read_events(directory / HISTORY)), check_one(directory).counts


@pytest.mark.parametrize("workload", ["transactions", "consume-transform-produce"])
def test_transactions_are_read_at_both_levels_and_under_each_leader(workload: str, tmp_path: Path) -> None:
    events, counts = performed(tmp_path / "run", workload)
    read = {
        (event.node, event.isolation, name)
        for event in events
        if event.function is Function.DRAIN and event.type is EventType.OK
        for name in event.partitions
    }
    names = {name for _, _, name in read}
    levels = ("read_committed", "read_uncommitted")
    assert read == {(leader, level, name) for leader in (None, *BROKERS) for level in levels for name in names}
    assert counts == {}


def test_a_follower_that_forgets_aborts_shows_it_when_it_leads_though_no_fault_moved_a_leader(tmp_path: Path) -> None:
    _, counts = performed(tmp_path / "run", "transactions", "forget-abort-on-follower")
    assert {"aborted-read", "divergent-reads"} <= set(counts)


@pytest.mark.parametrize("workload", ["groups", "consume-transform-produce"])
def test_a_group_is_asked_what_it_has_committed_under_each_coordinator(workload: str, tmp_path: Path) -> None:
    events, counts = performed(tmp_path / "run", workload)
    last = [index for index, event in enumerate(events) if event.function is Function.PROCESS][-1]
    asked = [e for e in events[last:] if e.function is Function.COMMITTED and e.type is EventType.OK]
    assert len(asked) == 1 + len(BROKERS)
    assert len({event.micro for event in asked}) == 1
    assert counts == {}
