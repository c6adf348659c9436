"""Plans for clusters that exist already."""

import pytest

from harness.ground.errors import PlanError
from harness.plan import Kafka, parse_plan

SERVERS = 'bootstrap = ["kafka-1.example:9092", "[::1]:9093"]'


def plan(world: str = SERVERS, head: str = "", name: str = "kafka") -> str:
    return f'{head}\nfamilies = ["move"]\n[worlds.{name}]\nhost = "existing"\n{world}\n'


def test_every_run_has_the_servers_and_a_topic_of_its_own():
    runs = parse_plan(plan(f'runs = 3\n{SERVERS}\nworkload.topic = "mine"'), "p.toml").runs()
    assert {run.world.bootstrap for run in runs} == {("kafka-1.example:9092", "[::1]:9093")}
    assert [run.workload.topic for run in runs] == [f"mine-{run.seed}" for run in runs]
    assert len({run.workload.topic for run in runs}) == 3


def test_a_seed_of_ones_own_names_the_topic_too():
    run = parse_plan(plan(), "p.toml").single(None, None, 77)
    assert (run.seed, run.workload.topic) == (77, "ackproof-77")


def test_topics_elsewhere_are_called_as_the_plan_says():
    (run,) = parse_plan('families = ["move"]\n[worlds.kafka]\n', "p.toml").runs()
    assert (run.workload.topic, run.world) == ("ackproof", Kafka())


def test_a_cluster_that_serves_others_carries_one_run_at_a_time_unless_the_plan_says_more():
    assert parse_plan(plan(), "p.toml").worlds[0].parallel == 1
    assert parse_plan(plan(f"{SERVERS}\nparallel = 2"), "p.toml").worlds[0].parallel == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (plan(""), 'worlds.kafka: host = "existing" needs bootstrap'),
        ('[worlds.kafka]\nhost = "commands"\n', 'worlds.kafka: host = "commands" needs bootstrap'),
        (plan("bootstrap = []"), "worlds.kafka.bootstrap: this list is empty"),
        (plan('bootstrap = "kafka-1:9092"'), "worlds.kafka.bootstrap: takes a list"),
        (
            plan('bootstrap = ["kafka-1"]'),
            'worlds.kafka.bootstrap: "kafka-1" is not the address of a server; write "host:port"',
        ),
        (plan("bootstrap = [9092]"), "worlds.kafka.bootstrap: 9092 is not the address of a server"),
        (plan('bootstrap = ["a b:1"]'), "is not the address of a server"),
        (plan('bootstrap = ["kafka-1:0"]'), "port 0 of"),
        (plan('bootstrap = ["kafka-1:65536"]'), "ports go from 1 to 65535"),
        (plan('bootstraps = ["kafka-1:9092"]'), 'unknown key "bootstraps"; did you mean "bootstrap"?'),
        (plan(f'version = "4.1.1"\n{SERVERS}'), "worlds.kafka.version: a cluster that exists already has its own"),
        (plan(f"controllers = 3\n{SERVERS}"), "worlds.kafka.controllers: a cluster that exists already has its own"),
        (plan(f'{SERVERS}\nworkload.topic = "{"t" * 201}"'), "is too long for a run to add its seed"),
        (plan(name="processes"), "only Apache Kafka clusters can exist already"),
        (plan(name="simulated"), "the simulated world is one process and has no hosts"),
        (f"[worlds.kafka]\n{SERVERS}\n", 'servers are for host = "existing"'),
    ],
)
def test_a_plan_that_cannot_be_run_gets_its_sentence(text, sentence):
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "p.toml")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
