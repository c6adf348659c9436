"""``cluster.jsonl``: every kind of fact comes back as it was written, and what 0.1.0 wrote is still read."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile
from typing import get_args

import msgspec

from harness.ground import observations
from harness.ground.observations import (
    Acknowledged,
    BecameLeader,
    BrokerFenced,
    ControllerStarted,
    Fact,
    JvmPaused,
    LeaderElected,
    NodeCrashed,
    Observation,
    Truncated,
)
from harness.records.cluster_file import read_observations, write_observations
from harness.records.files import CLUSTER_FILE

OF_0_1_0 = Path(__file__).parent / "data" / "cluster-0.1.0.jsonl"


def test_facts_come_back_as_they_were_written(tmp_path: Path) -> None:
    facts: list[Fact] = [
        BecameLeader(partition="t-0", leader_epoch=0, isr=()),
        BecameLeader(partition="t-0"),
        LeaderElected(partition="t-1", leader=-1, leader_epoch=3, isr=(1, 2), elr=(0,), unclean=True),
        BrokerFenced(broker=0, broker_epoch=3),
        ControllerStarted(),
        JvmPaused(pause_ms=300, cause="GC"),
        NodeCrashed(exit="signal 9", words="the last"),
    ]
    written = [Observation(number, 1, fact) for number, fact in enumerate(facts)]
    write_observations(tmp_path, written)
    assert list(read_observations(tmp_path)) == written
    assert [seen.partition for seen in written] == ["t-0", "t-0", "t-1", None, None, None, None]


def test_lines_of_0_1_0_are_read_with_every_field(tmp_path: Path) -> None:
    copyfile(OF_0_1_0, tmp_path / CLUSTER_FILE)
    seen = list(read_observations(tmp_path))
    lines = [msgspec.json.decode(line) for line in OF_0_1_0.read_bytes().splitlines()]
    assert len(seen) == len(lines)
    for observation, line in zip(seen, lines, strict=True):
        reported = msgspec.to_builtins(observation.fact)
        assert (observation.time_us, observation.node, observation.partition) == (
            line["time_us"],
            line["node"],
            line["partition"],
        )
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in line["facts"].items()}
        assert {name: getattr(observation.fact, name) for name in line["facts"]} == given
        assert reported["what"] == line["what"]
    assert {Acknowledged, Truncated, LeaderElected} <= {type(observation.fact) for observation in seen}


def test_what_a_kill_tore_is_left_out(tmp_path: Path) -> None:
    whole = OF_0_1_0.read_bytes().splitlines(keepends=True)
    (tmp_path / CLUSTER_FILE).write_bytes(b"".join([*whole[:2], b'{"time_us": 7', b"\n", b"18\n", whole[2][:-9]]))
    assert len(list(read_observations(tmp_path))) == 2
    assert list(read_observations(tmp_path / "nowhere")) == []


def test_every_fact_stands_in_the_union_under_a_tag_of_its_own() -> None:
    declared = {
        kind
        for name, kind in vars(observations).items()
        if isinstance(kind, type) and issubclass(kind, observations._Fact) and not name.startswith("_")
    }
    assert declared == set(get_args(Fact))
    assert len({kind.__struct_config__.tag for kind in declared}) == len(declared)
