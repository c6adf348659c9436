"""Story files: a script, and what is expected of it in each column. TOML; docs/reference/stories.md has the form.

A file that has one of the tables "lost", "acknowledged", "skipped" and "also" expects something, and then it is
complete: what none of them lists is not lost, is acknowledged, is not skipped, and is not seen. "also" names signs, and
other anomalies by their own names. A file without them only shows its outcome.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final, Self, TypeVar

import msgspec

from checkers import ANOMALIES, NEVER
from harness.ground.errors import PlanError
from harness.plan import flattened
from harness.runs.stories.script.language import Where, parse_script
from harness.runs.stories.script.script import StoryScript
from harness.runs.stories.steps import Step
from harness.runs.stories.steps.groups import GroupStep, HandOver
from harness.runs.stories.steps.transactions import BeginTransaction, WriteInTransaction
from harness.runs.stories.table.columns import (
    OF_GROUPS,
    OF_PIPELINES,
    OF_TRANSACTIONS,
    REPLICAS,
    REPLICATION_FACTOR,
    Column,
    check_overrides,
    chosen_columns,
    of_replicas,
)
from workloads import Settings, SettingsError, reason_of, unknown_name

#: The most brokers of a script.
REPLICAS_MAX: Final = 16


Entry = TypeVar("Entry", bound=str)


class Sign(StrEnum):
    """Something that may be seen beside losses: its name in ``[also]``, a letter for the table, and its anomalies.

    ``anomalies`` are those by whose findings alone it is seen.
    """

    letter: str
    anomalies: tuple[str, ...]

    def __new__(cls, name: str, letter: str = "", *anomalies: str) -> Self:
        """A sign of this name."""
        sign = str.__new__(cls, name)
        sign._value_, sign.letter, sign.anomalies = name, letter, anomalies
        return sign

    LEADERLESS = "leaderless", "*"
    FOR_GOOD = "leaderless for good", "X"
    DIVERGED = "diverged", "V", "divergent-replicas", "divergent-tables"
    CHANGED_READ = "changed read", "c"
    DUPLICATE = "duplicate", "D", "duplicate"
    REORDERED = "reordered", "R", "reordered"
    RETURNED = "returned key", "K", "returned-key"
    ABORTED_READ = "aborted read", "A", "aborted-read"
    EARLY = "early read", "E", "early-read"
    TORN = "torn transaction", "T", "torn-transaction"
    ZOMBIE = "zombie", "Z", "zombie"
    HANGING = "hanging transaction", "H", "hanging-transaction"
    AGAIN = "processed again", "P"
    WENT_BACK = "group went back", "B", "group-went-back"
    OWNERS = "two owners", "O", "two-owners"
    EXPIRED = "expired unread", "G", "expired-write"


_TOLD: Final = {"lost-write", "group-skip", *NEVER, *(name for sign in Sign for name in sign.anomalies)}
#: The anomalies that a file can expect by their own names: no other table and no sign is about them.
OTHERS: Final = tuple(name for name in ANOMALIES if name not in _TOLD)
_OF_LOSS: Final = frozenset({"unseen", "inconsistent-offsets"})


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """The expectation in one column: records lost, acknowledged, and skipped by the group, and what else is seen.

    ``others`` are anomalies that no sign is about.
    """

    lost: frozenset[str]
    acknowledged: frozenset[str]
    skipped: frozenset[str]
    signs: frozenset[Sign]
    others: frozenset[str]

    @property
    def letters(self) -> str:
        """As the table shows it: L for a loss, S for a skipped record, then the signs' letters; "." for nothing.

        A plus is every other anomaly. The lack of a leader is not shown beside the loss that it caused.
        """
        hidden = {Sign.LEADERLESS, Sign.FOR_GOOD} if self.lost else set()
        shown = [s.letter for s in Sign if s in self.signs - hidden]
        others = self.others - following(self.lost, self.signs)
        return "".join(["L" if self.lost else "", "S" if self.skipped else "", *shown, "+" if others else ""]) or "."


def following(lost: Collection[str], signs: Collection[Sign]) -> frozenset[str]:
    """Anomalies that need not be named: a record that is lost, and a log that nobody leads, show them."""
    return _OF_LOSS if lost or Sign.FOR_GOOD in signs else frozenset()


class StoryFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of a story file. Tables map a record, or a sign, to columns (:func:`chosen_columns`)."""

    number: str
    """A capital letter and up to three digits: `"M1"`."""
    title: str
    """One line that says what happens."""
    steps: str
    """The script, one step a line."""
    source: str = ""
    """The source of the story: a rule, an issue, a paper."""
    note: str = ""
    """A note for its readers."""
    settings: dict[str, object] = {}
    """Settings that it needs in every column; not those that columns choose, such as `acks`."""
    real_time: dict[str, object] = {}
    """Settings that it needs beside those where time is real: `ackproof conform` rests after every step."""
    needs: list[str] = []
    """Steps that are written with `try`, and without which a run of a plan shows nothing."""
    lost: dict[str, list[str]] | None = None
    """By record, the columns in which it is lost. `"all/2*"` is a pattern, `"!all/2/F"` takes away again."""
    acknowledged: dict[str, list[str]] | None = None
    """By record, the columns in which it is acknowledged; a record that is left out is acknowledged in all."""
    skipped: dict[str, list[str]] | None = None
    """By record, the columns in which the group passes over it: no member processes it."""
    also: dict[str, list[str]] | None = None
    """By sign, such as `"leaderless"`, or by anomaly, the columns in which it is seen."""


_OF_COLUMNS: Final = 'a table of lists of columns, such as x = ["a0", "a1"]'
#: Names of the types of a file's values other than strings.
_FORMS: Final = {
    "needs": 'a list of steps that are written with "try"',
    **dict.fromkeys(("settings", "real_time"), "a table of settings under Kafka's names"),
    **dict.fromkeys(("lost", "acknowledged", "skipped", "also"), _OF_COLUMNS),
}


class Story(StoryScript, frozen=True, kw_only=True):
    """A script and what is expected of it; ``expects`` is false where its file expects nothing.

    ``needs`` are steps that may fail in some column, and without which a run of a plan shows nothing. ``real_time`` are
    settings for worlds in which each step takes time.
    """

    source: str
    note: str
    real_time: Mapping[str, object]
    needs: frozenset[str]
    expects: bool
    lost: Mapping[str, tuple[str, ...]]
    acknowledged: Mapping[str, tuple[str, ...]]
    skipped: Mapping[str, tuple[str, ...]]
    also: Mapping[Sign, tuple[str, ...]]
    others: Mapping[str, tuple[str, ...]]

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns of the table that it is performed in."""
        return _columns_of(self.steps, self.replicas)

    @property
    def replicas(self) -> int:
        """The number of its brokers. Each has a replica."""
        return int(str(self.settings.get(REPLICATION_FACTOR, REPLICAS)))

    def takes(self, column: Column) -> bool:
        """True if it can be performed in this column: one of its kind, or a reader's own."""
        return column.own or column.name in self.columns

    def in_column(self, column: str) -> Story:
        """The story as it is performed in a column, where a step with ``try in`` may fail only if this is named."""
        if column not in self.columns:
            return self
        steps = [
            step if step.tried_in is None else msgspec.structs.replace(step, tried=column in self._tried_in(step))
            for step in self.steps
        ]
        return msgspec.structs.replace(self, steps=tuple(steps))

    def _tried_in(self, step: Step) -> tuple[str, ...]:
        return chosen_columns(step.tried_in or (), self.columns)

    def expected(self, column: str) -> Expected:
        """The expectation in the column of that name."""
        return Expected(
            lost=_in_column(self.lost, column),
            acknowledged=frozenset(
                record for record in self.records if column in self.acknowledged.get(record, (column,))
            ),
            skipped=_in_column(self.skipped, column),
            signs=_in_column(self.also, column),
            others=_in_column(self.others, column),
        )


def _in_column(table: Mapping[Entry, Sequence[str]], column: str) -> frozenset[Entry]:
    """The entries that a column shows."""
    return frozenset(entry for entry, columns in table.items() if column in columns)


def known_stories() -> dict[str, Story]:
    """Every story of this package, by number."""
    return {story.number: story for story in _known_stories()}


@cache
def _known_stories() -> tuple[Story, ...]:
    """Read them once: to parse them all takes a tenth of a second."""
    files = sorted(resources.files("harness.runs.stories").joinpath("data").iterdir(), key=lambda file: file.name)
    return tuple(parse_story(file.read_text(), file.name) for file in files if file.name.endswith(".toml"))


def read_story(path: Path) -> Story:
    """The story in a file.

    Raises:
        PlanError: it cannot be read, or is wrong: file, line, what was expected.
    """
    try:
        return parse_story(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(
            f"{path} cannot be read ({reason_of(error)}); name a story file or the number of a story"
        ) from error


def parse_story(text: str, file: str) -> Story:
    """The story that ``text`` of ``file`` is.

    Raises:
        PlanError: it is wrong: file, line, what was expected and the nearest valid word.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{file}: {error}") from error
    places = _Places(text, file)
    for key in content:
        if key not in StoryFile.__struct_fields__:
            raise places.of(key).wrong(unknown_name("key", key, dict.fromkeys(StoryFile.__struct_fields__)))
    for table in ("settings", "real_time"):
        if isinstance(settings := content.get(table), dict):
            content[table] = flattened(settings)
    content_read = _converted(content, places)
    replicas = _replicas_of(content_read.settings, places)
    steps = parse_script(content_read.steps, file, places.script_line, range(replicas))
    if not steps:
        raise places.of("steps").wrong('the script has no step, such as "write x to 0"')
    columns = _columns_of(steps, replicas)
    for step in steps:
        try:
            chosen_columns(step.tried_in or (), columns)
        except KeyError as error:
            raise Where(file, step.line).wrong(f'"{step.text}": {error.args[0]}') from error
    _check_settings(content_read, columns, places)
    also = {_seen(name, places): names for name, names in _chosen(content_read.also, columns, places).items()}
    story = Story(
        number=content_read.number,
        title=content_read.title,
        source=content_read.source,
        note=content_read.note,
        settings=content_read.settings,
        real_time=content_read.real_time,
        steps=steps,
        needs=frozenset(f"try {step}" for step in content_read.needs),
        expects=any(
            table is not None
            for table in (content_read.lost, content_read.acknowledged, content_read.skipped, content_read.also)
        ),
        lost=_chosen(content_read.lost, columns, places),
        acknowledged=_chosen(content_read.acknowledged, columns, places),
        skipped=_chosen(content_read.skipped, columns, places),
        also={sign: names for sign, names in also.items() if isinstance(sign, Sign)},
        others={name: names for name, names in also.items() if not isinstance(name, Sign)},
    )
    for needed in sorted(story.needs - {step.text for step in steps}):
        raise places.of("needs").wrong(f'no step of the script is "{needed}"')
    for record in (*story.lost, *story.acknowledged, *story.skipped):
        if record not in story.records:
            raise places.of(record).wrong(unknown_name("record", record, dict.fromkeys(story.records)))
    return story


def _check_settings(content: StoryFile, columns: Mapping[str, Column], places: _Places) -> None:
    for table, settings in {"settings": content.settings, "real_time": content.settings | content.real_time}.items():
        try:
            check_overrides(settings, columns)
        except SettingsError as error:
            raise places.of(table).wrong(f"[{table}]: {error}") from error


def _converted(content: dict[str, object], places: _Places) -> StoryFile:
    """The file, or what is missing in it, or of another form."""
    for field in msgspec.structs.fields(StoryFile):
        if field.name in content:
            try:
                msgspec.convert(content[field.name], field.type)
            except msgspec.ValidationError:
                form = _FORMS.get(field.name, "a string")
                raise places.of(field.name).wrong(f'"{field.name}" must be {form}') from None
        elif field.required:
            raise places.of(field.name).wrong(f'"{field.name}" is missing; a story file has number, title and steps')
    return msgspec.convert(content, StoryFile)


class _Places:
    """Finds the lines of keys in a file."""

    def __init__(self, text: str, file: str) -> None:
        self._lines = text.splitlines()
        self._file = file

    @property
    def script_line(self) -> int:
        """The line at which the script begins: TOML leaves out a line break right after the quotes."""
        line = self.of("steps").line
        opening = self._lines[line - 1] if line <= len(self._lines) else ""
        return line + (re.search(r"(\"\"\"|''')\s*$", opening) is not None)

    def of(self, key: str) -> Where:
        """The first line that begins with ``key``, or with its table; line 1 where none does."""
        begin = re.compile(rf"\s*\[?\s*[\"']?{re.escape(key)}[\"']?\s*[\].=]")
        line = next((number for number, text in enumerate(self._lines, 1) if begin.match(text)), 1)
        return Where(self._file, line)


def _replicas_of(settings: Mapping[str, object], places: _Places) -> int:
    """The number of brokers, which is that of replicas."""
    chosen = {name: value for name, value in settings.items() if name == REPLICATION_FACTOR}
    try:
        replicas = Settings.from_mapping(chosen).replication_factor
    except SettingsError as error:
        raise places.of("settings").wrong(f"[settings]: {error}") from error
    if replicas > REPLICAS_MAX:
        raise places.of("settings").wrong(f"[settings]: a script has {REPLICAS_MAX} brokers at most, not {replicas}")
    return replicas


def _columns_of(steps: Sequence[Step], replicas: int) -> Mapping[str, Column]:
    transactional = any(isinstance(step, BeginTransaction) for step in steps)
    if any(isinstance(step, GroupStep) for step in steps):
        pipes = any(isinstance(step, HandOver | WriteInTransaction) for step in steps)
        return OF_PIPELINES if pipes else OF_GROUPS
    return OF_TRANSACTIONS if transactional else of_replicas(replicas)


def _chosen(
    table: Mapping[str, Sequence[str]] | None, columns: Mapping[str, Column], places: _Places
) -> dict[str, tuple[str, ...]]:
    chosen = {}
    for key, patterns in (table or {}).items():
        try:
            chosen[key] = chosen_columns(patterns, columns)
        except KeyError as error:
            raise places.of(key).wrong(str(error.args[0])) from error
    return chosen


def _seen(name: str, places: _Places) -> Sign | str:
    if name in OTHERS:
        return name
    try:
        return Sign(name)
    except ValueError:
        raise places.of(name).wrong(unknown_name("sign", name, dict.fromkeys([*Sign, *OTHERS]))) from None
