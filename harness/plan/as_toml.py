"""One run as the text of a plan: what :mod:`harness.plan.reading` makes the same run of."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

from harness.plan.file_form import PlanFile
from harness.plan.listed_runs import OF_GENERATORS, WriteEntry, as_written, overlapping_groups
from harness.plan.model import ALWAYS_NAMED, RunSpec
from harness.plan.values import keys_of, other_than_default, shared
from nemesis.plan import Drawing
from workloads import IDEMPOTENCE, LISTED, Settings, in_toml

#: Names that TOML takes without quotes.
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def plan_text(spec: RunSpec, name: str, remarks: Iterable[str] = ()) -> str:
    """The plan ``name`` with ``spec`` as its one run, which has a given schedule; ``remarks`` come first.

    What has its default is left out. A world's own table holds nothing but its name: the run is to be performed
    anywhere.

    Raises:
        ValueError: the run's faults are drawn.
    """
    if spec.schedule is None:
        raise ValueError("a run whose faults are drawn cannot be written down as data")
    tables: dict[str, Mapping[str, object]] = {
        "settings": dict(_settings(spec)),
        # Of a listed workload each write says the rest.
        "workload": _without(OF_GENERATORS if spec.workload.name == LISTED else (), other_than_default(spec.workload)),
        "faults": _without(keys_of(Drawing), other_than_default(spec.faults)),
        f"worlds.{spec.world.name}": {},
    }
    top: dict[str, object] = {"name": name, "seed": spec.seed, "families": [spec.family]}
    top |= _without((*tables, "schedule"), other_than_default(PlanFile(**shared(PlanFile, spec))))
    if not spec.schedule.steps:
        top["schedule"] = []  # no fault at all; without the key chance would draw some
    lines = [*(f"# {remark}" for remark in remarks), *lines_of(top, tables)]
    by_overlap = overlapping_groups(spec.schedule.steps)
    same = [step.group for step in spec.schedule.steps] == by_overlap
    for step in spec.schedule.steps:
        group = {} if same else {"group": step.group}
        lines += ["", "[[schedule]]", *_pairs(as_written(step, spec.family) | group)]
    for write in spec.workload.writes:
        lines += ["", "[[writes]]", *_pairs(other_than_default(WriteEntry.of(write)))]
    return "\n".join(lines) + "\n"


def _without(keys: Container[str], values: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if key not in keys}


def lines_of(top: Mapping[str, object], tables: Mapping[str, Mapping[str, object]]) -> list[str]:
    """A plan's keys and tables, a line each. An empty table is left out, unless it is a world's."""
    lines = _pairs(top)
    for table, values in tables.items():
        if values or table.startswith("worlds"):
            lines += ["", f"[{table}]", *_pairs(values)]
    return lines


def _settings(spec: RunSpec) -> Iterator[tuple[str, object]]:
    """Settings that differ from the defaults or that every cell names; client libraries decide the others."""
    defaults = Settings().to_mapping()
    named = {*ALWAYS_NAMED, IDEMPOTENCE} - {*spec.client_defaults}
    for name, value in spec.settings.items():
        if name in named or (value != defaults[name] and name not in spec.client_defaults):
            yield name, value


def _pairs(values: Mapping[str, object]) -> list[str]:
    return [f"{_key(name)} = {in_toml(value)}" for name, value in values.items()]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else in_toml(name)
