"""A Kafka broker's word on its replicas, from what its newest process has logged."""

from pathlib import Path
from typing import Any

import pytest

from harness.worlds.kafka.logged_roles import LoggedRoles
from harness.worlds.real.direct_access import SelfReport

LEADS = (
    "2026-11-22T08:53:45.976 INFO state.change.logger [Broker id=0] Leader t-0 with topic id Some(b) starts at leader "
    "epoch 2 from offset 2 with partition epoch 4, high watermark 1, ISR [0,1,2], adding replicas [] and removing "
    "replicas [] . Previous leader Some(0) and previous leader epoch was 0.\n"
)
FOLLOWS = (
    "2026-11-22T08:54:04.151 INFO state.change.logger [Broker id=0] Follower t-0 starts at leader epoch 3 from "
    "offset 2 with partition epoch 6 and high watermark 1. Current leader is 2. Previous leader None and previous "
    "leader epoch was -1.\n"
)
SHRINKS = (
    "2026-11-22T08:53:46.000 INFO kafka.cluster.Partition [Partition t-0 broker=0] ISR updated to 0,1  and version "
    "updated to 5\n"
)
KNOWS = (
    "2026-11-22T08:53:47.423 INFO state.change.logger [Broker id=0] Skipped the become-leader state change for t-0 "
    "with topic id Some(b), partition registration PartitionRegistration(replicas=[0, 2, 1], directories=[x, y, z], "
    "isr=[0, 1, 2], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[], leader=0, "
    "leaderRecoveryState=RECOVERED, leaderEpoch=2, partitionEpoch=6) and isNew=false since it is already the leader "
    "with leader epoch 2. Current high watermark 4, ISR [0,1,2], adding replicas [] and removing replicas [].\n"
)


class OneBroker:
    """Broker 0, its log, and how often it was started."""

    brokers = (0,)

    def __init__(self, log: Path) -> None:
        self._log, self._process, self._begin = log, object(), 0

    def log(self, _node: int) -> Path:
        return self._log

    def process(self, _node: int) -> Any:
        return self._process

    def log_begin(self, _node: int) -> int:
        return self._begin

    def says(self, text: str) -> None:
        with self._log.open("a") as file:
            file.write(text)

    def starts_again(self) -> None:
        self._process, self._begin = object(), self._log.stat().st_size


@pytest.fixture
def broker(tmp_path: Path) -> OneBroker:
    return OneBroker(tmp_path / "node-0.log")


def test_a_broker_leads_once_it_has_logged_so(broker: Any) -> None:
    roles = LoggedRoles(broker)
    assert roles.of(0, "t-0") == SelfReport()
    broker.says(LEADS)
    assert roles.of(0, "t-0") == SelfReport(leading=True, leader_epoch=2, isr=(0, 1, 2))
    assert roles.of(0, "t-1") == SelfReport()


def test_a_leader_s_isr_is_its_newest(broker: Any) -> None:
    roles = LoggedRoles(broker)
    broker.says(LEADS + SHRINKS)
    assert roles.of(0, "t-0").isr == (0, 1)


def test_a_leader_that_learns_its_isr_from_the_metadata_first_has_it_too(broker: Any) -> None:
    """Its own proposal is then answered with what it knows already, and it logs no change of its ISR."""
    roles = LoggedRoles(broker)
    broker.says(LEADS + SHRINKS + KNOWS)
    assert roles.of(0, "t-0") == SelfReport(leading=True, leader_epoch=2, isr=(0, 1, 2))


def test_a_broker_that_was_started_again_has_said_nothing_yet_also_if_nobody_looked_meanwhile(broker: Any) -> None:
    roles = LoggedRoles(broker)
    broker.says(LEADS)
    roles.of(0, "t-0")
    broker.says(SHRINKS)
    broker.starts_again()
    assert roles.of(0, "t-0") == SelfReport()
    broker.says(FOLLOWS)
    assert roles.of(0, "t-0") == SelfReport(leader_epoch=3)
