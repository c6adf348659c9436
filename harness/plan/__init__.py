"""Plans: the one file that says what to run, and the runs that follow from it.

A plan is TOML. Settings of the log have Kafka's own dotted names, quoted or not (``min.insync.replicas = 2``);
everything else is spelled with underscores and carries its unit (``duration_ms``). Unknown keys are refused with the
nearest valid one. See ``plans/default.toml`` for a complete one.

Whatever reads or refuses a part of a plan raises :class:`harness.ground.errors.PlanError`: one sentence, with the place
in the file.
"""

from harness.plan.as_toml import lines_of, plan_text
from harness.plan.bounds import TRACED_WRITES_MAX
from harness.plan.chosen_faults import families_in, timings_of, with_scenarios
from harness.plan.counting import planned_writes
from harness.plan.expected import ExpectedOutcomes
from harness.plan.file_form import BOUNDS, LATEST
from harness.plan.machines import Machine
from harness.plan.model import Plan, RunSpec, WorldPlan
from harness.plan.operator_commands import NODE, PEER, UNDONE_BY, Act, OperatorCommands
from harness.plan.reading import ACCEPTED_FILE, parse_plan, read_plan
from harness.plan.security import OPEN, Security
from harness.plan.starters import CI_FILES, KINDS, LANGUAGES, heading, plans_here, starter
from harness.plan.values import (
    ENDLESS,
    PlanKey,
    flattened,
    known_keys,
    of_kind,
    record_of,
    refuse_endless_numbers,
    tables_at,
)
from harness.plan.worlds import (
    UNCLEAN_IN_KRAFT_SINCE,
    AnyWorld,
    ClientChoice,
    ClientName,
    ClientProgram,
    Existing,
    Kafka,
    Loopback,
    ModeName,
    Namespaces,
    Processes,
    RealTime,
    Simulated,
    Ssh,
    UpgradeEnd,
    require_kind,
)

__all__ = [
    "ACCEPTED_FILE", "BOUNDS", "CI_FILES", "ENDLESS", "KINDS", "LANGUAGES", "LATEST", "NODE", "OPEN", "PEER",
    "TRACED_WRITES_MAX", "UNCLEAN_IN_KRAFT_SINCE", "UNDONE_BY", "Act", "AnyWorld", "ClientChoice", "ClientName",
    "ClientProgram",
    "Existing", "ExpectedOutcomes", "Kafka", "Loopback", "Machine", "ModeName", "Namespaces", "OperatorCommands",
    "Plan", "PlanKey", "Processes", "RealTime", "RunSpec", "Security", "Simulated", "Ssh", "UpgradeEnd",
    "WorldPlan", "families_in", "flattened", "heading", "known_keys", "lines_of", "of_kind", "parse_plan",
    "plan_text", "planned_writes", "plans_here", "read_plan", "record_of", "refuse_endless_numbers", "require_kind",
    "starter", "tables_at", "timings_of", "with_scenarios",
]  # fmt: skip
