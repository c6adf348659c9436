"""The command `ackproof accept`."""

from __future__ import annotations

import getpass
from collections.abc import Collection, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Final

import click

from checkers import Acceptance, Cell, accepting
from harness.campaigns.comparison import Ran, fits, ran_by, read_results, red_sentences
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.ground.errors import EXIT_HELD, NamedWronglyError
from harness.ground.known_defects import product_findings
from harness.plan import ACCEPTED_FILE
from harness.records.accepted_file import add_accepted, read_accepted
from harness.records.campaign_record import CampaignRecord, read_campaign_record
from workloads import unknown_name

#: Digits of an identity that are enough, where no other begins with them.
PREFIX_MIN: Final = 4


@click.command()
@click.argument("directory", type=path_type, metavar="DIR")
@click.argument("what", metavar="ID")
@click.option("--reason", required=True, help="Why it is accepted.")
@click.option(
    "--until", "until_", required=True, metavar="DAY", help="The last day on which it is accepted: 2027-01-31."
)
@click.option("--owner", help="The person to ask after that day; by default you.")
@click.option("--cell", "only", multiple=True, metavar="CELL", help="Only in this cell; may be repeated.")
@click.option("--into", type=path_type, metavar="FILE", help="Write into this file, not into that beside the plan.")
@takes_json
def accept(
    terminal: Terminal,
    directory: Path,
    what: str,
    *,
    reason: str,
    until_: str,
    owner: str | None,
    only: Sequence[str],
    into: Path | None,
) -> int:
    """Accept a finding of the campaign or soak in DIR until a day.

    ID is the finding's identity (or how it begins), the name of an anomaly for all its findings, or the number of a
    page in docs/findings. The entry goes into accepted.toml beside the plan, for the cells in which DIR shows the
    finding. From the next campaign or night on the finding is shown and counted in these cells, but until that day no
    command fails because of it. In another cell it still fails, and also if it was gone and is back. Other findings
    for which such a cell still fails are named: a consequence of the same loss needs an entry of its own.
    """
    record = read_campaign_record(directory)
    if record is None:
        raise NamedWronglyError(f"{directory} holds no campaign.json, which says when it began; name a campaign")
    began = datetime.fromisoformat(record.began)
    until = _day(until_)
    if until < began.date():
        raise NamedWronglyError(f"--until {until} is before {began.date()}, when {directory} began; name a later day")
    path = into or _beside_the_plan(record)
    cells = read_results(directory).cells
    named = _named(what, cells.values(), record, only)
    entries = [
        Acceptance(
            identity=identity,
            anomaly=anomaly,
            cells=tuple(keys),
            reason=reason,
            owner=owner or _user(),
            until=until,
            since=began,
            finding=what if what in product_findings() else "",
        )
        for (anomaly, identity), keys in named.items()
    ]
    add_accepted(path, entries)
    lines = [
        f"accepted until {until}: {' '.join(filter(None, (entry.anomaly, entry.identity)))} in {', '.join(entry.cells)}"
        for entry in entries
    ]
    here = (cells[key] for key in dict.fromkeys(key for entry in entries for key in entry.cells))
    red = [*red_sentences(accepting(here, read_accepted(path.parent), record.began))]
    terminal.answer({"file": str(path), "accepted": entries, "stays_red": red}, [*lines, *red, str(path)])
    return EXIT_HELD


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise NamedWronglyError(f'--until "{text}" is not a day; write it as 2027-01-31') from error


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise NamedWronglyError("the name of this user is not known; name an owner with --owner NAME") from error


def _beside_the_plan(record: CampaignRecord) -> Path:
    plan = Path(record.plan)
    if not record.plan or not plan.is_file():
        where = f"its plan {plan} does not exist" if record.plan else "its campaign.json does not name its plan"
        raise NamedWronglyError(f"{where}; name the file for entries: --into DIRECTORY/{ACCEPTED_FILE}, beside a plan")
    return plan.with_name(ACCEPTED_FILE)


def _named(
    what: str, cells: Collection[Cell], record: CampaignRecord, only: Sequence[str]
) -> dict[tuple[str, str], list[str]]:
    """By anomaly and identity ("": each of the anomaly), the cells in which ``what`` is shown."""
    keys_here = dict.fromkeys(cell.key for cell in cells)
    if strange := [key for key in only if key not in keys_here]:
        raise NamedWronglyError(unknown_name("cell", strange[0], keys_here))
    named: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for anomaly, identity in cell.shown() if not only or cell.key in only else ():
            if _is_named(what, cell, anomaly, identity, ran_by(record, cell)):
                all_of_it = anomaly in {what, identity}
                keys = named.setdefault((anomaly, "" if all_of_it else identity), [])
                keys.extend([] if cell.key in keys else [cell.key])
    by_prefix = {identity for _, identity in named if identity}
    if not named:
        offered = dict.fromkeys(word for cell in cells for pair in cell.shown() for word in pair[::-1])
        shows = f"it has {', '.join(offered)}" if offered else "it has no findings that nothing permits"
        raise NamedWronglyError(f'no finding of this campaign is called "{what}"; {shows}')
    if len(by_prefix) > 1 and what not in product_findings():
        raise NamedWronglyError(f"several findings begin with {what}: {', '.join(sorted(by_prefix))}; name one of them")
    return named


def _is_named(what: str, cell: Cell, anomaly: str, identity: str, ran: Collection[Ran]) -> bool:
    if (product := product_findings().get(what)) is not None:
        return fits(product, cell, anomaly, ran)
    return what == anomaly or (len(what) >= PREFIX_MIN and identity.startswith(what))
