"""The list of mutations fits the source as it is, so that it cannot rot between two runs of them all."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from scripts.mutations import MUTATIONS, Mutation

ROOT: Final = Path(__file__).parent.parent


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.file}-{mutation.wrong}")
def test_a_mutation_changes_one_text_that_stands_once_and_asks_tests_that_are_there(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.right) == 1
    assert mutation.wrong != mutation.right
    assert mutation.tests
    for asked in mutation.tests:
        file, _, name = asked.partition("::")
        assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")
