"""Whatever happens, in whatever order: what replication promises holds at every moment and after everything healed.

What must hold at every moment is looked at after every step (``harness.worlds.simulated.invariants``).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.broker.core.messages import MoveLeader
from harness.broker.core.types import ACKS_ALL, CONTROLLER, NONE, BrokerConfig, ErrorCode, TopicConfig
from nemesis.cluster import Link

NODES = (0, 1, 2)
node = st.sampled_from(NODES)
action = st.one_of(
    st.tuples(st.just("write"), node),
    st.tuples(st.just("write"), node),
    st.tuples(st.just("run"), st.sampled_from((2, 20, 300, 1_000, 2_600))),
    st.tuples(st.just("run"), st.sampled_from((2, 20, 300, 1_000, 2_600))),
    st.tuples(st.just("kill"), node),
    st.tuples(st.just("start"), node),
    st.tuples(st.just("power"), node),
    st.tuples(st.just("cut"), node, st.sampled_from((*NODES, CONTROLLER))),
    st.tuples(st.just("one-way"), st.sampled_from((*NODES, CONTROLLER)), st.sampled_from((*NODES, CONTROLLER))),
    st.tuples(st.just("slow"), st.sampled_from((*NODES, CONTROLLER)), st.sampled_from((*NODES, CONTROLLER))),
    st.tuples(st.just("heal")),
    st.tuples(st.just("move"), node),
)


class Treated:
    """A cluster under random treatment; links are slow or quick by chance, so that messages overtake each other."""

    def __init__(self, cluster: Any, *, power: bool, seed: int) -> None:
        self.cluster = cluster
        self.power = power
        self.writes: dict[str, int] = {}
        cluster.choices.reseed(seed)
        cluster.choices.scattered = True

    def act(self, name: str, *subject: int) -> None:
        cluster = self.cluster
        match name, subject:
            case "write", (choice,):
                leaders = [broker for broker in cluster.brokers if cluster.leads(broker)] or sorted(cluster.brokers)
                if leaders:
                    payload = f"r{len(self.writes)}"
                    self.writes[payload] = cluster.write(leaders[choice % len(leaders)], payload, ACKS_ALL)
            case "run", (ms,):
                cluster.run(ms)
            case ("kill" | "power") as kind, (broker,):
                (cluster.power if kind == "power" and self.power else cluster.kill)(broker)
            case "stop", (broker,):
                cluster.cluster.target.processes.stop(broker)
            case "start", (broker,):
                cluster.start(broker)
            case "cut", (a, b) if a != b:
                cluster.cut((a, b))
            case "one-way", (a, b) if a != b:
                cluster.network.cut([Link(a, b)])
            case "slow", (a, b) if a != b:
                cluster.network.slow([Link(a, b)])
            case "heal", ():
                cluster.heal()
            case "move", (broker,):
                cluster.send(CONTROLLER, MoveLeader(NONE, "t", 0, broker))

    def look_at_logs(self) -> None:
        logs = {
            broker: self.cluster.records(broker)
            for broker in self.cluster.brokers
            if self.cluster.brokers[broker].replicas
        }
        for a in logs:
            for b in logs:
                common = min(self.cluster.high_watermark(a), self.cluster.high_watermark(b))
                assert logs[a][:common] == logs[b][:common], "committed records differ"

    def heal(self) -> None:
        self.cluster.heal()
        for broker in NODES:
            self.cluster.start(broker)
        self.cluster.choices.scattered = False
        self.cluster.run(1_000)  # Until the slowest message has arrived.
        self.cluster.wait(lambda: self.cluster.settled() and self.cluster.leads(self.cluster.state().leader), 60_000)

    def acked(self) -> list[str]:
        return [p for p, correlation in self.writes.items() if self.cluster.outcome(correlation) == ErrorCode.NONE]


def treat(lab: Any, broker: BrokerConfig, topic: TopicConfig, actions: list[Any], seed: int) -> Treated:
    treated = Treated(lab(broker, topic), power=topic.flush_messages == 1, seed=seed)
    for name, *subject in actions:
        treated.act(name, *subject)
    return treated


common = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
plans = st.lists(action, min_size=3, max_size=22)


@pytest.mark.parametrize("truncation", ["on-fetch", "kip-320"])
@pytest.mark.parametrize("minimum", [1, 2])
@common
@given(actions=plans, seed=st.integers(0, 1_000))
def test_acknowledged_by_all_is_never_lost(
    lab: Any, truncation: Any, minimum: int, actions: list[Any], seed: int
) -> None:
    topic = TopicConfig(min_insync_replicas=minimum)
    treated = treat(lab, BrokerConfig(truncation=truncation), topic, actions, seed)
    treated.look_at_logs()
    treated.heal()
    committed = treated.cluster.committed()
    assert [p for p in treated.acked() if p not in committed] == []
    assert len({tuple(treated.cluster.records(broker)) for broker in NODES}) == 1


@common
@given(actions=plans, seed=st.integers(0, 1_000))
def test_power_loss_takes_nothing_that_every_append_flushed(lab: Any, actions: list[Any], seed: int) -> None:
    treated = treat(lab, BrokerConfig(), TopicConfig(min_insync_replicas=2, flush_messages=1), actions, seed)
    treated.look_at_logs()
    treated.heal()
    committed = treated.cluster.committed()
    assert [p for p in treated.acked() if p not in committed] == []


#: Any broker may stop in order; uncleanly only one of them does, however often (rule 15).
orderly = st.one_of(
    action.filter(lambda step: step[0] not in ("kill", "power", "start")),
    st.tuples(st.sampled_from(("kill", "power")), st.just(0)),
    st.tuples(st.just("stop"), node),
    st.tuples(st.just("start"), node),
    st.tuples(st.just("start"), node),
)


@common
@given(actions=st.lists(orderly, min_size=3, max_size=30), seed=st.integers(0, 1_000))
def test_eligible_replicas_keep_everything_while_all_but_one_stop_cleanly(
    lab: Any, actions: list[Any], seed: int
) -> None:
    topic = TopicConfig(min_insync_replicas=2)
    treated = Treated(lab(BrokerConfig(eligible_leader_replicas=True), topic), power=True, seed=seed)
    for name, *subject in actions:
        treated.act(name, *subject)
    treated.cluster.heal()
    treated.cluster.run(4_000)  # Until whoever is leaving has left.
    treated.heal()
    committed = treated.cluster.committed()
    assert [p for p in treated.acked() if p not in committed] == []


def quorum(**settings: Any) -> BrokerConfig:
    """Rules 27 and 28 as they should be."""
    return BrokerConfig(leader_election="largest-epoch-and-log-end", **settings)


@pytest.mark.parametrize("truncation", ["on-fetch", "kip-320"])
@pytest.mark.parametrize("power", [False, True])
@common
@given(actions=plans, seed=st.integers(0, 1_000))
def test_acknowledged_by_a_quorum_is_never_lost(
    lab: Any, truncation: Any, power: bool, actions: list[Any], seed: int
) -> None:
    """Two of three acknowledge, and power is lost only where they have flushed first."""
    rule: Any = {"commit_rule": "majority"} if power else {"quorum_required_acks": 2}
    topic = TopicConfig(flush_messages=1) if power else TopicConfig()
    treated = treat(lab, quorum(truncation=truncation, **rule), topic, actions, seed)
    treated.look_at_logs()
    treated.heal()
    committed = treated.cluster.committed()
    assert [p for p in treated.acked() if p not in committed] == []
    assert len({tuple(treated.cluster.records(broker)) for broker in NODES}) == 1


@pytest.mark.parametrize("truncation", ["high-watermark", "kip-101", "kip-279", "kip-320", "on-fetch"])
@settings(common, max_examples=12)
@given(actions=plans, seed=st.integers(0, 1_000), unclean=st.booleans())
def test_every_era_works_again_after_everything_healed(
    lab: Any, truncation: Any, actions: list[Any], seed: int, unclean: bool
) -> None:
    broker = BrokerConfig(
        truncation=truncation,
        strict_min_isr=False,
        isr_join_epoch_rule=False,
        fetch_fencing=False,
        broker_epochs=False,
        immediate_high_watermark=False,
    )
    treated = treat(lab, broker, TopicConfig(unclean_leader_election_enable=unclean), actions, seed)
    treated.heal()
    treated.cluster.write_ok(treated.cluster.state().leader, "afterwards")
    treated.cluster.settle()
    assert "afterwards" in treated.cluster.committed()
