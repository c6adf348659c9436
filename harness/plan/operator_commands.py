"""The table ``commands`` of ``host = "commands"``: an operator's own commands that break a cluster, and mend it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

import msgspec

from harness.plan.values import PlanKey, Table, known_keys, table_at, value_at

#: An act that breaks something, and the act that undoes it.
UNDONE_BY: Final[Mapping[str, str]] = {"kill": "start", "stop": "start", "pause": "resume", "cut": "heal"}
#: Every act, in the order of documents.
ACTS: Final = ("kill", "stop", "start", "pause", "resume", "cut", "heal", "restart_all")
#: Placeholders for the names of nodes in words.
NODE: Final = "{node}"
PEER: Final = "{peer}"
#: Seconds that one command may take where the plan does not say.
LIMIT_S: Final = 20.0

Words = tuple[str, ...]


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """The command of one act, and the command that observes it: exit code 0 where it took effect, 1 where it did not.

    With any other exit code, or none within the limit, it is not known.
    """

    run: Words
    observe: Words


class OperatorCommands(msgspec.Struct, frozen=True, kw_only=True):
    """The commands of a plan. ``nodes`` are the brokers' numbers with the operator's names, ``named`` are all acts."""

    nodes: tuple[tuple[int, str], ...]
    named: tuple[tuple[str, Act], ...]
    limit_s: float = LIMIT_S

    @property
    def acts(self) -> Mapping[str, Act]:
        """The acts by name."""
        return dict(self.named)

    def name(self, node: int) -> str | None:
        """The operator's name of a broker; None where there is no such name."""
        return dict(self.nodes).get(node)


def operator_commands_at(table: Table, plan_key: PlanKey) -> OperatorCommands:
    """The table ``commands`` of a world's table.

    Raises:
        PlanError: a command is missing, or what undoes it, or what observes it.
    """
    here = plan_key / "commands"
    own = table_at(table, "commands", plan_key)
    known_keys(own, ("nodes", "limit_s", *ACTS), here)
    nodes = table_at(own, "nodes", here)
    if not nodes or not all(number.isdigit() and isinstance(name, str) and name for number, name in nodes.items()):
        raise (here / "nodes").wrong('name each broker by its id: nodes = { 0 = "kafka-0", 1 = "kafka-1" }')
    acts = {name: _act(table_at(own, name, here), here / name) for name in ACTS if name in own}
    for name, undo in UNDONE_BY.items():
        if name in acts and undo not in acts:
            raise (here / name).wrong(f"nothing undoes it; add {undo} = {{ run = ..., observe = ... }}")
        if name in acts and any(PEER in word for word in acts[undo].run) != any(
            PEER in word for word in acts[name].run
        ):
            raise (here / undo).wrong(f"{name} and {undo} must both name {PEER}, or neither of them")
    if not UNDONE_BY.keys() & acts.keys():
        raise here.wrong(f'nothing can be broken; add one of {", ".join(UNDONE_BY)}, or write host = "existing"')
    limit_s = float(value_at(own, "limit_s", float, LIMIT_S, here))
    names = tuple((int(number), str(name)) for number, name in nodes.items())
    return OperatorCommands(nodes=names, named=tuple(acts.items()), limit_s=limit_s)


def _act(table: Table, plan_key: PlanKey) -> Act:
    known_keys(table, Act.__struct_fields__, plan_key)
    if missing := [name for name in Act.__struct_fields__ if name not in table]:
        raise plan_key.wrong(f"{missing[0]} is missing; each act has a command, and one that observes it")
    return Act(run=_words(table, "run", plan_key), observe=_words(table, "observe", plan_key))


def _words(table: Table, key: str, plan_key: PlanKey) -> Words:
    text = value_at(table, key, str, "", plan_key)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise (plan_key / key).wrong(f"these are not the words of a command: {error}") from error
    if not words:
        raise (plan_key / key).wrong("write a command; no shell reads it, so write sh -c '...' for one that needs it")
    return words
