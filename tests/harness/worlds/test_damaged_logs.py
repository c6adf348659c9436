"""The files of a log as a fault on a disk finds them: of the reference broker and of Kafka, whole and cut off."""

from pathlib import Path

import pytest

from harness.broker.server import FileLog
from harness.broker.server.storage.segment_files import BatchLocation
from harness.worlds.replica_logs import StoredBatch, batches_in, flip, log_directory, read_again, recovery_point
from tests.harness.broker.server.batch_maker import batch


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Six batches of two records, after an unclean stop."""
    directory = tmp_path / "t-0@7"
    written = FileLog(directory)
    for number in range(6):
        written.append(batch(2 * number, 2))
    return directory


def test_a_logs_directory_is_found_under_its_name_with_and_without_an_identity(tmp_path: Path) -> None:
    for name in ("t-1@3", "t-10", "t-2-delete", "u-1"):
        (tmp_path / name).mkdir()
    assert log_directory(tmp_path, "t-1") == tmp_path / "t-1@3"
    assert log_directory(tmp_path, "t-10") == tmp_path / "t-10"
    assert log_directory(tmp_path, "t-2") is None


def test_batches_are_found_in_the_order_of_their_offsets(log: Path) -> None:
    batches = list(batches_in(log))
    assert [batch.location.base_offset for batch in batches] == [0, 2, 4, 6, 8, 10]


def test_zeroes_behind_the_last_batch_and_torn_ones_are_no_batches(log: Path) -> None:
    last = sorted(log.glob("*.log"))[-1]
    count = len(list(batches_in(log)))
    with last.open("ab") as file:
        file.write(bytes(500))
    assert len(list(batches_in(log))) == count
    last.write_bytes(last.read_bytes()[:-501])
    assert len(list(batches_in(log))) == count - 1


def test_recovery_ends_the_log_at_the_batch_with_the_changed_byte(log: Path) -> None:
    chosen = [batch for batch in batches_in(log) if read_again(batch)][-1]
    before = chosen.file.read_bytes()
    position, old_byte, new_byte = flip(chosen)
    after = chosen.file.read_bytes()
    assert [index for index in range(len(before)) if before[index] != after[index]] == [position]
    assert (before[position], after[position]) == (old_byte, new_byte)
    recovered = FileLog(log)
    assert recovered.end_offset == chosen.location.base_offset
    assert recovered.damage is not None


def test_kafka_keeps_recovery_points_of_all_partitions_in_one_file(tmp_path: Path) -> None:
    directory = tmp_path / "my-topic-0"
    directory.mkdir()
    assert recovery_point(directory) == 0
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n2\nmy-topic 1 5\nmy-topic 0 42\n")
    assert recovery_point(directory) == 42
    for base in (0, 40, 60):
        (directory / f"{base:020d}.log").write_bytes(b"")
    answers = [
        read_again(StoredBatch(directory / f"{base:020d}.log", BatchLocation(0, 70, base))) for base in (0, 40, 60)
    ]
    assert answers == [False, True, True]
