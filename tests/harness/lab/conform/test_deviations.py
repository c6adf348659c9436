"""A known deviation is a rule over steps and states of any story: it says what Kafka shows, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from harness.lab.conform import known_deviations
from harness.lab.conform.deviations import Course, CourseStep, shown_by_kafka
from harness.runs.stories import HEALED, WHOLE, known_stories
from harness.runs.stories.stage import questions
from workloads import Settings

USUAL: Final[Mapping[str, Any]] = {
    "leader": 0, "leader epoch": 0, "partition epoch": 5, "isr": (0, 1, 2), "fenced": (), "assigned": (0, 1, 2),
    "number of replicas": 3,
}  # fmt: skip
Step = tuple[str, Mapping[str, Any]]


def shown(steps: Sequence[str | Step], real: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Facts that Kafka shows otherwise after these steps, each with what the core shows otherwise than usually."""
    given = [(step, {}) if isinstance(step, str) else step for step in steps]
    seen = [CourseStep(text, 1_500, {**USUAL, **facts}) for text, facts in [("wait until 0 leads", {}), *given]]
    settings = Settings.from_mapping({"min.insync.replicas": 2, "acks": "all"})
    course = Course(seen, settings, {**seen[-1].core, **(real or {})}, **more)
    return {fact: value for fact, (value, _) in shown_by_kafka(course, seen[-1].core).items()}


def changes(*texts: str) -> int:
    """The changes of the partition that Kafka makes more than the core."""
    return int(shown(texts).get("partition epoch", 5)) - 5


def test_no_rule_knows_the_number_of_a_story_and_each_says_why_and_where() -> None:
    assert len(known_deviations()) >= 10
    assert len({deviation.name for deviation in known_deviations()}) == len(known_deviations())
    for deviation in known_deviations():
        constants = [str(each) for each in deviation.rule.__code__.co_consts if each != deviation.rule.__doc__]
        assert [word for word in constants if word in known_stories()] == []
        assert deviation.why.endswith(".")
        assert deviation.source


def test_a_planned_move_is_three_changes_where_it_needs_another_order() -> None:
    assert changes("write x to 0") == 0
    assert changes("move leader to 0") == 0
    assert changes("move leader to 1") == 2
    assert changes("try in all/2: move leader to 1", "write x to 1", "move leader to 2") == 4
    back = [("move leader to 1", {"leader": 1}), "move leader to 0"]
    assert shown(back)["partition epoch"] == 5 + 4  # 1, who led, goes to the end
    last = [("move leader to 2", {"leader": 2}), "move leader to 0"]
    assert shown(last)["partition epoch"] == 5 + 2  # 2 is there already


def test_an_emptied_directory_counts_once_its_broker_was_started() -> None:
    assert changes("kill 1", "wipe 1", "wait until 1 is fenced") == 0
    assert changes("kill 1", "start 1", "kill 1", "wipe 1") == 0
    assert changes("wipe 1", "start 2") == 0
    assert changes("wipe 1", "start 1", "write x to 0", "start 1") == 1
    assert changes("wipe 1", "try start 0 1", "kill 2", "wipe 2", "start 2") == 2
    assert changes("wipe 1", WHOLE) == changes("wipe 1", "start all") == 1
    assert changes("kill 0 1", "wipe 0 1", "start 0") == 1
    assert changes("kill 0 1", "wipe 0 1", "start 0 1") == 2


def test_numbers_of_several_deviations_are_added_and_all_are_named() -> None:
    seen = [CourseStep(text, 1_500, USUAL) for text in ["wait 1 s", "wipe 2", "start 2", "move leader to 2"]]
    otherwise = shown_by_kafka(Course(seen, Settings(), USUAL), USUAL)
    assert otherwise == {"partition epoch": (8, "order of preference and emptied directory")}


LEADERLESS: Final = {"leader": None, "leader epoch": 1, "broker 1: leader epoch": 1, "broker 0: epochs": ()}
LED: Final = {
    "leader": 0, "leader epoch": 2, "broker 1: leader epoch": 2, "broker 0: epochs": ("2 from 0",),
    "broker 0: leading": True,
}  # fmt: skip
AGAIN: Final = {
    "leader": 0, "leader epoch": 4, "broker 1: leader epoch": 4, "broker 0: epochs": ("4 from 0",),
    "broker 0: leading": True,
}  # fmt: skip


def test_a_broker_that_returns_alone_with_an_empty_disk_leads_from_its_second_start_on() -> None:
    emptied: list[str | Step] = [("wipe 0", LEADERLESS), ("start 0", LED)]
    assert shown(emptied) == {
        "leader": None, "leader epoch": 1, "partition epoch": 5, "broker 1: leader epoch": 1, "broker 0: epochs": (),
        "broker 0: leading": False,
    }  # fmt: skip
    dead = ("wait until 0 is fenced", {**LED, "leader": None, "leader epoch": 3, "broker 1: leader epoch": 3})
    again = shown([*emptied, dead, ("start 0", AGAIN)])
    assert again == {
        "leader epoch": 2, "partition epoch": 4, "broker 1: leader epoch": 2, "broker 0: epochs": ("2 from 0",),
    }  # fmt: skip
    others: list[str | Step] = [("wipe 0", USUAL), ("start 0", LED)]
    assert shown(others) == {"partition epoch": 6}
    both: list[str | Step] = [("wipe 0 1", LEADERLESS), ("start 0 1", LED)]
    assert shown(both) == {"partition epoch": 7}


@pytest.mark.parametrize(
    ("real", "core", "steps", "expected"),
    [
        ((2,), (), ["stop 2", "write x to 0"], True),
        ((1, 2), (2,), ["kill 2", "try stop 1"], True),
        ((1, 2), (), ["stop 1 2"], True),
        ((2,), (), ["write x to 0"], False),
        ((1,), (), ["stop 2"], False),
        ((1, 2), (), ["stop 2"], False),
        ((2,), (1,), ["stop 2"], False),
        ((2,), (), ["stop 2", "start 2"], False),
        ((2,), (), ["stop 2", "start all"], False),
        ((1, 2), (), ["stop 1 2", "start 1"], False),
        ((2,), (), ["stop 1 2", "start 1"], True),
        ((2,), (), ["stop 2", "start 2", "stop 2"], True),
        ((2,), (), ["stop 2", WHOLE], False),
    ],
)
def test_a_broker_that_stopped_may_be_fenced_already(
    real: tuple[int, ...], core: tuple[int, ...], steps: list[str], *, expected: bool
) -> None:
    facts = {"fenced": core}
    assert (shown([*steps[:-1], (steps[-1], facts)], {"fenced": real}).get("fenced", core) == real) is expected


def test_markers_that_only_the_core_sent_again_are_missing_from_every_end() -> None:
    p = f"{questions.TRANSACTIONAL_ID}p"
    log = ("0:base/0", "1:a/0")
    ends = {"broker 0: log": log, "broker 0: high watermark": 2, questions.STABLE_END: 1}
    done = {**ends, "broker 0: high watermark": 5, questions.STABLE_END: 5, p: "CompleteCommit in epoch 1"}
    steps: list[str | Step] = [("write a in t", {**ends, p: "Ongoing in epoch 0"})]
    waits: Step = ("commit t", {**ends, p: "PrepareCommit in epoch 1"})
    assert shown([*steps, waits]) == {}
    assert shown([*steps, waits, ("release", done)]) == {"broker 0: high watermark": 3, questions.STABLE_END: 3}
    assert shown([*steps, waits, ("release", {**done, "broker 0: high watermark": 3})]) == {}
    assert shown([*steps, ("commit t", done)]) == {}


def test_the_leader_refuses_a_superseded_producer_under_version_2() -> None:
    steps = ["init p", "init q after p", "begin t by p", "begin u by q", "write a in t", "write b in u"]
    assert shown(steps) == {"answer to a": "InvalidProducerEpochError"}
    assert shown([*steps, ("wait 1 s", {"answer to a": "NotLeaderError"})]) == {}


def told(leader: int, epochs: int, isr: tuple[int, ...], committed: int, **more: Any) -> dict[str, Any]:
    return {
        questions.LEADER: leader, questions.EPOCHS: epochs, questions.ISR: isr, questions.COMMITTED: committed,
        "broker 0: high watermark": 3, **more,
    }  # fmt: skip


def test_a_commit_below_min_isr_counts_where_its_log_comes_back() -> None:
    alone, full = told(1, 0, (1,), 1), told(1, 0, (0, 1, 2), 1)
    back: Step = ("start 1", told(1, 2, (0, 1, 2), 2))
    assert shown([("wait 1 s", alone), ("poll m", alone), back]) == {questions.COMMITTED: 3}
    assert shown([("wait 1 s", alone), ("poll m", alone)]) == {}
    assert shown([("wait 1 s", alone), ("poll m", alone), ("start 0", told(0, 2, (0, 1, 2), 2))]) == {}
    # It was appended before the others left the ISR: so it comes back here, too.
    assert shown([("wait 1 s", full), ("poll m", alone), back]) == {}


def test_a_member_of_kafka_hears_from_the_next_coordinator_while_the_model_waits() -> None:
    cut = {"broker 1: running": True, "fenced": (1,)}
    steps: list[str | Step] = [("poll m", told(1, 0, (0, 1, 2), 2)), ("poll m", told(0, 1, (0, 2), 2, **cut))]
    assert shown(steps) == {questions.COMMITTED: 3}
    assert shown([steps[0], ("poll m", told(0, 1, (0, 2), 2, fenced=(1,)))]) == {}
    assert shown([steps[0], ("poll m", told(1, 0, (0, 1, 2), 2))]) == {}
    assert shown([*steps, *(("wait 1 s", told(0, 1, (0, 2), 2, **cut)) for _ in range(40))]) == {}


def test_a_member_keeps_the_log_partition_until_it_leaves() -> None:
    owner: Step = ("join m", {questions.ASSIGNED: 1, "member m: assigned": True})
    now = {questions.ASSIGNED: 0, "member m: assigned": False, "member n: assigned": True}
    keeps = {questions.ASSIGNED: 1, "member m: assigned": True, "member n: assigned": False}
    assert shown([owner, ("join n", now)]) == keeps
    assert shown([owner, ("join n", now), ("wait 6 s", now)]) == keeps
    assert shown([owner, ("join n", now), ("leave m", now)]) == {questions.ASSIGNED: 0}
    assert shown([owner, ("join n", now), ("leave m", now), ("poll n", now)]) == {}
    assert shown([owner, ("join n", now), ("crash m", now)]) == {}
    assert shown([("join m", {}), ("join n", now)]) == {}


def test_ends_of_librdkafkas_transactions_raise_no_epoch_and_those_of_the_java_client_do() -> None:
    p = f"{questions.TRANSACTIONAL_ID}p"
    steps: list[str | Step] = ["init p", "abort t", ("commit u", {p: "CompleteCommit in epoch 2"})]
    assert shown(steps, client="confluent-kafka") == {p: "CompleteCommit in epoch 0"}
    assert shown(steps, client="java") == shown(steps) == {}


def test_a_follower_may_ask_late_after_its_links_are_free_and_is_as_it_was_then() -> None:
    was = {"isr": (0, 2), "broker 1: log": ("0:base/0",), "broker 0: isr": (0, 2)}
    now = {"broker 1: log": ("0:base/0", "1:c/0"), "broker 0: isr": (0, 1, 2)}
    late = {**was, "partition epoch": 4}
    steps: list[str | Step] = [("isolate 1", was), ("heal", now)]
    assert shown(steps, late) == late
    assert shown([steps[0], (HEALED, now)], late) == late
    assert shown(steps, {"isr": (0, 2)}) == {}
    assert shown([*steps, ("wait 1 s", now)], late) == {}
