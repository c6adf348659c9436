"""A plan that names a program as its client."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.campaigns.campaign.stages import world_runs
from harness.ground.errors import PlanError
from harness.plan import ClientProgram, Kafka, Processes, RunSpec, read_plan

COMMAND = ("node", "my client.js")


def plan_with(client: str, directory: Path, world: str = "processes") -> RunSpec:
    file = directory / "plan.toml"
    file.write_text(f"[worlds.{world}]\nclient = {client}\n")
    return read_plan(file).runs()[0]


@pytest.mark.parametrize(("name", "world"), [("processes", Processes), ("kafka", Kafka)])
def test_a_world_has_a_program_as_its_client_and_its_record_too(
    name: str, world: type[Processes | Kafka], tmp_path: Path
) -> None:
    run = plan_with('{ command = ["node", "my client.js"] }', tmp_path, name)
    assert run.world == world(client=ClientProgram(command=COMMAND))
    assert msgspec.json.decode(msgspec.json.encode(run), type=RunSpec) == run
    assert world_runs(run.world, 1).client == "node 'my client.js'"


def test_a_program_s_producers_are_idempotent_only_where_the_plan_says_so(tmp_path: Path) -> None:
    assert plan_with('{ command = ["node"] }', tmp_path).chosen().enable_idempotence is False
    assert plan_with('"kafka-python"', tmp_path).chosen().enable_idempotence is True


@pytest.mark.parametrize(
    ("client", "problem"),
    [
        ("{ command = [] }", "client.command: takes a list of at least one entry; each is a string that is not empty"),
        ('{ command = [""] }', "client.command: takes a list of at least one entry"),
        ('{ command = "node client.js" }', "client.command: takes a list of at least one entry"),
        ("{}", 'client: command is missing; write { command = ["python3", "client.py"] }'),
        ('{ program = ["node"] }', 'unknown key "program"'),
        ('"franz-go"', 'client: takes one of "kafka-python", "confluent-kafka", "java"'),
        ('"librdkafka"', 'librdkafka is used by "confluent-kafka"'),
    ],
)
def test_what_is_no_client_is_a_sentence(client: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError) as raised:
        plan_with(client, tmp_path)
    assert problem in str(raised.value)


def test_a_release_is_for_the_client_java_only(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r'client_version: it is for client = "java"'):
        plan_with('{ command = ["node"] }\nclient_version = "4.3.1"', tmp_path)
