"""The kinds of scopes: each has a space of states, and rules of its own."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

import msgspec

from harness.ground.errors import PlanError
from harness.lab.explore.any_scope import AnyScope
from harness.lab.explore.groups.rules import GROUP_RULES
from harness.lab.explore.groups.scope import GroupScope
from harness.lab.explore.groups.space import GroupSpace
from harness.lab.explore.rules import PERMITTED, RULES
from harness.lab.explore.scope import Scope
from harness.lab.explore.searched import SearchedSpace
from harness.lab.explore.space import Space
from harness.lab.explore.transactions.rules import TRANSACTION_RULES
from harness.lab.explore.transactions.scope import TransactionScope
from harness.lab.explore.transactions.space import TransactionSpace
from workloads import unknown_name


def known_scopes() -> dict[str, AnyScope]:
    """The project's scopes by name, in the order of their file."""
    text = (resources.files("harness.lab.explore") / "scopes.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    entries = [
        *msgspec.convert(tables["scope"], list[Scope]),
        *msgspec.convert(tables["transactions"], list[TransactionScope]),
        *msgspec.convert(tables["groups"], list[GroupScope]),
    ]
    return {entry.name: entry for entry in entries}


def scope_named(name: str) -> AnyScope:
    """One of the project's scopes.

    Raises:
        PlanError: no scope has this name; the nearest is named.
    """
    scopes = known_scopes()
    if name not in scopes:
        raise PlanError(unknown_name("scope", name, scopes))
    return scopes[name]


def space_of(scope: AnyScope, *, merged: bool = True) -> SearchedSpace[Any, Any]:
    """The space of a scope's states; ``merged`` takes states that differ in the names of brokers for one."""
    if isinstance(scope, TransactionScope):
        return TransactionSpace(scope)
    if isinstance(scope, GroupScope):
        return GroupSpace(scope)
    assert isinstance(scope, Scope)  # noqa: S101 - there are three kinds
    return Space(scope, merged=merged)


def rules_of(scope: AnyScope) -> tuple[str, ...]:
    """The rules that may be named for a scope."""
    if isinstance(scope, TransactionScope):
        return TRANSACTION_RULES
    return GROUP_RULES if isinstance(scope, GroupScope) else (*RULES, PERMITTED)
