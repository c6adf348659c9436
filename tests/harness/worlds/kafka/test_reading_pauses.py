"""Pauses of Java that are long enough to explain a time-out are reported, with their begin and their cause."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from harness.ground.observations import JvmPaused, Observation
from harness.worlds.kafka.jvm import pauses_in

BEGIN_US = round(datetime(2026, 11, 21, 10, 33, 40, tzinfo=UTC).timestamp()) * 1_000_000
HEAD = "[2026-11-21T10:33:{}+0000][info][safepoint   ] Safepoint "
LONG = HEAD + '"GenCollectForAllocation", Time since last: 1113431140 ns, Reaching safepoint: 2954 ns, Total: {} ns\n'


def test_long_pauses_are_told_from_their_begin_short_ones_and_those_before_the_run_are_not(tmp_path: Path) -> None:
    (tmp_path / "gc-1.log").write_text(
        LONG.format("39.900", 900_000_000)
        + LONG.format("42.279", 131_618_516)
        + "[2026-11-21T10:33:42.279+0000][info][gc,cpu      ] GC(0) User=0.02s Sys=0.00s Real=0.13s\n"
        + LONG.format("43.500", 412_999_000)
    )
    shown = JvmPaused(pause_ms=412, cause="GenCollectForAllocation")
    assert pauses_in(tmp_path, BEGIN_US) == [Observation(3_500_000 - 412_999, 1, shown)]


def test_every_start_of_a_node_is_read_in_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "gc-100.log").write_text(LONG.format("50.000", 200_000_000))
    (tmp_path / "gc-100.log.00").write_text(LONG.format("45.000", 300_000_000))
    (tmp_path / "gc-100.log.txt").write_text(LONG.format("46.000", 300_000_000))
    assert [seen.fact.pause_ms for seen in pauses_in(tmp_path, BEGIN_US)] == [300, 200]


def test_no_logs_of_collections_no_pauses(tmp_path: Path) -> None:
    assert pauses_in(tmp_path, BEGIN_US) == []
