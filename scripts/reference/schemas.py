"""The page of the files of runs and campaigns, from the structs that read and write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final, get_args, get_type_hints

import msgspec

from checkers import Matrix, VerdictLine
from harness.plan.machines import Machine
from harness.plan.security import Security
from harness.records.campaign_record import CampaignRecord
from harness.records.run_record import RunRecord
from harness.records.witness_file import Witnessed
from nemesis.faults import Fault
from nemesis.plan import FaultPlan
from scripts.reference.markdown import attributes, bullets, page, without_attributes, wrapped
from workloads import ApplicationPlan, WorkloadPlan

INTRODUCTION: Final = """
[Results](../../results/README.md) shows where each file is. Settings are under Kafka's names. `matrix.json` and
`verdicts.jsonl` have JSON Schemas, with their versions, in [`docs/schemas/`](../schemas); `ackproof schema` prints
them. A version is raised when a field goes away or changes its meaning, not when one is added. Old files are still
read.
"""
#: Every file with the struct that it holds.
FILES: Final[dict[str, type[msgspec.Struct]]] = {
    "campaign.json": CampaignRecord,
    "run.json": RunRecord,
    "verdicts.jsonl": VerdictLine,
    "matrix.json": Matrix,
    "witnesses.json": Witnessed,
}
#: Structs that other pages explain.
ELSEWHERE: Final[dict[type, str]] = {
    WorkloadPlan: "plan-keys.md#workload",
    FaultPlan: "plan-keys.md#faults",
    ApplicationPlan: "plan-keys.md#application",
    Machine: "plan-keys.md#machines",
    Security: "plan-keys.md#security",
}
#: Types that other pages list.
KNOWN: Final = {
    "AnyFault": "[a fault](faults.md)",
    "Findings": "[findings](anomalies.md) by anomaly",
    "Outcome": "[an outcome](outcomes.md)",
    "dict[str, SettingValue]": "[settings](settings.md) by name",
}

#: The type of a plan's key in an annotation.
MARKED: Final = re.compile(r"Annotated\[(\w+), (?:ReadBy|Meta|msgspec\.Meta)\(.*\)\]")


def schemas() -> str:
    """Every file, then every struct inside of it."""
    blocks = [wrapped(INTRODUCTION.strip())]
    for file, kind in FILES.items():
        blocks += [f"## {file}", *_struct(kind)]
    inside = {kind: None for top in FILES.values() for kind in _inside(top)}
    blocks.append("## Structs inside")
    for kind in sorted(inside, key=lambda kind: kind.__name__):
        blocks += [f"### {kind.__name__}", *_struct(kind)]
    return page("Files", "the structs of `harness/records/` and `checkers/verdicts/`", *blocks)


def _struct(kind: type[msgspec.Struct]) -> Iterator[str]:
    bases = [base for base in kind.__mro__ if issubclass(base, msgspec.Struct) and base is not msgspec.Struct]
    for base in bases:
        if base.__doc__ and not base.__name__.startswith("_"):
            yield wrapped(without_attributes(base.__doc__))
    if kind.__struct_fields__:
        yield bullets(_fields(kind))


def _fields(kind: type[msgspec.Struct]) -> Iterator[str]:
    """The fields; neighbours that share a meaning are one point."""
    meanings, types = attributes(kind), _annotations(kind)
    for meaning, group in groupby(msgspec.structs.fields(kind), lambda field: meanings.get(field.name, "")):
        named = [f"`{field.encode_name}` {_linked(kind, field.name, types[field.name])}" for field in group]
        yield from [f"{', '.join(named)}: {meaning}"] if meaning else named


def _annotations(kind: type) -> dict[str, str]:
    """The types of fields as they are written; what a plan's key has beside its type is on another page."""
    bases = reversed(kind.__mro__)
    written = {name: text for base in bases for name, text in getattr(base, "__annotations__", {}).items()}
    return {name: MARKED.sub(r"\1", text) for name, text in written.items()}


def _linked(kind: type, name: str, annotation: str) -> str:
    """The type of a field as code, and links to the structs in it."""
    plain = annotation.replace(" | msgspec.UnsetType", "").replace("msgspec.", "")
    if plain in KNOWN:
        return KNOWN[plain]
    structs = [*dict.fromkeys(_structs(get_type_hints(kind)[name]))]
    links = [f"[{struct.__name__}]({ELSEWHERE.get(struct, f'#{struct.__name__.lower()}')})" for struct in structs]
    return " ".join(links if plain in {struct.__name__ for struct in structs} else [f"`{plain}`", *links])


def _structs(annotation: object) -> Iterator[type[msgspec.Struct]]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield annotation
    for part in get_args(annotation):
        yield from _structs(part)


def _inside(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """The structs below ``kind``, as far as no other page explains them."""
    waiting, seen = [kind], {kind, *ELSEWHERE}
    while waiting:
        struct = waiting.pop()
        for annotation in get_type_hints(struct).values():
            for part in _structs(annotation):
                if part not in seen and not issubclass(part, Fault):
                    seen.add(part)
                    waiting.append(part)
                    yield part
