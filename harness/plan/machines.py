"""The machines of a plan, the only ones that the harness contacts, and their tables.

``[worlds.kafka.inventory]`` has what all machines share, and the list ``machines``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from harness.plan.values import PlanKey, Table, known_keys, table_at, tables_at, value_at
from nemesis.cluster import CONTROLLER
from workloads import shown

KNOWN_HOSTS: Final = "~/.ssh/known_hosts"
#: A place on other machines, where runs get directories of their own.
DIRECTORY: Final = "/var/tmp/ackproof"  # noqa: S108 - on other machines


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, which carries one node."""

    node: int
    """The broker's number, or `"controller"`."""
    address: str
    """A name or an IPv4 address, at which the other nodes and the clients reach it too."""
    user: str
    """The user of its SSH server."""
    port: int = 22
    """The port of its SSH server."""
    key: str = ""
    """The file of the private key; by default the keys of the SSH agent."""
    fingerprint: str = ""
    """The fingerprint of its host key, as `ssh-keygen -l` writes it (SHA256:...); by default `known_hosts` decides."""
    known_hosts: str = KNOWN_HOSTS
    """The file in which its host key must be."""
    sudo: bool = False
    """nftables needs `sudo -n` on it."""
    directory: str = DIRECTORY
    """The directory of the harness on it."""
    broker_port: int = 9_092
    """The port of its node."""
    java: str = "java"
    """Its Java program."""

    @property
    def name(self) -> str:
        """Its name in sentences: ``ackproof@10.0.0.11``, with the port where it is not the usual one."""
        return f"{self.user}@{self.address}" + ("" if self.port == 22 else f":{self.port}")


#: The keys that machines cannot share.
OWN_KEYS: Final = ("node", "address")
#: The word for the controller's number.
CONTROLLER_WORD: Final = "controller"
_KINDS: Final[Mapping[str, object]] = {field.name: field.type for field in msgspec.structs.fields(Machine)}
_SHARED: Final = tuple(name for name in _KINDS if name not in OWN_KEYS)
#: Words that go into command lines, class paths and rules of a firewall: so no character of them may be special.
_FORMS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "address": (re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252})"), "a host name or an IPv4 address"),
    "user": (re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}"), "the name of a user"),
    "directory": (re.compile(r"(/[A-Za-z0-9._@+-]+){2,}"), 'an absolute path like "/var/tmp/ackproof", without blanks'),
    "java": (re.compile(r"[A-Za-z0-9._/@+-]+"), "a program's name or path, without blanks"),
    "fingerprint": (re.compile(r"(SHA256:[A-Za-z0-9+/]{43})?"), 'what ssh-keygen -lf writes: "SHA256:" and 43 letters'),
}


def machines_at(table: Table, nodes: Sequence[int], plan_key: PlanKey) -> tuple[Machine, ...]:
    """The machines under ``inventory`` in a world's table.

    Raises:
        PlanError: they are not one machine for each of ``nodes``.
    """
    here = plan_key / "inventory"
    own = table_at(table, "inventory", plan_key)
    known_keys(own, (*_SHARED, "machines"), here)
    shared = {name: value for name, value in own.items() if name != "machines"}
    machines = tuple(_machine({**shared, **entry}, key) for key, entry in tables_at(own, "machines", here))
    _one_machine_a_node(machines, nodes, here / "machines")
    return machines


def _machine(table: Table, plan_key: PlanKey) -> Machine:
    known_keys(table, _KINDS, plan_key)
    missing = [name for name in ("node", "address", "user") if name not in table]
    if missing:
        raise plan_key.wrong(f"this machine lacks {' and '.join(missing)}; add {missing[0]} = ...")
    numbered = {**table, "node": CONTROLLER} if table["node"] == CONTROLLER_WORD else table
    values = {name: value_at(numbered, name, _KINDS[name], None, plan_key) for name in numbered}
    for name, (form, words) in _FORMS.items():
        if name in values and not form.fullmatch(values[name]):
            raise (plan_key / name).wrong(f"{shown(values[name])} is not {words}")
    machine = Machine(**values)
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
