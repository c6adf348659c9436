"""A coordinator's word about a group, and what counts as none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self

import pytest
from kafka.errors import KafkaProtocolError

from harness.worlds.clients import EMPTY, group_state

ADDRESS = ("127.0.0.1", 1)


def answering(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    class Connection:
        def __init__(self, *_: object) -> None:
            if isinstance(answer, OSError):
                raise answer

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def ask(self, _: object) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return SimpleNamespace(groups=[SimpleNamespace(group_id=name, group_state=state) for name, state in answer])

    monkeypatch.setattr("harness.worlds.clients.listed_groups.DirectConnection", Connection)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ([("other", "Stable"), ("mine", EMPTY)], EMPTY),
        ([("mine", "Stable")], "Stable"),
        ([("other", EMPTY)], None),
        ([], None),
        (ConnectionRefusedError(), None),
        (KafkaProtocolError(), None),
    ],
)
def test_a_state_is_that_of_the_group_and_none_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, answer: Any, state: str | None
) -> None:
    answering(monkeypatch, answer)
    assert group_state(ADDRESS, "mine", 1.0) == state
