"""A log partition and its name."""

from __future__ import annotations

import pytest

from workloads import LogPartition


@pytest.mark.parametrize(("name", "parts"), [("t-0", ("t", 0)), ("a-b-12", ("a-b", 12))])
def test_a_name_is_read_as_it_is_written(name: str, parts: tuple[str, int]) -> None:
    assert LogPartition.named(name) == parts
    assert str(LogPartition(*parts)) == name


@pytest.mark.parametrize("name", ["t", "t-", "t-x", "7", ""])
def test_another_name_is_refused_with_what_to_write(name: str) -> None:
    with pytest.raises(ValueError, match="write topic-number"):
        LogPartition.named(name)
