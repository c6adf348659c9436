"""The command `ackproof accept`."""

from __future__ import annotations

import difflib
import getpass
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

import click

from checkers import ANOMALIES, Acceptance, Cell, accepting, mattering, runs_showing
from harness.campaigns.comparison import (
    Ran,
    accepting_sentences,
    fits,
    ran_by,
    read_results,
    red_sentences,
)
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.ground.errors import EXIT_HELD, NamedWronglyError
from harness.ground.known_defects import product_findings
from harness.plan import ACCEPTED_FILE
from harness.records.accepted_file import add_accepted, read_accepted
from harness.records.campaign_record import CampaignRecord, read_campaign_record
from workloads import unknown_name

#: Digits of an identity that are enough, where no other begins with them.
PREFIX_MIN: Final = 4
#: The likeness of a wrong ID and the one that was meant, and the number of IDs that are listed.
NEAR: Final = 0.6
LISTED_MAX: Final = 12
#: A finding is accepted for so long where no last day is given.
DAYS: Final = 30


@click.command()
@click.argument("directory", type=path_type, metavar="DIR")
@click.argument("what", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", default="no reason given", show_default=True, help="Why it is accepted.")
@click.option(
    "--until",
    "until_",
    metavar="DAY",
    help=f"The last day on which it is accepted: 2027-01-31; by default {DAYS} days from now.",
)
@click.option("--owner", help="The person to ask after that day; by default you.")
@click.option("--cell", "only", multiple=True, metavar="CELL", help="Only in this cell; may be repeated.")
@click.option("--into", type=path_type, metavar="FILE", help="Write into this file, not into that beside the plan.")
@takes_json
def accept(
    terminal: Terminal,
    directory: Path,
    what: Sequence[str],
    *,
    reason: str,
    until_: str | None,
    owner: str | None,
    only: Sequence[str],
    into: Path | None,
) -> int:
    """Accept findings of the campaign or soak in DIR until a day.

    An ID is a finding's identity (or how it begins), the name of an anomaly for all its findings, or the number of a
    page in docs/findings. The entry goes into accepted.toml beside the plan, for the cells in which DIR shows the
    finding, and those of the same promise and world in which it did not yet. From the next campaign or night on it is
    shown and counted in these cells, but until that day no command fails because of it. It still fails in another
    cell, if it was gone and is back, or if it shows more often than chance explains. Other findings for which such a
    cell still fails are named.
    """
    record = read_campaign_record(directory)
    if record is None:
        raise NamedWronglyError(f"{directory} holds no campaign.json, which says when it began; name a campaign")
    began = datetime.fromisoformat(record.began)
    until = _day(until_) if until_ else max(began.date(), datetime.now(UTC).date()) + timedelta(days=DAYS)
    if until < began.date():
        raise NamedWronglyError(f"--until {until} is before {began.date()}, when {directory} began; name a later day")
    path = into or _beside_the_plan(record)
    cells = read_results(directory).cells
    named = _named(what, cells.values(), record, directory, only)
    entries = [
        Acceptance(
            identity=identity,
            anomaly=anomaly,
            cells=tuple(keys),
            reason=reason,
            owner=owner or _user(),
            until=until,
            since=began,
            shown=_shown(cells, (anomaly, identity), keys),
            finding=number,
        )
        for (anomaly, identity, number), keys in named.items()
    ]
    add_accepted(path, entries)
    lines = [
        f"accepted until {until}: {' '.join(filter(None, (entry.anomaly, entry.identity)))}"
        f"{_other_looks(entry, cells)} in {', '.join(entry.cells)}"
        for entry in entries
    ]
    here = [cells[key] for key in dict.fromkeys(key for entry in entries for key in entry.cells)]
    here = accepting(here, read_accepted(path.parent), record.began)
    red = [*red_sentences(here)]
    rest = [*accepting_sentences(str(directory), here)]
    terminal.answer({"file": str(path), "accepted": entries, "stays_red": red}, [*lines, *red, *rest, str(path)])
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


#: A finding that is named: its anomaly, its identity ("": each of the anomaly), the number of its page or "".
_Name: TypeAlias = tuple[str, str, str]


def _named(
    words: Sequence[str], cells: Collection[Cell], record: CampaignRecord, directory: Path, only: Sequence[str]
) -> dict[_Name, list[str]]:
    """The cells in which what ``words`` name is shown."""
    keys_here = dict.fromkeys(cell.key for cell in cells)
    if strange := [key for key in only if key not in keys_here]:
        raise NamedWronglyError(unknown_name("cell", strange[0], keys_here))
    first = _first_anomalies(cells)
    named: dict[_Name, list[str]] = {}
    for what in dict.fromkeys(words):
        mine = {
            ((anomaly, "", "") if anomaly in {what, identity} else (first[identity], identity, _number(what)), cell.key)
            for cell in cells
            if not only or cell.key in only
            for anomaly, identity in cell.shown()
            if _is_named(what, cell, (anomaly, identity), ran_by(record, cell))
        }
        if not mine:
            raise NamedWronglyError(_not_here(what, cells, directory))
        by_prefix = {identity for (_, identity, number), _ in mine if identity and not number}
        if len(by_prefix) > 1:
            several = ", ".join(sorted(by_prefix))
            raise NamedWronglyError(f"several findings begin with {what}: {several}; name one of them")
        for name, key in sorted(mine):
            named.setdefault(name, []).append(key)
    return named


def _number(what: str) -> str:
    return what if what in product_findings() else ""


def _is_named(what: str, cell: Cell, shown: tuple[str, str], ran: Collection[Ran]) -> bool:
    anomaly, identity = shown
    if (product := product_findings().get(what)) is not None:
        return fits(product, cell, shown, ran)
    return what == anomaly or (len(what) >= PREFIX_MIN and identity.startswith(what))


def _not_here(what: str, cells: Iterable[Cell], directory: Path) -> str:
    """Say what is nearest to a wrong ID, and where those of the campaign stand."""
    offered = dict.fromkeys(word for cell in cells for shown in cell.shown() for word in shown[::-1])
    if not offered:
        return f'no finding of this campaign is called "{what}": it has no findings that nothing permits'
    near = difflib.get_close_matches(what.lower(), offered, n=1, cutoff=NEAR)
    by_begin = [word for word in offered if word.startswith(what[:PREFIX_MIN])]
    nearest = f'; did you mean "{(by_begin or near)[0]}"?' if by_begin or near else ";"
    some = ", ".join(list(offered)[:LISTED_MAX]) + (", ..." if len(offered) > LISTED_MAX else "")
    return (
        f'no finding of this campaign is called "{what}"{nearest} it has {some}; each is '
        f"in the line that accepts it, in {directory / 'matrix.md'} and report.html"
    )


def _first_anomalies(cells: Iterable[Cell]) -> dict[str, str]:
    """By identity, the anomaly that names the finding: most runs show it, and of several it is the first."""
    runs: dict[str, Counter[str]] = {}
    for cell in cells:
        for anomaly in sorted(cell.broken, key=list(ANOMALIES).index):
            for identity, number in cell.identities.get(anomaly, {}).items():
                runs.setdefault(identity, Counter())[anomaly] += number
    return {identity: counts.most_common(1)[0][0] for identity, counts in runs.items()}


def _shown(cells: Mapping[str, Cell], finding: tuple[str, str], keys: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count the runs that show the finding, in the cells ``keys`` and where else a run could have shown it."""
    alike = [(cells[key].world, mattering(cells[key].settings)) for key in keys if finding[1]]
    return {
        key: runs_showing(cell, *finding) if key in keys else (0, cell.runs_judged)
        for key, cell in cells.items()
        if key in keys or (cell.runs_judged and (cell.world, mattering(cell.settings)) in alike)
    }


def _other_looks(entry: Acceptance, cells: Mapping[str, Cell]) -> str:
    """Name the other anomalies as which the finding shows."""
    shown = (anomaly for key in entry.cells for anomaly, identity in cells[key].shown() if identity == entry.identity)
    return "".join(f", with {anomaly}" for anomaly in dict.fromkeys(shown) if anomaly != entry.anomaly)
