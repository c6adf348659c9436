"""The command `ackproof application`: a user's program under faults, from nothing to a verdict in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

import click
import msgspec

from harness.cli.campaign import out_option, perform_stages, seed_range
from harness.cli.matrix_table import show_campaign
from harness.cli.numbers import Amount, BoundedNumber
from harness.cli.terminal import Terminal, WordType, assigned, takes_json
from harness.plan import Kafka, Plan, Processes, lines_of, parse_plan
from workloads import ApplicationPlan, ApplicationPromise

#: Faults of instances and of brokers, drawn together: each can hide in the other's shadow.
FAMILIES: Final = "instance-kill+instance-stop+instance-freeze+kill+pause+coordinator"
#: More faults than fit, so that they strike until the end.
FAULTS: Final[Mapping[str, object]] = {"count": 1_000, "fault_ms_max": 2_000}
#: Nothing is lost by the log, so that what is lost, the application lost. It waits less than Kafka's defaults do, which
#: are 45 and 60 s: the placeholders {session_timeout_ms} and {transaction_timeout_ms} tell an application.
SAFE: Final[Mapping[str, object]] = {
    "min.insync.replicas": 2,
    "session.timeout.ms": 6_000,
    "transaction.timeout.ms": 10_000,
}
#: An application may wait for a session of Kafka's own default length before it goes on.
DRAIN_LIMIT_MS: Final = 90_000
WRITES_PER_SECOND: Final = 50.0
_FILE: Final = "application.toml"
_MINUTE_MS: Final = 60_000
_OWN: Final = ApplicationPlan(command=("",))


class ApplicationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command that say what is done, by the names of options."""

    command: Sequence[str]
    world: str
    promise: str
    id: str
    payload: str
    ready: str
    instances: int
    families: str
    minutes: float
    seed: int | None

    def plan(self, settings: Mapping[str, object], environment: Mapping[str, object]) -> Plan:
        """The plan that does it.

        Raises:
            PlanError: it cannot be done like this.
        """
        top: dict[str, object] = {"families": [self.families]}
        top |= {} if self.seed is None else {"seed": self.seed}
        level = {} if self.promise == "at-least-once" else {"isolation.level": "read_committed"}
        given = {name: getattr(self, name) for name in ("promise", "id", "payload", "ready", "instances")}
        application = {
            name: value for name, value in given.items() if value != getattr(_OWN, name) or name == "promise"
        }
        application |= {"environment": {name: str(value) for name, value in environment.items()}} if environment else {}
        tables: dict[str, Mapping[str, object]] = {
            "application": {"command": [*self.command], **application},
            "settings": {**SAFE, **level, **settings},
            "workload": {
                "duration_ms": round(self.minutes * _MINUTE_MS),
                "drain_limit_ms": DRAIN_LIMIT_MS,
                "writes_per_second": WRITES_PER_SECOND,
            },
            "faults": FAULTS,
            f"worlds.{self.world}": {"runs": 1},
        }
        plan = parse_plan("\n".join([*lines_of(top, tables), ""]), "ackproof application", name="application")
        return msgspec.structs.replace(plan, file=_FILE)


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--world",
    type=WordType("world", (Processes.name, Kafka.name)),
    default=Processes.name,
    show_default=True,
    help="The reference broker, which needs no Kafka, or Apache Kafka.",
)
@click.option(
    "--promise",
    type=WordType("promise", get_args(ApplicationPromise)),
    default=_OWN.promise,
    show_default=True,
    help="What the program promises.",
)
@click.option("--id", default=_OWN.id, show_default=True, help="Where an output has its input's id.")
@click.option("--payload", default=_OWN.payload, show_default=True, help="An input's payload.")
@click.option("--ready", default="", help='A line of its output, or "port:NUMBER"; else its first output.')
@click.option("--instances", type=BoundedNumber("instances"), default=_OWN.instances, show_default=True)
@click.option("--families", default=FAMILIES, show_default=True, help="Faults that are drawn together.")
@click.option("--minutes", type=Amount("minutes", 0.1, 600), default=2.0, show_default=True, help="Time under faults.")
@click.option("--settings", multiple=True, metavar="NAME=VALUE", help="A setting of the run; may be repeated.")
@click.option("--environment", multiple=True, metavar="NAME=VALUE", help="A variable of each instance.")
@click.option("--seed", type=seed_range, help="Draw other faults.")
@out_option
@takes_json
def application(
    terminal: Terminal,
    *,
    settings: Sequence[str],
    environment: Sequence[str],
    out: Path | None,
    **options: object,
) -> int:
    """Test a program of yours under faults.

    It reads a topic, and writes to another. COMMAND follows `--`, and starts one instance: {bootstrap}, {input},
    {output}, {group}, {instance} and {directory} are replaced. Each input carries an id, which the program copies into
    what it writes. The verdict says what became of every input. See docs/guides/application.md.
    """
    request = msgspec.convert(options, ApplicationRequest)
    plan = request.plan(assigned(settings), assigned(environment, "--environment"))
    return show_campaign(terminal, *perform_stages(terminal, plan, plan.runs(), out))
