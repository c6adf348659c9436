"""Rolling upgrades in plans: what is read, and what Kafka does not have and is refused in a sentence."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from harness.campaigns.campaign.stages import world_runs
from harness.ground.errors import PlanError
from harness.plan import Kafka, parse_plan, require_kind
from harness.runs.run.scheduled import rollout_of
from harness.worlds.kafka import with_one_library

PLAN = 'families = ["upgrade+kill"]\n[worlds.kafka]\n'


def steps(keys: str, family: str = "upgrade+kill") -> list[tuple[int, bool | str]]:
    text = PLAN.replace("upgrade+kill", family) + keys
    (run,) = parse_plan(text, "p.toml").runs()
    return [(step.node, getattr(step.fault, "back", step.fault.kind)) for step in rollout_of(run)]


def test_controllers_come_first_and_the_features_last() -> None:
    forth = [(100, False), (0, False), (1, False), (2, False)]
    assert steps('version = "3.9.2"\nupgrade_to = "4.3.1"\n') == [*forth, (100, "finalize")]
    assert steps('version = "3.9.2"\nupgrade_to = "4.3.1"\nupgrade_end = "leave"\n') == forth
    assert steps("change = { num.io.threads = 8 }\n") == forth
    assert steps("", "upgrade") == forth
    assert steps("", "kill") == []


def test_every_node_goes_back_in_the_reverse_order_without_a_last_step() -> None:
    back = steps('version = "4.0.0"\nupgrade_to = "4.3.1"\nupgrade_end = "back"\ncontrollers = 3\n')
    nodes = [100, 101, 102, 0, 1, 2]
    assert back == [*((node, False) for node in nodes), *((node, True) for node in reversed(nodes))]


def test_controllers_leave_the_voters_before_they_are_replaced_and_brokers_the_replicas_if_that_is_wanted() -> None:
    keys = 'version = "3.9.2"\nupgrade_to = "4.3.1"\ncontrollers = 3\nupgrade_end = "leave"\nupgrade_by = "{}"\n'

    def taken(way: str) -> list[tuple[int, str]]:
        (run,) = parse_plan(PLAN + keys.format(way), "p.toml").runs()
        return [(step.node, step.fault.kind) for step in rollout_of(run)]

    controllers = [(node, kind) for node in (100, 101, 102) for kind in ("leave", "replace", "join")]
    assert taken("replace") == [*controllers, *((node, "replace") for node in (0, 1, 2))]
    brokers = [(node, kind) for node in (0, 1, 2) for kind in ("leave", "replace", "join")]
    assert taken("move-and-replace") == [*controllers, *brokers]


def test_libraries_that_take_turns_are_named_with_the_release_of_the_java_client() -> None:
    keys = 'client = "java"\nclient_version = "3.9.2"\nother_clients = ["java:4.3.1", "confluent-kafka"]'
    world = require_kind(parse_plan(PLAN + keys, "p.toml").worlds[0].world, Kafka)
    assert world.other_clients == (("java", "4.3.1"), ("confluent-kafka", ""))
    alone = [(variant.client, variant.client_version) for variant in with_one_library(world)]
    assert alone == [("java", "3.9.2"), ("java", "4.3.1"), ("confluent-kafka", "")]
    assert world_runs(world, 1).other_clients == ("java:4.3.1", "confluent-kafka")
    assert world_runs(Kafka(), 1).other_clients is UNSET


def test_a_given_schedule_has_every_fault_of_its_run() -> None:
    given = '\n[[schedule]]\nbegin_ms = 1_000\nend_ms = 9_000\nfault = "upgrade"\nbroker = 1\n'
    assert steps(given, "upgrade") == []


def test_a_changed_setting_is_written_as_kafka_has_it() -> None:
    plan = parse_plan(PLAN + 'change = { "num.io.threads" = 8, log.cleaner.enable = false }\n', "p.toml")
    world = require_kind(plan.worlds[0].world, Kafka)
    assert world.change == (("num.io.threads", "8"), ("log.cleaner.enable", "false"))


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ('version = "3.9.2"\nupgrade_to = "4.x"', r'"4\.x" is not a version of Apache Kafka'),
        ('upgrade_to = "4.3.1"', "write version too"),
        ('version = "4.3.1"\nupgrade_to = "3.9.2"', r'has features that 3\.9\.2 does not know; .* write'),
        ('version = "3.9.2"\nmode = "zookeeper"\nupgrade_to = "4.3.1"', "cannot be upgraded here"),
        ('change = { "node.id" = 7 }', r"the harness finds nodes by node\.id"),
        ('change = { "min.insync.replicas" = 1 }', r"follows from min\.insync\.replicas.*\[settings\]"),
        ('upgrade_by = "replace"', "a controller that leaves needs others that stay; write controllers = 3"),
        ('version = "3.8.1"\nupgrade_by = "replace"\ncontrollers = 3', r"controllers of 3\.8\.1 cannot leave their"),
        ('other_clients = ["kcat"]', r'other_clients\[0\].*takes one of "kafka-python"'),
        ('other_clients = ["kafka-python:3"]', 'only the client java has releases to choose.*write "kafka-python"'),
        ('other_clients = ["java:new"]', '"new" is not a version of Apache Kafka'),
        ('upgrade_by = "magic"', 'takes one of "restart", "replace", "move-and-replace"'),
        ('upgrade_end = "never"', 'takes one of "finalize", "back", "leave"'),
        ('host = "existing"\nbootstrap = ["b:9092"]\nupgrade_to = "4.3.1"', "a cluster that exists already has"),
    ],
)  # fmt: skip
def test_an_upgrade_that_cannot_be_is_refused(keys: str, sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        parse_plan(PLAN + keys, "p.toml")


def test_a_step_within_one_minor_release_may_go_down() -> None:
    assert steps('version = "4.3.1"\nupgrade_to = "4.3.0"\n')


def test_an_upgrade_that_no_family_does_is_refused() -> None:
    with pytest.raises(PlanError, match=r'no family performs one; write "upgrade"'):
        parse_plan('families = ["kill"]\n[worlds.kafka]\nversion = "3.9.2"\nupgrade_to = "4.3.1"\n', "p.toml")


@pytest.mark.parametrize("world", ["simulated", "processes"])
def test_only_nodes_of_kafka_are_upgraded(world: str) -> None:
    with pytest.raises(PlanError, match="only nodes of the kafka world can be upgraded"):
        parse_plan(f'families = ["upgrade"]\n[worlds.{world}]\nupgrade_to = "4.3.1"\n', "p.toml")
