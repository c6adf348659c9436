"""Steps and states of transactions in scripts: what is seen, and what is said where one is in vain."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.cli.app import exit_code_of
from harness.runs.stories import StoryCell, parse_story, perform_cell
from harness.runs.stories.stage.stage import StoryStage
from harness.runs.stories.stage.story_world import StoryWorld
from harness.worlds.simulated.clients import SimulatedTransactionalProducer
from workloads import EventType, SendOutcome
from workloads.driver import SteppedProducer

FORM = """
number = "T99"
title = "A story"
steps = '''
init p
wait until p is ready
begin t by p
{steps}
'''
{rest}
"""
OPEN = "write a in t\n"


def cell(steps: str, column: str = "v2", rest: str = "") -> StoryCell:
    return perform_cell(parse_story(FORM.format(steps=steps, rest=rest), "my.toml"), column)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("read committed finds base a", "the reader finds base"),
        ("read uncommitted finds base", "the reader finds base a"),
        ("commit t\nwait 1 s\nread committed finds a base", "the reader finds base a"),
        ("read committed finds nothing", "the reader finds base"),
        ("retry a to 0", "it is part of a transaction, whose producer sends it again by itself"),
        ("commit t\ncommit t", "the transaction t was ended already"),
        ("begin u by p", "(InvalidTxnStateError)"),
        ("hold InitProducerId clients>1\ninit q\nbegin u by q", "the producer q is not ready; write: wait until q is"),
        ("try begin u by p\nwrite c in u", "the transaction u was not begun"),
        ("kill 2\nwait until 2 is fenced\nmove coordinator to 2", "refused: broker 2 is not a live member of the ISR"),
        ("wait up to 1 s until t is committed", "t is committed: no, it is open"),
        ("abort t\nwait up to 1 s until t is committed", "t is committed: no, it is aborted"),
        ("hold EndTxn clients>1\ncommit t\nwait up to 1 s until t is committed", "no, it has no answer"),
        ("wait up to 1 s until 0 coordinates", "0 coordinates: no, 1 coordinates"),
        ("commit t\nwait 1 s\nwait up to 1 s until last stable offset of 0 misses a", "is 3, and a is at offset 1"),
    ],
)
def test_a_step_that_is_in_vain_says_why(steps: str, problem: str) -> None:
    (sentence,) = cell(f"{OPEN}{steps}").disagreements
    assert problem in sentence


def test_brokers_without_a_coordinator_are_asked_for_one_before_the_script_begins(monkeypatch) -> None:
    asked: list[str] = []
    coordinator_of = StoryWorld.coordinator_of

    def new_producer(stage: StoryStage, transactional_id: str) -> SteppedProducer:
        monkeypatch.setattr(StoryWorld, "coordinator_of", coordinator_of)
        asked.append(transactional_id)
        return make(stage, transactional_id)

    make = StoryStage.new_producer
    monkeypatch.setattr(StoryWorld, "coordinator_of", lambda *_: None)
    monkeypatch.setattr(StoryStage, "new_producer", new_producer)
    assert cell(f"{OPEN}commit t").disagreements == ()
    assert asked == ["first", "p"]


def test_a_record_has_the_end_of_its_transaction() -> None:
    performed = cell(
        f"{OPEN}commit t\nwait 1 s\nbegin u by p\nwrite b in u\nabort u\nwait 1 s\nbegin v by p\nwrite c in v"
    )
    ends = {name: end.outcome for name, end in performed.trace.records.items()}
    assert ends == {"base": "acknowledged", "a": "acknowledged", "b": "aborted", "c": "in an open transaction"}
    assert performed.acknowledged == ("a", "base")
    assert performed.disagreements == ()
    begun = [entry for entry in performed.trace.entries if entry.text == "write b in u"]
    assert begun[0].answers["b"].outcome == "in an open transaction"


def test_a_commit_that_is_not_answered_is_not_acknowledged() -> None:
    performed = cell(
        f"{OPEN}drop EndTxn 1>clients\ncommit t\nwait 40 s", rest='[settings]\n"delivery.timeout.ms" = 5000'
    )
    assert performed.trace.records["a"].outcome == "unknown"
    assert performed.disagreements == ()
    assert performed.acknowledged == ("base",)


def test_a_superseded_producer_that_goes_on_is_a_zombie_where_brokers_let_it(monkeypatch: pytest.MonkeyPatch) -> None:
    story = f"{OPEN}init q after p\nwait until q is ready\nwrite b in t\ncommit t"
    assert cell(story).anomalies == {}
    asked: list[object] = []
    real = SimulatedTransactionalProducer.init

    def init(producer: SimulatedTransactionalProducer, done: Callable[[SendOutcome], None]) -> None:
        """The second one is told so without a question."""
        asked.append(producer)
        if len(asked) == 1:
            real(producer, done)
        else:
            producer._answer(done, SendOutcome(EventType.OK))

    monkeypatch.setattr(SimulatedTransactionalProducer, "init", init)
    assert [str(sign) for sign in cell(story).signs] == ["zombie"]


def test_readers_of_either_level_may_read_while_a_transaction_is_open() -> None:
    assert [cell(f"{OPEN}read\ncommit t", name).anomalies for name in ("v2", "v2/RU")] == [{}, {}]


def test_stories_have_the_columns_of_their_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["stories", "S01", "T01", "--settings", "a1", "--settings", "v1", "--workers", "1"]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["story", "a1"] in shown
    assert ["story", "v1"] in shown
    assert shown[-1][:2] == ["2", "cells,"]
    assert exit_code_of(["stories", "S01", "T01", "--settings", "v1"]) == 64
    assert "S01 is performed in other columns; name one of a0, a1, " in capsys.readouterr().err
