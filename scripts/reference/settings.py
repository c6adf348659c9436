"""The page of settings, from the fields of :class:`workloads.settings.Settings`."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any, Final

from scripts.reference.markdown import attributes, page, table, wrapped
from workloads.settings import INT_MAX, NEVER, Settings

#: The heading of each scope, and a sentence below it.
SCOPES: Final = {
    "client": ("Clients", "Producers get these."),
    "consumer": ("Consumers", "Consumers get these."),
    "transactions": ("Transactions", "Producers of the workload `transactions` get these."),
    "compaction": (
        "Compaction",
        "The run's topic gets those that differ from their default. Kafka knows them; in virtual time the broker too.",
    ),
    "topic": ("Topics", "The run's topic gets these."),
    "broker": ("Brokers", "Every broker gets these."),
    "reference": (
        "Rules of the reference broker",
        "Kafka fixed these rules once a release; the reference broker switches them ([rules](replication-rules.md)).",
    ),
}
INTRODUCTION: Final = "A plan names settings under `[settings]` or `[matrix]` ([plan keys](plan-keys.md))."


def settings() -> str:
    """Every setting with its default, its values and its meaning, scope by scope."""
    blocks = [wrapped(INTRODUCTION)]
    for scope, (heading, sentence) in SCOPES.items():
        chosen = [setting for setting in fields(Settings) if setting.metadata["scope"] == scope]
        rows = [
            (f"`{setting.metadata['name']}`", _default(setting), _values(setting), _meaning(setting))
            for setting in chosen
        ]
        blocks += [f"## {heading}", wrapped(sentence), table(["setting", "default", "values", "meaning"], rows)]
    return page("Settings", "`workloads/settings.py`", *blocks)


def _meaning(setting: Field[Any]) -> str:
    return attributes(Settings)[setting.name].rstrip(".")


def _default(setting: Field[Any]) -> str:
    default = setting.default
    return f"`{str(default).lower()}`" if isinstance(default, bool) else _number(default)


def _number(value: object) -> str:
    return {NEVER: "2^63-1 (never)", INT_MAX: "2^31-1"}.get(value, f"`{value}`")  # type: ignore[call-overload,no-any-return]


def _values(setting: Field[Any]) -> str:
    if setting.name == "planted_bug":
        return "[planted bugs](replication-rules.md#planted-bugs)"
    if choices := setting.metadata["choices"]:
        return ", ".join(f"`{value}`" for value in choices)
    if isinstance(setting.default, bool):
        return "`false`, `true`"
    least, most = setting.metadata["bounds"]
    return f"{least} to {_number(most).strip('`')}"
