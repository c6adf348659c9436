"""The examples of the page of plan keys are plans, and its tables leave no key out."""

from __future__ import annotations

import pytest

from harness.plan import BOUNDS, parse_plan
from scripts.reference.plan_keys import EXAMPLES, plan_keys


@pytest.mark.parametrize("example", EXAMPLES, ids=["matrix", "schedule"])
def test_an_example_is_a_plan(example: str) -> None:
    assert parse_plan(example, "example.toml").runs()


def test_every_bound_is_on_the_page() -> None:
    page = plan_keys()
    assert [name for name in BOUNDS if f"`{name}`" not in page] == []
