"""The harms that are looked for on a release, most telling first, and the command that plays each.

First the findings whose defect is the brokers' and the known defects with a script, each in its usual way; then the
certificate of an upgrade from the compared release, and the usual advice; then findings of clients, other ways of the
findings, and the stories. Controls are not played: the compared release is the control.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.ground.errors import PlanError
from harness.lab.conform import playable
from harness.lab.findings import FINDINGS, PlayableFinding, PlayRequest, expects_nothing
from harness.plan import starter
from harness.records.release_file import EntryKind
from harness.runs.stories import Story, column_named, known_stories
from harness.worlds.kafka.releases import parse_version

#: The plan of the usual advice: what most people run, and where nothing may be lost.
ADVICE: Final = "kafka-usual-advice-librdkafka"
_COLUMN: Final = "all/2"
_OF_A_FINDING: Final = "docs/findings/"


class KnownHarm(NamedTuple):
    """A harm that can be played on releases.

    Attributes:
        name, kind, title, page: as :class:`harness.records.release_file.ReleaseEntry` has them.
        words: by release, the words after ``ackproof`` that play it once.
        minutes: how long a try takes at most on a quiet machine.
        expects: by release, the outcome that its page says: it shows, it does not, or nothing is said.
        compares: it can be played on the compared release, too.
    """

    name: str
    kind: EntryKind
    title: str
    words: Callable[[str], tuple[str, ...]]
    minutes: int = 1
    page: str = ""
    expects: Callable[[str], bool | None] = lambda _: False
    compares: bool = True

    @property
    def file(self) -> str:
        """Its name as that of a file."""
        return f"{self.name.replace(' ', '-')}.json"


def words_of(harm: KnownHarm, release: str, patch: Path | None) -> tuple[str, ...]:
    """The words after ``ackproof`` that play it once; of a finding with the classes of ``patch`` before the release."""
    return (*harm.words(release), *(() if patch is None else ("--patch", str(patch))))


def harms_of(release: str, against: str, directory: Path, *, patched: bool = False) -> list[KnownHarm]:
    """Everything to be played, most telling first; plans are written into ``directory``. ``patched``: only findings.

    Raises:
        PlanError: this is no release.
    """
    findings = [harm for finding in FINDINGS.values() for harm in _ways(finding)]
    telling, later = _split(findings, lambda harm: _is_brokers(harm) and _is_usual(harm))
    clients, others = _split(later, _is_usual)
    expected, controls = _split(telling, lambda harm: bool(harm.expects(release) or harm.expects(against)))
    if patched:
        return [*expected, *clients, *others, *controls]
    runs = [_certificate(against, release)] if parse_version(against) < parse_version(release) else []
    runs.append(_advice(directory))
    return [*expected, *runs, *clients, *controls, *others, *_stories(release)]


def _split(harms: Sequence[KnownHarm], first: Callable[[KnownHarm], bool]) -> tuple[list[KnownHarm], list[KnownHarm]]:
    return [harm for harm in harms if first(harm)], [harm for harm in harms if not first(harm)]


# --- findings --------------------------------------------------------------------------------------------------------


def _ways(finding: PlayableFinding) -> Iterator[KnownHarm]:
    """A finding in each of its ways on Kafka, except its controls."""
    for name, way in finding.ways.items():
        if way.kafka and way.expects is not expects_nothing:
            yield _finding(finding, name)


def _finding(finding: PlayableFinding, way: str) -> KnownHarm:
    def words(release: str) -> tuple[str, ...]:
        chosen = () if way == finding.usual else ("--way", way)
        return ("finding", finding.number, *chosen, "--version", release)

    def expects(release: str) -> bool | None:
        usual, *_ = finding.clients_of(way)
        return PlayRequest(finding=finding, way=way, version=release, client=usual, client_version="").expected

    title = finding.entry.title if way == finding.usual else f"{finding.entry.title} ({finding.ways[way].meaning})"
    kind: EntryKind = "finding" if finding.entry.page else "defect"
    return KnownHarm(f"{kind} {finding.number} {way}", kind, title, words, finding.minutes, finding.link, expects)


def _of(harm: KnownHarm) -> tuple[PlayableFinding, str]:
    _, number, way = harm.name.split(" ")
    return FINDINGS[number], way


def _is_usual(harm: KnownHarm) -> bool:
    finding, way = _of(harm)
    return way == finding.usual


def _is_brokers(harm: KnownHarm) -> bool:
    finding, _ = _of(harm)
    return any(defect.of == "kafka" for defect in finding.entry.defect)


# --- runs and stories ------------------------------------------------------------------------------------------------


def _certificate(against: str, release: str) -> KnownHarm:
    title = f"a rolling upgrade from {against} under kills loses an acknowledged write"
    words = ("upgrade", against, release)
    page = "docs/guides/upgrade.md"
    return KnownHarm("certificate", "certificate", title, lambda _: words, 4, page, compares=False)


def _advice(directory: Path) -> KnownHarm:
    def words(release: str) -> tuple[str, ...]:
        return ("campaign", str(advice_plan(directory, release)))

    title = "acks=all with two in sync breaks its promise under kill, pause, partition or power"
    return KnownHarm("usual advice", "advice", title, words, 4, "results/reference/README.md")


def advice_plan(directory: Path, release: str) -> Path:
    """Write the plan of the usual advice for a release, one run of each family, and say where it is."""
    (source,) = starter(ADVICE).values()
    text = source.read_text(encoding="utf-8")
    for key, value in (("version", f'"{release}"'), ("runs", "1")):
        text, changed = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        if changed != 1:
            raise PlanError(f"{source} has no one line of {key}")
    path = directory / f"usual-advice-{release}.toml"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path


def _stories(release: str) -> list[KnownHarm]:
    """The stories that Kafka can perform, each in its usual column, those about a finding first."""
    every = known_stories()
    usual = {
        number: _COLUMN if story.takes(column_named(_COLUMN)) else next(iter(story.columns))
        for number, story in every.items()
    }
    chosen = [every[number] for number in every if playable([every[number]], [usual[number]], "kafka", release)]
    first = [story for story in chosen if _OF_A_FINDING in story.source]
    return [_story(story, usual[story.number]) for story in [*first, *(each for each in chosen if each not in first)]]


def _story(story: Story, column: str) -> KnownHarm:
    def words(release: str) -> tuple[str, ...]:
        return ("conform", story.number, *(() if column == _COLUMN else ("--settings", column)), "--version", release)

    title = f"another course or outcome than expected: {story.title}"
    return KnownHarm(f"story {story.number}", "story", title, words, page="docs/reference/stories.md")
