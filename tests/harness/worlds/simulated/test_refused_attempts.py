"""Attempts that leaders refuse for want of in-sync replicas, which no send of a client that retries tells of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from harness.broker.core.effects import Deliver, Effect
from harness.broker.core.messages import ProduceResponse
from harness.broker.core.types import ErrorCode, NodeId
from tests.harness.worlds.simulated.conftest import Stage
from workloads.operations import EventType

BEFORE, AFTER = ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class Answers:
    """Counts the answers that brokers send to producers, by log partition and error."""

    def __init__(self, stage: Stage) -> None:
        self.counts: Counter[tuple[str, ErrorCode]] = Counter()
        stage.world.cluster.watch(self._step)

    def _step(self, _node: NodeId, _cause: object, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver) and isinstance(effect.message, ProduceResponse):
                self.counts[str(effect.message.partition), effect.message.error] += 1

    def of(self, error: ErrorCode) -> dict[str, int]:
        return {partition: count for (partition, code), count in self.counts.items() if code is error}


@pytest.mark.parametrize("observe", [False, True])
def test_every_attempt_that_was_refused_is_counted_although_the_write_was_acknowledged(
    stage: Callable[..., Stage], observe: bool
) -> None:
    scene = stage(observe=observe, min_insync_replicas=3)
    answers = Answers(scene)
    dead = scene.followers[0]
    scene.target.processes.kill(dead)
    scene.until(lambda: len(scene.target.view().partitions["t-0"].isr) == 2)
    send = scene.producer()
    send("x")
    scene.wait(1_500)
    scene.target.processes.restart(dead)
    scene.until(lambda: "x" in scene.sent)
    assert scene.sent["x"].type is EventType.OK
    counted = scene.world.refused_attempts()
    assert counted.before_append == answers.of(BEFORE)
    assert counted.before_append["t-0"] >= 5
    assert counted.isr_changes is not None
    assert counted.isr_changes["t-0"] == 2, "one left, and is back"
    assert counted.after_append == answers.of(AFTER) == {}


def test_an_attempt_that_was_appended_and_then_refused_is_counted_apart(stage: Callable[..., Stage]) -> None:
    """A follower stands still before the write, so the ISR shrinks while that waits; since 3.7 it waits on."""
    scene = stage(min_insync_replicas=3, strict_min_isr=False, eligible_leader_replicas=False)
    answers = Answers(scene)
    frozen = scene.followers[0]
    scene.target.processes.pause(frozen)
    send = scene.producer()
    send("x")
    scene.until(lambda: len(scene.target.view().partitions["t-0"].isr) == 2)
    scene.wait(500)
    counted = scene.world.refused_attempts()
    assert (counted.before_append, counted.after_append) == (answers.of(BEFORE), answers.of(AFTER))
    assert counted.after_append == {"t-0": 1}


def test_nothing_is_refused_in_peace(stage: Callable[..., Stage]) -> None:
    scene = stage()
    scene.write(scene.producer(), "x")
    counted = scene.world.refused_attempts()
    assert (counted.before_append, counted.after_append) == ({}, {})
    assert sum((counted.isr_changes or {}).values()) == 0
