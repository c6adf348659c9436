"""The command `ackproof upgrade`: a rolling upgrade of Apache Kafka under faults, and its certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

import click
import msgspec

from harness.campaigns.report import as_lines, certificates_in
from harness.cli.campaign import out_option, perform_stages, seed_range
from harness.cli.numbers import BoundedNumber
from harness.cli.terminal import Terminal, WordType, assigned, takes_json
from harness.ground.errors import EXIT_HELD, EXIT_UNKNOWN, PlanError
from harness.plan import ClientName, Loopback, Namespaces, Plan, UpgradeEnd, lines_of, parse_plan
from harness.records.verdict_lines import read_matrix
from nemesis.faults import Upgrade
from nemesis.succession import UpgradeBy

#: Settings that promise that nothing is lost: what people ask about. --settings chooses others.
SAFE: Final[Mapping[str, object]] = {"acks": "all", "min.insync.replicas": 2}
#: More faults than fit, so that they strike until the end; the cluster is whole between them, for the next step.
FAULTS: Final[Mapping[str, object]] = {"count": 1_000, "healed_ms_min": 4_000}
#: Half of it is for brokers to come back: they start again in seconds, on a busy machine in half a minute.
DRAIN_LIMIT_MS: Final = 60_000
_FILE: Final = "upgrade.toml"
_HOSTS: Final = (Loopback.name, Namespaces.name)


class UpgradeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command that say what is done, by the names of options."""

    from_: str
    to: str | None
    beside: str
    end: str
    by: str
    host: str
    client: str
    other_client: Sequence[str] = ()
    brokers: int
    controllers: str
    duration_ms: int
    seed: int | None

    def plan(self, settings: Mapping[str, object], changes: Mapping[str, object]) -> Plan:
        """The plan that does it.

        Raises:
            PlanError: Kafka has no such upgrade, or the harness cannot do it.
        """
        if "" in (self.from_, self.to):
            raise PlanError('FROM and TO are releases, and one of them is empty; write it, for example "4.1.1"')
        family = "+".join(filter(None, (Upgrade.family, self.beside)))
        top: dict[str, object] = {"families": [family], "brokers": self.brokers}
        top |= {} if self.seed is None else {"seed": self.seed}
        world: dict[str, object] = {"version": self.from_, "host": self.host, "client": self.client}
        world |= {"controllers": int(self.controllers), "upgrade_end": self.end}
        world |= {"upgrade_by": self.by, "other_clients": [*self.other_client]}
        world |= {"upgrade_to": self.to} if self.to else {}
        tables: dict[str, Mapping[str, object]] = {
            "settings": {**SAFE, **settings},
            "workload": {"duration_ms": self.duration_ms, "drain_limit_ms": DRAIN_LIMIT_MS},
            "faults": FAULTS,
            "worlds.kafka": world,
        }
        tables |= {"worlds.kafka.change": changes} if changes else {}
        plan = parse_plan("\n".join([*lines_of(top, tables), ""]), "ackproof upgrade", name="upgrade")
        return msgspec.structs.replace(plan, file=_FILE)


@click.command()
@click.argument("from_", metavar="FROM")
@click.argument("to", metavar="[TO]", required=False)
@click.option("--settings", multiple=True, metavar="NAME=VALUE", help="Settings of the run: acks=1; may be repeated.")
@click.option("--beside", default="kill", show_default=True, metavar="FAMILIES", help='Faults meanwhile; "" for none.')
@click.option("--change", "changes", multiple=True, metavar="NAME=VALUE", help="A new setting of every node.")
@click.option(
    "--end",
    type=WordType("end", get_args(UpgradeEnd)),
    default="finalize",
    show_default=True,
    help="After the last step: make the new version final, go back, or neither.",
)
@click.option(
    "--by", type=WordType("way", get_args(UpgradeBy)), default="restart", show_default=True, help="How a node changes."
)
@click.option(
    "--host", type=WordType("host", _HOSTS), default=_HOSTS[0], show_default=True, help="Where the nodes run."
)
@click.option(
    "--client",
    type=WordType("client", get_args(ClientName)),
    default="confluent-kafka",
    show_default=True,
    help="The library that writes.",
)
@click.option("--other-client", multiple=True, metavar="LIBRARY", help="Takes turns with --client: java:4.3.1.")
@click.option("--brokers", type=BoundedNumber("brokers"), default=3, show_default=True)
@click.option("--controllers", type=WordType("number of controllers", "135"), default="1", show_default=True)
@click.option(
    "--duration-ms", type=BoundedNumber("duration_ms"), default=120_000, show_default=True, help="Time of the writes."
)
@click.option("--seed", type=seed_range, help="Draw other faults.")
@out_option
@takes_json
def upgrade(
    terminal: Terminal,
    *,
    settings: Sequence[str],
    changes: Sequence[str],
    out: Path | None,
    **options: object,
) -> int:
    """Upgrade Apache Kafka FROM a release TO another under faults.

    A cluster is started, written to, and upgraded node by node, while faults strike. The certificate says what was
    written, what was put to the test, and at which step something was lost. Without TO it is a rolling restart, and
    with --change one that brings a setting. See docs/guides/upgrade.md.
    """
    request = msgspec.convert(options, UpgradeRequest)
    try:
        plan = request.plan(assigned(settings), assigned(changes, "--change"))
        directory, report = perform_stages(terminal, plan, plan.runs(), out)
    except PlanError as error:
        raise PlanError(str(error).replace("duration_ms", "--duration-ms")) from error
    certificates = certificates_in(directory)
    lines = [line for certificate in certificates for line in as_lines(certificate)]
    terminal.answer(certificates, [*lines, str(report)])
    code = read_matrix(directory).verdict.exit_code
    is_done = bool(certificates) and all(certificate.done for certificate in certificates)
    return EXIT_UNKNOWN if code == EXIT_HELD and not is_done else code
