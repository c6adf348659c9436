"""Reading brokers' disks: segment files as both brokers leave them, damaged ones too."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from crc32c import crc32c
from kafka.record import MemoryRecordsBuilder
from kafka.record.default_records import DefaultRecordBatchBuilder

from checkers import TransactionPart
from harness.records.replica_dump import DumpedLog
from harness.worlds.real.direct_access import stored_log
from harness.worlds.replica_logs import batches_in, content_of, flip, logs_on_disks
from workloads import PAYLOAD_HEADER
from workloads.values import encode

KEY = b"k"


def batch(base: int, *sequences: int, epoch: int = 0, partition: str = "t-0", compression: int = 0) -> bytes:
    """A batch as a broker stores it: its base offset and leader epoch stand outside the checksum."""
    builder = MemoryRecordsBuilder(2, compression, 1 << 20)
    for sequence in sequences:
        builder.append(timestamp=1, key=KEY, value=encode(partition, KEY, sequence))
    builder.close()
    data = bytearray(builder.buffer())
    struct.pack_into(">q", data, 0, base)
    struct.pack_into(">i", data, 12, epoch)
    return bytes(data)


def write(directory: Path, node: int, name: str, *segments: bytes) -> None:
    log_directory = directory / str(node) / name
    log_directory.mkdir(parents=True)
    for number, content in enumerate(segments):
        (log_directory / f"{number:020d}.log").write_bytes(content)


def dumped_logs(directory: Path, *brokers: int) -> list[DumpedLog]:
    logs = logs_on_disks(directory, brokers, "t")
    assert logs is not None
    return list(logs.logs)


def records(log: DumpedLog) -> list[tuple[int, int, int]]:
    """(offset, epoch, value) of everything in a log."""
    return [row for part in log.stretches for row in zip(*(column.tolist() for column in part[:3]), strict=True)]


@pytest.mark.parametrize("compression", [0, 1])
def test_records_are_read_from_every_segment_with_their_epochs(tmp_path: Path, compression: int) -> None:
    first, second = batch(0, 5, 6, compression=compression), batch(2, 7, epoch=3, compression=compression)
    write(tmp_path, 1, "t-0", first, second)
    (log,) = dumped_logs(tmp_path, 1)
    assert (log.partition, log.node) == ("t-0", 1)
    assert records(log) == [(0, 0, 5), (1, 0, 6), (2, 3, 7)]
    assert log.damage == []


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_before_0_11_are_read_and_a_damaged_one_is_named(tmp_path: Path, magic: int) -> None:
    messages = [message(offset, offset + 5, magic) for offset in range(3)]
    write(tmp_path, 1, "t-0", b"".join(messages))
    damaged = bytearray(messages[1])
    damaged[-1] ^= 1
    write(tmp_path, 2, "t-0", messages[0] + damaged + messages[2] + bytes(100))
    whole, broken = dumped_logs(tmp_path, 1, 2)
    assert records(whole) == [(0, -1, 5), (1, -1, 6), (2, -1, 7)]
    assert whole.damage == []
    assert records(broken) == [(0, -1, 5), (2, -1, 7)]
    assert broken.damage[0] == f"00000000000000000000.log holds a damaged batch at byte {len(messages[0])}"


def message(offset: int, sequence: int, magic: int) -> bytes:
    """A single message as brokers stored it before batches (KIP-98)."""
    builder = MemoryRecordsBuilder(magic, 0, 1 << 20)
    builder.append(timestamp=1, key=KEY, value=encode("t-0", KEY, sequence))
    builder.close()
    data = bytearray(builder.buffer())
    struct.pack_into(">q", data, 0, offset)
    return bytes(data)


def transactional(base: int, *written: tuple[bytes, bytes | None, list[tuple[str, bytes]]], control: int = 0) -> bytes:
    """A batch of producer 7 in a transaction; with the bit ``control`` set, a marker."""
    builder = DefaultRecordBatchBuilder(2, 0, True, 7, 3, 0, 1 << 20)
    for number, (key, value, headers) in enumerate(written):
        builder.append(number, 1, key, value, headers)
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, base)
    data[22] |= control
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


def test_keys_tombstones_producers_and_markers_are_read(tmp_path: Path) -> None:
    key, tombstone = b"key-4", (PAYLOAD_HEADER, encode("t-0", b"key-4", 6))
    data = transactional(0, (key, encode("t-0", key, 5), []), (key, None, [tombstone]))
    markers = [
        transactional(base, (struct.pack(">hh", 0, kind), b"", []), control=0x20) for base, kind in ((2, 1), (3, 0))
    ]
    write(tmp_path, 0, "t-0", data, *markers, batch(4, 8))
    (log,) = dumped_logs(tmp_path, 0)
    stretches = list(log.stretches)
    facts = [row for s in stretches if s.facts for row in zip(*(c.tolist() for c in s.facts), strict=True)]
    assert log.damage == []
    assert [offset for part in stretches for offset in part.of_records().offsets] == [0, 1, 4]
    assert [offset for part in stretches for offset in part.offsets] == [0, 1, 2, 3, 4]
    assert [value for part in stretches for value in part.values if value >= 0] == [5, 6, 8]
    assert [row[:4] for row in facts[:4]] == [(4, 0, 7, 3), (4, 1, 7, 3), (-1, 0, 7, 3), (-1, 0, 7, 3)]
    assert [row[4] for row in facts] == [
        TransactionPart.IN_TRANSACTION,
        TransactionPart.IN_TRANSACTION,
        TransactionPart.COMMIT,
        TransactionPart.ABORT,
        TransactionPart.RECORD,
    ]


def test_both_brokers_names_of_directories_are_known_and_no_others(tmp_path: Path) -> None:
    for name in ("t-0", "t-1@7", "t-2.0a1b-delete", "tt-0", "t-x", "__cluster_metadata-0"):
        write(tmp_path, 0, name, b"")
    assert [log.partition for log in dumped_logs(tmp_path, 0)] == ["t-0", "t-1"]


def test_a_torn_tail_ends_the_log_and_is_told(tmp_path: Path) -> None:
    whole = batch(0, 5)
    write(tmp_path, 0, "t-0", whole + batch(1, 6)[:-3])
    (log,) = dumped_logs(tmp_path, 0)
    assert records(log) == [(0, 0, 5)]
    assert log.damage == [f"{0:020d}.log holds no whole batch at byte {len(whole)} of {2 * len(whole) - 3}"]


def test_zeros_after_a_loss_of_power_end_the_log(tmp_path: Path) -> None:
    write(tmp_path, 0, "t-0", batch(0, 5) + bytes(4096))
    (log,) = dumped_logs(tmp_path, 0)
    assert records(log) == [(0, 0, 5)]
    assert len(log.damage) == 1


def test_a_damaged_batch_holds_nothing_and_what_follows_it_is_read(tmp_path: Path) -> None:
    damaged = bytearray(batch(1, 6))
    damaged[-2] ^= 1
    write(tmp_path, 0, "t-0", batch(0, 5) + bytes(damaged) + batch(2, 7))
    (log,) = dumped_logs(tmp_path, 0)
    assert records(log) == [(0, 0, 5), (2, 0, 7)]
    assert len(log.damage) == 1


def test_an_empty_log_and_a_missing_disk_are_different(tmp_path: Path) -> None:
    write(tmp_path, 0, "t-0", b"")
    logs = logs_on_disks(tmp_path, (0, 1), "t")
    assert logs is not None
    assert [records(log) for log in logs.logs] == [[]]
    assert list(logs.unreadable) == [1]


def test_no_disk_in_reach_is_no_answer(tmp_path: Path) -> None:
    assert logs_on_disks(tmp_path, (0, 1), "t") is None


def test_a_record_that_is_not_sound_for_its_place_has_no_value() -> None:
    payload = encode("t-0", KEY, 5)
    assert content_of(payload, "t-0", KEY) == 5
    unsound = [content_of(payload, "t-1", KEY), content_of(payload, "t-0", b"other"), content_of(b"?", "t-0", KEY)]
    assert all(value < -1 for value in [*unsound, content_of(None, "t-0", None)])
    assert unsound[1] != unsound[2]


@pytest.mark.parametrize(("ended", "end", "stable_end"), [(False, 3, 1), (True, 4, 4)])
def test_the_first_open_transaction_of_a_log_is_the_end_of_what_is_stable(
    tmp_path: Path, *, ended: bool, end: int, stable_end: int
) -> None:
    marker = transactional(3, (struct.pack(">hh", 0, 1), b"", []), control=0x20)
    parts = [batch(0, 4), transactional(1, (KEY, encode("t-0", KEY, 5), [])), batch(2, 6), *([marker] if ended else [])]
    write(tmp_path, 0, "t-0", b"".join(parts))
    log = stored_log(tmp_path / "0" / "t-0", "t-0")
    assert [(record.offset, record.value) for record in log.records] == [(0, 4), (1, 5), (2, 6)]
    assert (log.end, log.stable_end) == (end, stable_end)


def test_a_damaged_batch_has_no_records_and_belongs_to_the_log_as_its_broker_counts_it(tmp_path: Path) -> None:
    write(tmp_path, 0, "t-0", batch(0, 4) + batch(1, 5, 6))
    directory = tmp_path / "0" / "t-0"
    flip([*batches_in(directory)][-1])
    log = stored_log(directory, "t-0")
    assert [record.offset for record in log.records] == [0]
    assert (log.end, log.stable_end) == (3, 3)
