"""Whatever happens, in whatever order: what replication promises holds at every moment and after everything healed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.reference.core.messages import MoveLeader
from harness.reference.core.types import ACKS_ALL, CONTROLLER, NONE, BrokerConfig, ErrorCode, TopicConfig

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
    st.tuples(st.just("heal")),
    st.tuples(st.just("move"), node),
)


class Watched:
    """A cluster under random treatment whose invariants are looked at after every step."""

    def __init__(self, cluster: Any, *, power: bool, acks: int = ACKS_ALL) -> None:
        self.cluster = cluster
        self.power = power
        self.acks = acks
        self.writes: dict[str, int] = {}
        self.high_watermarks: dict[tuple[int, int, int], int] = {}

    def act(self, name: str, *subject: int) -> None:
        cluster = self.cluster
        match name, subject:
            case "write", (choice,):
                leaders = [at for at in cluster.brokers if cluster.leads(at)] or sorted(cluster.brokers)
                if leaders:
                    payload = f"r{len(self.writes)}"
                    self.writes[payload] = cluster.write(leaders[choice % len(leaders)], payload, self.acks)
            case "run", (ms,):
                cluster.run(ms)
            case ("kill" | "power") as kind, (at,) if at in cluster.brokers:
                (cluster.power if kind == "power" and self.power else cluster.kill)(at)
            case "start", (at,) if at not in cluster.brokers:
                cluster.start(at)
            case "cut", (a, b) if a != b:
                cluster.cut((a, b))
            case "one-way", (a, b):
                cluster.cut_links.add((a, b))
            case "heal", ():
                cluster.heal()
            case "move", (at,):
                cluster.send(CONTROLLER, MoveLeader(NONE, "t", 0, at))
        self.look()

    def look(self) -> None:
        state = self.cluster.state()
        assert set(state.isr) <= set(state.replicas)
        assert state.isr
        assert state.leader in (NONE, *state.isr)
        for at, broker in self.cluster.brokers.items():
            for partition, replica in broker.replicas.items():
                assert replica.high_watermark <= replica.log.end_offset
                if replica.leading:
                    key = (at, self.cluster._life[at], replica.leader_epoch)
                    assert replica.high_watermark >= self.high_watermarks.get(key, 0), "the high watermark went back"
                    self.high_watermarks[key] = replica.high_watermark
                    assert set(replica.isr) <= set(replica.maximal_isr)
                assert partition.topic == "t"

    def look_at_logs(self) -> None:
        logs = {at: self.cluster.records(at) for at in self.cluster.brokers if self.cluster.brokers[at].replicas}
        for a in logs:
            for b in logs:
                common = min(self.cluster.high_watermark(a), self.cluster.high_watermark(b))
                assert logs[a][:common] == logs[b][:common], "committed records differ"

    def heal(self) -> None:
        self.cluster.heal()
        for at in set(NODES) - set(self.cluster.brokers):
            self.cluster.start(at)
        self.cluster.latency_us = lambda sequence: 1_000
        self.cluster.run(1_000)  # Until the slowest message has arrived.
        self.cluster.wait(lambda: self.cluster.settled() and self.cluster.leads(self.cluster.state().leader), 60_000)

    def acked(self) -> list[str]:
        return [p for p, correlation in self.writes.items() if self.cluster.outcome(correlation) == ErrorCode.NONE]


def scattered(seed: int) -> Any:
    """Latencies from 0.2 ms to 25 ms, now and then 900 ms, so that messages overtake each other."""

    def latency_us(sequence: int) -> int:
        mixed = (sequence * 2_654_435_761 + seed * 40_503) >> 7
        return 900_000 if mixed % 211 == 0 else 200 + mixed % 25_000

    return latency_us


def treat(lab: Any, broker: BrokerConfig, topic: TopicConfig, actions: list[Any], seed: int) -> Watched:
    cluster = lab(broker, topic)
    cluster.latency_us = scattered(seed)
    watched = Watched(cluster, power=topic.flush_messages == 1)
    for name, *subject in actions:
        watched.act(name, *subject)
    return watched


common = settings(
    max_examples=60,
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
    watched = treat(lab, BrokerConfig(truncation=truncation), topic, actions, seed)
    watched.look_at_logs()
    watched.heal()
    committed = watched.cluster.committed()
    assert [p for p in watched.acked() if p not in committed] == []
    assert len({tuple(watched.cluster.records(at)) for at in NODES}) == 1


@common
@given(actions=plans, seed=st.integers(0, 1_000))
def test_power_loss_takes_nothing_that_every_append_flushed(lab: Any, actions: list[Any], seed: int) -> None:
    watched = treat(lab, BrokerConfig(), TopicConfig(min_insync_replicas=2, flush_messages=1), actions, seed)
    watched.look_at_logs()
    watched.heal()
    committed = watched.cluster.committed()
    assert [p for p in watched.acked() if p not in committed] == []


@pytest.mark.parametrize("truncation", ["high-watermark", "kip-101", "kip-279", "kip-320", "on-fetch"])
@settings(common, max_examples=25)
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
    watched = treat(lab, broker, TopicConfig(unclean_leader_election_enable=unclean), actions, seed)
    watched.heal()
    watched.cluster.write_ok(watched.cluster.state().leader, "afterwards")
    watched.cluster.settle()
    assert "afterwards" in watched.cluster.committed()
