"""`ackproof upgrade` as far as the plan that it makes, and what it refuses before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from harness.cli.app import exit_code_of
from harness.cli.upgrade import UpgradeRequest
from harness.ground.errors import EXIT_PLAN, PlanError
from harness.plan import Kafka, Plan, require_kind

USUAL: dict[str, Any] = {
    "from_": "3.9.2",
    "to": "4.3.1",
    "beside": "kill+partition",
    "end": "finalize",
    "by": "restart",
    "host": "loopback",
    "client": "confluent-kafka",
    "brokers": 3,
    "controllers": "1",
    "duration_ms": 60_000,
    "seed": 7,
}


def plan(settings: dict[str, object] | None = None, changes: dict[str, object] | None = None, **options: Any) -> Plan:
    return UpgradeRequest(**USUAL | options).plan(settings or {}, changes or {})


def test_the_plan_has_one_run_of_an_upgrade_beside_the_faults() -> None:
    made = plan({"acks": 1}, {"num.io.threads": 4}, controllers="3")
    (run,) = made.runs()
    world = require_kind(run.world, Kafka)
    assert (world.version, world.upgrade_to, world.controllers) == ("3.9.2", "4.3.1", 3)
    assert world.change == (("num.io.threads", "4"),)
    assert run.family == "upgrade+kill+partition"
    assert (run.settings["acks"], run.settings["min.insync.replicas"]) == (1, 2)
    assert (made.seed, run.workload.duration_ms) == (7, 60_000)


def test_nodes_are_replaced_where_that_is_wanted() -> None:
    (run,) = plan(by="move-and-replace", controllers="3").runs()
    assert require_kind(run.world, Kafka).upgrade_by == "move-and-replace"


def test_clients_of_several_libraries_take_turns() -> None:
    (run,) = plan(client="java", other_client=("java:4.3.1",)).runs()
    assert require_kind(run.world, Kafka).other_clients == (("java", "4.3.1"),)


def test_without_a_release_and_without_faults_it_is_a_rolling_restart() -> None:
    (run,) = plan(to=None, beside="").runs()
    assert run.family == "upgrade"
    assert require_kind(run.world, Kafka).upgrade_to == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["4.3.1", "3.9.2"], "has features that 3.9.2 does not know"),
        (["3.9", "4.3.1"], "is not a version of Apache Kafka"),
        (["3.9.2", "4.3.1", "--beside", "nope"], "unknown fault family"),
        (["3.9.2", "4.3.1", "--change", "node.id=3"], "the harness finds nodes by node.id"),
        (["2.8.0", "2.8.1"], "is started with ZooKeeper here"),
        (["4.3.98", "4.3.99"], "Apache Kafka 4.3.98 is not in"),
        (["3.9.2", "4.3.1", "--end", "never"], "unknown end"),
        (["3.9.2", "4.3.1", "--duration-ms", "1"], "exceed --duration-ms=1; raise --duration-ms or"),
        (["3.9.2", "4.3.1", "--by", "replace"], "a controller that leaves needs others that stay"),
        ([], "Missing argument 'FROM'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    words: list[str], sentence: str, capfd: pytest.CaptureFixture[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(["upgrade", *words]) != 0
    assert sentence in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("empty", ["from_", "to"])
def test_a_release_that_a_shell_left_empty_is_no_rolling_restart(empty: str) -> None:
    with pytest.raises(PlanError, match="one of them is empty"):
        plan(**{empty: ""})


def test_a_wrong_release_has_the_exit_code_of_a_wrong_plan() -> None:
    assert exit_code_of(["upgrade", "4.3.1", "3.9.2"]) == EXIT_PLAN
