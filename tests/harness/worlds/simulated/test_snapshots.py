"""Steps seen from outside, and states that can be returned to."""

import pytest

from harness.errors import HarnessError
from harness.worlds.simulated.snapshots import Snapshot


def busy(stage):
    """A cluster in the middle of things: writes under way, a dead follower, a cut link."""
    at = stage(seed=3, min_insync_replicas=2)
    at.send = at.producer()
    for number in range(5):
        at.write(at.send, f"before {number}")
    at.target.processes.kill(at.followers[0])
    at.cut_off(at.followers[1])
    at.send("under way")
    at.wait(3)
    return at


def events(at, duration_ms=4_000):
    """Every step from now on, until a heal and some more writes have had their time."""
    seen = []
    at.world.clock.on_step = lambda function, argument: seen.append(
        (at.world.clock.now_us(), getattr(function, "__qualname__", "done"), type(argument).__name__)
    )
    at.send("after")
    at.wait(duration_ms)
    at.world.clock.on_step = None
    return seen


def test_every_step_is_seen_with_its_time(stage):
    seen = events(stage_with_producer(stage()))
    times_us = [time_us for time_us, _, _ in seen]
    assert times_us == sorted(times_us)
    assert {name for _, name, _ in seen} >= {"Wire._on_arrival", "Process._on_timer", "Network._accept"}


def stage_with_producer(at):
    at.send = at.producer()
    return at


def test_what_a_step_finds_wrong_ends_the_run(stage):
    at = stage()

    def find(_function, _argument):
        raise AssertionError("found")

    at.world.clock.on_step = find
    with pytest.raises(AssertionError, match="found"):
        at.wait(1_000)


def test_a_snapshot_runs_on_in_the_same_way_as_often_as_it_is_restored(stage):
    at = busy(stage)
    snapshot = Snapshot(at)
    first, second = snapshot.restore(), snapshot.restore()
    seen = events(first)
    assert seen == events(second) == events(at)
    assert first.choices.recording() == at.choices.recording()
    assert first.target.view().partitions == at.target.view().partitions
    assert len(seen) > 100


def test_other_choices_after_a_snapshot_are_another_future_and_leave_the_original_alone(stage):
    at = busy(stage)
    snapshot = Snapshot(at)
    before = at.choices.recording(), at.target.view(), dict(at.sent), len(at.world.clock.heap)
    other, same = snapshot.restore(), snapshot.restore()
    other.choices.reseed(99)
    other.target.processes.kill(other.followers[1])
    other_events = events(other)
    assert before == (at.choices.recording(), at.target.view(), dict(at.sent), len(at.world.clock.heap))
    assert other_events != events(same) == events(at)


def test_the_recorded_choices_of_a_changed_future_still_fit_its_past(stage):
    at = busy(stage)
    past = at.choices.recording().streams
    at.choices.reseed(7)
    at.wait(1_000)
    future = at.choices.recording().streams
    assert all(future[label][: len(drawn)] == drawn for label, drawn in past.items())


def test_what_cannot_be_copied_is_named(stage):
    at = stage()
    at.world.clock.call_at(10_000_000, lambda: None)
    with pytest.raises(HarnessError, match="cannot be copied"):
        Snapshot(at)
