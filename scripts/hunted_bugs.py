"""Hunts each planted bug without a word of where to look, and keeps how long it took in `results/reference/hunt/`.

python -m scripts.hunted_bugs COMMIT SEED... [BUG...]

COMMIT names this code in the table. What is kept already is not hunted again, so that this can be ended and go on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final, get_args

import msgspec

from harness.lab.search import HuntResult, hunt, portfolios_for
from scripts.reference.markdown import table
from workloads import PlantedBug

RESULTS: Final = Path(__file__).parents[1] / "results" / "reference" / "hunt"
#: A line for each hunt, only ever added to; and the table that is made of all lines.
ROWS: Final = RESULTS / "plain-hunts.jsonl"
TABLE: Final = RESULTS / "plain-hunts.md"
#: Seconds of one core for each hunt.
SECONDS: Final = 60.0
BUGS: Final = tuple(bug for bug in get_args(PlantedBug) if bug != "none")
TITLE: Final = f"""# Planted bugs in plain hunts

`ackproof hunt BUG --seconds {SECONDS:.0f} --workers 1 --seed SEED`, kept and made by `python -m scripts.hunted_bugs`.
*Seconds* of one core are the median over the seeds, "not" where half of them or more found nothing; then how many did.
"""


class KeptHunt(msgspec.Struct, frozen=True, kw_only=True):
    """One hunt. Where nothing was found, ``portfolio`` and ``by`` are empty and ``run`` is None."""

    commit: str
    bug: str
    seed: int
    seconds: float
    schedules: int
    portfolio: str = ""
    run: int | None = None
    by: tuple[str, ...] = ()


def row_of(commit: str, bug: str, result: HuntResult) -> KeptHunt:
    """The line that is kept of a hunt."""
    seconds, run = round(result.seconds, 1), result.alarming
    row = KeptHunt(commit=commit, bug=bug, seed=result.seed, seconds=seconds, schedules=result.schedules)
    if run is None:
        return row
    by = tuple(alarm.by for alarm in run.alarms)
    return msgspec.structs.replace(row, portfolio=run.portfolio, run=run.number, by=by)


def kept_rows() -> list[KeptHunt]:
    """Every hunt that is kept."""
    return [msgspec.json.decode(line, type=KeptHunt) for line in ROWS.read_bytes().splitlines()]


def of_bug(rows: Sequence[KeptHunt]) -> str:
    """The seconds of the hunts for a bug by one commit, for people."""
    finding = [row for row in rows if row.run is not None]
    least = sorted(row.seconds for row in finding) + [SECONDS] * (len(rows) - len(finding))
    seconds = f"{median(least):.1f}" if 2 * len(finding) > len(rows) else "not"
    return f"{seconds}, {len(finding)} of {len(rows)}" if rows else ""


def page_of(rows: Sequence[KeptHunt]) -> str:
    """The page of all hunts: a line for each bug, a column for each commit, and what saw it last."""
    commits = [*dict.fromkeys(row.commit for row in rows)]
    head = ("`planted.bug`", *(f"{commit}: seconds, found" for commit in commits), "seen by", "in the portfolio")
    return f"{TITLE}\n{_totals(rows, commits)}\n\n{table(head, _lines(rows, commits))}\n"


def _totals(rows: Sequence[KeptHunt], commits: Sequence[str]) -> str:
    hunted = {commit: {row.bug for row in rows if row.commit == commit} for commit in commits}
    seen = {commit: {row.bug for row in rows if row.commit == commit and row.run is not None} for commit in commits}
    return "\n".join(
        f"- {commit}: {len(seen[commit])} of {len(hunted[commit])} hunted bugs found, with one seed at least; "
        f"{len({row.seed for row in rows if row.commit == commit})} seeds."
        for commit in commits
    )


def _lines(rows: Sequence[KeptHunt], commits: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for bug in BUGS:
        mine = [row for row in rows if row.bug == bug]
        last = next((row for row in reversed(mine) if row.run is not None), None)
        seen = ("", "") if last is None else (", ".join(f"`{by}`" for by in last.by[:2]), last.portfolio)
        yield (f"`{bug}`", *(of_bug([row for row in mine if row.commit == commit]) for commit in commits), *seen)


def main(words: Sequence[str]) -> None:
    """Hunt what is not kept yet, and write the page."""
    commit, *others = words
    seeds = [int(word) for word in others if word.isdecimal()]
    bugs = [word for word in others if not word.isdecimal()] or BUGS
    kept = {(row.commit, row.bug, row.seed) for row in kept_rows()}
    for seed in seeds:
        for bug in bugs:
            if (commit, bug, seed) not in kept:
                changed = {"planted.bug": bug}
                result = hunt(changed, seed=seed, seconds=SECONDS, portfolios=portfolios_for(changed))
                with ROWS.open("ab") as file:
                    file.write(msgspec.json.encode(row_of(commit, bug, result)) + b"\n")
    TABLE.write_text(page_of(kept_rows()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
