"""The command `ackproof release`."""

from __future__ import annotations

import fcntl
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

import click

from harness.cli.kafka import provide
from harness.cli.numbers import Amount
from harness.cli.terminal import RESULTS, Terminal, path_type, takes_json
from harness.ground.errors import EXIT_HELD, EXIT_UNKNOWN, PlanError
from harness.ground.machine.versions import own_version, this_machine
from harness.ground.progress import Progress
from harness.lab.releases import (
    Kept,
    KnownHarm,
    PlayingTime,
    as_markdown,
    as_page,
    command_player,
    harms_of,
    headline,
    judge,
    judged_releases,
)
from harness.lab.releases.judging import Side
from harness.records.files import files_of
from harness.records.release_file import ReleaseEntry, ReleaseRecord
from harness.worlds.kafka.registry import before, published
from harness.worlds.kafka.releases import Version, parse_version

_LOOK_EVERY_S: Final = 1.0


@click.command()
@click.argument("version", required=False)
@click.option(
    "--minutes",
    type=Amount("minutes", 0, 30 * 1440),
    default=40.0,
    show_default=True,
    help="How long plays may take together.",
)
@click.option(
    "--against",
    default="",
    help="The release to compare with; by default the newest of the line before, or the same without the patch.",
)
@click.option("--out", type=path_type, help="The directory of judged releases, instead of results/releases.")
@click.option(
    "--patch",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Classes and jars that come before the release's own; only findings are played then.",
)
@click.option("--newest", is_flag=True, help="Only name the releases that can be fetched and were not judged.")
@takes_json
def release(
    terminal: Terminal,
    version: str | None,
    *,
    minutes: float,
    against: str,
    out: Path | None,
    patch: Path | None,
    newest: bool,
) -> int:
    """Say what a release of Apache Kafka still does, and what is new.

    VERSION is fetched, and what is known is played on it, most telling first: findings, a certificate of an upgrade,
    the usual advice, stories. Each is new, still there, gone, not shown, or was not observed, and has the command that
    repeats it. The same command goes on where one was killed, or its budget was over. Exit code 1 if a harm shows
    that the other release does not have, 2 if something was not observed, else 0; of --newest 2 if there are any. See
    docs/guides/releases.md.
    """
    root = out or RESULTS / "releases"
    if newest:
        return _name_newest(terminal, version, root)
    if version is None:
        raise PlanError("name the release to judge, for example: ackproof release 4.4.0 (or --newest)")
    chosen = parse_version(version)
    other = parse_version(against) if against else chosen if patch else _line_before(chosen)
    if other == chosen and patch is None:
        raise PlanError(f"{version} is compared with itself; name another release with --against")
    for each in (chosen, other):
        provide(terminal, each)
    record = _judged(terminal, (str(chosen), str(other)), root, patch, minutes)
    if terminal.as_json:
        terminal.json(record)
    return record.exit_code


def _name_newest(terminal: Terminal, version: str | None, root: Path) -> int:
    if version is not None:
        raise PlanError("--newest names releases by itself; leave VERSION out")
    judged = judged_releases(root)
    newest = max(map(parse_version, judged), default=Version(0, 0, 0))
    newest_of = {each[:2]: each for each in sorted(map(parse_version, judged))}
    unjudged = [each for each in published() if each > newest_of.get(each[:2], newest)]
    terminal.answer(
        {"judged": sorted(judged), "not_judged": [*map(str, unjudged)]},
        [f"{each} was not judged: ackproof release {each}" for each in unjudged] or ["every newer release was judged"],
    )
    return EXIT_UNKNOWN if unjudged else EXIT_HELD


def _line_before(chosen: Version) -> Version:
    line_before = before(chosen, published())
    if line_before is None:
        raise PlanError(f"there is no release of a line before {chosen}; name another one with --against")
    return line_before


def _judged(
    terminal: Terminal, releases: tuple[str, str], root: Path, patch: Path | None, minutes: float
) -> ReleaseRecord:
    """Judge, say each entry as soon as it is, and keep the record and its pages."""
    version, against = releases
    here, other = Kept.of(root, version, patch), Kept.of(root, against)
    with files_of(here.directory):
        here.directory.mkdir(parents=True, exist_ok=True)
    progress = terminal.progress()
    with _alone(here.directory, progress) as lock:
        left = PlayingTime(minutes)
        harms = harms_of(version, against, here.directory, patched=patch is not None)
        work = here.directory / "work"
        first, second = (
            Side(release, kept, command_player(release, classes, work, kept.directory / "runs", lock), classes)
            for release, kept, classes in ((version, here, patch), (against, other, None))
        )
        judged: list[ReleaseEntry] = []
        for entry in judge(harms, first, second, left, progress):
            judged.append(entry)
            if not terminal.as_json:
                terminal.fold(f"{entry.result}: {entry.name}: {entry.title}")
        shutil.rmtree(work, ignore_errors=True)
        record = _record(releases, patch, judged, _seconds(harms, (here, other)))
        page = here.write(record, as_markdown(record), as_page(record))
    if not terminal.as_json:
        terminal.verdict(headline(record))
        terminal.say(str(page))
    return record


def _record(
    releases: tuple[str, str], patch: Path | None, entries: Sequence[ReleaseEntry], seconds: float
) -> ReleaseRecord:
    version, against = releases
    return ReleaseRecord(
        release=version,
        against=against,
        patch=str(patch or ""),
        day=datetime.now(UTC).date().isoformat(),
        by=own_version(),
        minutes=round(seconds / 60, 1),
        machine=this_machine().sentence(),
        entries=tuple(entries),
    )


def _seconds(harms: Sequence[KnownHarm], sides: Sequence[Kept]) -> float:
    return sum(play.seconds for side in sides for harm in harms for play in side.plays(harm))


@contextmanager
def _alone(directory: Path, progress: Progress) -> Iterator[int]:
    """Wait until no other judges into this directory: a play that outlived its parent holds the lock, too."""
    with (directory / ".lock").open("w") as lock:
        if not _locked(lock):
            with progress.phase("waiting for the end of what another one plays in this directory", None):
                while not _locked(lock):
                    time.sleep(_LOOK_EVERY_S)
        yield lock.fileno()


def _locked(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
