"""Inputs and their effects as readers of the output take them in."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from workloads import ApplicationPlan, number_of
from workloads import effects as module
from workloads.application_payloads import id_of
from workloads.client import Fetched
from workloads.effects import LAST, SINK, Effects
from workloads.operations import NO_INSTANCE, Effect, Event, EventType, Function, Send

IN, OUT = "in-0", "out-0"


class Kept:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)


def effects_of(kept: Kept | None = None, **plan: object) -> Effects:
    application = ApplicationPlan(command=("x",), id="key", **plan)  # type: ignore[arg-type]
    return Effects(application, 1, [IN], [OUT], kept or Kept())


def sent(effects: Effects, *values: int, kind: EventType = EventType.OK) -> None:
    for value in values:
        micro = (Send(IN, value),)
        effects.record(
            Event(time_us=0, process=1, instance=NO_INSTANCE, type=kind, function=Function.SEND, micro=micro)
        )


def outputs(values: Iterable[int], begin: int = 0) -> list[Fetched]:
    return [Fetched(OUT, begin + offset, id_of(IN, value).encode(), b"") for offset, value in enumerate(values)]


def told(effects: Effects) -> list[tuple[EventType, Effect]]:
    return [(event.type, effect) for event in effects.events(9) for effect in event.micro]  # type: ignore[misc]


def test_inputs_are_pending_from_their_acknowledgement_until_their_effect() -> None:
    kept = Kept()
    effects = effects_of(kept)
    sent(effects, 1, 2)
    sent(effects, 3, kind=EventType.INFO)
    assert (effects.pending, len(kept.events)) == (2, 3)
    effects.read(True, 5, outputs([1]))
    assert effects.pending == 1
    effects.read(True, 6, outputs([2], begin=1))
    assert (effects.pending, effects.last_us) == (0, 6)


def test_an_effect_that_is_read_before_its_acknowledgement_counts() -> None:
    effects = effects_of()
    effects.read(True, 5, outputs([1]))
    sent(effects, 1)
    assert effects.pending == 0


def test_an_input_of_several_outputs_is_pending_until_it_has_all() -> None:
    effects = effects_of(shape="many", outputs_each=2)
    sent(effects, 1)
    effects.read(True, 5, outputs([1]))
    assert effects.pending == 1
    effects.read(True, 5, outputs([1], begin=1))
    assert effects.pending == 0


def test_a_filter_makes_only_the_inputs_pending_that_have_an_output() -> None:
    effects = effects_of(shape="some", every=2)
    sent(effects, *range(10))
    assert effects.pending == sum(number_of(value) % 2 == 0 for value in range(10))


def test_an_output_that_is_read_again_is_one_and_one_of_an_aborted_transaction_does_not_count() -> None:
    effects = effects_of()
    effects.read(False, 5, outputs([1, 2]))
    effects.read(True, 6, outputs([1]))
    effects.read(True, 7, outputs([1]))
    assert told(effects) == [(EventType.OK, Effect(IN, 1, 0)), (EventType.FAIL, Effect(IN, 2, 1))]
    assert effects.last_us == 5, "nothing new was read after that"


def test_outputs_that_name_no_input_of_the_run_are_kept_and_the_first_is_quoted() -> None:
    effects = effects_of()
    effects.read(True, 5, [Fetched(OUT, 0, b"?", b"x" * 500), Fetched(OUT, 1, id_of("other-0", 1).encode(), b"")])
    assert told(effects) == [(EventType.OK, Effect(IN, -1, 0)), (EventType.OK, Effect(IN, -1, 1))]
    assert effects.nameless == "x" * 120 + " ..."
    assert not effects.named


def test_the_record_that_ends_an_output_is_none_but_was_read() -> None:
    effects = effects_of()
    read = effects.read(True, 5, [Fetched(OUT, 4, LAST, LAST)])
    assert told(effects) == []
    assert [record.offset for record in read.records[OUT]] == [4]


def test_a_flood_of_outputs_is_bounded_and_known_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OUTPUTS_MAX", 3)
    effects = effects_of()
    effects.read(True, 5, outputs([1] * 10))
    assert effects.overflowed
    assert len(told(effects)) == 3


def test_of_a_fold_the_last_acknowledged_input_of_a_key_is_pending() -> None:
    effects = effects_of(shape="fold")
    for offset, value in enumerate((1, 2, 3)):
        event = Event(time_us=0, process=1, type=EventType.OK, function=Function.SEND, micro=(Send(IN, value, offset),))
        effects.record(event)
    assert (effects.pending, effects.done) == (1, 0)
    effects.read(True, 5, outputs([1, 2]))
    assert (effects.pending, effects.done) == (1, 0)
    effects.read(True, 5, outputs([3], begin=2))
    assert (effects.pending, effects.done) == (0, 3)


@pytest.mark.parametrize(
    ("fold", "payload", "result"),
    [
        ("count", b'{"id": "%s", "result": 7}', 7),
        ("sum", b'{"id": "%s", "result": "7"}', 7),
        ("sum", b'{"id": "%s", "result": 7.5}', -1),
        ("count", b'{"id": "%s"}', -1),
        ("count", b'{"id": "%s", "result": true}', -1),
        ("last", b'{"id": "%s", "result": "' + id_of(IN, 4).encode() + b'"}', 4),
        ("last", b'{"id": "%s", "result": "4"}', -1),
    ],
)
def test_an_output_of_a_fold_has_a_result(fold: str, payload: bytes, result: int) -> None:
    application = ApplicationPlan(command=("x",), shape="fold", fold=fold)  # type: ignore[arg-type]
    effects = Effects(application, 1, [IN], [OUT], Kept())
    effects.read(True, 5, [Fetched(OUT, 0, b"key-0", payload % id_of(IN, 1).encode())])
    assert told(effects) == [(EventType.OK, Effect(IN, 1, 0)), (EventType.INFO, Effect(IN, result, 0))]


def test_the_lines_of_a_sink_are_effects() -> None:
    application = ApplicationPlan(command=("x",), shape="none", effects=("x",))
    effects = Effects(application, 1, [IN], [SINK], Kept())
    effects.read_lines([f" {id_of(IN, 1)}", "of nothing"], 5)
    assert told(effects) == [(EventType.OK, Effect(IN, 1, 0)), (EventType.OK, Effect(IN, -1, 1))]
