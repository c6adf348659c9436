"""``replicas.parquet`` after runs: it holds what the disks hold, and old rules of truncation are caught by it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from checkers import REPLICAS_FILE, PartitionEnd, Verdict, check_one, read_replicas
from harness.campaigns.campaign.replaying import replay
from harness.plan import RunSpec
from harness.plan.reading import parse_plan
from harness.records import replica_dump
from harness.records.replica_dump import DumpedLog, ReplicaLogs, Stretch, write_replicas
from harness.runs.run.performing import perform_run

PLAN = """
families = ["{family}"]
[settings]
{settings}
[faults]
dead_brokers_max = 3
[worlds.{world}]
runs = 1
{more}
"""


def spec_of(family: str, settings: str, seed: int, world: str = "simulated", more: str = "") -> RunSpec:
    plan = parse_plan(PLAN.format(family=family, settings=settings, world=world, more=more), "plan.toml")
    (spec,) = plan.runs()
    return msgspec.structs.replace(spec, seed=seed)


def stretch(first: int, *values: int, epoch: int = 0) -> Stretch:
    count = len(values)
    return Stretch(np.arange(first, first + count), np.full(count, epoch), np.array(values, np.int64))


def rows(file: Path) -> list[tuple[object, ...]]:
    dump = read_replicas(file)
    assert dump is not None
    return [tuple(row.values())[:5] for row in dump[1].to_pylist()]


@pytest.mark.parametrize("rows_max", [1, 3, 1000])
def test_every_record_is_written_whatever_the_size_of_a_portion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    monkeypatch.setattr(replica_dump, "ROWS_MAX", rows_max)
    logs = [
        DumpedLog("t-0", 1, [stretch(0, 10, 11), stretch(2, 12, epoch=4)], []),
        DumpedLog("t-0", 2, [], ["torn"]),
        DumpedLog("t-1", 1, [stretch(7, -5)], []),
    ]
    ends = {"t-0": PartitionEnd(leader=1, isr=(1, 2), running=(1,), end_offset=3)}
    write_replicas(tmp_path, ends, ReplicaLogs(logs, {3: "gone"}))
    assert rows(tmp_path / REPLICAS_FILE) == [
        ("t-0", 1, 0, 0, 10),
        ("t-0", 1, 1, 0, 11),
        ("t-0", 1, 2, 4, 12),
        ("t-1", 1, 7, 0, -5),
    ]
    dump = read_replicas(tmp_path / REPLICAS_FILE)
    assert dump is not None
    read_ends = dump[0]
    assert (read_ends.partitions, read_ends.held) == (ends, {"t-0": [1, 2], "t-1": [1]})
    assert (read_ends.damage, read_ends.unreadable) == ({"t-0": {2: "torn"}}, {3: "gone"})


def test_a_world_without_disks_leaves_no_file(tmp_path: Path) -> None:
    write_replicas(tmp_path, {}, None)
    assert list(tmp_path.iterdir()) == []


def test_what_a_healed_run_acknowledged_to_all_is_on_every_disk(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert perform_run(spec_of("kill", 'acks = "all"\n"min.insync.replicas" = 2', seed=1), run).status == "completed"
    dump = read_replicas(run / REPLICAS_FILE)
    assert dump is not None
    ends, table = dump
    by_node = {node: [row[2:] for row in rows(run / REPLICAS_FILE) if row[1] == node] for node in (0, 1, 2)}
    assert by_node[0] == by_node[1] == by_node[2] != []
    assert sum(end.end_offset or 0 for end in ends.partitions.values()) * 3 == len(table)
    assert check_one(run / "history").replicas_compared == len(ends.partitions)


def test_what_acks_1_lost_is_destroyed_where_all_replicas_returned(tmp_path: Path) -> None:
    run = tmp_path / "run"
    perform_run(spec_of("partition", "acks = 1", seed=2), run)
    verdict = check_one(run / "history")
    assert {finding.fate for finding in verdict.anomalies["lost-write"]} == {"destroyed"}
    assert "divergent-replicas" not in verdict.counts


#: Brokers that truncate to their high watermark only, as before KIP-101, and all lose their power.
OLD = 'acks = 1\ntruncation = "high-watermark"'


def test_truncation_to_the_high_watermark_leaves_replicas_that_differ(tmp_path: Path) -> None:
    def reported(seed: int) -> Verdict:
        perform_run(spec_of("power", OLD, seed), tmp_path / str(seed))
        return check_one(tmp_path / str(seed) / "history")

    diverged = next(verdict for verdict in map(reported, range(60)) if verdict.counts.get("divergent-replicas"))
    assert diverged.valid is False


def test_a_replay_finds_the_same_replicas_also_of_a_run_that_had_not_written_them(tmp_path: Path) -> None:
    run = tmp_path / "run"
    perform_run(spec_of("kill", "acks = 1", seed=3), run)
    written = (run / REPLICAS_FILE).read_bytes()
    assert replay(run, tmp_path / "again").identical
    (run / REPLICAS_FILE).unlink()
    assert replay(run, tmp_path / "once more").identical
    assert (run / REPLICAS_FILE).read_bytes() == written


SHORT = "workload = { duration_ms = 4_000, writes_per_second = 50.0 }\nfaults = { count = 1 }"


@pytest.mark.system
def test_the_disks_of_real_processes_are_read(tmp_path: Path) -> None:
    run = tmp_path / "run"
    ended = perform_run(spec_of("kill", "acks = 1", seed=4, world="processes", more=SHORT), run)
    assert ended.status == "completed", ended.reason
    dump = read_replicas(run / REPLICAS_FILE)
    assert dump is not None
    ends, table = dump
    assert (ends.damage, ends.unreadable) == ({}, {})
    assert all(nodes == [0, 1, 2] for nodes in ends.held.values())
    assert len(table) == 3 * sum(end.end_offset or 0 for end in ends.partitions.values()) > 0
    assert check_one(run / "history").replicas_compared == len(ends.partitions)
