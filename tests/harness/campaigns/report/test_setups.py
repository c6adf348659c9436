"""The report names client, broker and versions, and says where a client does not do what the plan asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harness.campaigns.report.setups import Setup, dropped, setups_of
from harness.ground.observations import JvmPaused, Observation
from harness.plan import RunSpec
from harness.plan.reading import parse_plan
from harness.records.cluster_file import write_observations
from harness.records.run_record import Ended, RunRecord, write_record

PLAN = 'families = ["kill"]\n[matrix]\nacks = {acks}\n[worlds.{world}]\nruns = 1\n'
VERSIONS = {"kafka-python": "3.0.12", "ackproof": "0.1.0"}


def spec_of(world: str, acks: str = "[1]") -> list[RunSpec]:
    return parse_plan(PLAN.format(world=world, acks=acks), "plan.toml").runs()


def leave(directory: Path, spec: RunSpec, **producer: Any) -> Path:
    run = directory / spec.directory()
    run.mkdir(parents=True)
    configuration = {"producer": {"acks": spec.settings["acks"], **producer}, "broker": {"version": "4.3.1"}}
    write_record(run, spec, Ended(status="completed", configuration=configuration))
    return run


def test_client_broker_and_versions_are_named(tmp_path: Path) -> None:
    (setup,) = setups_of([leave(tmp_path, spec_of("kafka")[0])], VERSIONS)
    assert (setup.client, setup.broker) == ("kafka-python 3.0.12", "Apache Kafka 4.3.1")
    assert setup.nodes.startswith("3 brokers, 1 controller, kraft, host ")
    assert setup.notes == []


def test_libraries_that_take_turns_are_all_named(tmp_path: Path) -> None:
    more = {"library": "kafka-clients 3.9.2 (Java)", "libraries in turn": "java 3.9.2 and java 4.3.1"}
    (setup,) = setups_of([leave(tmp_path, spec_of("kafka")[0], **more)], VERSIONS)
    assert setup.client == "java 3.9.2 and java 4.3.1, in turn by the number of a client's process"


def test_the_reference_broker_and_the_models_of_clients_are_called_so(tmp_path: Path) -> None:
    (setup,) = setups_of([leave(tmp_path, spec_of("simulated")[0])], VERSIONS)
    assert setup.client == "models in virtual time, after kafka-python"
    assert (setup.broker, setup.notes) == ("the reference broker of ackproof 0.1.0", [])


def test_what_differs_between_runs_is_listed_with_all_its_values(tmp_path: Path) -> None:
    runs = [leave(tmp_path, spec) for spec in spec_of("kafka", '[1, "all"]')]
    (setup,) = setups_of(runs, VERSIONS)
    assert setup.varied == {"producer": {"acks": "1, all"}}


def test_a_setting_that_the_client_drops_is_said_plainly() -> None:
    (spec,) = spec_of("kafka")
    asked = msgspec.structs.replace(spec, settings=spec.settings | {"enable.idempotence": True})
    did = {
        "producer": {
            "acks": 1,
            "enable_idempotence": False,
            "delivery_timeout_ms": spec.settings["delivery.timeout.ms"],
        }
    }
    record = RunRecord.of(asked, Ended(status="completed", configuration=did))
    assert dropped(record) == ["enable.idempotence=true was asked for, and kafka-python worked with false."]


def test_the_same_value_under_another_name_is_no_difference() -> None:
    (spec,) = spec_of("kafka", '["all"]')
    did = {"producer": {"acks": -1, "message.timeout.ms": spec.settings["delivery.timeout.ms"]}}
    assert dropped(RunRecord.of(spec, Ended(status="completed", configuration=did))) == []


def test_runs_without_a_configuration_have_no_setup(tmp_path: Path) -> None:
    (spec,) = spec_of("kafka")
    write_record(tmp_path, spec, Ended(status="running"))
    setups: list[Setup] = setups_of([tmp_path], VERSIONS)
    assert setups == []


def test_long_pauses_of_java_are_counted_with_the_longest(tmp_path: Path) -> None:
    run = leave(tmp_path, spec_of("kafka")[0])
    reported = [Observation(1, node, JvmPaused(pause_ms=ms, cause="x")) for node, ms in ((0, 250), (2, 410))]
    write_observations(run, reported)
    (setup,) = setups_of([run], VERSIONS)
    assert "stood still 2 times for 200 ms or longer, once for 410 ms (node 2)." in setup.notes[-1]
