"""Hunts with one file of the source in a wrong form: a program, so that the form is in no other process.

Usage: python -m tests.harness.lab.search.patched_core FILE RIGHT WRONG PORTFOLIO CHANGED RUNS

CHANGED, as JSON, has ``settings`` and parts of the ``workload``. Prints as JSON the number of the first run with an
alarm, of :data:`SEED`, and what rang; null where none did.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any, Final

import msgspec

ROOT: Final = Path(__file__).parents[4]
SEED: Final = 7


def plant(file: str, right: str, wrong: str) -> None:
    """Have the module of ``file`` be its wrong form, before anybody imports it."""
    name = file.removesuffix(".py").replace("/", ".")
    source = (ROOT / file).read_text(encoding="utf-8")
    module = module_from_spec(ModuleSpec(name, None, origin=file))
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module
    exec(compile(source.replace(right, wrong), file, "exec"), module.__dict__)  # noqa: S102 - our own source


def alarmed(portfolio: str, changed: Mapping[str, Mapping[str, Any]], most: int) -> tuple[int, list[str]] | None:
    """The first of ``most`` runs with an alarm, and what rang."""
    from harness.lab.search.all_portfolios import EVERYTHING  # noqa: PLC0415 - only now
    from harness.lab.search.hunting import alarms_of  # noqa: PLC0415 - only now

    chosen = next(each for each in EVERYTHING if each.name == portfolio)
    for number in range(most):
        spec = chosen.spec(SEED, number, {})
        workload = msgspec.structs.replace(spec.workload, **changed.get("workload", {}))
        settings = {**spec.settings, **changed.get("settings", {})}
        spec = msgspec.structs.replace(spec, settings=settings, workload=workload)
        if alarms := alarms_of(spec):
            return number, [alarm.by for alarm in alarms]
    return None


if __name__ == "__main__":
    plant(*sys.argv[1:4])
    print(json.dumps(alarmed(sys.argv[4], json.loads(sys.argv[5]), int(sys.argv[6]))))  # noqa: T201 - its answer
