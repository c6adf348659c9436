"""Scopes with sequence numbers: a record that is sent again is there once, and in its place."""

from __future__ import annotations

import pytest

from harness.ground.errors import PlanError
from harness.lab.explore import Scope, exhaust, scope_named, steps_of
from harness.lab.explore.brokers import WritingClient
from harness.lab.explore.rules import in_sequence

RETRIED = scope_named("retried")


def test_a_record_that_is_sent_again_is_appended_once() -> None:
    result = exhaust(RETRIED)
    assert result.exhausted
    assert result.acknowledged == 2


def test_a_leader_that_forgets_producers_appends_it_twice() -> None:
    wrong = RETRIED.varied({}, {"planted.bug": "forget-producers-on-election"})
    result = exhaust(wrong)
    assert result.broken is not None
    assert result.broken[0] == "duplicate"
    assert any(step.text.endswith(" again") for step in steps_of(wrong, result))


def test_without_sequence_numbers_retries_are_refused() -> None:
    with pytest.raises(PlanError, match=r"add --set enable\.idempotence=true"):
        exhaust(RETRIED.varied({}, {"enable.idempotence": False}))


@pytest.mark.parametrize(
    ("read", "rules"),
    [
        ([], []),
        ([0, 1, 2], []),
        ([0, 2], []),
        ([0, 1, 0], ["duplicate"]),
        ([1, 0], ["reordered"]),
        ([0, None, 1], []),
        ([0, None, 0], ["duplicate"]),
    ],
)
def test_what_can_be_read_has_each_record_once_and_in_its_place(read: list[int | None], rules: list[str]) -> None:
    kept = tuple(None if number is None else (0, number) for number in read)
    assert [name for name, _ in in_sequence(kept)] == rules


def test_a_record_has_its_number_as_its_sequence_number() -> None:
    assert [WritingClient(-1, numbered=True).batch(number).base_sequence for number in (0, 1)] == [0, 1]
    assert WritingClient(-1).batch(0).producer_id == -1


def test_a_scope_says_whether_producers_have_sequence_numbers() -> None:
    calm = scope_named("calm-1")
    assert isinstance(calm, Scope)
    assert "sequence numbers of producers" in calm.leaves_out()
    assert "a second producer, and epochs of producers" in RETRIED.leaves_out()
