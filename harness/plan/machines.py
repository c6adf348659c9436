"""The machines of a plan, the only ones that the harness contacts, and their tables.

``[worlds.kafka.inventory]`` has what all machines share, and the list ``machines``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

import msgspec

from harness.plan.bounds import PORT
from harness.plan.values import PlanKey, Table, form, keys_of, known_keys, record_of, tables_at
from nemesis.cluster import CONTROLLER

KNOWN_HOSTS: Final = "~/.ssh/known_hosts"
#: A place on other machines, where runs get directories of their own.
DIRECTORY: Final = "/var/tmp/ackproof"  # noqa: S108 - on other machines
# Words that go into command lines, class paths and rules of a firewall: so no character of them may be special.
_ADDRESS: Final = form(re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252})"), "is not a host name or an IPv4 address")
_USER: Final = form(re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}"), "is not the name of a user")
_FINGERPRINT: Final = form(
    re.compile(r"(SHA256:[A-Za-z0-9+/]{43})?"), 'is not what ssh-keygen -lf writes: "SHA256:" and 43 letters'
)
_PATH: Final = form(
    re.compile(r"(/[A-Za-z0-9._@+-]+){2,}"), 'is not an absolute path like "/var/tmp/ackproof", without blanks'
)
_PROGRAM: Final = form(re.compile(r"[A-Za-z0-9._/@+-]+"), "is not a program's name or path, without blanks")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, which carries one node."""

    node: int
    """The broker's number, or `"controller"`."""
    address: Annotated[str, _ADDRESS]
    """A name or an IPv4 address, at which the other nodes and the clients reach it too."""
    user: Annotated[str, _USER]
    """The user of its SSH server."""
    port: Annotated[int, PORT] = 22
    """The port of its SSH server."""
    key: str = ""
    """The file of the private key; by default the keys of the SSH agent."""
    fingerprint: Annotated[str, _FINGERPRINT] = ""
    """The fingerprint of its host key, as `ssh-keygen -l` writes it (SHA256:...); by default `known_hosts` decides."""
    known_hosts: str = KNOWN_HOSTS
    """The file in which its host key must be."""
    sudo: bool = False
    """nftables needs `sudo -n` on it."""
    directory: Annotated[str, _PATH] = DIRECTORY
    """The directory of the harness on it."""
    broker_port: Annotated[int, PORT] = 9_092
    """The port of its node."""
    java: Annotated[str, _PROGRAM] = "java"
    """Its Java program."""

    @property
    def name(self) -> str:
        """Its name in sentences: ``ackproof@10.0.0.11``, with the port where it is not the usual one."""
        return f"{self.user}@{self.address}" + ("" if self.port == 22 else f":{self.port}")


#: The keys that machines cannot share.
OWN_KEYS: Final = ("node", "address")
#: The word for the controller's number.
CONTROLLER_WORD: Final = "controller"


def machines_in(table: Table, nodes: Sequence[int], plan_key: PlanKey) -> tuple[Machine, ...]:
    """The machines of a table ``inventory``."""
    known_keys(table, [*(key for key in keys_of(Machine) if key not in OWN_KEYS), "machines"], plan_key)
    same = {name: value for name, value in table.items() if name != "machines"}
    machines = tuple(_machine({**same, **entry}, key) for key, entry in tables_at(table, "machines", plan_key))
    _one_machine_a_node(machines, nodes, plan_key / "machines")
    return machines


def _machine(table: Table, plan_key: PlanKey) -> Machine:
    known_keys(table, keys_of(Machine), plan_key)
    if missing := [name for name, key in keys_of(Machine).items() if key.required and name not in table]:
        raise plan_key.wrong(f"this machine lacks {' and '.join(missing)}; add {missing[0]} = ...")
    named = {"node": CONTROLLER} if table["node"] == CONTROLLER_WORD else {}
    machine = record_of(Machine, {**table, **named}, plan_key)
    if machine.port == machine.broker_port:
        raise (plan_key / "broker_port").wrong("the SSH server has this port, which must never be cut; choose another")
    return machine


def _one_machine_a_node(machines: Iterable[Machine], wanted: Sequence[int], plan_key: PlanKey) -> None:
    by_node: dict[int, Machine] = {}
    by_address: dict[str, Machine] = {}
    for machine in machines:
        if machine.node not in wanted:
            raise plan_key.wrong(
                f"node {machine.node} does not exist; the plan has nodes {', '.join(map(str, wanted))} "
                f'("{CONTROLLER_WORD}" is {CONTROLLER})'
            )
        if machine.node in by_node:
            raise plan_key.wrong(f"{_called(machine.node)} has two machines; leave one out")
        if machine.address in by_address:
            raise plan_key.wrong(f"two nodes have the address {machine.address}; give every node a machine of its own")
        by_node[machine.node] = by_address[machine.address] = machine
    if missing := [_called(node) for node in wanted if node not in by_node]:
        raise plan_key.wrong(f"no machine is listed for {', '.join(missing)}; add one for each")


def _called(node: int) -> str:
    if node < CONTROLLER:
        return f"broker {node}"
    return "the controller" if node == CONTROLLER else f"controller {node}"
