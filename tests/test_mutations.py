"""The mutations can be made: each has its line once, and tests that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.file}: {mutation.wrong}")
def test_the_line_of_a_mutation_is_there_once_and_so_are_its_tests(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.right) == 1
    assert mutation.right != mutation.wrong
    assert [path for path in mutation.tests if not (ROOT / path).exists()] == []


def test_there_are_at_least_twenty_of_many_rooms() -> None:
    assert len(MUTATIONS) >= 20
    assert len({Path(mutation.file).parent for mutation in MUTATIONS}) >= 10
