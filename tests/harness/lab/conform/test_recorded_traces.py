"""The core shows what Apache Kafka showed, step by step; a core with a wrong rule does not.

The traces are of real clusters (results/reference/conform/README.md). A trace that no longer fits its script is
recorded again: ``ackproof conform STORY --settings COLUMN --save results/reference/conform``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Final

import pytest

from harness.lab.conform import Comparison, Word, held_run, hold, known_deviations, read_trace
from harness.lab.conform.performing import with_rests, world_of
from harness.lab.conform.schedules import SCHEDULES
from harness.plan import Kafka
from harness.runs.stories import ACKNOWLEDGED, column_named
from harness.runs.stories.stage import questions
from harness.runs.stories.steps.transactions import WriteElsewhere
from scripts.free_runs import BROKEN, kept_runs
from scripts.reference.conformance import FILE, SHOWN, TRACES, FreeRuns, conformance, held_free_runs
from scripts.shown_bugs import OF_GROUPS, OF_TRANSACTIONS, SHOWN_BUGS, bugs_for
from tests.harness.lab.conform.performances import NAMES, STORIES, core_once, read
from workloads import Settings

#: All of these look at the same comparisons, which one worker keeps.
pytestmark = pytest.mark.xdist_group("recorded-traces")
#: The traces of the present code.
REMADE: Final = frozenset(
    [
        "G01-c",
        "G01-g",
        "G02-c",
        "G05-c",
        "G06-c",
        "G07-c",
        "G12-g",
        "S01-all-2-3.9.2",
        "S06-all-2-3.9.2",
        "S10-all-2",
        "S12-all-2-3.9.2",
        "S19-all-2",
        "S21-all-2",
        "S27-all-2-3.9.2",
        "S28-all-2",
        "S31-all-2",
        "S52-all-2-3.9.2",
        "S62-all-2",
        "S63-all-2",
        "S70-all-2",
        "S80-all-2",
        "S81-all-2",
        "S82-all-2",
        "S83-all-2",
        "S84-all-2",
        "S90-all-2",
        "S91-all-2",
        "S92-all-2",
        "T30-o2",
        "T31-o2",
        "T32-o2",
    ]
)


@cache
def held(name: str) -> Comparison:
    trace = read(name)
    with core_once():
        return hold(trace, STORIES[trace.story])


@cache
def free_runs() -> FreeRuns:
    return held_free_runs()


@pytest.mark.parametrize("name", NAMES)
def test_the_core_shows_what_kafka_showed_at_every_step(name: str) -> None:
    compared = held(name)
    wrong = {step.text: step.differences for step in compared.steps if step.word is Word.UNEXPLAINED}
    assert wrong == {}
    assert compared.conforms
    assert len(compared.steps) > len(STORIES[compared.story].steps)
    assert compared.count(Word.PASSED) <= len(compared.steps) // 4, "too few steps end in the same state"


def test_the_page_of_traces_is_up_to_date() -> None:
    """`make reference` writes it."""
    assert FILE.read_text(encoding="utf-8") == conformance([held(name) for name in NAMES], free_runs())


def test_the_page_gives_a_reason_for_each_trace_that_ends_otherwise_and_for_no_other() -> None:
    page = (TRACES / "README.md").read_text(encoding="utf-8")
    reasons = page.partition("These come out otherwise")[2].partition("Kafka can perform")[0]
    ended = {*re.findall(r"^\| (\w+) \|(?:[^|]*\|){4} otherwise \|", page, re.MULTILINE)}
    assert ended == {*re.findall(r"\b[A-Z]\d\d\b", reasons)}
    assert len(ended) > 5


def test_at_least_fifty_free_runs_fit_the_controller_whatever_was_done_to_kafka() -> None:
    held = [each for runs in free_runs().values() for run in runs for each in run]
    assert [each for each in held if not each.fits] == []
    assert sum(map(len, free_runs().values())) >= 50
    assert {"kill", "pause", "partition", "move"} <= free_runs().keys()


def test_wrong_rules_of_the_controller_are_noticed_in_free_runs() -> None:
    """Each in the last of the runs that the page counts, for time."""
    broken: Mapping[str, list[str]] = tomllib.loads(BROKEN.read_text(encoding="utf-8"))
    with kept_runs() as runs:
        named = {run.name: run for run in runs}
        last = {bug: named[names[-1]] for bug, names in broken.items() if names}
        unnoticed = [bug for bug, run in last.items() if all(held.fits for held in held_run(run, bug))]
    assert unnoticed == []
    assert broken.keys() - last.keys() == {"accept-refused-proposal", "forget-producer-ids"}


@pytest.mark.parametrize(
    ("number", "name", "bug", "fact"),
    [
        (number, *wrong)
        for number, wrong in enumerate((name, bug, fact) for name, bugs in SHOWN.items() for bug, fact in bugs.items())
    ],
)
def test_a_wrong_rule_is_noticed_by_what_it_does(number: int, name: str, bug: str, fact: str) -> None:
    """In the schedule without chance and one of the others in turn; `python -m scripts.shown_bugs` tries all."""
    trace = read(name)
    compared = hold(trace, STORIES[trace.story], bug, schedules=[0, 1 + number % (SCHEDULES - 1)])
    assert compared.unexplained is not None
    step = compared.steps[compared.unexplained]
    assert fact in {difference.fact for difference in step.differences if not difference.why}
    assert "way" not in {difference.fact for difference in step.differences}


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_is_of_its_columns_settings_and_ends_as_the_core_does(name: str) -> None:
    """A state that the core passed through is one that Kafka leaves too, or has not reached: so it is not the last."""
    trace = read(name)
    chosen = column_named(trace.column).chosen(with_rests(STORIES[trace.story]).settings)
    assert Settings.from_mapping(trace.settings) == chosen
    assert held(name).steps[-1].word in {Word.SAME, Word.DEVIATION}


@pytest.mark.parametrize("name", NAMES)
def test_kafka_shows_all_that_the_guide_names(name: str) -> None:
    """Facts that are not shown are not compared: a recorder that no longer saw them would conform.

    Where disks are emptied, that of a dead broker may have none.
    """
    trace = read(name)
    steps, replicas = trace.steps, STORIES[trace.story].replicas
    emptied = any(step.text.startswith("wipe ") for step in steps)
    unseen = []
    for step in steps:
        shown = step.shown
        assert len(shown.replicas) == len(shown.assigned) == replicas
        leader = None if shown.leader is None else shown.replicas[shown.leader]
        if leader is not None and leader.running and leader.leading:
            assert None not in {leader.leader_epoch, leader.isr}
        roles = [replica.leading for replica in shown.replicas if replica.running]
        disks = [replica for replica in shown.replicas if replica.running or replica.log or not emptied]
        facts = [fact for disk in disks for fact in (disk.epochs, disk.written_high_watermark)]
        unseen += [fact for fact in [*roles, *facts] if fact is None]
    assert len(unseen) <= len(steps) // 2
    assert any(step.shown.replicas[0].log for step in steps)


#: Facts that must be told in a story with groups, and in one with transactions.
TOLD: Final = (questions.LEADER, questions.EPOCHS, questions.ISR)
TOLD_OF_GROUPS: Final = (*TOLD, questions.COMMITTED, questions.MEMBERS, questions.ASSIGNED)
TOLD_OF_TRANSACTIONS: Final = (*TOLD, questions.STABLE_END, f"{questions.TRANSACTIONAL_ID}p")


@pytest.mark.parametrize("name", [name for name in NAMES if name[0] in "GT"])
def test_a_story_with_a_coordinator_has_what_is_told_and_what_the_checkers_found(name: str) -> None:
    """A coordinator that is dead or frozen tells nothing: half of the steps may lack a fact, but not the last one."""
    trace = read(name)
    assert trace.outcome is not None
    texts = [step.text for step in trace.steps]
    own = trace.steps[texts.index("flush all") + 1 :]
    story = STORIES[trace.story]
    wanted = (*(TOLD_OF_GROUPS if story.grouped else ()), *(TOLD_OF_TRANSACTIONS if story.transactions else ()))
    often = [fact for fact in wanted if sum(fact in step.shown.told for step in own) * 2 < len(own)]
    assert often == []
    assert {*wanted} <= own[-1].shown.told.keys()


def test_what_the_checkers_found_is_what_the_trace_ends_with() -> None:
    """As far as a trace shows that: what was acknowledged, and what of it the leader lacks at the end."""
    for trace in (read(name) for name in NAMES):
        last, outcome = trace.steps[-1].shown, trace.outcome
        if outcome is None or last.leader is None:
            continue
        acknowledged = [name for name, answer in last.answers.items() if answer.startswith(ACKNOWLEDGED)]
        held = {placed.partition(":")[2].partition("/")[0] for placed in last.replicas[last.leader].log}
        assert [*outcome.acknowledged] == sorted(acknowledged), trace.name
        expires = Settings.from_mapping(STORIES[trace.story].settings).expires
        if not STORIES[trace.story].compacted and not expires:
            # What is written elsewhere is in a log that a trace does not show.
            elsewhere = {step.record for step in STORIES[trace.story].writes if isinstance(step, WriteElsewhere)}
            assert [*outcome.lost] == sorted({*acknowledged} - held - elsewhere), trace.name


def test_traces_are_of_apache_kafka_and_named_after_what_they_are() -> None:
    traces = {name: read(name) for name in NAMES}
    assert all(trace.is_kafka for trace in traces.values())
    assert [trace.name for trace in traces.values()] == [f"{name}.json" for name in NAMES]


def test_a_trace_is_of_the_present_code_or_names_the_commit_that_brought_it() -> None:
    """Present code writes down the client, and chooses it by the story: librdkafka has no version 2 of transactions."""
    traces = {name: read_trace(TRACES / f"{name}.json") for name in NAMES}
    assert {name for name, trace in traces.items() if not trace.commit} == REMADE
    assert [
        name for name, trace in traces.items() if trace.commit and not re.fullmatch("[0-9a-f]{8}", trace.commit)
    ] == []
    assert [name for name, trace in traces.items() if trace.outcome is None] == []
    for name in REMADE:
        world = world_of(STORIES[traces[name].story], "kafka")
        assert isinstance(world, Kafka)
        assert traces[name].client == world.client, name


def test_bugs_of_coordinators_are_counted_over_the_traces_that_may_show_them() -> None:
    tried: Mapping[str, list[str]] = tomllib.loads(SHOWN_BUGS.read_text(encoding="utf-8"))
    assert {*tried} == {*OF_GROUPS, *OF_TRANSACTIONS}
    for bug, names in tried.items():
        assert [name for name in names if bug not in bugs_for(STORIES[name.partition("-")[0]])] == []
        assert {name for name, bugs in SHOWN.items() if bug in bugs} <= {*names} <= {*NAMES}
    assert len([bug for bug, names in tried.items() if names]) >= 9


def test_at_least_ten_planted_bugs_are_shown() -> None:
    assert len([bug for bugs in SHOWN.values() for bug in bugs]) >= 10


def test_each_known_deviation_is_seen_in_a_trace() -> None:
    """One that nothing needs any more would only hide something new."""
    steps = [step for name in NAMES for step in held(name).steps]
    seen = {difference.why for step in steps for difference in step.differences}
    assert {deviation.name for deviation in known_deviations()} <= seen
