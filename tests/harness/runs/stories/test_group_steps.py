"""Steps and states of members of a group in scripts: what is seen, and what is said where one is in vain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from harness.ground.errors import PlanError
from harness.plan import RunSpec
from harness.runs.stories import OF_GROUPS, StoryCell, parse_story, perform_cell
from harness.runs.stories.stage.patience import Patience
from harness.runs.stories.stage.story_world import GROUPS_LOG, StoryWorld
from nemesis.cluster import ClusterView, PartitionView
from workloads import TIME_LIMIT, EventType, Offsets, PollOutcome
from workloads.driver import SteppedMember, Workload

FORM = """
number = "G99"
title = "A story"
steps = '''
join m
{steps}
'''
{rest}
"""
HALFWAY = "write a to 0\npoll m halfway\n"
UNANSWERED = "write a to 0\nhold OffsetCommit clients>1\npoll m\n"


def cell(steps: str, column: str = "g", rest: str = "") -> StoryCell:
    return perform_cell(parse_story(FORM.format(steps=steps, rest=rest), "my.toml"), column)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (f"{HALFWAY}poll m", "the member m has not done its work; write: finish m"),
        (f"{HALFWAY}leave m", "the member m has not done its work; write: finish m"),
        ("freeze m\npoll m", "the member m stands still; write: thaw m"),
        ("thaw m", "the member m does not stand still"),
        ("finish m", "the member m has nothing left to do"),
        ("leave m\npoll m", "the member m is gone"),
        ("crash m\nfinish m", "the member m is gone"),
        (f"{UNANSWERED}freeze m", "the member m waits for an answer; write: wait until m is done"),
        (f"{UNANSWERED}crash m", "the member m waits for an answer; write: wait until m is done"),
        (f"{UNANSWERED}wait up to 1 s until m is done", "m is done: no, it waits for an answer"),
        (f"{HALFWAY}wait up to 1 s until m is done", "m is done: no, it stops halfway"),
        (f"{HALFWAY}wait up to 1 s until m has committed a", "no, its commits were taken up to 1"),
        ("wait up to 1 s until m is not assigned", "no, it is assigned the log partition"),
        ("leave m\nwait up to 1 s until m is assigned", "no, it is assigned nothing"),
        ("crash m\njoin n\nwait up to 1 s until n is assigned", "no, it is assigned nothing"),
        ("ask group finds nothing", "the group has committed offset 1"),
        (f"{HALFWAY}ask group finds a", "the group has committed offset 1"),
        ("cut 1-clients\nask group", "no coordinator answered"),
        ("set group behind base", "UNKNOWN_MEMBER_ID"),
        ("delete group", "NonEmptyGroupError"),
        ("leave m\ndelete group\ndelete group", "GroupIdNotFoundError"),
        ("hold DeleteGroups clients>1\ndelete group", "no answer yet"),
        ("write a to 0 acks=0\nask group finds a", "the offset of a is not known, because no answer told it"),
        ("kill 2\nwait until 2 is fenced\nmove coordinator to 2", "refused: broker 2 is not a live member of the ISR"),
        ("try join n\nwait up to 1 s until 0 coordinates", "0 coordinates: no, 1 coordinates"),
        ("wait up to 1 s until 1 coordinates alone", "no, 1 coordinates, and the isr of its log is 0 1 2"),
        ("wait up to 1 s until group is empty", "group is empty: no, it has members"),
        (
            "crash m\nkill 1\nwait up to 1 s until group is empty",
            "no coordinator knows the group",
        ),
        ("poll m until m is not assigned", "without effect: it is assigned the log partition"),
        ("leave m\npoll m until m is assigned", "the member m is gone"),
    ],
)
def test_a_step_that_is_in_vain_says_why(steps: str, problem: str) -> None:
    (sentence,) = cell(steps).disagreements
    assert problem in sentence


@pytest.mark.parametrize(
    "steps",
    [
        "wait until m is assigned and m is done and m has committed base\nask group finds base",
        "wait 20 s\njoin n\nwait until m is assigned and n is not assigned",
        "freeze m\nwait 8 s\njoin n\nwait until n is assigned",
        "freeze m\nwait until group is empty\njoin n\nwait until n is assigned",
        "crash m\njoin n\npoll n until n is assigned and n is done",
        "write a to 0\ndrop Fetch 0-1 1-2\npoll m\nwait until 1 coordinates alone",
        f"{HALFWAY}finish m\nwait until m is done and m has committed a",
        f"{UNANSWERED}release\nwait until m has committed a",
        "leave m\njoin n\nwait until n is assigned",
        "kill the coordinator\nwait until 1 is fenced and 0 coordinates\nask group finds base",
    ],
)
def test_members_do_as_they_are_told(steps: str) -> None:
    assert cell(steps).disagreements == ()


@pytest.mark.parametrize(("column", "record"), [("g", "base"), ("g/before", "a"), ("g/auto", "base")])
def test_a_member_stops_between_the_halves_of_its_work_in_the_order_of_its_commits(column: str, record: str) -> None:
    assert cell(f"{HALFWAY}ask group finds {record}", column).disagreements == ()


def test_a_turn_that_brings_nothing_has_more_polls_where_libraries_take_time(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[SteppedMember] = []
    patience_of, take_turn = Patience.of, SteppedMember.take_turn

    def counted(member: SteppedMember, *, halfway: bool) -> None:
        turns.append(member)
        take_turn(member, halfway=halfway)

    def patience(spec: RunSpec) -> Patience:
        return msgspec.structs.replace(patience_of(spec), polls_max=3, answer_ms=1_000)

    monkeypatch.setattr(SteppedMember, "take_turn", counted)
    assert cell("poll m\nwrite a to 0\npoll m").disagreements == ()
    assert len(turns) == 2
    turns.clear()
    monkeypatch.setattr(Patience, "of", patience)
    assert cell("poll m\nwrite a to 0\npoll m").disagreements == ()
    assert len(turns) == 4, "only the first turn brings nothing"


def test_brokers_without_a_coordinator_are_asked_for_one_before_the_script_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Workload] = []
    coordinator_of = StoryWorld.coordinator_of
    ask_once = Workload.ask_committed

    def ask(workload: Workload, then: Callable[[Offsets | None], None]) -> None:
        monkeypatch.setattr(StoryWorld, "coordinator_of", coordinator_of)
        asked.append(workload)
        ask_once(workload, then)

    monkeypatch.setattr(StoryWorld, "coordinator_of", lambda *_: None)
    monkeypatch.setattr(Workload, "ask_committed", ask)
    assert cell("wait until m is assigned").disagreements == ()
    assert len(asked) == 1


@pytest.mark.parametrize(("replicas", "orders"), [((1, 2, 0), [(GROUPS_LOG, (0, 1, 2))]), ((0, 1, 2), [])])
def test_the_replicas_of_a_coordinators_log_are_put_in_the_order_of_their_numbers(
    perfect_world: Any, replicas: tuple[int, ...], orders: list[tuple[str, tuple[int, ...]]]
) -> None:
    """Kafka draws it, and it says whom elections prefer."""
    reassigned: list[tuple[str, Sequence[int]]] = []
    log = PartitionView(leader=1, leader_epoch=0, isr=replicas, replicas=replicas)
    view = ClusterView(partitions={}, running=(0, 1, 2), brokers=(0, 1, 2), internal={GROUPS_LOG: log})
    reassignment = SimpleNamespace(reassign=lambda *asked: reassigned.append(asked))
    perfect_world.replicas = object()
    perfect_world.target = SimpleNamespace(view=lambda: view, reassignment=reassignment)
    StoryWorld(perfect_world, "t-0", {}, grouped=True).order_coordinators()
    assert reassigned == orders


def test_a_commit_that_the_group_refuses_is_told_with_its_error() -> None:
    entries = cell(f"{HALFWAY}freeze m\nwait 8 s\njoin n\nthaw m\nfinish m").trace.entries
    notes = {entry.text: entry.note for entry in entries}
    assert notes["join n"] == "it reads a"
    assert notes["finish m"] == "it reads a, its commit: UNKNOWN_MEMBER_ID"


def test_a_member_whose_library_hangs_is_gone_and_has_nothing_left_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [*[None] * 2, PollOutcome(EventType.INFO, error=TIME_LIMIT)]
    polled = SteppedMember._polled

    def with_a_third_that_hangs(member: SteppedMember, outcome: PollOutcome) -> None:
        polled(member, (outcomes.pop(0) if outcomes else None) or outcome)

    monkeypatch.setattr(SteppedMember, "_polled", with_a_third_that_hangs)
    (problem,) = (hung := cell("poll m\npoll m\nwait up to 1 s until m is done\ncrash m")).disagreements
    assert [entry.note for entry in hung.trace.entries if entry.text == "poll m"][-1] == "it reads nothing, it is gone"
    assert "crash m" in problem
    assert "the member m is gone" in problem


def test_what_a_group_skips_is_told_by_its_record() -> None:
    dies = f"{HALFWAY}crash m\nwait 8 s\njoin n"
    seen = cell(dies, "g/before", '[skipped]\na = ["g/before"]')
    assert (seen.skipped, seen.seen.letters, seen.disagreements) == (("a",), "S", ())
    assert cell(dies, "g/before", "[also]").disagreements == ("skipped, and not expected to be: a",)
    (less, more) = cell(dies, "g", '[skipped]\na = ["g"]').disagreements
    assert (less, more) == (
        "expected to be skipped, and not: a",
        "seen, and not expected to be: processed again",
    )
    with pytest.raises(PlanError, match='unknown record "b"'):
        parse_story(FORM.format(steps=dies, rest="[skipped]\nb = []"), "my.toml")


@pytest.mark.parametrize(("end", "finds"), [("commit", "a"), ("abort", "base")])
def test_an_offset_is_set_with_a_transaction(end: str, finds: str) -> None:
    begun = "leave m\nwrite a to 0\ninit p\nwait until p is ready\nbegin t by p\nset group behind a in t\n"
    assert cell(f"{begun}set others behind a\n{end} t\nwait 1 s\nask group finds {finds}").disagreements == ()


def test_a_group_that_is_deleted_begins_anew() -> None:
    seen = cell("set others behind base\nleave m\ndelete group\nask group finds nothing\njoin n", "g", "[also]")
    assert seen.disagreements == (
        "seen, and not expected to be: group went back, processed again",
        "seen, and not expected to be: stale-generation",
    )


def test_a_group_without_members_is_forgotten() -> None:
    idle = "leave m\nwait {} s\nask group finds {}"
    settings = '[settings]\n"offsets.retention.minutes" = 1'
    assert cell(idle.format(50, "base"), "g", settings).disagreements == ()
    assert cell(idle.format(70, "nothing"), "g", settings).disagreements == ()


def test_a_script_that_only_asks_is_one_of_groups() -> None:
    story = parse_story(FORM.format(steps="ask group finds nothing", rest="").replace("join m\n", ""), "my.toml")
    assert story.columns is OF_GROUPS
    assert perform_cell(story, "g").disagreements == ()


def test_offsets_are_handed_over_by_a_member_that_can_to_a_transaction_that_was_begun() -> None:
    begun = "write a to 0\nwait until a is acknowledged\ninit p\nwait until p is ready\nbegin t by p\n"
    seen = cell(begun + "freeze m\nhand over a of m in t\nthaw m\nabort t", "o2").disagreements
    assert seen == (
        'it did not play as written: line 12, "hand over a of m in t": the member m stands still; write: thaw m',
    )
    with pytest.raises(PlanError, match=r'no line before this one has "begin u by \.\.\."'):
        cell(begun + "hand over a of m in u")
