"""Planted bugs: each is noticed, by an invariant or by a checker, and none can be switched on by accident."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from checkers import check_one as check
from checkers import judge
from harness.broker.core.controller import Controller
from harness.broker.core.messages import Fetch
from harness.broker.core.planted import WRONG, with_bug
from harness.broker.core.replica import Replica
from harness.broker.core.request_handler import RequestHandler
from harness.broker.core.types import BrokerConfig, ErrorCode, TopicConfig
from harness.ground.errors import PlanError
from harness.plan import RunSpec, Simulated
from harness.runs.run.performing import perform_run
from harness.worlds.kafka.properties import possible
from harness.worlds.kafka.releases import Version
from harness.worlds.reference_settings import broker_config
from harness.worlds.simulated.invariants import InvariantBrokenError
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.planted_bugs import PlantedBug
from workloads.settings import ACKS_ALL, Settings

BUGS = [bug for bug in get_args(PlantedBug) if bug != "none"]


def test_no_bug_is_planted_where_nobody_asks_for_one() -> None:
    assert broker_config(Settings()).planted_bug == "none"
    for part in (Controller, Replica, RequestHandler):
        assert with_bug(part, "none") is part


def test_settings_and_core_know_the_same_bugs() -> None:
    assert {"none", *(bug for bug, _ in WRONG)} == set(get_args(PlantedBug))


@pytest.mark.parametrize("bug", BUGS)
def test_no_world_of_apache_kafka_takes_one(bug: Any) -> None:
    for version in (Version(0, 11, 0), Version(3, 4, 0), Version(4, 3, 1)):
        with pytest.raises(PlanError, match=f"planted.bug={bug} is not how Apache Kafka {version} works"):
            possible(Settings(planted_bug=bug), version, free=OTHERS)


#: Every other setting, so that a release of another era refuses the bug and nothing else.
OTHERS = [name for name in Settings().to_mapping() if name != "planted.bug"]


def lost(tmp_path: Path, bug: str, family: str, **settings: Any) -> int:
    """Lost writes of four runs with the safest settings."""
    losses = 0
    for seed in range(4):
        spec = RunSpec(
            world=Simulated(),
            cell="planted",
            family=family,
            settings=Settings(acks=ACKS_ALL, planted_bug=bug, **settings).to_mapping(),  # type: ignore[arg-type]
            workload=WorkloadPlan(writes_per_second=30.0, duration_ms=10_000),
            faults=FaultPlan(families=(family,), count=4),
            seed=seed,
        )
        assert perform_run(spec, tmp_path / f"{bug}-{seed}").status == "completed"
        losses += len(check(tmp_path / f"{bug}-{seed}" / "history").anomalies.get("lost-write", ()))
    return losses


@pytest.mark.parametrize(
    ("bug", "family", "settings"),
    [
        ("acknowledge-after-append", "kill", {"min_insync_replicas": 2}),
        ("commit-largest-log-end", "kill", {"min_insync_replicas": 2}),
        # The lag time is over before the session is, so the zombie of S04 still has clients when it shrinks.
        ("shrink-before-acceptance", "partition", {"replica_lag_time_max_ms": 600}),
    ],
)
def test_the_checkers_find_what_a_planted_bug_loses(
    tmp_path: Path, bug: str, family: str, settings: dict[str, int]
) -> None:
    assert lost(tmp_path, "none", family, **settings) == 0
    assert lost(tmp_path, bug, family, **settings) > 0


@pytest.mark.parametrize(
    ("bug", "family", "scenarios", "settings"),
    [
        ("keep-fenced-in-isr", "wipe", ("S36", "wipe/follower-then-leader"), {}),
        ("flush-on-leader-only", "power", ("power/everybody", "power/two-overlapping"), {"flush_messages": 1}),
    ],
)
def test_a_promise_is_broken_although_copies_were_destroyed_that_others_should_have_replaced(
    tmp_path: Path, bug: str, family: str, scenarios: tuple[str, ...], settings: dict[str, int]
) -> None:
    """Between faults all is well for so long that each destroyed copy is judged by itself."""
    faults = FaultPlan(families=(family,), scenarios=scenarios, count=4, dead_brokers_max=3, healed_ms_min=3_000)
    judgements = {}
    for planted in ("none", bug):
        spec = RunSpec(
            world=Simulated(),
            cell="planted",
            family=family,
            settings=Settings(min_insync_replicas=2, planted_bug=planted, **settings).to_mapping(),  # type: ignore[arg-type]
            workload=WorkloadPlan(writes_per_second=30.0, duration_ms=14_000),
            faults=faults,
            seed=2,
        )
        assert perform_run(spec, tmp_path / planted).status == "completed"
        judgements[planted] = judge(spec.chosen(), check(tmp_path / planted))
    assert {fault.kind for fault in judgements["none"].faults} & {"wipedisk", "powerloss", "kill"}
    assert (judgements["none"].broken, judgements["none"].lost) == ({}, 0)
    assert judgements[bug].outcome == "broken promise"
    assert judgements[bug].broken["lost-write"] > 0


def test_a_late_fetch_of_a_dead_incarnation_takes_its_empty_successor_into_the_isr(lab: Any) -> None:
    for bug, lost in (("none", False), ("ignore-broker-epoch", True)):
        cluster = lab(BrokerConfig(planted_bug=bug))
        cluster.invariants.keeps_committed = not lost  # They would see it at once.
        cluster.write_ok(0, "x")
        cluster.settle()
        late = [m for s, t, m in cluster.sent if isinstance(m, Fetch) and (s, t) == (1, 0)][-1]
        cluster.kill(1)
        cluster.wipe(1)
        cluster.fence(1)
        cluster.lose = lambda s, t, m, late=late: isinstance(m, Fetch) and (s, t) == (1, 0) and m is not late
        cluster.start(1)
        cluster.wait(lambda cluster=cluster: not cluster.image.brokers[1].fenced)
        cluster.run(50)
        cluster.deliver(1, 0, late)
        cluster.run(50)
        assert (1 in cluster.state().isr) is lost
        assert cluster.log_end(1) == 0


def test_a_leader_that_shrinks_too_early_is_seen_before_anything_is_lost(lab: Any) -> None:
    cluster = lab(BrokerConfig(planted_bug="shrink-before-acceptance"))
    cluster.isolate(0)
    cluster.write(0, "x", timeout_ms=20_000)
    with pytest.raises(InvariantBrokenError, match="candidates-are-complete"):
        cluster.run(8_000)


def test_a_high_watermark_ahead_of_the_isr_is_seen_before_anything_is_lost(lab: Any) -> None:
    with pytest.raises(InvariantBrokenError, match="candidates-are-complete"):
        lab(BrokerConfig(planted_bug="commit-largest-log-end"))


def test_an_early_acknowledgement_is_one_that_no_follower_knows_of(lab: Any) -> None:
    cluster = lab(BrokerConfig(planted_bug="acknowledge-after-append"), TopicConfig(min_insync_replicas=2))
    cluster.cut((0, 1), (0, 2))
    early = cluster.write(0, "x")
    cluster.run(50)
    assert cluster.outcome(early) == ErrorCode.NONE
    assert cluster.high_watermark(0) == 1
