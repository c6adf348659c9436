"""The inventory of a plan: machines for nodes, and one sentence for what is wrong with it."""

import re

import pytest

from harness.ground.errors import PlanError
from harness.plan import Kafka, Machine, Ssh, parse_plan
from nemesis.cluster import CONTROLLER

FOUR = """
  { node = 0, address = "10.0.0.11" },
  { node = 1, address = "10.0.0.12", user = "root", sudo = false },
  { node = 2, address = "10.0.0.13", port = 2222 },
  { node = "controller", address = "10.0.0.14" },
"""


def plan(machines: str = FOUR, shared: str = 'user = "kafka"\nsudo = true', world: str = 'host = "ssh"') -> str:
    return f"[worlds.kafka]\n{world}\n[worlds.kafka.inventory]\n{shared}\nmachines = [{machines}]\n"


def test_machines_take_what_they_share_unless_they_say_otherwise() -> None:
    (run,) = parse_plan(plan(), "p.toml").runs()
    assert isinstance(run.world, Kafka)
    assert isinstance(run.world.host, Ssh)
    assert run.world.machines[0] == Machine(node=0, address="10.0.0.11", user="kafka", sudo=True)
    assert run.world.machines[1] == Machine(node=1, address="10.0.0.12", user="root")
    assert [machine.node for machine in run.world.machines] == [0, 1, 2, CONTROLLER]
    assert [machine.name for machine in run.world.machines][2:] == ["kafka@10.0.0.13:2222", "kafka@10.0.0.14"]


def test_three_controllers_need_three_machines() -> None:
    more = '{ node = 101, address = "10.0.0.15" }, { node = 102, address = "10.0.0.16" },'
    (run,) = parse_plan(plan(FOUR + more, world='host = "ssh"\ncontrollers = 3'), "p.toml").runs()
    assert [machine.node for machine in run.world.machines] == [0, 1, 2, 100, 101, 102]


def test_runs_on_machines_are_never_side_by_side() -> None:
    assert parse_plan(plan(), "p.toml").worlds[0].parallel == 1


WRONG = [
    (plan(FOUR.replace("node = 2", "node = 3")), "machines: node 3 does not exist; the plan has nodes 0, 1, 2, 100"),
    (plan(FOUR.replace("node = 2", "node = 1")), "machines: broker 1 has two machines"),
    (plan(FOUR.replace(".13", ".12")), "two nodes have the address 10.0.0.12; give every node a machine of its own"),
    (plan(FOUR.partition('{ node = "c')[0]), "machines: no machine is listed for the controller"),
    (plan(world='host = "ssh"\ncontrollers = 3'), "no machine is listed for controller 101, controller 102"),
    (plan(""), "no machine is listed for broker 0, broker 1, broker 2, the controller"),
    (plan(shared=""), r"machines\[0\]: this machine lacks user"),
    (plan(FOUR.replace("port", "prot")), r'machines\[2\].prot: unknown key "prot"; did you mean "port"?'),
    (plan(shared='user = "kafka"\nkeys = "x"'), 'inventory.keys: unknown key "keys"; did you mean "key"?'),
    (plan(FOUR.replace("2222", "9092")), "broker_port: the SSH server has this port, which must never be cut"),
    (plan(FOUR.replace("2222", "65536")), "port: 65536 is too large; the most is 65535: no port has a higher number"),
    (plan(FOUR.replace("10.0.0.11", "10.0.0.11; reboot")), "is not a host name or an IPv4 address"),
    (plan(FOUR.replace("10.0.0.11", "-oProxyCommand")), "is not a host name or an IPv4 address"),
    (plan(shared='user = "a b"'), 'user: "a b" is not the name of a user'),
    (plan(shared='user = "k"\ndirectory = "/"'), 'directory: "/" is not an absolute path'),
    (plan(shared='user = "k"\ndirectory = "/home/a,b"'), 'directory: "/home/a,b" is not an absolute path'),
    (plan(shared='user = "k"\nfingerprint = "MD5:00"'), "fingerprint: .* is not what ssh-keygen -lf writes"),
    (plan(world='host = "loopback"'), 'inventory: machines are for host = "ssh"; write that, or leave'),
    (plan(world='host = "ssh"\nparallel = 2'), "parallel: the machines of an inventory carry one run at a time"),
    (
        '[worlds.kafka]\nhost = "ssh"\n[worlds.kafka.inventory]\nmachines = 3\n',
        "machines: takes a list of tables",
    ),
    ('[worlds.processes]\nhost = "ssh"\n', "host: only Apache Kafka runs on machines over SSH"),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG)
def test_a_wrong_inventory_gets_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence.replace("?", r"\?")) as error:
        parse_plan(text, "p.toml")
    assert re.match(r"p\.toml: worlds\.(kafka|processes)\.", str(error.value))
    assert "\n" not in str(error.value)
