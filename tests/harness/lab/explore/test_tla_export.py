"""Counterexamples as modules of a published TLA+ model; that of the missed epoch was replayed with TLC, and is kept."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from harness.ground.errors import PlanError
from harness.lab.explore import Limits, Result, exhaust, scope_named, steps_of
from harness.lab.explore.scope import Scope
from harness.lab.explore.searched import Next
from harness.lab.explore.space import Space

KEPT = Path(__file__).parents[4] / "results" / "reference" / "explore"
sys.path.insert(0, str(KEPT / "tla"))
from model_actions import ACTIONS, MODELS, PLANNED_MOVE  # noqa: E402 - a script beside its result, in no package
from published_model import tla_files  # noqa: E402

MISSED = scope_named("moved").varied({}, {"missed.epoch": "kafka"})
_ACTION = re.compile(r"^ +\\/ step = (\d+) /\\ \(*(\w+)\((\d)\)", re.MULTILINE)


def test_the_kept_modules_of_the_missed_epoch_are_what_is_written_now() -> None:
    result = exhaust(MISSED, limits=Limits(), workers=1)
    file = KEPT / "missed_epoch.tla"
    written = tla_files(
        MISSED, result, steps_of(MISSED, result), file, "ackproof explore moved --set missed.epoch=kafka"
    )
    assert written == {each: each.read_text(encoding="utf-8") for each in (file, file.with_suffix(".cfg"))}
    actions = _ACTION.findall(written[file])
    assert [int(step) for step, _, _ in actions] == list(range(20))
    assert [f"{name} {broker}" for _, name, broker in actions][:11] == [
        "WriteRecordToLeader 1",
        "SendFetchRequest 2",
        "ReceiveFetchRequest 1",
        "ReceiveFetchResponse 2",
        "SendFetchRequest 2",
        "ReceiveFetchRequest 1",
        "PlannedMove 3",
        "ReceiveMetadataUpdate 2",
        "PlannedMove 1",
        "ReceiveMetadataUpdate 3",
        "ReceiveMetadataUpdate 1",
    ]
    # The leader learns of both moves at once: this is what it misses the epoch by.
    assert "ReceiveMetadataUpdate(1) /\\ Len(broker_metadata_log'[1]) = 3" in written[file]


def test_an_answer_that_arrives_at_once_is_an_action_of_the_same_step() -> None:
    """TLC would wait for ever: a follower of the model sends no request before it has the answer to the last one."""
    scope = scope_named("calm-1").varied({"responses-wait": False}, {"planted.bug": "commit-with-two"})
    result = exhaust(scope, limits=Limits(), workers=1)
    text = tla_files(scope, result, steps_of(scope, result), Path("missed.tla"), "a test")[Path("missed.tla")]
    names = [name for _, name, _ in _ACTION.findall(text)]
    assert names == ["WriteRecordToLeader", *_ROUND, *_ROUND]


_ROUND = ["SendFetchRequest", "ReceiveFetchRequest", "ReceiveFetchResponse"]


@pytest.mark.parametrize("name", ["silent", "wiped", "joining", "retried", "tla-1"])
def test_every_step_of_a_walk_is_an_action_of_the_model_or_a_reason(name: str) -> None:
    scope = scope_named(name)
    assert isinstance(scope, Scope)
    space = Space(scope)
    model = MODELS[scope.chosen.eligible_leader_replicas]
    names = ACTIONS | {PLANNED_MOVE, model.keeps_log, model.loses_log}
    for seed in range(2):
        random, state, trace = Random(seed), space.begin(), list[Next]()
        while len(trace) < 25 and (ways := list(space.follow(state))):
            trace.append(random.choice(ways))
            state = trace[-1].state
        result = _ended_with(trace)
        steps = steps_of(scope, result)
        text = tla_files(scope, result, steps, Path("walk.tla"), "a walk")[Path("walk.tla")]
        assert {action for _, action, _ in _ACTION.findall(text)} <= names, f"seed {seed}"
        said = re.split(r"^ +\\\* +\d+  .*\n", text, flags=re.MULTILINE)[-len(steps) :]
        for step, below in zip(steps, said, strict=True):
            assert _ACTION.search(below) or "no action of the model: " in below or "with the next" in below, step.text
            assert "; ".join(step.brokers) in below
            assert not _ACTION.search(below) or below.count("Shows(") == 1, step.text


def _ended_with(trace: list[Next]) -> Result:
    held = exhaust(replace(scope_named("calm-1"), rules=()), limits=Limits(states=1), workers=1)
    return replace(held, trace=tuple(trace))


@pytest.mark.parametrize(
    ("scope", "file", "words"),
    [
        ("moved", "missed.txt", "as in missed.tla"),
        ("moved", "1-missed.tla", "as in missed.tla"),
        ("group", "missed.tla", "no model of transactions or groups"),
        ("transactions", "missed.tla", "no model of transactions or groups"),
        ("compacted", "missed.tla", "no compacted logs"),
    ],
)
def test_what_no_model_has_is_refused(scope: str, file: str, words: str) -> None:
    chosen = scope_named(scope)
    result = exhaust(scope_named("calm-1"), limits=Limits(states=1), workers=1)
    with pytest.raises(PlanError, match=words):
        tla_files(chosen, result, (), Path(file), "nothing")


def test_the_script_writes_modules_and_says_what_it_cannot_write(tmp_path: Path) -> None:
    said = _script("calm-1", str(tmp_path / "few.tla"), "--set", "planted.bug=commit-with-two")
    assert said.returncode == 0, said.stderr
    assert "WriteRecordToLeader" in (tmp_path / "few.tla").read_text()
    assert (tmp_path / "few.cfg").exists()
    assert "no model of transactions or groups" in _script("group", str(tmp_path / "missed.tla")).stderr
    assert "no rule is broken in scope calm-1" in _script("calm-1", str(tmp_path / "missed.tla")).stderr
    assert not (tmp_path / "missed.tla").exists()


def _script(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(KEPT / "tla"), *words], capture_output=True, text=True, check=False)
