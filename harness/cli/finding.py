"""The command `ackproof finding`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from checkers import counted
from harness.cli.numbers import WholeNumber
from harness.cli.terminal import Terminal, takes_json
from harness.ground.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN, PlanError
from harness.lab.findings import (
    FINDINGS,
    AsDocumented,
    PlayableFinding,
    Played,
    PlayRequest,
    PlayVerdict,
    asked_for,
    held_against_page,
    plays,
)
from workloads import unknown_name

_EXITS: Final = {
    AsDocumented.YES: EXIT_HELD,
    AsDocumented.NO: EXIT_BROKEN,
    AsDocumented.UNKNOWN: EXIT_UNKNOWN,
}
#: With a patch before a release that shows it.
_CURED: Final = {AsDocumented.YES: "cured", AsDocumented.NO: "not cured", AsDocumented.UNKNOWN: "not known"}
#: The outcome that a page says, in words.
_SAYS: Final = {
    True: "its page says that it shows",
    False: "its page says that it does not show",
    None: "its page says nothing of these releases",
}


@click.command()
@click.argument("number", required=False)
@click.option("--version", default="", help="The release of Apache Kafka; see `ackproof kafka list`.")
@click.option("--client", default="", help="The client library, if there are several (java, or java:3.9.2).")
@click.option("--way", default="", help="Another way to play it, such as a control; NUMBER --ways names them.")
@click.option("--ways", "listed", is_flag=True, help="Only name the ways to play it.")
@click.option(
    "--patch",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Put what is in DIR before the release's own classes, or the client library; see `ackproof cure`.",
)
@click.option("--runs", type=WholeNumber(1, 1000), default=1, show_default=True, help="Play it so often.")
@takes_json
def finding(
    terminal: Terminal,
    number: str | None,
    *,
    version: str,
    client: str,
    way: str,
    listed: bool,
    patch: Path | None,
    runs: int,
) -> int:
    """Play a finding about Kafka or its clients on this machine.

    NUMBER is that of its page in docs/findings (015); none: all of them are listed. A new cluster is started for each
    run, and removed. It is said what was observed, step by step, and whether that is what the page says: exit code 0
    if so, 1 if not, 2 if it could not be observed, or the page says nothing of this release. With --patch a finding
    that the page says to show should not show: 0 if it is cured, 1 if not.
    """
    given = {"--version": version, "--client": client, "--way": way, "--patch": patch}
    if number is None:
        if options := [option for option, value in given.items() if value] + ["--ways"] * listed:
            raise PlanError(f"name the finding that {options[0]} is about, for example: ackproof finding 015")
        for each in FINDINGS.values():
            terminal.answer(_entry(each), _lines(each))
        return EXIT_HELD
    if (padded := number.zfill(3)) not in FINDINGS:
        raise PlanError(unknown_name("finding", number, FINDINGS))
    chosen = FINDINGS[padded]
    if listed:
        terminal.answer(_entry(chosen), [*_lines(chosen), *_ways(chosen)])
        return EXIT_HELD
    return _play(terminal, asked_for(chosen, way, version, client, patch), runs)


def _play(terminal: Terminal, asked: PlayRequest, runs: int) -> int:
    entry = asked.finding.entry
    if not terminal.as_json:
        terminal.fold(f"finding {entry.number}: {entry.title}")
        terminal.fold(f"{asked.way}: {asked.chosen.meaning}; {asked.in_words}")
    played: list[Played] = []
    for each in plays(asked, runs, terminal.progress()):
        played.append(each)
        if not terminal.as_json:
            for line in _observed(each, len(played) if runs > 1 else None):
                terminal.fold(line)
    outcome = held_against_page(asked, played)
    if terminal.as_json:
        terminal.json(
            {
                "finding": entry.number,
                "way": asked.way,
                "version": asked.version if asked.chosen.kafka else None,
                "client": asked.client,
                "client_version": str(asked.releases.library),
                "patch": str(asked.patch.directory) if asked.patch else None,
                "expected": asked.expected,
                "outcome": outcome,
                "plays": played,
            }
        )
    else:
        terminal.fold(_conclusion(asked, played, outcome))
    return _EXITS[outcome]


def _observed(played: Played, number: int | None) -> Iterator[str]:
    if number is not None:
        yield f"run {number}: {played.verdict}"
    yield from (f"- {fact}" for fact in played.seen)
    if played.why:
        yield f"- could not be observed: {played.why}"


def _conclusion(asked: PlayRequest, played: Sequence[Played], outcome: AsDocumented) -> str:
    shown = sum(each.verdict is PlayVerdict.SHOWN for each in played)
    unknown = sum(each.verdict is PlayVerdict.NOT_OBSERVED for each in played)
    if len(played) == 1:
        head = str(played[0].verdict)
    else:
        lost = f", could not be observed in {unknown}" if unknown else ""
        head = f"shown in {shown} of {counted(len(played), 'run')}{lost}"
    entry = asked.finding.entry
    says, told = _SAYS[asked.expected], str(outcome)
    if asked.patch and asked.expected:
        says, told = f"{says} without the patch", _CURED[outcome]
    return f"finding {entry.number}: {head}; {says}: {told} ({asked.finding.link})"


# --- the list --------------------------------------------------------------------------------------------------------


def _entry(each: PlayableFinding) -> dict[str, Any]:
    return {
        "finding": each.number,
        "title": each.entry.title,
        "affected": {defect.name: [defect.of, defect.affected] for defect in each.entry.defect},
        "controls": list(each.controls),
        "page": each.link,
        "minutes": each.minutes,
        "root": bool(each.programs),
        "ways": {
            name: {"meaning": way.meaning, "clients": list(each.clients_of(name)), "kafka": way.kafka}
            for name, way in each.ways.items()
        },
    }


def _lines(each: PlayableFinding) -> Iterator[str]:
    releases = {defect.name: defect.releases for defect in each.entry.defect}
    alike = len(set(releases.values())) == 1
    affected = next(iter(releases.values())) if alike else "; ".join(f"{name}: {of}" for name, of in releases.items())
    controls = f"; without it: {', '.join(each.controls)}" if each.controls else ""
    yield f"{each.number}  {each.entry.title}"
    yield f"     {affected}{controls}; {counted(each.minutes, 'minute')}{', as root' * bool(each.programs)}"


def _ways(each: PlayableFinding) -> Iterator[str]:
    for name, way in each.ways.items():
        yield f"     --way {name}: {way.meaning} ({', '.join(each.clients_of(name))})"
