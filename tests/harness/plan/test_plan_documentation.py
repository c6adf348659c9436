"""The examples of the page of plan keys are plans."""

from __future__ import annotations

import pytest

from harness.plan import parse_plan
from scripts.reference.plan_keys import EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=["matrix", "schedule"])
def test_an_example_is_a_plan(example: str) -> None:
    assert parse_plan(example, "example.toml").runs()
