"""A step is the same, passed, a known deviation, or unexplained; what is not shown is not compared."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import pytest

from harness.ground.errors import PlanError
from harness.lab.conform import RecordedTrace, Word, hold, read_trace, traces_in, write_trace
from harness.lab.conform.performing import performed_by_core, spec_of, with_rests, world_of
from harness.lab.conform.recorded import recorded
from harness.lab.conform.shown import ShownReplica, ShownState
from harness.plan import Kafka, Simulated
from harness.runs.stories import (
    Story,
    StoryOutcome,
    UntilAtRest,
    column_named,
    known_stories,
    parse_story,
    perform_script,
)
from harness.runs.stories.stage import questions
from harness.worlds.simulated import SimulatedWorld
from harness.worlds.simulated.steady import Steady
from workloads import Event

STORY: Final = parse_story(
    'number = "M1"\ntitle = "t"\nsteps = """\nwrite x to 0\nkill 2\nwait until 2 is fenced\nwrite y to 0\n"""\n',
    "my.toml",
)


class Forgetting:
    """Takes events of clients and keeps none."""

    def record(self, event: Event) -> None: ...


@pytest.fixture(scope="module")
def trace() -> RecordedTrace:
    return trace_of(STORY)


def trace_of(story: Story, column: str = "all/2") -> RecordedTrace:
    """The core's own states, as if a real cluster had shown them."""
    spec = spec_of(story, column_named(column), Simulated())
    world = SimulatedWorld(spec, Steady(0), invariants=False)
    performed = perform_script(story, spec, world, Forgetting(), UntilAtRest()).trace
    return recorded(story, spec, "Apache Kafka 0.0.0", performed)


def changed(trace: RecordedTrace, number: int, **shown: object) -> RecordedTrace:
    """The trace with another state after step ``number``, counted from 1."""
    steps = list(trace.steps)
    step = steps[number - 1]
    steps[number - 1] = msgspec.structs.replace(step, shown=msgspec.structs.replace(step.shown, **shown))
    return msgspec.structs.replace(trace, steps=tuple(steps))


def test_what_shows_the_same_conforms(trace: RecordedTrace) -> None:
    compared = hold(trace, STORY)
    assert [step.word for step in compared.steps] == [Word.SAME] * len(trace.steps)
    assert [step.text for step in compared.steps][4:8] == [step.text for step in STORY.steps]
    assert compared.conforms


@pytest.mark.parametrize(
    "shown",
    [
        {"leader": 1},
        {"leader_epoch": 7},
        {"partition_epoch": 5},
        {"isr": (0, 1)},
        {"elr": (2,)},
        {"fenced": (1,)},
        {"assigned": (2, 1, 0)},
        {"answers": {"base": "acknowledged at offset 0", "x": "acknowledged at offset 2"}},
    ],
)
def test_another_fact_is_unexplained_and_named(trace: RecordedTrace, shown: dict[str, object]) -> None:
    compared = hold(changed(trace, 5, **shown), STORY)
    assert compared.unexplained == 4
    (difference,) = compared.steps[4].differences
    assert difference.fact == ("answer to x" if "answers" in shown else next(iter(shown)).replace("_", " "))
    assert not compared.conforms


@pytest.mark.parametrize(
    "replica",
    [
        {"log": ("0:base/0",)},
        {"epochs": ("0 from 1",)},
        {"leading": True},
        {"leader_epoch": 3},
        {"written_high_watermark": 0},
        {"running": False},
    ],
)
def test_another_replica_is_unexplained(trace: RecordedTrace, replica: dict[str, object]) -> None:
    shown = trace.steps[4].shown.replicas
    replicas = (shown[0], msgspec.structs.replace(shown[1], **replica), shown[2])
    compared = hold(changed(trace, 5, replicas=replicas), STORY)
    # Before x reached it, broker 1 was so: only such a state is one that the core passed through.
    (difference,) = compared.steps[4].differences
    assert difference.fact == f"broker 1: {next(iter(replica)).replace('_', ' ')}"


def test_a_state_of_the_course_of_a_step_is_passed_and_one_of_an_earlier_step_is_not(trace: RecordedTrace) -> None:
    before = trace.steps[5].shown
    assert before != trace.steps[6].shown
    late = changed(trace, 7, **{name: getattr(before, name) for name in ShownState.__struct_fields__})
    assert hold(late, STORY).steps[6].word is Word.PASSED
    later = changed(trace, 8, **{name: getattr(before, name) for name in ShownState.__struct_fields__})
    assert hold(later, STORY).steps[7].word is Word.UNEXPLAINED


def test_what_a_cluster_does_not_show_is_not_compared(trace: RecordedTrace) -> None:
    replicas = tuple(ShownReplica(log=replica.log) for replica in trace.steps[4].shown.replicas)
    assert hold(changed(trace, 5, replicas=replicas), STORY).steps[4].word is Word.SAME


def test_what_only_the_cluster_shows_is_unexplained(trace: RecordedTrace) -> None:
    """Broker 2 is dead: the core shows no role of it."""
    *others, dead = trace.steps[6].shown.replicas
    assert (dead.running, dead.leading) == (False, None)
    replicas = (*others, msgspec.structs.replace(dead, leading=True))
    step = hold(changed(trace, 7, replicas=replicas), STORY).steps[6]
    assert step.word is Word.UNEXPLAINED
    assert step.differences == (("broker 2: leading", "True", "not shown", ""),)


def test_a_step_that_went_another_way_is_unexplained(trace: RecordedTrace) -> None:
    steps = list(trace.steps)
    steps[4] = msgspec.structs.replace(steps[4], play="tried", note="in vain")
    compared = hold(msgspec.structs.replace(trace, steps=tuple(steps)), STORY)
    assert [step.differences[0].fact for step in compared.steps if step.word is Word.UNEXPLAINED] == ["way"]


def test_a_script_that_fails_in_both_is_no_evidence() -> None:
    """The core waits in vain too, and shows the same: but the story did not happen."""
    story = parse_story(
        'number = "M2"\ntitle = "t"\nsteps = """\nwrite x to 0\nwait up to 1 s until 2 is fenced\n"""\n', "my.toml"
    )
    compared = hold(trace_of(story), story)
    wrong = [step for step in compared.steps if step.word is Word.UNEXPLAINED]
    assert [step.text for step in wrong] == [story.steps[1].text]
    (difference,) = wrong[0].differences
    assert difference.real == difference.core
    assert difference.real.startswith("failed: waited 1000 ms without effect")
    assert not compared.conforms


def story_that(steps: str) -> Story:
    return parse_story(f'number = "M3"\ntitle = "t"\nsteps = """\n{steps}\n"""\n', "my.toml")


def test_where_one_api_is_dropped_the_core_loses_the_whole_link_as_real_hosts_do() -> None:
    """The virtual world by itself drops AlterPartition alone, and broker 0 stays unfenced and leads."""
    story = story_that("drop AlterPartition 0>controller\nwait 20 s\nrelease\nwait 5 s")
    compared = hold(trace_of(story), story)
    wrong = compared.steps[5]
    assert wrong.text == "wait 20 s"
    assert {(difference.fact, difference.core) for difference in wrong.differences} >= {
        ("leader", "1"),
        ("fenced", "0"),
    }
    # Nor does broker 0 hear that another one leads.
    assert "broker 0: leading" not in {difference.fact for difference in wrong.differences}
    assert {difference.fact for difference in compared.steps[7].differences} >= {"leader", "broker 0: leading"}
    assert "fenced" not in {difference.fact for difference in compared.steps[7].differences}


def test_a_cluster_whose_links_were_freed_rests_until_its_brokers_have_asked_again() -> None:
    story = story_that("hold Fetch 1>0\nwait 100 ms\nrelease\nwait 100 ms")
    lasted = {step.text: step.lasted_ms for step in trace_of(story).steps}
    assert lasted["wait 100 ms"] < 2_000
    assert lasted["hold Fetch 1>0"] < 2_000
    assert lasted["release"] > 7_000 > lasted["(all links are healed)"]


def test_a_broker_that_is_started_within_its_session_is_waited_for_until_it_is_registered_anew() -> None:
    """Until then Kafka's leads or follows by the metadata on its disk, for a time that nobody knows."""
    steps = {step.text: step for step in trace_of(story_that("kill 0\nstart 0")).steps}
    assert (steps["kill 0"].shown.leader, steps["kill 0"].shown.fenced) == (0, ())
    assert (steps["start 0"].shown.leader, steps["start 0"].shown.fenced) == (1, ())
    assert 9_000 < steps["kill 0"].lasted_ms + steps["start 0"].lasted_ms < 20_000


def test_an_outcome_is_compared_with_what_the_story_expects_now(trace: RecordedTrace) -> None:
    checked = msgspec.structs.replace(
        trace, outcome=StoryOutcome(acknowledged=("base", "x", "y"), problems=("it rained",))
    )
    expecting = parse_story(
        'number = "M1"\ntitle = "t"\nsteps = """\nwrite x to 0\nkill 2\nwait until 2 is fenced\nwrite y to 0\n"""\n'
        '[lost]\nx = ["all/2"]\n',
        "my.toml",
    )
    assert hold(trace, STORY).disagreements is None
    assert hold(checked, STORY).disagreements == ("it rained",)
    assert hold(checked, expecting).disagreements == ("it rained", "expected to be lost, and not: x")


def test_a_group_is_asked_without_being_changed() -> None:
    """The coordinator that follows has not read its log when it is asked about."""
    story = parse_story(
        'number = "G1"\ntitle = "t"\nsteps = """\njoin m\nwrite a to 0\npoll m\ncrash m\nmove coordinator to 2\n"""\n',
        "my.toml",
    )
    trace = trace_of(story, "g")
    told = {step.text: step.shown.told for step in trace.steps}
    assert told["flush all"] == {}
    assert (told["poll m"][questions.COMMITTED], told["poll m"][questions.MEMBERS], told["poll m"][questions.ISR]) == (
        2,
        1,
        (0, 1, 2),
    )
    after = told["move coordinator to 2"]
    assert (
        after[questions.LEADER],
        after[questions.EPOCHS],
        after[questions.COMMITTED],
        after[questions.ASSIGNED],
    ) == (2, 1, 2, 1)
    assert after["member m: assigned"] is False
    assert hold(trace, story).count(Word.SAME) == len(trace.steps)


def test_what_is_told_late_is_passed_and_what_is_never_told_is_not_compared(trace: RecordedTrace) -> None:
    core = performed_by_core(STORY, trace, "none", Steady(0))
    assert {*core[-1].told_before, *core[-1].step.shown.told} == set()
    story = parse_story(
        'number = "T1"\ntitle = "t"\nsteps = """\ninit p\nwait until p is ready\nbegin t by p\nwrite a in t\n'
        'commit t\nwait 2 s\nread committed finds base a\n"""\n',
        "my.toml",
    )
    whole = trace_of(story, "v2")
    told = [step.shown.told for step in whole.steps]
    assert told[-3][questions.READ] == ("base", "a")
    index = next(index for index, step in enumerate(whole.steps) if step.text == "commit t")
    fact = f"{questions.TRANSACTIONAL_ID}p"
    assert (told[index - 1][fact], told[index][fact]) == ("Ongoing in epoch 0", "CompleteCommit in epoch 1")
    late = changed(whole, index + 1, told={fact: told[index - 1][fact]})
    assert hold(late, story).steps[index].word is Word.PASSED
    wrong = changed(whole, index + 1, told={fact: "Empty in epoch 1"})
    assert hold(wrong, story).steps[index].word is Word.UNEXPLAINED
    assert hold(changed(whole, index + 1, told={}), story).steps[index].word is Word.SAME


@pytest.mark.parametrize(
    ("number", "client"),
    [("S01", "confluent-kafka"), ("T01", "java"), ("G01", "confluent-kafka"), ("G13", "java")],
)
def test_transactions_on_kafka_are_of_the_one_client_that_speaks_version_2(number: str, client: str) -> None:
    world = world_of(known_stories()[number], "kafka", "4.0.0")
    assert isinstance(world, Kafka)
    assert (world.client, world.version) == (client, "4.0.0")


def test_a_story_says_itself_what_it_needs_where_its_steps_take_time() -> None:
    """So a reader's own can say it, too; in virtual time the story has its other settings."""
    table = "[settings]\nrequest.timeout.ms = 5000\n[real_time]\ndelivery.timeout.ms = 90000"
    story = parse_story(f'number = "M4"\ntitle = "t"\nsteps = "write x to 0"\n{table}\n', "my.toml")
    assert story.settings == {"request.timeout.ms": 5000}
    rested = with_rests(story).settings
    assert (rested["request.timeout.ms"], rested["delivery.timeout.ms"]) == (5_000, 90_000)
    assert rested["broker.session.timeout.ms"] == 9_000


def test_nothing_compared_does_not_conform(trace: RecordedTrace) -> None:
    assert not msgspec.structs.replace(hold(trace, STORY), steps=()).conforms


def test_a_trace_of_another_script_is_refused(trace: RecordedTrace) -> None:
    other = msgspec.structs.replace(STORY, steps=STORY.steps[1:])
    with pytest.raises(PlanError, match="another script"):
        hold(trace, other)


def test_a_trace_is_read_as_it_was_written(trace: RecordedTrace, tmp_path: Path) -> None:
    path = write_trace(tmp_path / "new", trace)
    assert traces_in(path.parent) == [read_trace(path)] == [trace]
    assert len(path.read_text().splitlines()) == len(trace.steps) + 2
    with pytest.raises(PlanError, match="has no recorded traces"):
        traces_in(tmp_path)
    other = msgspec.structs.replace(trace, system="Apache Kafka 3.9.2", column="all/2/F")
    assert other.name == "M1-all-2-F-3.9.2.json"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(PlanError, match="is no recorded trace"):
        read_trace(path)


def test_steps_last_as_long_as_they_did_elsewhere(trace: RecordedTrace) -> None:
    """So time limits run out at the same steps: here the session of broker 2, in a step that only writes."""
    steps = [
        step if step.text != "write x to 0" else msgspec.structs.replace(step, lasted_ms=60_000) for step in trace.steps
    ]
    slow = msgspec.structs.replace(trace, steps=tuple(steps))
    assert hold(slow, STORY).conforms
