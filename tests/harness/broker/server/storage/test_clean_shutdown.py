"""The mark that a clean stop leaves (rule 15)."""

from pathlib import Path

import pytest

from harness.broker.core.types import NONE
from harness.broker.server.storage.checkpoints import CleanShutdown


def test_the_mark_of_a_clean_stop_is_read_once(tmp_path: Path) -> None:
    assert CleanShutdown(tmp_path).take() == NONE
    CleanShutdown(tmp_path).write(17)
    assert CleanShutdown(tmp_path).take() == 17
    assert CleanShutdown(tmp_path).take() == NONE


@pytest.mark.parametrize("content", [b"", b"seventeen\n", b"\xff\xfe"])
def test_a_damaged_mark_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "clean-shutdown").write_bytes(content)
    assert CleanShutdown(tmp_path).take() == NONE
