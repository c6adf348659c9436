"""Programs of users, started, broken and judged: those that keep their promise, and those that do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from checkers import ApplicationCounts, Judgement, Outcome, Verdict, check_one, judge
from harness.plan import RunSpec, parse_plan
from harness.records.files import HISTORY
from harness.runs.run.performing import perform_run
from tests.harness.needs import needs_root

ROOT: Final = Path(__file__).parents[4]
LOOP: Final = Path(__file__).with_name("misbehaving_loop.py")
PLAN: Final = """
families = ["{family}"]
settings = {{ "isolation.level" = "read_committed", "min.insync.replicas" = 2, "transaction.timeout.ms" = 4_000 }}
[application]
command = {command}
promise = "{promise}"
{more}
instances = {instances}
[workload]
partitions = 2
topics = {topics}
writes_per_second = 40.0
duration_ms = 6_000
drain_limit_ms = 120_000
recovery_limit_ms = 60_000
[faults]
count = {count}
fault_ms_min = 1_000
[worlds.processes]
runs = 1
"""


def spec_of(
    *words: str,
    promise: str = "at-least-once",
    family: str = "instance-kill",
    instances: int = 1,
    count: int = 1,
    more: str = "",
    topics: int = 1,
) -> RunSpec:
    """One run of a Python program with these words."""
    command = [sys.executable, *words]
    text = PLAN.format(
        command=command, promise=promise, family=family, instances=instances, count=count, more=more, topics=topics
    )
    return parse_plan(text, "p.toml").single(None, None, None)


def judged(spec: RunSpec, directory: Path) -> tuple[Verdict, Judgement]:
    ended = perform_run(spec, directory)
    assert ended.status == "completed", ended.reason
    verdict = check_one(directory / HISTORY)
    return verdict, judge(spec.chosen(), verdict, 1, spec.family.split("+"))


def became(counts: ApplicationCounts) -> dict[str, int]:
    """The fates of inputs, without those that no input had."""
    names = ("doubled", "missing", "pending", "unexplained", "exits")
    return {name: number for name in names if (number := getattr(counts, name))}


def example(name: str, *more: str) -> tuple[str, ...]:
    return str(ROOT / "examples" / "applications" / name), "{bootstrap}", "{input}", "{output}", "{group}", *more


def wrong(how: str) -> tuple[str, ...]:
    return str(LOOP), "{bootstrap}", "{input}", "{output}", "{group}", how


@pytest.mark.system
def test_a_loop_that_commits_after_its_writes_does_every_input_at_least_once(tmp_path: Path) -> None:
    verdict, judgement = judged(spec_of(*example("at_least_once.py"), instances=2), tmp_path / "run")
    assert (judgement.broken, judgement.stalled, judgement.outcome) == ({}, {}, Outcome.HELD)
    assert verdict.application.inputs > 200
    assert became(verdict.application).keys() <= {"doubled"}
    assert [fault.kind for fault in judgement.faults] == ["instancekill"]


@pytest.mark.system
def test_a_loop_with_transactions_does_every_input_once_though_it_is_frozen_past_its_transaction(
    tmp_path: Path,
) -> None:
    words = example("exactly_once.py", "{instance}")
    spec = spec_of(*words, promise="exactly-once", family="instance-freeze", instances=2)
    verdict, judgement = judged(spec, tmp_path / "run")
    assert (judgement.broken, judgement.stalled, became(verdict.application)) == ({}, {}, {})
    assert verdict.application.once == verdict.application.inputs > 200
    assert [fault.kind for fault in judgement.faults] == ["instancefreeze"]


@pytest.mark.system
@pytest.mark.parametrize(
    ("how", "promise", "broken"),
    [
        ("skips", "at-least-once", "missing-effect"),
        ("doubles", "at-most-once", "doubled-effect"),
        ("floods", "exactly-once", "doubled-effect"),
        ("invents", "at-least-once", "unexplained-output"),
    ],
)
def test_a_loop_that_does_not_keep_its_promise_is_found_out(
    how: str, promise: str, broken: str, tmp_path: Path
) -> None:
    verdict, judgement = judged(spec_of(*wrong(how), promise=promise, count=0), tmp_path / "run")
    assert set(judgement.broken) == {broken}
    assert judgement.outcome is Outcome.BROKEN_PROMISE
    assert verdict.application.pending == 0


@pytest.mark.system
@pytest.mark.root
@needs_root("nft")
def test_an_instance_that_is_cut_off_from_a_broker_loses_packets_and_nothing_else(tmp_path: Path) -> None:
    spec = spec_of(*example("at_least_once.py"), instances=2, family="instance-cut")
    verdict, judgement = judged(spec, tmp_path / "run")
    assert (judgement.broken, judgement.stalled, judgement.outcome) == ({}, {}, Outcome.HELD)
    (fault,) = [event for event in judgement.faults if event.kind == "instancecut"]
    assert fault.clients_only
    assert became(verdict.application).keys() <= {"doubled"}


@pytest.mark.system
def test_a_loop_that_promises_order_and_turns_batches_around_is_found_out(tmp_path: Path) -> None:
    spec = spec_of(*wrong("reorders"), count=0, more='order = "key"')
    _, judgement = judged(spec, tmp_path / "run")
    assert set(judgement.broken) == {"reordered-effect"}


@pytest.mark.system
@pytest.mark.parametrize("effects", ["", 'effects = "cat {directory}/instance-0/done"'])
def test_a_sink_is_judged_by_its_group_and_by_what_the_users_command_prints(effects: str, tmp_path: Path) -> None:
    words = (str(LOOP), "{bootstrap}", "{input}", "{directory}/done", "{group}", "sinks")
    spec = spec_of(*words, count=0, more=f'shape = "none"\n{effects}')
    verdict, judgement = judged(spec, tmp_path / "run")
    assert (judgement.broken, judgement.stalled, judgement.outcome) == ({}, {}, Outcome.NOT_EXERCISED)
    assert verdict.application.once == verdict.application.inputs > 100
    assert verdict.application.blind == (not effects)


@pytest.mark.system
def test_several_inputs_and_outputs_are_written_and_read(tmp_path: Path) -> None:
    spec = spec_of(*wrong("spreads"), count=0, more='output = ["left", "right"]', topics=2)
    verdict, judgement = judged(spec, tmp_path / "run")
    assert (judgement.broken, judgement.stalled, became(verdict.application)) == ({}, {}, {})
    assert verdict.application.once == verdict.application.inputs > 100


@pytest.mark.system
@pytest.mark.parametrize(("how", "broken"), [("counts", set[str]()), ("forgets counts", {"wrong-fold"})])
def test_a_loop_that_counts_by_key_is_held_against_its_inputs(how: str, broken: set[str], tmp_path: Path) -> None:
    spec = spec_of(*wrong(how), count=0, promise="exactly-once", more='shape = "fold"')
    verdict, judgement = judged(spec, tmp_path / "run")
    assert set(judgement.broken) == broken
    assert verdict.application.once == verdict.application.inputs > 100


@pytest.mark.system
def test_a_program_that_ends_at_once_is_a_crash_loop_with_its_last_words_and_no_hang(tmp_path: Path) -> None:
    spec = spec_of("-c", "import sys; print('no such topic'); sys.exit(3)", count=0)
    verdict, judgement = judged(spec, tmp_path / "run")
    assert (judgement.outcome, judgement.broken) == (Outcome.STALLED, {})
    (loop,) = verdict.anomalies["crash-loop"]
    assert loop.words() == (
        "Instance 0 ended at once each time it was started (status 3). Its last words: no such topic"
    )
    assert became(verdict.application) == {"pending": verdict.application.inputs, "exits": 5}


@pytest.mark.system
def test_a_program_whose_outputs_have_no_id_is_no_test_and_the_sentence_says_where_it_looked(tmp_path: Path) -> None:
    ended = perform_run(spec_of(*wrong("forgets ids"), count=0), tmp_path / "run")
    assert ended.status == "harness-failed"
    assert ended.reason == (
        "no output of the application has the id of an input at 'json:/id'; the first one is 'done': say where it is "
        "by id = under [application], or let the application copy it"
    )
