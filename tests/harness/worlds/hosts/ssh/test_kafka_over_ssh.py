"""Real Apache Kafka on machines over SSH, end to end: copied there, started, broken, brought home, judged, healed."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from checkers import check_one as check
from checkers import judge
from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    IsrChanged,
    LeaderElected,
)
from harness.plan import Kafka, RunSpec, Ssh
from harness.records.cluster_file import read_observations
from harness.records.files import HISTORY
from harness.records.journal import FILE_NAME, not_undone
from harness.runs.run.healing import heal
from harness.runs.run.performing import perform_run
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import MAIN
from nemesis.cluster import CONTROLLER
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [pytest.mark.system, pytest.mark.kafka, pytest.mark.root, pytest.mark.xdist_group("kafka-over-ssh")]
#: Copying, starting four nodes, on a machine that does something else besides.
BEGIN_LIMIT_S = 120.0

HARNESS = """
import sys
from pathlib import Path
import msgspec
from harness.runs.run.performing import perform_run
from harness.plan import RunSpec
perform_run(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=RunSpec), Path(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def kafka(farm, real_kafka: Installation) -> None:
    """The default release; there already on all machines but one, so that a run copies it once."""
    for node in (1, 2, CONTROLLER):
        libs = Path(farm.machine(node).directory) / "kafka" / str(real_kafka.version) / "libs"
        shutil.copytree(real_kafka.home / "libs", libs)


def spec(farm, families: tuple[str, ...], duration_ms: int, **settings: object) -> RunSpec:
    return RunSpec(
        world=Kafka(host=Ssh(farm.machines())),
        cell=f"cell/{'+'.join(families)}",
        family="+".join(families),
        settings=Settings.from_mapping({"min.insync.replicas": 2} | settings).to_mapping(),
        workload=WorkloadPlan(writes_per_second=40.0, duration_ms=duration_ms, drain_limit_ms=60_000),
        faults=FaultPlan(families=families, count=3),
        seed=11,
    )


@pytest.mark.usefixtures("kafka")
def test_kafka_on_machines_is_killed_frozen_and_cut_off_and_no_promise_is_broken(tmp_path: Path, farm) -> None:
    run_spec = spec(farm, ("kill", "pause"), 15_000, acks=1)
    run = tmp_path / "run"
    ended = perform_run(run_spec, run)
    assert ended.status == "completed", ended.reason
    judgement = judge(run_spec.chosen(), check(run / HISTORY))
    assert judgement.judged
    assert judgement.broken == {}
    took_effect = {fault.kind for fault in judgement.faults}
    assert {"partition", "kill", "pause"} <= took_effect
    reported = {type(seen.fact) for seen in read_observations(run)}
    assert {BecameLeader, BecameFollower, LeaderElected, IsrChanged, BrokerFenced, BrokerRegistered} <= reported
    for node in (0, 1, 2):
        assert list((run / "data" / str(node)).glob("*-0/*.log")), "the replicas' segments were brought home"
    assert not_undone(run / FILE_NAME) == []
    assert leftovers(farm) == []


@pytest.mark.usefixtures("kafka")
def test_a_harness_that_was_killed_leaves_nodes_which_heal_ends_once(tmp_path: Path, farm) -> None:
    run_spec = spec(farm, ("partition",), 60_000, acks="all")
    run, file = tmp_path / "run", tmp_path / "spec.json"
    file.write_bytes(msgspec.json.encode(run_spec))
    with subprocess.Popen([sys.executable, "-c", HARNESS, str(file), str(run)]) as harness:
        limit = time.monotonic() + BEGIN_LIMIT_S
        try:
            while not any("ackproof" in farm.tables(node) for node in (0, 1, 2)):
                assert time.monotonic() < limit
                assert harness.poll() is None
                time.sleep(0.1)
        finally:
            harness.send_signal(signal.SIGKILL)
    assert leftovers(farm) != []
    undone = heal(run)
    assert {line.split()[0] for line in undone} == {"ssh-process", "ssh-rules", "ssh-directory"}
    assert leftovers(farm) == []
    assert (run / "data" / "0").is_dir()
    assert heal(run) == []


def leftovers(farm) -> list[str]:
    """Nodes that live, rules that stand, and directories of runs, on all machines."""
    words = [process.info["cmdline"] or [""] for process in psutil.process_iter(["cmdline"])]
    left = [" ".join(line) for line in words if MAIN in line and str(farm.directory) in line[-1]]
    for machine in farm.machines():
        left += [line for line in farm.tables(machine.node).splitlines() if "ackproof" in line]
        left += [str(path) for path in Path(machine.directory).glob("runs/*")]
    return left
