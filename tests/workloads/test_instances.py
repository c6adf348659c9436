"""Instances of an application: started again after they end, left alone in a crash loop, and held by faults."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.conftest import VirtualClock
from workloads import ApplicationPlan
from workloads.instances import AT_ONCE_MAX, EXITS_MAX, Instances


class Clock(VirtualClock):
    def advance(self, duration_ms: int) -> None:
        self.drive(lambda: False, self.time_us + duration_ms * 1000)


class Processes:
    """Instances that live until a test ends them."""

    def __init__(self) -> None:
        self.acts: list[str] = []
        self.ended: dict[int, str | None] = {}
        self.stubborn = False

    def start(self, instance: int) -> int:
        self.acts.append(f"start {instance}")
        self.ended[instance] = None
        return 100 + instance

    def exit(self, instance: int) -> str | None:
        return self.ended[instance]

    def words(self, instance: int) -> str:
        return f"words of {instance}"

    def is_ready(self, instance: int, ready: str) -> bool:
        return ready == "yes"

    def ask_to_end(self, instance: int) -> None:
        self.acts.append(f"ask {instance}")
        if not self.stubborn:
            self.ended[instance] = "status 0"

    def kill(self, instance: int) -> None:
        self.acts.append(f"kill {instance}")
        self.ended[instance] = self.ended[instance] or "signal 9"

    def freeze(self, instance: int) -> None:
        self.acts.append(f"freeze {instance}")

    def thaw(self, instance: int) -> None:
        self.acts.append(f"thaw {instance}")

    def cut(self, instance: int, broker: int) -> bool:
        self.acts.append(f"cut {instance} from {broker}")
        return broker < 3

    def mend(self, instance: int) -> int | None:
        was_cut = [act for act in self.acts if act.startswith((f"cut {instance}", f"mend {instance}"))][-1:]
        if not was_cut or was_cut[0].startswith("mend"):
            return None
        self.acts.append(f"mend {instance}")
        return 4

    def printed_effects(self) -> tuple[Sequence[str], str]:
        return (), ""

    def other_topics(self) -> tuple[str, ...]:
        return ()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def processes() -> Processes:
    return Processes()


@pytest.fixture
def instances(clock: Clock, processes: Processes) -> Instances:
    plan = ApplicationPlan(command=("x",), instances=2, restart_pause_ms=500, stop_timeout_ms=2_000, ready="yes")
    made = Instances(plan, processes, clock)
    made.start_all()
    processes.acts.clear()
    return made


def test_an_instance_that_ends_by_itself_is_started_again_after_a_pause_and_its_end_is_kept(
    instances: Instances, clock: Clock, processes: Processes
) -> None:
    clock.advance(20_000)
    processes.ended[1] = "status 7"
    clock.advance(400)
    assert processes.acts == ["kill 1"], "what it left behind is ended at once"
    clock.advance(300)
    assert processes.acts == ["kill 1", "start 1"]
    (end,) = instances.exits
    assert (end.instance, end.exit, end.words) == (1, "status 7", "words of 1")
    assert end.lived_ms == pytest.approx(20_000, abs=200)


def test_an_instance_that_ends_at_once_five_times_is_left_alone_and_both_make_it_hopeless(
    instances: Instances, clock: Clock, processes: Processes
) -> None:
    for _ in range(AT_ONCE_MAX + 3):
        processes.ended[0] = "status 1"
        clock.advance(1_000)
    assert instances.crash_loops == (0,)
    assert processes.acts.count("start 0") == AT_ONCE_MAX - 1
    assert instances.ready
    assert not instances.hopeless
    for _ in range(AT_ONCE_MAX + 1):  # the first time it had lived for long
        processes.ended[1] = "status 1"
        clock.advance(1_000)
    assert instances.hopeless


def test_one_that_lived_for_long_in_between_is_in_no_crash_loop_and_its_ends_do_not_pile_up(
    instances: Instances, clock: Clock, processes: Processes
) -> None:
    for _ in range(EXITS_MAX + 5):
        clock.advance(6_000)
        processes.ended[0] = "status 1"
    clock.advance(6_000)
    assert instances.crash_loops == ()
    assert len(instances.exits) == EXITS_MAX


def test_a_killed_instance_stays_down_until_it_is_restored_and_is_no_end_by_itself(
    instances: Instances, clock: Clock, processes: Processes
) -> None:
    assert instances.kill_instance(7) == {"instance": 1, "exit": "signal 9"}
    assert instances.kill_instance(1) == {}, "it does not run, so nothing is observed"
    clock.advance(30_000)
    assert (processes.acts, instances.exits) == (["kill 1"], [])
    assert instances.restore_instance(1) == {"instance": 1, "pid": 101}
    assert instances.restore_instance(1) == {}


def test_an_instance_that_does_not_end_in_order_is_killed_after_its_time(
    instances: Instances, clock: Clock, processes: Processes
) -> None:
    processes.stubborn = True
    assert instances.stop_instance(0) == {"instance": 0, "asked": True}
    clock.advance(1_900)
    assert processes.acts == ["ask 0"]
    clock.advance(200)
    assert processes.acts == ["ask 0", "kill 0"]


def test_one_that_still_ends_in_order_is_killed_before_its_successor_starts_which_is_left_in_peace(
    instances: Instances, clock: Clock, processes: Processes
) -> None:
    processes.stubborn = True
    instances.stop_instance(0)
    assert instances.restore_instance(0) == {"instance": 0, "pid": 100}
    clock.advance(5_000)
    assert processes.acts == ["ask 0", "thaw 0", "kill 0", "start 0"]


def test_a_frozen_instance_is_thawed_and_not_started(instances: Instances, clock: Clock, processes: Processes) -> None:
    assert instances.freeze_instance(0) == {"instance": 0, "frozen": True}
    clock.advance(9_000)
    assert instances.restore_instance(0) == {"instance": 0}
    assert processes.acts == ["freeze 0", "thaw 0"]


def test_a_frozen_instance_that_died_meanwhile_is_started_again(instances: Instances, processes: Processes) -> None:
    instances.freeze_instance(0)
    processes.ended[0] = "signal 9"
    assert instances.restore_instance(0) == {"instance": 0, "pid": 100}


def test_one_more_instance_comes_and_is_taken_away_for_good(
    instances: Instances, clock: Clock, processes: Processes
) -> None:
    assert instances.add_instance() == {"instance": 2, "pid": 102}
    assert instances.take_added_away() == {"instance": 2, "asked": True}
    assert instances.take_added_away() == {}
    clock.advance(9_000)
    assert processes.acts == ["start 2", "ask 2", "kill 2"], "what it left behind is ended after its time"
    assert instances.exits == []


def test_when_all_is_healed_the_instances_of_the_plan_run_and_no_others(
    instances: Instances, clock: Clock, processes: Processes
) -> None:
    instances.kill_instance(0)
    instances.freeze_instance(1)
    instances.add_instance()
    instances.restore_all()
    assert [number for number, ended in processes.ended.items() if ended is None] == [0, 1]


def test_at_the_end_all_are_asked_even_frozen_ones_and_nothing_is_started_any_more(
    instances: Instances, clock: Clock, processes: Processes
) -> None:
    instances.freeze_instance(1)
    instances.ask_all_to_end()
    assert processes.acts[1:] == ["thaw 0", "ask 0", "thaw 1", "ask 1"]
    assert instances.all_ended
    instances.kill_all()
    clock.advance(9_000)
    assert not any(act.startswith("start") for act in processes.acts)
    assert (instances.kill_instance(0), instances.add_instance(), instances.restore_instance(1)) == ({}, {}, {})


def test_an_instance_is_cut_off_until_it_is_mended_and_at_the_latest_when_all_is(
    instances: Instances, processes: Processes
) -> None:
    assert instances.cut_instance(3, 2) == {"instance": 1, "broker": 2}
    assert instances.mend_instance(3) == {"instance": 1, "lost_packets": 4}
    assert instances.mend_instance(3) == {}
    assert instances.cut_instance(0, 7) == {}, "nobody knows that broker"
    instances.cut_instance(0, 1)
    assert instances.restore_all() == {"instance": 0, "lost_packets": 4}
    assert processes.acts[-1] == "mend 0"
