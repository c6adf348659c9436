import os
from bisect import bisect_right
from itertools import accumulate, count
from pathlib import Path

import pytest
from batch_maker import batch
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.broker.core.log import Log, MemoryLog
from harness.broker.server.storage.batches import whole
from harness.broker.server.storage.log import FileLog


def fill(log: Log, batches: int, *, records: int = 1, epoch: int = 0) -> None:
    for _ in range(batches):
        log.append(batch(log.end_offset, records, epoch=epoch, value=b"v%d" % log.end_offset))


def contents(log: Log) -> list[tuple[int, int, int, bytes]]:
    return [(b.base_offset, b.count, b.leader_epoch, b.records[61:]) for b in reads(log, log.start_offset)]


def reads(log: Log, offset: int):
    while batches := log.read(offset, log.end_offset, 500):
        yield from batches
        offset = batches[-1].next_offset


@pytest.fixture(params=["memory", "file"])
def log(request, tmp_path):
    return MemoryLog() if request.param == "memory" else FileLog(tmp_path / "log")


# --- what every log does --------------------------------------------------------------------------------------------


def test_a_log_returns_what_was_appended_from_any_offset(log):
    fill(log, 30, records=2)
    for offset in range(60):
        first = log.read(offset, 60, 1)
        assert len(first) == 1
        assert first[0].base_offset == offset - offset % 2
    assert log.end_offset == 60
    assert log.read(60, 60, 1000) == [] or log.read(60, 60, 1000) == ()


def test_a_read_ends_before_the_limit_and_returns_one_batch_however_large(log):
    fill(log, 3, records=4)
    assert [b.base_offset for b in log.read(0, 8, 10_000)] == [0, 4]
    assert [b.base_offset for b in log.read(0, 7, 10_000)] == [0]
    assert list(log.read(0, 3, 10_000)) == []
    assert [b.base_offset for b in log.read(5, 12, 1)] == [4]


def test_truncation_inside_a_batch_drops_the_whole_batch(log):
    fill(log, 4, records=3)
    log.truncate_to(7)
    assert log.end_offset == 6
    fill(log, 1)
    assert [b.base_offset for b in reads(log, 0)] == [0, 3, 6]


def test_epochs_are_learnt_from_batches_and_forgotten_with_them(log):
    fill(log, 2, epoch=1)
    fill(log, 2, epoch=4)
    log.start_epoch(6, 4)
    assert list(log.epochs()) == [(1, 0), (4, 2), (6, 4)]
    log.start_epoch(5, 4)
    assert list(log.epochs()) == [(1, 0), (4, 2), (6, 4)]
    log.start_epoch(8, 4)
    assert list(log.epochs()) == [(1, 0), (4, 2), (8, 4)]
    log.truncate_to(3)
    assert list(log.epochs()) == [(1, 0), (4, 2)]
    log.truncate_to(0)
    assert list(log.epochs()) == []


def test_flushed_follows_the_end_only_when_told_and_never_passes_it(log):
    fill(log, 3)
    log.flush()
    fill(log, 2)
    assert (log.flushed_offset, log.end_offset) == (3, 5)
    log.truncate_to(1)
    assert (log.flushed_offset, log.end_offset) == (1, 1)


def test_a_log_starts_again_elsewhere(log):
    fill(log, 9, epoch=2)
    log.reset_to(100)
    assert (log.start_offset, log.end_offset, list(log.epochs())) == (100, 100, [])
    assert log.checkpointed_high_watermark() == 100
    fill(log, 2, epoch=3)
    assert [b.base_offset for b in reads(log, 100)] == [100, 101]


def test_a_batch_that_does_not_follow_is_refused(log):
    fill(log, 2, epoch=3)
    with pytest.raises(ValueError, match="does not follow"):
        log.append(batch(5, epoch=3))
    with pytest.raises(ValueError, match="epoch"):
        log.append(batch(2, epoch=2))


BOTH = {
    "truncate": lambda log, number: log.truncate_to(number),
    "flush": lambda log, _: log.flush(),
    "reset": lambda log, number: log.reset_to(number),
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 1)),
        st.tuples(st.just("truncate"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("epoch"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("flush"), st.just(0), st.just(0)),
        st.tuples(st.just("reset"), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("kill"), st.just(0), st.just(0)),
        st.tuples(st.just("close"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_files_and_memory_hold_the_same_log_also_after_kills_and_stops(steps, tmp_path_factory):
    directory = tmp_path_factory.mktemp("model") / "log"
    model, log, epoch, sequences = MemoryLog(), FileLog(directory), 0, count()
    for step, number, bump in steps:
        if step == "append":
            epoch += bump
            sequence = next(sequences)
            for each in (model, log):
                each.append(batch(each.end_offset, number, epoch=epoch, producer=(5 + bump, 0, sequence)))
        elif step == "epoch":
            epoch += number
            for each in (model, log):
                each.start_epoch(epoch, each.end_offset)
        elif step in BOTH:
            for each in (model, log):
                BOTH[step](each, number)
        else:
            if step == "close":
                log.close()
            log = FileLog(directory)
            assert log.damage is None
        assert contents(log) == contents(model)
        assert (log.start_offset, log.end_offset) == (model.start_offset, model.end_offset)
        assert list(log.epochs()) == list(model.epochs())
        assert log.flushed_offset <= log.end_offset
        assert same_producers(log, model)


def same_producers(log: Log, model: Log) -> bool:
    """Producers are the same, but for the times, which only records in files have."""
    mine, others = (
        [replace(kept, records=b"", stamped_us=-1) for kept in each.producers.batches()] for each in (log, model)
    )
    return mine == others


# --- what files add -------------------------------------------------------------------------------------------------


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def test_a_torn_tail_is_cut_at_the_last_whole_batch_wherever_it_tears(tmp_path):
    log = FileLog(tmp_path / "log")
    fill(log, 3)
    [file] = files(tmp_path / "log")
    content, size = file.read_bytes(), len(whole(batch(0, value=b"v0")))
    for torn in range(2 * size + 1, 3 * size):
        file.write_bytes(content[:torn])
        recovered = FileLog(tmp_path / "log")
        assert recovered.end_offset == 2
        assert recovered.damage is not None
        assert file.stat().st_size == 2 * size


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_flipped_byte_ends_the_log_before_its_batch(data, tmp_path_factory):
    directory = tmp_path_factory.mktemp("flip") / "log"
    log = FileLog(directory)
    fill(log, 40)
    expected = contents(log)
    [file] = files(directory)
    content = bytearray(file.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    damaged_from = bisect_right(list(accumulate(b.size_bytes for b in reads(log, 0))), position)
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    file.write_bytes(content)
    recovered = FileLog(directory)
    kept = contents(recovered)
    if recovered.damage is None:  # the leader epoch is outside the checksum (KIP-101)
        assert len(kept) == len(expected)
    else:
        assert kept == expected[:damaged_from]
    fill(recovered, 3, epoch=max(e for e, _ in recovered.epochs()) if recovered.epochs() else 0)
    assert FileLog(directory).end_offset == len(kept) + 3


def test_after_a_clean_stop_nothing_is_checked_and_after_a_kill_everything_is(tmp_path):
    log = FileLog(tmp_path / "log")
    fill(log, 3)
    log.close()
    [file] = files(tmp_path / "log")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert FileLog(tmp_path / "log").end_offset == 3  # the marker is gone now
    assert FileLog(tmp_path / "log").end_offset == 2


def test_producers_are_known_again_after_a_start_and_after_a_truncation(tmp_path):
    log = FileLog(tmp_path / "log")
    for number in range(40):
        log.append(batch(number, producer=(9, 0, number)))
    again = FileLog(tmp_path / "log")
    assert [b.base_offset for b in reads(again, 0)] == list(range(40))
    assert [b.base_sequence for b in again.producers.batches()] == [35, 36, 37, 38, 39]
    again.truncate_to(12)
    assert [b.base_sequence for b in again.producers.batches()] == [7, 8, 9, 10, 11]


def test_the_high_watermark_and_epochs_survive(tmp_path):
    log = FileLog(tmp_path / "log")
    fill(log, 3, epoch=2)
    log.start_epoch(5, 3)
    log.checkpoint_high_watermark(2)
    again = FileLog(tmp_path / "log")
    assert again.checkpointed_high_watermark() == 2
    assert list(again.epochs()) == [(2, 0), (5, 3)]


def test_an_offset_is_found_by_the_time_of_its_batch(tmp_path):
    log = FileLog(tmp_path / "log")
    fill(log, 3, records=4)  # timestamps 1000 to 1003 in each
    assert log.first_at(1003, 12).base_offset == 0
    assert log.first_at(1004, 12) is None
    assert log.first_at(1000, 3) is None


@settings(max_examples=30, deadline=None)
@given(
    times=st.lists(st.integers(0, 50), min_size=1, max_size=60),
    cut=st.integers(0, 60),
    reopen=st.sampled_from(["no", "killed", "stopped"]),
)
def test_the_search_by_time_finds_what_reading_everything_finds(times, cut, reopen, tmp_path_factory):
    directory = tmp_path_factory.mktemp("times") / "log"
    log = FileLog(directory)
    for time_ms in times:
        log.append(batch(log.end_offset, value=b"x" * 2_500, time_ms=time_ms))
    log.truncate_to(cut)
    if reopen != "no":
        if reopen == "stopped":
            log.close()
        log = FileLog(directory)
    kept = times[: log.end_offset]
    for wanted in range(52):
        first = log.first_at(wanted, log.end_offset)
        expected = next((offset for offset, time_ms in enumerate(kept) if time_ms >= wanted), None)
        assert (None if first is None else first.base_offset) == expected


def test_the_search_by_time_reads_one_batch(tmp_path, monkeypatch):
    log = FileLog(tmp_path / "log")
    for time_ms in range(500):
        log.append(batch(time_ms, value=b"x" * 2_000, time_ms=time_ms))
    read = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, position: read.append(size) or pread(fd, size, position))
    for wanted in (0, 77, 250, 499, 500):
        log.first_at(wanted, 500)
    assert len(read) == 4
    assert max(read) < 2_200


def test_a_full_disk_appends_nothing(tmp_path, monkeypatch):
    log = FileLog(tmp_path / "log")
    fill(log, 2)
    writev = os.writev
    monkeypatch.setattr(os, "writev", lambda fd, pieces: writev(fd, [b"".join(pieces)[:40]]))
    with pytest.raises(OSError, match="make room"):
        fill(log, 1)
    monkeypatch.undo()
    assert log.end_offset == 2
    fill(log, 1)
    assert FileLog(tmp_path / "log").end_offset == 3


def test_memory_holds_numbers_of_batches_and_no_records(tmp_path):
    log = FileLog(tmp_path / "log")
    made = batch(0, 1, value=b"x" * 900, producer=(1, 0, 0))
    for number in range(3_000):
        log.append(type(made)(made.count, made.size_bytes, made.records, number, 0, number % 20, 0, number // 20))
    kept = log.producers.batches()
    assert len(kept) == 20 * 5
    assert not any(b.records for b in kept)
    assert [b.base_offset for b in log.read(1_234, 3_000, 3_000)] == [1_234, 1_235, 1_236]
