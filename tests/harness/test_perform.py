"""What one performed run leaves in its directory."""

from pathlib import Path

from harness.plan import RunSpec
from harness.records.run_record import read_record
from harness.run.perform import perform
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan


def spec(**settings: object) -> RunSpec:
    return RunSpec(
        world="simulated",
        cell="cell/kill",
        family="kill",
        settings=settings,
        workload=WorkloadPlan(duration_ms=1_000, writes_per_second=5.0),
        faults=FaultPlan(families=("kill",), count=0),
        seed=1,
    )


def test_run_json_says_what_clients_and_brokers_really_worked_with(tmp_path: Path) -> None:
    perform(spec(**{"acks": 1, "linger.ms": 7, "truncation": "kip-101"}), tmp_path / "run")
    configuration = read_record(tmp_path / "run").ended.configuration
    assert configuration is not None
    assert (configuration["producer"]["acks"], configuration["producer"]["linger_ms"]) == (1, 7)
    assert configuration["consumer"]["fetch_max_wait_ms"] == 500
    assert configuration["broker"]["truncation"] == "kip-101"
    assert configuration["broker"]["replica_fetch_max_bytes"] > 0
