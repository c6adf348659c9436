"""Anomalies of applications under test: planted one at a time, and what their promises permit."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from checkers.verdicts.judgement import Judgement, judge
from checkers.verdicts.outcome import Outcome
from checkers.verdicts.verdict import Verdict
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import FAIL, INFO, OK, Scene
from workloads import ApplicationFacts, InstanceExit, Settings, key_of, number_of
from workloads.operations import HARNESS, Effect, EventType, Function

SETTINGS: Final = Settings(min_insync_replicas=2, isolation_level="read_committed")
INPUT, OUTPUT = "t-0", "t-out-0"
#: Four inputs, each at the offset that is its value less 100.
VALUES: Final = range(100, 104)
FACTS: Final = ApplicationFacts(
    shape="each",
    outputs_each=1,
    every=1,
    promise="exactly-once",
    group="g",
    inputs=(INPUT,),
    outputs=(OUTPUT,),
    committed={INPUT: 4},
    starts=2,
    waited_ms=60_000,
)


class ApplicationScene(Scene):
    """A scene in which four inputs are in the log, and were read to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.phase("break")
        for value in VALUES:
            self.send(value, value - 100)
        self.assign(INPUT, process=9)
        self.poll(*((value - 100, value) for value in VALUES), process=9)
        self.drain(4)

    def made(self, *values: int, kind: EventType = OK, begin: int = 0) -> None:
        """Outputs of these inputs, one after the other."""
        micro = tuple(Effect(INPUT, value, begin + offset) for offset, value in enumerate(values))
        self.event(HARNESS, kind, Function.EFFECT, micro=micro, node=0)

    def judged(self, **facts: Any) -> Verdict:
        told = msgspec.json.encode(msgspec.structs.replace(FACTS, **facts)).decode()
        self.event(HARNESS, INFO, Function.APPLICATION, detail=told)
        return judge_events(self.events)


def findings_of(verdict: Verdict) -> dict[str, int]:
    ours = {
        "missing-effect", "doubled-effect", "unexplained-output", "stalled-application", "crash-loop",
        "reordered-effect", "wrong-fold",
    }  # fmt: skip
    return {name: count for name, count in verdict.counts.items() if name in ours}


def test_an_application_that_does_each_input_once_has_nothing_wrong() -> None:
    scene = ApplicationScene()
    scene.made(*VALUES)
    verdict = scene.judged()
    assert findings_of(verdict) == {}
    assert verdict.application.sentence == "Of 4 inputs, 4 had their effect once."


def test_an_input_that_the_group_committed_past_without_an_output_is_missing() -> None:
    scene = ApplicationScene()
    scene.made(100, 101, 103)
    verdict = scene.judged()
    assert findings_of(verdict) == {"missing-effect": 1}
    assert verdict.anomalies["missing-effect"][0].words() == (
        "The application made no output of write 102 of process 0, which is in the log at offset 2, and its "
        "group had committed offset 4 of t-0."
    )


def test_without_commits_an_input_is_missing_once_a_later_one_has_an_output() -> None:
    scene = ApplicationScene()
    scene.made(100, 102)
    verdict = scene.judged(committed={})
    assert findings_of(verdict) == {"missing-effect": 1, "stalled-application": 1}
    assert "it had done later inputs of t-0" in verdict.anomalies["missing-effect"][0].words()


def test_what_the_group_has_not_committed_is_not_missing_and_the_application_has_stalled() -> None:
    scene = ApplicationScene()
    scene.made(100, 101)
    verdict = scene.judged(committed={INPUT: 2})
    assert findings_of(verdict) == {"stalled-application": 1}
    assert verdict.anomalies["stalled-application"][0].words() == (
        "The application had not caught up with t-0 60.0 s after healing: 2 inputs from offset 2 on had no output, and "
        "its group had committed offset 2."
    )
    assert judged(verdict).outcome is Outcome.STALLED


def test_an_input_with_two_outputs_was_done_twice_and_the_places_are_named() -> None:
    scene = ApplicationScene()
    scene.made(*VALUES, 101)
    verdict = scene.judged()
    assert findings_of(verdict) == {"doubled-effect": 1}
    assert verdict.anomalies["doubled-effect"][0].words() == (
        "The application made 2 outputs of write 101 of process 0, at offset 1 of t-0: offset 1 of t-out-0, "
        "offset 4 of t-out-0."
    )


def test_an_output_that_only_readers_of_uncommitted_records_saw_is_no_effect() -> None:
    scene = ApplicationScene()
    scene.made(*VALUES)
    scene.made(101, 102, kind=FAIL, begin=10)
    assert findings_of(scene.judged()) == {}


def test_an_input_that_is_twice_in_the_log_may_have_two_outputs_and_must() -> None:
    scene = ApplicationScene()
    scene.send(100, 4)
    scene.assign(INPUT, process=11)
    scene.poll(*((value - 100, value) for value in VALUES), (4, 100), process=11)
    scene.drain(5, process=11)
    scene.made(*VALUES)
    assert findings_of(scene.judged(committed={INPUT: 5})) == {"missing-effect": 1}
    scene.made(100, begin=4)
    assert findings_of(scene.judged(committed={INPUT: 5})) == {}


def test_an_input_that_the_log_lost_is_not_held_against_the_application() -> None:
    scene = ApplicationScene()
    scene.send(104, 4)
    scene.send(105, 5)
    scene.assign(INPUT, process=11)
    scene.poll(*((value - 100, value) for value in (*VALUES, 105)), process=11)
    scene.drain(6, process=11)
    scene.made(*VALUES, 105)
    verdict = scene.judged(committed={INPUT: 6})
    assert findings_of(verdict) == {}
    assert verdict.counts["lost-write"] == 1


@pytest.mark.parametrize("value", [-1, 77])
def test_an_output_of_no_input_is_unexplained(value: int) -> None:
    scene = ApplicationScene()
    scene.made(*VALUES, value)
    verdict = scene.judged()
    assert findings_of(verdict) == {"unexplained-output": 1}
    assert verdict.anomalies["unexplained-output"][0].words() == "The output at offset 4 of t-out-0 names no input."


def test_a_part_of_the_outputs_of_an_input_is_missing_where_it_has_several() -> None:
    scene = ApplicationScene()
    scene.made(*VALUES, 100, 101, 103)
    verdict = scene.judged(shape="many", outputs_each=2)
    assert findings_of(verdict) == {"missing-effect": 1}
    assert "made 1 of 2 outputs of write 102 of process 0" in verdict.anomalies["missing-effect"][0].words()


def test_a_filter_owes_outputs_of_the_inputs_that_its_plan_states_and_of_no_others() -> None:
    wanted = [value for value in VALUES if number_of(value) % 2 == 0]
    (other, *_) = [value for value in VALUES if value not in wanted]
    scene = ApplicationScene()
    scene.made(*wanted)
    assert findings_of(scene.judged(shape="some", every=2)) == {}
    scene.made(other, begin=7)
    verdict = scene.judged(shape="some", every=2)
    assert findings_of(verdict) == {"unexplained-output": 1}
    assert "which should have none" in verdict.anomalies["unexplained-output"][0].words()


def test_an_instance_that_ends_at_once_again_and_again_is_a_finding_with_its_last_words_and_no_loss() -> None:
    end = InstanceExit(instance=0, time_us=5, exit="status 3", lived_ms=200, words="Traceback\nno such topic\n")
    scene = ApplicationScene()
    verdict = scene.judged(committed={}, exits=(end,) * 5, crash_loops=(0,))
    assert findings_of(verdict) == {"stalled-application": 1, "crash-loop": 1}
    assert verdict.anomalies["crash-loop"][0].words() == (
        "Instance 0 ended at once each time it was started (status 3). Its last words: Traceback no such topic"
    )
    assert judged(verdict).outcome is Outcome.STALLED
    assert judged(verdict).broken == {}


def test_an_output_that_was_not_read_to_its_end_proves_no_loss_and_says_so() -> None:
    scene = ApplicationScene()
    scene.made(100)
    verdict = scene.judged(unread={OUTPUT: "it is slow"})
    assert findings_of(verdict) == {}
    assert (verdict.valid, verdict.reason) == (
        "unknown",
        "the output t-out-0 of the application was not read to its end: it is slow",
    )


def judged(verdict: Verdict) -> Judgement:
    return judge(SETTINGS, verdict, families=["instance-kill"])


@pytest.mark.parametrize(
    ("promise", "broken"),
    [
        ("exactly-once", {"missing-effect": 1, "doubled-effect": 1}),
        ("at-least-once", {"missing-effect": 1}),
        ("at-most-once", {"doubled-effect": 1}),
    ],
)
def test_what_an_application_promises_decides_what_is_permitted(promise: str, broken: dict[str, int]) -> None:
    scene = ApplicationScene()
    scene.made(100, 100, 101, 103)
    judgement = judged(scene.judged(promise=promise))
    assert judgement.broken == broken
    assert judgement.outcome is Outcome.BROKEN_PROMISE


@pytest.mark.parametrize(
    ("outputs", "late"),
    [
        ((100, 101, 102, 103), 0),
        ((100, 101, 100, 101, 102, 103), 0),  # repeats from a commit
        ((101, 100, 101, 102, 103), 0),  # 101 was done again
        ((101, 100, 102, 103), 1),
        ((101, 100, 102, 101, 103), 1),  # whichever repeat is left out
        ((103, 102, 101, 100), 3),
    ],
)
def test_order_by_key_is_kept_if_repeats_explain_every_output_that_is_out_of_place(
    outputs: tuple[int, ...], late: int
) -> None:
    scene = ApplicationScene()
    scene.made(*outputs)
    judgement = judged(scene.judged(order="key", promise="at-least-once"))
    assert judgement.broken == ({"reordered-effect": late} if late else {})


def test_a_broken_order_names_both_inputs_and_their_places() -> None:
    scene = ApplicationScene()
    scene.made(101, 100, 102, 103)
    (finding,) = scene.judged(order="key").anomalies["reordered-effect"]
    assert finding.words() == (
        "The application wrote the output of write 101 of process 0 at offset 0 of t-out-0, and the output of write "
        "100 of process 0 at offset 1, after it. Both inputs have one key, and write 100 of process 0 comes first in "
        "t-0."
    )


def test_inputs_of_different_keys_and_applications_that_promise_no_order_may_overtake() -> None:
    keys = next(number for number in range(2, 50) if len({key_of(value, number) for value in VALUES}) == len(VALUES))
    scene = ApplicationScene()
    scene.made(*reversed(VALUES))
    assert findings_of(scene.judged(order="key", keys=keys)) == {}
    scene = ApplicationScene()
    scene.made(*reversed(VALUES))
    assert findings_of(scene.judged(order="none")) == {}


class FoldScene(ApplicationScene):
    """A scene whose outputs have results."""

    def folded(self, *outputs: tuple[int, int]) -> None:
        """Outputs of these inputs with these results, one after the other."""
        self.made(*(value for value, _ in outputs))
        micro = tuple(Effect(INPUT, result, offset) for offset, (_, result) in enumerate(outputs))
        self.event(HARNESS, INFO, Function.EFFECT, micro=micro, node=0)


NUMBERS: Final = [number_of(value) for value in VALUES]


@pytest.mark.parametrize(
    ("fold", "results"),
    [
        ("count", (1, 2, 3, 4)),
        ("sum", tuple(sum(NUMBERS[: number + 1]) for number in range(4))),
        ("last", tuple(VALUES)),
    ],
)
def test_a_fold_is_right_if_the_newest_output_has_all_inputs_of_the_key(fold: str, results: tuple[int, ...]) -> None:
    scene = FoldScene()
    scene.folded((101, results[1]), (103, results[3]))  # not every input needs an output
    assert findings_of(scene.judged(shape="fold", fold=fold)) == {}
    scene = FoldScene()
    scene.folded((101, results[1]), (103, results[2]))
    assert findings_of(scene.judged(shape="fold", fold=fold)) == {"wrong-fold": 1}


def test_a_wrong_fold_names_the_input_from_which_on_outputs_are_wrong() -> None:
    scene = FoldScene()
    scene.folded((100, 1), (101, 2), (102, 1), (103, 2))
    verdict = scene.judged(shape="fold", fold="count")
    (finding,) = verdict.anomalies["wrong-fold"]
    assert finding.words() == (
        "The newest output of a key, at offset 3 of t-out-0, has 2. The count of its inputs up to write 103 of process "
        "0 is 4. Outputs are wrong from write 102 of process 0 on."
    )
    assert judged(verdict).broken == {"wrong-fold": 1}


def test_a_newest_output_that_is_of_an_earlier_input_is_wrong_though_its_result_was_right_then() -> None:
    scene = FoldScene()
    scene.folded((100, 1), (103, 4), (101, 2))
    (finding,) = scene.judged(shape="fold", fold="count").anomalies["wrong-fold"]
    assert "has 2, and was made of write 101 of process 0, an earlier input. The count" in finding.words()
    assert "wrong from write 103 of process 0 on" in finding.words()


@pytest.mark.parametrize(
    ("promise", "result", "wrong"),
    [
        ("exactly-once", 5, 1), ("exactly-once", 3, 1), ("at-least-once", 5, 0), ("at-least-once", 3, 1),
        ("at-most-once", 5, 1), ("at-most-once", 3, 0), ("at-most-once", -1, 1),
    ],
)  # fmt: skip
def test_what_a_promise_explains_is_no_wrong_fold(promise: str, result: int, wrong: int) -> None:
    scene = FoldScene()
    scene.folded((100, 1), (103, result))
    assert findings_of(scene.judged(shape="fold", fold="count", promise=promise)) == (
        {"wrong-fold": wrong} if wrong else {}
    )


def test_inputs_behind_the_newest_output_of_a_fold_are_missing_once_they_are_passed() -> None:
    scene = FoldScene()
    scene.folded((100, 1), (101, 2))
    assert findings_of(scene.judged(shape="fold", fold="count")) == {"missing-effect": 2}
    scene = FoldScene()
    scene.folded((100, 1), (101, 2))
    assert findings_of(scene.judged(shape="fold", fold="count", committed={INPUT: 2})) == {"stalled-application": 1}


def test_a_fold_of_an_input_that_the_log_lost_is_not_held_against_the_application() -> None:
    scene = FoldScene()
    scene.send(104, 4)
    scene.send(105, 5)
    scene.assign(INPUT, process=11)
    scene.poll(*((value - 100, value) for value in (*VALUES, 105)), process=11)
    scene.drain(6, process=11)
    scene.folded((105, 6))
    assert findings_of(scene.judged(shape="fold", fold="count", committed={INPUT: 6})) == {}


def test_of_a_sink_whose_effects_nobody_prints_only_the_group_tells_what_it_did() -> None:
    verdict = ApplicationScene().judged(shape="none", outputs=())
    assert findings_of(verdict) == {}
    assert verdict.application.sentence == (
        "Of 4 inputs, 4 were passed by the group; what it made of them, nothing told."
    )
    assert findings_of(ApplicationScene().judged(shape="none", outputs=(), committed={INPUT: 2})) == {
        "stalled-application": 1
    }
    assert findings_of(ApplicationScene().judged(shape="none", outputs=(), committed={})) == {"stalled-application": 1}


def test_topics_that_an_application_made_by_itself_are_listed() -> None:
    scene = ApplicationScene()
    scene.made(*VALUES)
    verdict = scene.judged(topics=("app-repartition", "app-changelog"))
    assert verdict.application.sentence == (
        "Of 4 inputs, 4 had their effect once. It made the topics app-repartition, app-changelog by itself."
    )


def test_of_a_sink_the_ids_that_the_users_command_prints_are_effects() -> None:
    scene = ApplicationScene()
    scene.made(100, 101, 101, 103)
    verdict = scene.judged(shape="none", outputs=("the sink",))
    assert findings_of(verdict) == {"missing-effect": 1, "doubled-effect": 1}
    assert "offset 1 of the sink, offset 2 of the sink" in verdict.anomalies["doubled-effect"][0].words()
