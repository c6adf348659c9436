"""Scripted stories with the outcome that each column of settings must have (docs/replication-rules.md)."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from harness.reference.core.messages import Fetch, FetchResponse
from harness.reference.core.types import (
    ACKS_ALL,
    CONTROLLER,
    NONE,
    BrokerConfig,
    ErrorCode,
    TopicConfig,
    TopicPartition,
)

AT = TopicPartition("t", 0)

OLD = BrokerConfig(strict_min_isr=False, isr_join_epoch_rule=False, fetch_fencing=False, broker_epochs=False)


class Column(NamedTuple):
    """One choice of settings."""

    acks: int
    topic: TopicConfig
    broker: BrokerConfig = BrokerConfig()


COLUMNS = {
    "a1": Column(1, TopicConfig()),
    "all/1": Column(ACKS_ALL, TopicConfig()),
    "all/1/U": Column(ACKS_ALL, TopicConfig(unclean_leader_election_enable=True)),
    "all/2": Column(ACKS_ALL, TopicConfig(min_insync_replicas=2)),
    "all/2/U": Column(ACKS_ALL, TopicConfig(min_insync_replicas=2, unclean_leader_election_enable=True)),
    "all/2/F": Column(ACKS_ALL, TopicConfig(min_insync_replicas=2, flush_messages=1)),
    "all/2/E": Column(ACKS_ALL, TopicConfig(min_insync_replicas=2), BrokerConfig(eligible_leader_replicas=True)),
    "all/2/EF": Column(
        ACKS_ALL,
        TopicConfig(min_insync_replicas=2, flush_messages=1),
        BrokerConfig(eligible_leader_replicas=True),
    ),
    "all/2/HW": Column(ACKS_ALL, TopicConfig(min_insync_replicas=2), replace(OLD, truncation="high-watermark")),
    "all/2/101": Column(ACKS_ALL, TopicConfig(min_insync_replicas=2), replace(OLD, truncation="kip-101")),
}


class ControllerLog:
    """A story while it is told: what was offered, and what was acknowledged."""

    def __init__(self, lab: Any, column: Column, **broker: Any) -> None:
        config = replace(column.broker, **broker)
        self.acks = column.acks
        self.cluster = lab(config, column.topic)
        self.offered: dict[str, int] = {}

    def offer(self, node: int, payload: str, ms: int = 30) -> None:
        """Send one record and let a little time pass, long enough for an acknowledgement that is possible at all."""
        self.offered[payload] = self.cluster.write(node, payload, self.acks)
        self.cluster.run(ms)

    def offer_leader(self, payload: str) -> None:
        """Send one record to whoever leads, if anybody does."""
        if self.cluster.state().leader != NONE:
            self.offer(self.cluster.state().leader, payload)

    def acked(self, payload: str) -> bool:
        """Was the record acknowledged?"""
        return self.cluster.outcome(self.offered[payload]) == ErrorCode.NONE

    def heal(self) -> None:
        """Repair everything and wait until every replica has everything."""
        self.cluster.heal()
        for node in {0, 1, 2} - set(self.cluster.brokers):
            self.cluster.start(node)
        self.cluster.settle()

    def lost(self) -> set[str]:
        """Acknowledged records that no consumer can read any more."""
        return {p for p in ("base", *self.offered) if p == "base" or self.acked(p)} - set(self.cluster.committed())


def no_fetch_answers(source: int, *targets: int) -> Any:
    """Loses the fetch responses of one leader to some followers."""
    return lambda s, t, m: s == source and t in targets and isinstance(m, FetchResponse)


def no_fetches(target: int, *sources: int) -> Any:
    """Loses the fetches of some followers to one leader."""
    return lambda s, t, m: t == target and s in sources and isinstance(m, Fetch)


def news_of(high_watermark: int) -> Any:
    """Loses the fetch responses that tell of a high watermark."""
    return lambda s, t, m: (
        isinstance(m, FetchResponse) and any(p.high_watermark >= high_watermark for p in m.partitions)
    )


def s01(told: ControllerLog) -> None:
    """The leader dies before any follower has fetched."""
    told.cluster.lose = no_fetch_answers(0, 1, 2)
    told.offer(0, "x")
    told.cluster.kill(0)
    told.cluster.fence(0)
    told.cluster.run(50)
    told.offer_leader("y")


def s03(told: ControllerLog) -> None:
    """A planned move of the leader, no crash."""
    told.cluster.lose = no_fetch_answers(0, 1, 2)
    told.offer(0, "x")
    told.cluster.move_leader(1)


def s04(told: ControllerLog) -> None:
    """A leader that only the client still reaches."""
    told.cluster.isolate(0)
    told.cluster.fence(0)
    told.offer(0, "x", 3_000)
    told.offer(1, "y")


def s06(told: ControllerLog) -> None:
    """The last in-sync replica takes a record with it."""
    told.cluster.cut((0, 1), (0, 2))
    told.cluster.nudge()
    told.cluster.wait(lambda: told.cluster.state().isr == (0,))
    told.cluster.run(50)
    told.offer(0, "x")
    told.cluster.kill(0)
    told.cluster.fence(0)
    told.cluster.heal()
    told.cluster.run(500)
    told.offer_leader("y")


def _alone(told: ControllerLog) -> None:
    told.offered["w"] = told.cluster.write_ok(0, "w")
    told.cluster.settle()
    told.cluster.cut((0, 1), (0, 2))
    told.cluster.nudge()
    told.cluster.wait(lambda: told.cluster.state().isr == (0,))


def s08(told: ControllerLog) -> None:
    """The last in-sync replica returns with an empty disk."""
    _alone(told)
    told.cluster.kill(0)
    told.cluster.wipe(0)
    told.cluster.fence(0)


def s09(told: ControllerLog) -> None:
    """The last in-sync replica returns without what it had not flushed."""
    _alone(told)
    told.cluster.power(0)
    told.cluster.fence(0)


def s10(told: ControllerLog) -> None:
    """A follower loses power, fetches again what it lost, and serves it after a failover."""
    told.offer(0, "w")
    told.cluster.settle()
    told.cluster.power(2)
    told.heal()
    told.offer(0, "x")
    told.cluster.settle()
    told.cluster.kill(0)
    told.cluster.fence(0)


def s11(told: ControllerLog) -> None:
    """All replicas lose power at once."""
    told.offer(0, "x")
    told.cluster.settle()
    told.cluster.power(0, 1, 2)
    told.cluster.fence(0, 1, 2)


def s12(told: ControllerLog) -> None:
    """All processes die at once."""
    told.offer(0, "x")
    told.cluster.settle()
    told.cluster.kill(0, 1, 2)
    told.cluster.fence(0, 1, 2)


def s13(told: ControllerLog) -> None:
    """All processes die before any follower has fetched."""
    told.cluster.lose = no_fetch_answers(0, 1, 2)
    told.offer(0, "x")
    told.cluster.kill(0, 1, 2)
    told.cluster.fence(0, 1, 2)


def s14(told: ControllerLog) -> None:
    """A follower that acknowledged, but knows an old high watermark, restarts and has to lead (KIP-101, scenario 1)."""
    told.cluster.shrink(2)
    stopped = told.cluster.lose
    told.cluster.run(50)
    news = news_of(told.cluster.log_end(0) + 1)
    told.cluster.lose = lambda s, t, m: stopped(s, t, m) or news(s, t, m)
    told.offer(0, "x")
    told.cluster.lose = lambda s, t, m: stopped(s, t, m) or no_fetches(0, 1)(s, t, m)
    told.cluster.kill(1)
    told.cluster.start(1)
    told.cluster.run(100)
    told.cluster.kill(0)
    told.cluster.fence(0)
    told.cluster.run(500)
    told.offer_leader("y")


def s15(told: ControllerLog) -> None:
    """Two replicas lose power; the one that had not flushed is back first and leads (KIP-101, scenario 2)."""
    told.cluster.shrink(2)
    told.offer(0, "x")
    told.cluster.run(600)
    told.cluster.log(0).flush()
    told.cluster.log(0).checkpoint_high_watermark(told.cluster.log_end(0))
    told.cluster.power(0, 1)
    told.cluster.fence(0, 1)
    assert told.cluster.state().isr == (1,)
    told.cluster.start(1)
    told.cluster.wait(lambda: told.cluster.leads(1))
    told.offer(1, "y")


def s17(told: ControllerLog) -> None:
    """A follower that missed two elections keeps fetching in its old epoch (KIP-320)."""
    cluster = told.cluster
    cluster.lose = no_fetch_answers(0, 2)
    told.offer(0, "b")
    cluster.cut((1, CONTROLLER))
    cluster.fence(1)
    cluster.move_leader(2)
    cluster.heal()
    cluster.cut((1, CONTROLLER))
    cluster.wait(lambda: cluster.leads(2))
    cluster.run(3_000)
    told.offer(2, "c", 200)
    cluster.move_leader(0)
    cluster.wait(lambda: cluster.leads(0))
    cluster.run(3_000)
    told.offer(0, "d", 200)
    cluster.run(3_000)
    cluster.heal()
    cluster.wait(lambda: 1 in cluster.state().isr)
    cluster.kill(0)
    cluster.fence(0)
    cluster.wait(lambda: cluster.leads(1))


def s18(told: ControllerLog) -> None:
    """A stale follower joins the ISR of a new leader whose high watermark lags (KAFKA-7128): no crash at all."""
    cluster = told.cluster
    news = news_of(cluster.log_end(0) + 1)
    cluster.lose = lambda s, t, m: no_fetch_answers(0, 2)(s, t, m) or no_fetches(0, 2)(s, t, m) or news(s, t, m)
    told.offer(0, "x")
    cluster.wait(lambda: cluster.state().isr == (0, 1))
    cluster.run(10)
    cluster.cut((0, 1))
    cluster.lose = lambda s, t, m: no_fetches(0, 2)(s, t, m) or no_fetch_answers(1, 2)(s, t, m)
    cluster.move_leader(1)
    cluster.wait(lambda: cluster.leads(1))
    cluster.run(100)
    if 2 in cluster.state().isr:
        cluster.move_leader(2)
        cluster.wait(lambda: cluster.leads(2))
    told.offer_leader("y")


def s19(told: ControllerLog) -> None:
    """A fetch of a dead incarnation arrives late, when the next one has lost its disk (KIP-903)."""
    cluster = told.cluster
    told.offer(0, "x")
    cluster.settle()
    late = [m for s, t, m in cluster.sent if isinstance(m, Fetch) and (s, t) == (1, 0)][-1]
    cluster.kill(1)
    cluster.wipe(1)
    cluster.fence(1)
    cluster.lose = no_fetches(0, 1)
    cluster.start(1)
    cluster.wait(lambda: not cluster.image.brokers[1].fenced)
    cluster.run(50)
    cluster.lose = lambda s, t, m: False
    cluster.deliver(1, 0, late)
    cluster.lose = no_fetches(0, 1)
    cluster.run(50)
    cluster.shrink(2)
    cluster.kill(0)
    cluster.fence(0)
    cluster.run(100)


def s25(told: ControllerLog) -> None:
    """More copies are destroyed than any setting can make up for."""
    told.cluster.shrink(2)
    told.offer(0, "x")
    told.cluster.kill(0, 1)
    told.cluster.wipe(0, 1)
    told.cluster.fence(0, 1)


def s31(told: ControllerLog) -> None:
    """A rolling restart that does not wait for the ISR."""
    told.offer(0, "x")
    told.cluster.settle()
    for node in (0, 1, 2):
        told.cluster.kill(node)
        told.cluster.start(node)
        told.cluster.run(700)


def s32(told: ControllerLog) -> None:
    """The leader loses power after everything was replicated."""
    told.offer(0, "x")
    told.cluster.settle()
    told.cluster.power(0)
    told.cluster.fence(0)


def s36(told: ControllerLog) -> None:
    """A follower loses power and is back before anybody noticed (KAFKA-7235), then the leader dies."""
    told.offer(0, "w")
    told.cluster.settle()
    told.cluster.lose = no_fetches(0, 1)
    told.cluster.power(1)
    told.cluster.start(1)
    told.cluster.run(100)
    told.cluster.kill(0)
    told.cluster.fence(0)


def s39(told: ControllerLog) -> None:
    """The same as S14 without any restart: a planned move, then the new leader dies."""
    cluster = told.cluster
    cluster.move_leader(2)
    cluster.settle()
    cluster.lose = news = news_of(cluster.log_end(2) + 1)
    told.offer(2, "x")
    cluster.lose = lambda s, t, m: news(s, t, m) or no_fetches(0, 1)(s, t, m)
    cluster.move_leader(0)
    cluster.run(50)
    cluster.kill(0)
    cluster.fence(0)
    cluster.wait(lambda: cluster.leads(1))
    cluster.heal()
    told.offer(1, "y", 3_000)


NOTHING: frozenset[str] = frozenset()
EXPECTED: dict[Any, dict[str, set[str] | frozenset[str]]] = {
    s01: {"a1": {"x"}, "all/1": NOTHING, "all/1/U": NOTHING, "all/2": NOTHING, "all/2/E": NOTHING},
    s03: {"a1": {"x"}, "all/1": NOTHING, "all/1/U": NOTHING, "all/2": NOTHING},
    s04: {"a1": {"x"}, "all/1": NOTHING, "all/1/U": NOTHING, "all/2": NOTHING, "all/2/E": NOTHING},
    s06: {"a1": NOTHING, "all/1": NOTHING, "all/1/U": {"x"}, "all/2": NOTHING, "all/2/U": NOTHING, "all/2/E": NOTHING},
    s08: {
        "a1": {"base", "w"},
        "all/1": {"base", "w"},
        "all/1/U": NOTHING,
        "all/2": {"base", "w"},
        "all/2/E": NOTHING,
        "all/2/EF": NOTHING,
    },
    s09: {
        "a1": {"w"},
        "all/1": {"w"},
        "all/1/U": NOTHING,
        "all/2": {"w"},
        "all/2/F": NOTHING,
        "all/2/E": NOTHING,
        "all/2/EF": NOTHING,
    },
    s10: {
        "a1": NOTHING,
        "all/1": NOTHING,
        "all/1/U": NOTHING,
        "all/2": NOTHING,
        "all/2/F": NOTHING,
        "all/2/E": NOTHING,
    },
    s11: {
        "a1": {"x"},
        "all/1": {"x"},
        "all/1/U": {"x"},
        "all/2": {"x"},
        "all/2/F": NOTHING,
        "all/2/E": {"x"},
        "all/2/EF": NOTHING,
    },
    s12: {"a1": NOTHING, "all/1": NOTHING, "all/1/U": NOTHING, "all/2": NOTHING, "all/2/E": NOTHING},
    s13: {"a1": {"x"}, "all/1": NOTHING, "all/1/U": NOTHING, "all/2": NOTHING, "all/2/E": NOTHING},
    s14: {
        "a1": NOTHING,
        "all/1": NOTHING,
        "all/2": NOTHING,
        "all/2/HW": {"x"},
        "all/2/101": NOTHING,
        "all/2/E": NOTHING,
    },
    s15: {"a1": {"x"}, "all/1": {"x"}, "all/2": {"x"}, "all/2/F": NOTHING, "all/2/HW": {"x"}, "all/2/101": {"x"}},
    s17: {"a1": {"b"}, "all/1": NOTHING, "all/2": NOTHING, "all/2/HW": {"c"}, "all/2/101": {"c"}},
    s18: {"a1": NOTHING, "all/1": NOTHING, "all/2": NOTHING, "all/2/HW": {"x"}, "all/2/101": {"x"}},
    s19: {
        "a1": NOTHING,
        "all/1": NOTHING,
        "all/2": NOTHING,
        "all/2/HW": {"base", "x"},
        "all/2/101": {"base", "x"},
        "all/2/E": NOTHING,
    },
    s25: {
        name: {"base", "x"}
        for name in ("a1", "all/1", "all/2", "all/2/F", "all/2/E", "all/2/EF", "all/2/HW", "all/2/101")
    },
    s31: {"a1": NOTHING, "all/1": NOTHING, "all/1/U": NOTHING, "all/2": NOTHING, "all/2/E": NOTHING},
    s32: {"a1": NOTHING, "all/1": NOTHING, "all/1/U": NOTHING, "all/2": NOTHING, "all/2/E": NOTHING},
    s36: {
        "all/2": NOTHING,
        "all/2/F": NOTHING,
        "all/2/HW": {"w"},
        "all/2/101": {"w"},
        "all/2/E": NOTHING,
        "all/2/EF": NOTHING,
    },
    s39: {"a1": NOTHING, "all/1": NOTHING, "all/2": NOTHING, "all/2/HW": {"x"}, "all/2/101": NOTHING},
}
#: Stories whose point needs followers to stay in the ISR while nothing is fetched for some seconds.
PATIENT = {s17: {"replica_lag_time_max_ms": 20_000}}


@pytest.mark.parametrize(
    ("story", "name"),
    [pytest.param(story, name, id=f"{story.__name__}-{name}") for story in EXPECTED for name in EXPECTED[story]],
)
def test_a_story_loses_exactly_what_its_settings_permit(lab: Any, story: Any, name: str) -> None:
    """An expected loss is worth as much as an expected rescue: a cluster that never loses anything proves nothing."""
    told = ControllerLog(lab, COLUMNS[name], **PATIENT.get(story, {}))
    story(told)
    told.heal()
    assert told.lost() == EXPECTED[story][name], story.__doc__


@pytest.mark.parametrize(
    ("story", "name", "acked"),
    [
        (s06, "all/1", {"x"}),
        (s06, "all/1/U", {"x", "y"}),
        (s06, "all/2", set()),
        (s14, "all/2/HW", {"x"}),
        (s14, "all/2", {"x"}),
        (s17, "all/2/HW", {"c", "d"}),
        (s17, "all/2", {"c", "d"}),
        (s18, "all/2/101", {"x", "y"}),
        (s18, "all/2", {"x"}),
        (s39, "all/2", {"x", "y"}),
        (s39, "all/2/HW", {"x", "y"}),
    ],
)
def test_a_story_is_about_records_that_were_acknowledged(lab: Any, story: Any, name: str, acked: set[str]) -> None:
    """Otherwise "nothing lost" would be true for nothing."""
    told = ControllerLog(lab, COLUMNS[name], **PATIENT.get(story, {}))
    story(told)
    assert {payload for payload in told.offered if told.acked(payload)} == acked


@pytest.mark.parametrize(
    ("name", "leader"), [("all/1", NONE), ("all/2", NONE), ("all/1/U", 1), ("all/2/U", 1), ("all/2/E", 1)]
)
def test_waiting_for_the_last_in_sync_replica_is_the_price_of_clean_elections(lab: Any, name: str, leader: int) -> None:
    told = ControllerLog(lab, COLUMNS[name])
    s06(told)
    assert told.cluster.state().leader == leader


@pytest.mark.parametrize("name", ["all/2/HW", "all/2/101", "all/2"])
def test_only_the_old_eras_leave_replicas_with_different_records(lab: Any, name: str) -> None:
    told = ControllerLog(lab, COLUMNS[name], **PATIENT[s17])
    s17(told)
    told.heal()
    copies = {tuple(told.cluster.records(node)) for node in range(3)}
    assert len(copies) == (1 if name == "all/2" else 2)
