"""Parked requests end at their deadline, and reminders of a broker that was busy for long are few."""

from __future__ import annotations

import heapq
import random

import pytest

from harness.broker.core.effects import Arm, Context
from harness.broker.core.request_handler import Deadlines, ParkedProduce
from harness.broker.core.types import BrokerConfig, TopicPartition

AT = TopicPartition("t", 0)


@pytest.mark.parametrize("seed", range(10))
def test_each_request_that_nobody_finished_ends_at_its_deadline_and_reminders_do_not_multiply(seed: int) -> None:
    """Short waits among long ones: each of these asks for a reminder before the one that is due next."""
    choose, context = random.Random(seed), Context(0, BrokerConfig(), observing=False)
    deadlines, due_us, now_us = Deadlines(context), list[int](), 0
    waiting: dict[int, tuple[ParkedProduce, int]] = {}
    fired = 0

    def armed() -> None:
        for effect in context.take():
            assert isinstance(effect, Arm)
            heapq.heappush(due_us, effect.at_us)

    for number in range(5_000):
        end_us = now_us + choose.randrange(10_000)
        while due_us and due_us[0] <= end_us:
            now_us = heapq.heappop(due_us)
            context.begin(now_us)
            fired += 1
            for parked in deadlines.expired():
                deadlines.finish(parked)
                assert waiting.pop(parked.correlation) == (parked, now_us)
            armed()
        now_us = end_us
        context.begin(now_us)
        assert min((at_us for _, at_us in waiting.values()), default=now_us + 1) > now_us
        after_ms = choose.choice([50, 500])
        parked = ParkedProduce(1000, number, AT, -1, 0, 1)
        deadlines.add(after_ms, parked)
        waiting[number] = parked, now_us + after_ms * 1_000
        armed()
        if choose.random() < 0.95 and waiting:
            answered, _ = waiting.pop(choose.choice(list(waiting)))
            deadlines.finish(answered)
    assert deadlines.live == len(waiting)
    assert fired < 5_000
