"""The page of the keys of a plan, from the structs that say what a plan may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from harness.plan import bounds
from harness.plan.file_form import BOUNDS, PlanFile
from harness.plan.listed_runs import ScheduleEntry, WriteEntry
from harness.plan.machines import Machine
from harness.plan.security import OPEN, Security
from harness.plan.values import default_of, keys_of
from harness.plan.world_keys import WorldTable
from nemesis.faults import FAULTS
from nemesis.plan import FaultPlan
from scripts.reference.markdown import attributes, bullets, first_sentence, page, table, wrapped
from workloads import WORKLOADS, ApplicationPlan, WorkloadPlan

INTRODUCTION: Final = """
A plan is one TOML file. Every choice of settings meets every family of faults in every world, `runs` times. A key that
is left out has the default in brackets, if there is one. A key or value that is misspelt or impossible is refused, with
one sentence, before anything starts. [The first plan](../start/your-settings.md#five-lines) shows one; `ackproof init`
writes one to begin with, and `ackproof plan PLAN --explain` says what would be run.
"""
SCHEDULE: Final = """
An entry has the keys below, and the fields of its fault where it has any ([faults](faults.md)). Every world performs
it; on real machines times are kept as well as they can be. `ackproof shrink` writes such plans.
"""
FIELDS: Final = """
Fields of faults: `shape`, the links of a partition (`"isolate"`, `"no-fetch"`, `"from-controller"`, ...); `api`, whose
messages are held or dropped (by default all); `offset_ms`, the step of a clock; `record`, which record is damaged.
"""
LIMITS: Final = """
A number of a plan, or of an option of the same name, is at most this. A plan beyond is refused before anything of it is
made.
"""
#: A plan with an exclusion, and one that lists its faults and writes.
EXAMPLES: Final = (
    """
[matrix]
acks = ["all", 1]
min.insync.replicas = [1, 2, 3]
replication.factor = [2, 3]

[[matrix.exclude]]                  # three in-sync replicas of two
min.insync.replicas = 3
replication.factor = 2

[[matrix.exclude]]                  # with acks=1 nothing waits for them
acks = 1
min.insync.replicas = 2

[worlds.simulated]
""",
    """
seed = 7                            # with a [[schedule]], that of the first run itself
families = ["kill"]                 # the faults are counted as this
settings = { acks = 1, "min.insync.replicas" = 1, "unclean.leader.election.enable" = false }
workload = { partitions = 1, producers = 1, duration_ms = 4_000 }
worlds = { simulated = {} }

[[schedule]]
begin_ms = 500
end_ms = 1_200
fault = "holdmessages"
role = "followers"
shape = "no-fetch"
api = "Fetch"

[[schedule]]
begin_ms = 1_000
end_ms = 2_500
fault = "kill"
broker = 0

[[writes]]
at_ms = 900.5
""",
)
#: Limits of what follows from several keys.
TOGETHER: Final = (
    ("combinations of `[matrix]`, before exclusions", f"{bounds.COMBINATIONS_MAX:,}", "each is a row of the report"),
    ("`[[matrix.exclude]]`", f"{bounds.EXCLUSIONS_MAX:,}", "each is compared with each combination"),
    ("runs of all cells together", f"{bounds.RUNS_MAX:,}", BOUNDS["runs"].reason),
    ("writes of one run on real processes", f"{bounds.WRITES_MAX:,}", "no larger history was ever checked"),
    (
        "writes of one simulated run",
        f"{bounds.SIMULATED_BYTES_MAX // 10**9} GB",
        f"they are in memory, {bounds.SIMULATED_WRITE_BYTES:,} bytes each beside the payload",
    ),
    (
        "writes of a simulated run with a trace",
        f"{bounds.TRACED_WRITES_MAX:,}",
        "a larger run is not done again for its trace; `ackproof replay RUN` does it",
    ),
)
#: From this number on a default is written with its digits in groups, as a plan may write it.
GROUPED_MIN: Final = 10_000


def plan_keys() -> str:
    """Every table of a plan with its keys, then the limits."""
    workloads = bullets(f"`{name}`: {first_sentence(kind.writes.__doc__ or '')}." for name, kind in WORKLOADS.items())
    return page(
        "Keys of a plan",
        "`harness/plan/file_form.py` and the structs that it names",
        wrapped(INTRODUCTION.strip()),
        _keys(PlanFile),
        f"```toml{EXAMPLES[0]}```",
        "## Workload",
        _keys(WorkloadPlan),
        workloads,
        "## Faults",
        _keys(FaultPlan),
        "## Application",
        _keys(ApplicationPlan),
        "## Worlds",
        _keys(WorldTable),
        "### Machines",
        wrapped("Each entry of `machines` has `node` and `address`; the other keys may be shared."),
        _keys(Machine),
        "### Security",
        _keys(Security),
        "## Schedule",
        wrapped(SCHEDULE.strip()),
        _keys(ScheduleEntry),
        wrapped(FIELDS.strip()),
        wrapped(f"Kinds: {', '.join(f'`{kind.kind}`' for kind in FAULTS)}."),
        "## Writes",
        _keys(WriteEntry),
        f"```toml{EXAMPLES[1]}```",
        "## Limits",
        wrapped(LIMITS.strip()),
        table(["key", "least", "most", "reason for the most"], _limits()),
        table(["together", "most", "reason"], TOGETHER),
    )


def _keys(kind: type[msgspec.Struct]) -> str:
    meanings = attributes(kind)
    return bullets(f"`{name}`{_default(field)}: {meanings[name]}" for name, field in keys_of(kind).items())


def _default(field: Any) -> str:
    default = default_of(field)
    if default in ("", [], {}, (), OPEN, None, msgspec.NODEFAULT):
        return ""
    if default in (0, -1) and field.name in {"runs", "parallel", "group", "broker"}:
        return ""
    return f" ({_value(default)})"


def _value(default: object) -> str:
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, int | float):
        return f"{default:_}" if default >= GROUPED_MIN else f"{default}"
    if isinstance(default, list | tuple):
        return f"`[{', '.join(map(repr, default))}]`".replace("'", '"')
    return f'`"{default}"`'


def _limits() -> Iterator[tuple[str, str, str, str]]:
    for name, bound in BOUNDS.items():
        if bound.most < bounds.NUMBER_MAX:
            yield f"`{name}`", f"{bound.least:,}", f"{bound.most:,}", bound.reason
