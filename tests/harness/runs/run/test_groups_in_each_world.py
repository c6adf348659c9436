"""Groups and pipelines with the defaults of Kafka's clients, in virtual time and as processes with real ones."""

from pathlib import Path

import msgspec
import pytest

from checkers import Verdict, check_one, judge
from harness.plan import parse_plan
from harness.records.files import HISTORY
from harness.runs.run.performing import perform_run
from workloads import Function, GroupMember
from workloads.history import read_events

PLAN = """
seed = 1
families = ["coordinator"]
[settings]
min.insync.replicas = 2
session.timeout.ms = 1_500
{settings}
[workload]
name = "{workload}"
partitions = 3
consumers = 3
member_change_ms = 1_500
writes_per_second = 60.0
duration_ms = 7_000
drain_limit_ms = 60_000
{aborts}
[worlds.{world}]
{client}
runs = 1
faults.count = 1
"""
PIPELINE = """
isolation.level = "read_committed"
delivery.timeout.ms = 3_000
transaction.timeout.ms = 4_000
transaction.version = 1
"""


def verdict_on(directory: Path, workload: str, world: str, settings: str = "", client: str = "") -> Verdict:
    """The verdict on one run: the group's coordinator is struck, and no promise is broken."""
    pipeline = workload != "groups"
    text = PLAN.format(
        settings=settings + PIPELINE * pipeline,
        workload=workload,
        aborts="aborts_percent = 40" if pipeline else "",
        world=world,
        client=f'client = "{client}"' if client else "",
    )
    run = parse_plan(text, "p.toml").single(None, None, None)
    ended = perform_run(run, directory)
    assert ended.status == "completed", ended.reason
    verdict = check_one(directory / HISTORY)
    assert (judge(run.chosen(), verdict).broken, verdict.exercise.drained) == ({}, True)
    assert verdict.groups.rebalanced_over_commits != 0
    assert verdict.groups.unfinished == 0
    return verdict


def generations(directory: Path) -> list[int]:
    """The generations in which members were assigned something, in order."""
    events = [each for each in read_events(directory / HISTORY) if each.function is Function.REBALANCE]
    told = [msgspec.json.decode(each.detail or "", type=GroupMember) for each in events if each.partitions]
    return [member.generation for member in told if member.generation is not None]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("workload", ["groups", "consume-transform-produce"])
def test_members_of_either_protocol_come_and_go_in_virtual_time(workload: str, protocol: str, tmp_path: Path) -> None:
    settings = "" if protocol == "classic" else 'group.protocol = "consumer"'
    verdict = verdict_on(tmp_path / "run", workload, "simulated", settings)
    assert verdict.exercise.records_read > 300
    # By the classic protocol each member that comes or goes makes a generation of all, also for those that stay.
    told = generations(tmp_path / "run")
    assert len(told) > len(set(told)) > 3


# Pipelines with the Java client: librdkafka starts over where a transaction is open (finding 010), and kafka-python
# commits for a member that has left (finding 014).
@pytest.mark.system
@pytest.mark.parametrize(("workload", "client"), [("groups", "kafka-python"), ("consume-transform-produce", "java")])
def test_real_members_come_and_go_at_brokers_over_sockets(workload: str, client: str, tmp_path: Path) -> None:
    verdict = verdict_on(tmp_path / "run", workload, "processes", client=client)
    assert verdict.exercise.records_read > 300
