"""``run.json``: what is written is read again, and what version 0.1.0 wrote is read as this version's."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.ground.errors import ResultsError
from harness.plan import (
    AnyWorld,
    Existing,
    Kafka,
    Loopback,
    Machine,
    Namespaces,
    Processes,
    RunSpec,
    Security,
    Simulated,
    Ssh,
)
from harness.records.files import RUN_FILE
from harness.records.run_record import Ended, read_record, recorded_world, write_record
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

MACHINE = Machine(node=0, address="10.0.0.11", user="kafka")
SECURITY = Security(protocol="SSL", ca="/etc/ca.pem")
WORLDS = (
    Simulated(),
    Processes(host=Namespaces(), client="confluent-kafka"),
    Kafka(version="3.9.1", mode="zookeeper"),
    Kafka(controllers=3, host=Ssh((MACHINE,))),
    Existing(bootstrap=("kafka-1:9092",), security=SECURITY),
)
#: The fields that version 0.1.0 wrote into every run, whatever its world.
USUAL = {
    "controllers": 1,
    "mode": "kraft",
    "host": "loopback",
    "version": "",
    "client": "kafka-python",
    "machines": [],
    "bootstrap": [],
    "security": {"protocol": "PLAINTEXT"},
}
OLD: list[tuple[dict[str, Any], AnyWorld]] = [
    ({"world": "simulated"}, Simulated()),
    ({"world": "processes"}, Processes()),
    ({"world": "processes", "host": "namespaces", "client": "confluent-kafka"}, WORLDS[1]),
    ({"world": "kafka", "version": "3.9.1", "mode": "zookeeper"}, WORLDS[2]),
    ({"world": "kafka", "controllers": 3, "host": "ssh", "machines": [msgspec.to_builtins(MACHINE)]}, WORLDS[3]),
    ({"world": "kafka", "host": "existing", "bootstrap": ["kafka-1:9092"],
      "security": {"protocol": "SSL", "ca": "/etc/ca.pem"}}, WORLDS[4]),
]  # fmt: skip


def spec(world: AnyWorld) -> RunSpec:
    plans = {"settings": Settings().to_mapping(), "workload": WorkloadPlan(), "faults": FaultPlan()}
    return RunSpec(world=world, cell="cell/kill", family="kill", seed=7, **plans)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_a_record_is_read_as_it_was_written(tmp_path: Path, world: AnyWorld) -> None:
    write_record(tmp_path, spec(world), Ended(status="completed", wall_ms=3))
    record = read_record(tmp_path)
    assert (record.spec(), record.ended) == (spec(world), Ended(status="completed", wall_ms=3))


@pytest.mark.parametrize(("fields", "world"), OLD)
def test_the_world_of_an_earlier_version_is_found_in_its_nine_fields(
    tmp_path: Path, fields: dict[str, Any], world: AnyWorld
) -> None:
    earlier = msgspec.to_builtins(spec(Simulated())) | USUAL | fields | {"ended": {"status": "completed"}}
    (tmp_path / RUN_FILE).write_bytes(msgspec.json.encode(earlier))
    assert read_record(tmp_path).spec() == spec(world)
    assert recorded_world(tmp_path) == world


@pytest.mark.parametrize("content", ["{}", '{"world": 3}', '{"world": "moon"}', '{"world": {"kind": "moon"}}', "["])
def test_what_names_no_world_is_no_run(tmp_path: Path, content: str) -> None:
    (tmp_path / RUN_FILE).write_text(content)
    with pytest.raises(ResultsError, match=r"run\.json cannot be read"):
        recorded_world(tmp_path)


def test_impossible_pairs_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="the controller is one of the brokers"):
        Kafka(mode="zookeeper", controllers=3)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"kind": "processes", "host": {"kind": "ssh", "machines": []}}, AnyWorld)


def test_every_world_answers_what_is_asked_of_all() -> None:
    assert [world.name for world in WORLDS] == ["simulated", "processes", "kafka", "kafka", "kafka"]
    assert [world.host_name for world in WORLDS] == [None, "namespaces", "loopback", "ssh", "existing"]
    assert [world.virtual_time for world in WORLDS] == [True, False, False, False, False]
    assert [world.reference for world in WORLDS] == [True, True, False, False, False]
    assert [world.elsewhere for world in WORLDS] == [False, False, False, True, True]
    assert [world.parallel for world in WORLDS] == [None, 3, 3, 1, 1]
    assert [world.topic("t", 7) for world in WORLDS] == ["t", "t", "t", "t", "t-7"]
    assert Loopback().name == "loopback"
