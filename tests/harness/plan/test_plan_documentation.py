"""docs/plans.md names every key that a plan may have, with its default, and every family of faults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.plan.reading import KEYS, WORLD_KEYS
from nemesis.plan import FaultPlan
from nemesis.scenarios import FAMILIES
from workloads.plan import WorkloadPlan

TEXT = (Path(__file__).parents[3] / "docs" / "plans.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("key", [*KEYS, *WORLD_KEYS, *FAMILIES])
def test_every_key_and_family_is_named(key: str) -> None:
    assert re.search(rf"`\[{{0,2}}(worlds\.)?{re.escape(key)}\b", TEXT), key


@pytest.mark.parametrize("plan", [WorkloadPlan(), FaultPlan()], ids=["workload", "faults"])
def test_every_number_has_its_default(plan: WorkloadPlan | FaultPlan) -> None:
    numbers = {name: getattr(plan, name) for name in plan.__struct_fields__}
    for name, value in numbers.items():
        if isinstance(value, int | float):
            assert f"`{name}` ({value:,})".replace(",", " ") in TEXT, name
