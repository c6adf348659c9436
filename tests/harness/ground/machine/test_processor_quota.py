"""A container may use fewer processors than it sees: the quotas of control groups, of both versions, count."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from harness.ground.machine import versions
from harness.ground.machine.processor_quota import quota


def quota_with(directory: Path, own_groups: str, files: dict[str, str]) -> float:
    (directory / "own").write_text(own_groups)
    for name, text in files.items():
        path = directory / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return quota(directory / "own", directory / "root")


@pytest.mark.parametrize(
    ("own_groups", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, math.inf),
        ("0::/\n", {}, math.inf),
        ("0::/a.slice/b\n", {"a.slice/b/cpu.max": "max 100000\n", "a.slice/cpu.max": "300000 100000\n"}, 3.0),
        ("0::/a.slice/b\n", {"a.slice/b/cpu.max": "50000 100000\n", "a.slice/cpu.max": "300000 100000\n"}, 0.5),
        ("0::/other\n", {"mine/cpu.max": "50000 100000\n"}, math.inf),
        ("0::/../../outside\n", {"cpu.max": "200000 100000\n"}, math.inf),
        (
            "3:cpu,cpuacct:/docker/1\n1:memory:/\n",
            {"cpu,cpuacct/cpu.cfs_quota_us": "200000\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"},
            2.0,
        ),
        (
            "3:cpu,cpuacct:/docker/1\n1:memory:/\n",
            {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            2.0,
        ),
        ("1:memory:/\n0::/x\n", {"unified/x/cpu.max": "50000 100000\n"}, 0.5),
        ("1:cpu:/\n0::/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, math.inf),
        (
            "1:cpu:/\n0::/x\n",
            {"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n", "unified/x/cpu.max": "max 1\n"},
            4.0,
        ),
        ("2:cpuset:/\n", {"cpuset/cpu.cfs_quota_us": "1\n", "cpuset/cpu.cfs_period_us": "1\n"}, math.inf),
        ("0::/\n", {"cpu.max": "damaged\n"}, math.inf),
        ("no group\n", {"cpu.max": "100000 100000\n"}, math.inf),
        ("0::/\n", {"cpu.max": "100000 0\n"}, math.inf),
    ],
)
def test_the_least_quota_of_the_groups_of_this_process_counts(
    tmp_path: Path, own_groups: str, files: dict[str, str], expected: float
) -> None:
    assert quota_with(tmp_path, own_groups, files) == expected


def test_a_machine_without_control_groups_has_no_quota(tmp_path: Path) -> None:
    assert quota(tmp_path / "none", tmp_path) == math.inf


@pytest.mark.parametrize(("allowed", "expected"), [(0.0, 1), (0.5, 1), (1.0, 1), (1.5, 2), (3.0, 3), (math.inf, 4)])
def test_cores_are_no_more_than_the_quota_and_at_least_one(
    monkeypatch: pytest.MonkeyPatch, allowed: float, expected: int
) -> None:
    monkeypatch.setattr(versions, "quota", lambda: allowed)
    monkeypatch.setattr(versions.os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert versions.cores() == expected
