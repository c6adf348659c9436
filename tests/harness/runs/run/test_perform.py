"""The files that one performed run leaves in its directory."""

import io
from pathlib import Path

import msgspec
import pytest

from harness.ground.choices import Choices
from harness.ground.errors import ResultsError
from harness.plan import RunSpec, Simulated
from harness.records.run_record import read_record
from harness.runs.run.performing import perform_run, read_choices, write_choices
from nemesis.plan import FaultPlan
from workloads.history import export_jsonl
from workloads.plan import WorkloadPlan


def spec(**settings: object) -> RunSpec:
    return RunSpec(
        world=Simulated(),
        cell="cell/kill",
        family="kill",
        settings=settings,
        workload=WorkloadPlan(duration_ms=1_000, writes_per_second=5.0),
        faults=FaultPlan(families=("kill",), count=0),
        seed=1,
    )


def test_a_run_is_performed_again_from_its_recorded_choices(tmp_path: Path) -> None:
    run_spec = msgspec.structs.replace(spec(), faults=FaultPlan(families=("kill", "partition")))
    run_spec = msgspec.structs.replace(run_spec, workload=WorkloadPlan(duration_ms=8_000, writes_per_second=20.0))
    choices = Choices(run_spec.seed)
    perform_run(run_spec, tmp_path / "first", choices=choices)
    write_choices(tmp_path / "first", choices)
    recorded = read_choices(tmp_path / "first" / "choices.json")
    other_seed = msgspec.structs.replace(run_spec, seed=99)
    perform_run(other_seed, tmp_path / "again", choices=recorded)
    first, again = (exported(tmp_path / name / "history") for name in ("first", "again"))
    assert first == again
    assert first.count(b"\n") > 100


def test_choices_of_another_run_end_it_with_a_reason(tmp_path: Path) -> None:
    ended = perform_run(spec(), tmp_path / "run", choices=Choices(1, {}))
    assert ended.status == "harness-failed"
    assert "recorded choices end after 0" in str(ended.reason)


@pytest.mark.parametrize("content", [b'{"seed": 1}', b"{", b'{"seed": 1, "streams": {"a": ["b"]}}'])
def test_what_is_no_recording_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "choices.json").write_bytes(content)
    with pytest.raises(ResultsError, match=r"choices.json cannot be read .*name a choices.json"):
        read_choices(tmp_path / "choices.json")


def exported(history: Path) -> bytes:
    text = io.BytesIO()
    export_jsonl(history, text)
    return text.getvalue()


def test_run_json_says_what_clients_and_brokers_really_worked_with(tmp_path: Path) -> None:
    perform_run(spec(**{"acks": 1, "linger.ms": 7, "truncation": "kip-101"}), tmp_path / "run")
    configuration = read_record(tmp_path / "run").ended.configuration
    assert configuration is not None
    assert (configuration["producer"]["acks"], configuration["producer"]["linger_ms"]) == (1, 7)
    assert configuration["consumer"]["fetch_max_wait_ms"] == 500
    assert configuration["broker"]["truncation"] == "kip-101"
    assert configuration["broker"]["replica_fetch_max_bytes"] > 0
