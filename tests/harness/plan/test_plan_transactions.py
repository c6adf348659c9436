"""Plans whose workload writes in transactions: where they can run, and with which settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.ground.errors import PlanError
from harness.plan import Plan, parse_plan, read_plan
from workloads import IDEMPOTENCE

PLANS = Path(__file__).parents[3] / "plans"
IN_FLIGHT = "max.in.flight.requests.per.connection"
KAFKA = '[worlds.kafka]\nclient = "confluent-kafka"\n'


def plan(settings: str = "", world: str = KAFKA, name: str = "transactions") -> Plan:
    text = f'families = ["kill"]\n[settings]\n{settings}\n[workload]\nname = "{name}"\n{world}'
    return parse_plan(text, "p.toml")


def test_the_plan_of_transactions_has_both_isolations_under_three_families() -> None:
    runs = read_plan(PLANS / "transactions.toml").runs()
    assert len(runs) == 6
    assert {run.settings["isolation.level"] for run in runs} == {"read_committed", "read_uncommitted"}


def test_producers_of_transactions_are_idempotent_whatever_the_librarys_default_is() -> None:
    (run,) = plan().runs()
    assert run.settings[IDEMPOTENCE] is True
    assert run.client_defaults == (IDEMPOTENCE,)


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka", "java"])
def test_processes_have_transactions_with_every_client(client: str) -> None:
    (run,) = plan("transaction.version = 1", f'[worlds.processes]\nclient = "{client}"\n').runs()
    assert run.workload.name == "transactions"


@pytest.mark.parametrize(
    ("settings", "world", "words"),
    [
        ("acks = 1", KAFKA, 'transactions need acks="all"'),
        (f"{IDEMPOTENCE} = false", KAFKA, f"transactions need {IDEMPOTENCE}=true; take"),
        ("retries = 0", KAFKA, "which needs retries of at least 1, not 0"),
        (f"{IN_FLIGHT} = 7", KAFKA, f"which allows at most {IN_FLIGHT}=5, not 7"),
        (
            "transaction.timeout.ms = 5000",
            KAFKA,
            "delivery.timeout.ms=5000 is not less than transaction.timeout.ms=5000",
        ),
        ("", "[worlds.processes]\n", "transaction.version=2 is not what brokers of [worlds.processes] offer; write"),
    ],
)
def test_what_cannot_run_is_refused(settings: str, world: str, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan(settings, world)
    assert words in str(caught.value)
    assert caught.value.exit_code == 64


def test_a_choice_of_several_that_cannot_run_is_to_be_excluded() -> None:
    text = '[matrix]\nacks = ["all", 1]\n[workload]\nname = "transactions"\n[worlds.simulated]\n'
    with pytest.raises(
        PlanError, match=r"p.toml: matrix: transactions need .* or exclude the combination with \[\[matr"
    ):
        parse_plan(text, "p.toml")


def test_the_plan_of_pipelines_has_both_group_protocols_under_three_families() -> None:
    runs = read_plan(PLANS / "kafka-consume-transform-produce.toml").runs()
    assert len(runs) == 18
    assert {run.settings["group.protocol"] for run in runs} == {"classic", "consumer"}


@pytest.mark.parametrize(
    ("settings", "world", "words"),
    [
        ("", "[worlds.processes]\n", "transaction.version=2 is not what brokers of [worlds.processes] offer"),
        ("acks = 1", KAFKA, 'transactions need acks="all"'),
        ('commit.mode = "auto"', KAFKA, 'commit.mode="auto" is of the workload "groups"'),
        ('auto.offset.reset = "latest"', KAFKA, 'auto.offset.reset="latest" is of the workload "groups"'),
        ('cleanup.policy = "compact"', KAFKA, "expects every record to stay"),
        ('group.protocol = "consumer"', "[worlds.kafka]\n", "kafka-python has no group.protocol"),
    ],
)
def test_what_no_pipeline_can_do_is_refused(settings: str, world: str, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan(settings, world, "consume-transform-produce")
    assert words in str(caught.value)
    assert caught.value.exit_code == 64
