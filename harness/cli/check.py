"""The command `ackproof check`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from checkers import SHOWN, CheckError, Finding, Place, place_of
from harness.campaigns import campaign
from harness.campaigns.report import Case, as_junit, cases_as_markdown, cases_of
from harness.cli.replay import described
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.cli.verdict_table import show_judged
from harness.ground.errors import NamedWronglyError
from harness.ground.progress import Progress
from harness.records.files import LEDGER_FILE, VERDICTS_FILE, check_writable, write_file
from harness.records.verdict_lines import WrittenVerdicts
from harness.runs.run import lacks_observations

#: The file of verdicts without a directory of their own.
HERE: Final = Path(VERDICTS_FILE)
#: Sentences about what was not judged; all are in the file of verdicts.
LEFT_OUT_MAX: Final = 20


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--out", type=path_type, help="Write all verdicts into this one file, a line for each history.")
@click.option(
    "--ww-deps/--no-ww-deps",
    default=None,
    help="Count overwrites as dependencies in cycles, or not. By default as a history's own options say, else only in "
    "histories of other tools.",
)
@click.option("--master", metavar="URL", help="Spark master, such as spark://host:7077; by default local threads.")
@click.option("--all", "all_", is_flag=True, help=f"Write all findings, not only {SHOWN} of each; counts are whole.")
@click.option("--junit", type=path_type, help="Write JUnit's XML there: a case for each cell, or history of its own.")
@click.option("--summary", type=path_type, help="Write the same as a table in Markdown there, for a job's page.")
@click.option("--scratch", type=path_type, help="Where JSON lines are stored first; workers of --master must see it.")
@takes_json
def check(
    terminal: Terminal,
    paths: Sequence[str],
    *,
    out: Path | None,
    ww_deps: bool | None,
    master: str | None,
    all_: bool,
    junit: Path | None,
    summary: Path | None,
    scratch: Path | None,
) -> int:
    """Judge the histories at every PATH.

    A PATH is a run's directory, a campaign's, a file with another tool's history (JSON lines, Jepsen's history.edn,
    lines of Kafka's VerifiableProducer and VerifiableConsumer), or a directory of those. It may be a URI (s3a://,
    s3://, gs://, hdfs://, file://). What a history has and is not judged is said. Verdicts are written to
    verdicts.jsonl in each directory named, those of other histories to ./verdicts.jsonl; the last line is the verdict
    and where they are. Exit code 2 if what is there could not be read as a history.
    """
    try:
        places = [place_of(path) for path in paths]
    except CheckError as error:
        raise click.BadParameter(str(error)) from error
    for option, file in (("--out", out), ("--junit", junit), ("--summary", summary)):
        if file is not None:
            check_writable(option, file)
    if scratch is not None and scratch.exists() and not scratch.is_dir():
        raise NamedWronglyError(f"--scratch {scratch} is not a directory; name a directory")
    if out is None:
        _refuse_soaks(places)
    asked = campaign.CheckOptions(master=master, ww_deps=ww_deps, shown=None if all_ else SHOWN, scratch=scratch)
    progress = Progress() if terminal.as_json else terminal.progress()
    judged = campaign.judge_all(places, progress, asked)
    local = [history.path for history in judged if history.is_run and isinstance(history.path, Path)]
    campaign.trace_runs([run for run in local if lacks_observations(run)], progress)  # their harness was killed
    written = [campaign.write_verdicts_to(out, judged)] if out is not None else _write_beside(places, judged)
    counted = campaign.count_cells(places, judged)
    _write_for_ci(counted, junit, summary)
    code = counted.exit_code
    if terminal.as_json:
        for history in judged:
            terminal.json(
                {
                    "path": str(history.path),
                    "outcome": history.outcome,
                    "reason": history.line.why_unknown,
                    "verdict": history.line,
                }
            )
        for cell in counted.cells:
            terminal.json({"cell": cell.cell, "world": cell.world, "outcome": cell.outcome, "reason": cell.note})
        return code
    if kept := sum(history.kept for history in written):
        terminal.say(f"{kept} earlier verdicts on histories that cannot be read now are kept")
    for sentence in _left_out(judged):
        terminal.say(sentence)
    show_judged(terminal, judged, counted.cells, [str(history.file) for history in written])
    return code


def _left_out(judged: Iterable[campaign.JudgedHistory]) -> list[str]:
    """Sentences about the parts of histories that were not judged, as far as there is room."""
    told = [f"not judged in {history.path}: {what}" for history in judged for what in history.line.left_out]
    more = [f"... and {len(told) - LEFT_OUT_MAX} more that were not judged"] if len(told) > LEFT_OUT_MAX else []
    return [*told[:LEFT_OUT_MAX], *more]


def _refuse_soaks(places: Iterable[Place]) -> None:
    """A soak's verdicts are of runs that are deleted since: what is left of it would take their place."""
    for path in places:
        if isinstance(path, Path) and (path / LEDGER_FILE).is_file():
            raise NamedWronglyError(
                f"{path} is a soak, which judged its runs before it deleted most of them; judge the rest into "
                f"another file with --out FILE, or write its report again: ackproof report {path}"
            )


def _write_for_ci(counted: campaign.Counted, junit: Path | None, summary: Path | None) -> None:
    if junit is None and summary is None:
        return
    cases = [*cases_of(counted.cells), *map(_case, counted.alone)]
    if junit is not None:
        write_file(junit, as_junit(cases))
    if summary is not None:
        write_file(summary, cases_as_markdown(cases).encode())


def _as_json(finding: Finding) -> str:
    """A finding of a history that another tool may have written: its values are no numbers of ours."""
    return msgspec.json.encode(finding).decode()


def _case(history: campaign.JudgedHistory) -> Case:
    """A history that is in no cell."""
    counts = ", ".join(f"{count} {name}" for name, count in history.line.counts.items() if count)
    text = "\n".join([history.outcome, *described(history.line, _as_json)])
    return Case(
        "histories",
        "history",
        str(history.path),
        history.outcome,
        history.line.why_unknown or counts or "nothing",
        text,
    )


def _write_beside(places: Sequence[Place], judged: Sequence[campaign.JudgedHistory]) -> list[WrittenVerdicts]:
    """Write verdicts into the directories that were named, and what lies in none of them here."""
    directories = [path for path in places if isinstance(path, Path) and path.is_dir()]
    files = [campaign.write_verdicts(directory, _below(directory, judged)) for directory in directories]
    rest = [
        history for history in judged if not any(history.path.is_relative_to(directory) for directory in directories)
    ]
    return [*files, *([campaign.write_verdicts_to(HERE, rest)] if rest else [])]


def _below(path: Path, judged: Sequence[campaign.JudgedHistory]) -> list[campaign.JudgedHistory]:
    return [history for history in judged if history.path.is_relative_to(path)]
