"""The plans beside the example applications can be read, and what they start is there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from harness.plan import read_plan

ROOT: Final = Path(__file__).parents[3]
PLANS: Final = sorted((ROOT / "examples" / "applications").glob("*.toml"))


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_a_plan_of_an_example_starts_a_program_that_is_there_for_a_minute(file: Path) -> None:
    (world,) = read_plan(file).worlds
    application = world.workload.application
    assert application is not None
    programs = [word for word in application.command if word.endswith((".py", ".java"))]
    assert len(programs) == 1
    assert (ROOT / programs[0]).is_file()
    assert world.workload.duration_ms == 60_000


def test_every_kind_of_example_has_a_plan() -> None:
    assert [file.stem for file in PLANS] == [
        "aiokafka", "quixstreams", "spark", "streams-at-least-once", "streams-exactly-once",
    ]  # fmt: skip
