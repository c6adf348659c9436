"""Plans of the usual advice give each client its library's own defaults, and all of them the same faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from kafka import KafkaProducer

from harness.assess.client_settings import effective
from harness.assess.configuration import Client
from harness.ground.choices import Choices
from harness.ground.known_defects import Library
from harness.plan import Kafka, Plan, plans_here, read_plan, require_kind
from harness.runs.run import planned
from workloads import Settings, spelled

PLANS: Final = plans_here()
#: The name of a library's client in a plan.
CLIENTS: Final[Mapping[Library, str]] = {
    "java": "java",
    "kafka-python": "kafka-python",
    "librdkafka": "confluent-kafka",
}
USUAL_ADVICE: Final = {name: f"kafka-usual-advice-{name}" for name in CLIENTS}


def plan_of(name: str) -> Plan:
    return read_plan(PLANS[name])


def settings_of_clients(plan: Plan) -> dict[str, str]:
    """The properties that the plan's first cell gives its producers, as files spell it."""
    settings = plan.runs()[0].settings
    return {name: spelled(settings[name]) for name in Settings.scoped("client")}


@pytest.mark.parametrize(
    ("library", "name", "given"),
    [
        *((library, name, {}) for library, name in USUAL_ADVICE.items()),
        ("librdkafka", "kafka-idempotent-librdkafka", {"enable.idempotence": "true"}),
        ("java", "kafka-flushed", {}),
        ("java", "kafka-weaker", {"acks": "0"}),
    ],
)
def test_everything_but_what_the_plan_is_about_has_the_clients_own_default(
    library: Library, name: str, given: dict[str, str]
) -> None:
    plan = plan_of(name)
    (world,) = plan.worlds
    assert require_kind(world.world, Kafka).client == CLIENTS[library]
    defaults = effective(Client(name="", library=library, settings=given))
    told = settings_of_clients(plan)
    decisive = defaults.keys() & told.keys()
    assert {"acks", "enable.idempotence", "delivery.timeout.ms", "linger.ms", "retries"} <= decisive
    assert {name: told[name] for name in decisive} == {name: defaults[name] for name in decisive}


def test_batches_are_as_large_as_kafka_python_makes_them() -> None:
    told = settings_of_clients(plan_of(USUAL_ADVICE["kafka-python"]))
    assert told["batch.size"] == str(KafkaProducer.DEFAULT_CONFIG["batch_size"])


def test_all_clients_are_given_the_same_faults() -> None:
    schedules = [
        [(run.cell, run.seed, run.workload, planned(run, Choices(run.seed).draw)) for run in plan_of(name).runs()]
        for name in USUAL_ADVICE.values()
    ]
    assert schedules[0]
    assert all(other == schedules[0] for other in schedules)
