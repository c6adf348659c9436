"""The table ``commands`` of ``host = "commands"``: an operator's own commands that break a cluster, and mend it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from harness.plan.values import PlanKey, ReadBy, keys_of, known_keys, of_kind, record_of, table_at, table_of, value_of

#: An act that breaks something, and the act that undoes it.
UNDONE_BY: Final[Mapping[str, str]] = {"kill": "start", "stop": "start", "pause": "resume", "cut": "heal"}
#: Every act, in the order of documents.
ACTS: Final = ("kill", "stop", "start", "pause", "resume", "cut", "heal", "restart_all")
#: Placeholders for the names of nodes in words.
NODE: Final = "{node}"
PEER: Final = "{peer}"
#: Seconds that one command may take where the plan does not say.
LIMIT_S: Final = 20.0
_LACKING: Final = "{key} is missing; each act has a command, and one that observes it"

Words = tuple[str, ...]


def _words(value: object, plan_key: PlanKey) -> Words:
    text: str = of_kind(value, str, plan_key)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise plan_key.wrong(f"these are not the words of a command: {error}") from error
    if not words:
        raise plan_key.wrong("write a command; no shell reads it, so write sh -c '...' for one that needs it")
    return words


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """The command of one act, and the command that observes it: exit code 0 where it took effect, 1 where it did not.

    With any other exit code, or none within the limit, it is not known.
    """

    run: Annotated[Words, ReadBy(_words)]
    observe: Annotated[Words, ReadBy(_words)]


class OperatorCommands(msgspec.Struct, frozen=True, kw_only=True):
    """The commands of a plan. ``nodes`` are the brokers' numbers with the operator's names, ``named`` are all acts."""

    nodes: tuple[tuple[int, str], ...]
    named: tuple[tuple[str, Act], ...]
    limit_s: Annotated[float, msgspec.Meta(ge=0.1, le=600, description="the workload waits for a command")] = LIMIT_S

    @property
    def acts(self) -> Mapping[str, Act]:
        """The acts by name."""
        return dict(self.named)

    def name(self, node: int) -> str | None:
        """The operator's name of a broker; None where there is no such name."""
        return dict(self.nodes).get(node)


def operator_commands_of(value: object, plan_key: PlanKey) -> OperatorCommands:
    """The table ``commands`` of a world's table."""
    table = table_of(value, plan_key)
    known_keys(table, ("nodes", "limit_s", *ACTS), plan_key)
    nodes = table_at(table, "nodes", plan_key)
    if not nodes or not all(number.isdigit() and isinstance(name, str) and name for number, name in nodes.items()):
        raise (plan_key / "nodes").wrong('name each broker by its id: nodes = { 0 = "kafka-0", 1 = "kafka-1" }')
    acts = {
        name: record_of(Act, table_at(table, name, plan_key), plan_key / name, _LACKING)
        for name in ACTS
        if name in table
    }
    for name, undo in UNDONE_BY.items():
        if name in acts and undo not in acts:
            raise (plan_key / name).wrong(f"nothing undoes it; add {undo} = {{ run = ..., observe = ... }}")
        if name in acts and _names_peer(acts[undo]) != _names_peer(acts[name]):
            raise (plan_key / undo).wrong(f"{name} and {undo} must both name {PEER}, or neither of them")
    if not UNDONE_BY.keys() & acts.keys():
        raise plan_key.wrong(f'nothing can be broken; add one of {", ".join(UNDONE_BY)}, or write host = "existing"')
    limit_s = value_of(keys_of(OperatorCommands)["limit_s"], table.get("limit_s", LIMIT_S), plan_key / "limit_s")
    names = tuple((int(number), str(name)) for number, name in nodes.items())
    return OperatorCommands(nodes=names, named=tuple(acts.items()), limit_s=limit_s)


def _names_peer(act: Act) -> bool:
    return any(PEER in word for word in act.run)
