"""The recorded trace of a story on a real cluster: what it showed after each step, as a small JSON file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from harness.ground.errors import PlanError
from harness.lab.conform.shown import ShownState, shown_after
from harness.plan import RealTime, RunSpec
from harness.records.files import files_of, write_file
from harness.runs.stories import Play, Story, StoryOutcome, Trace, column_named, known_stories, parse_story
from harness.worlds.kafka.releases import DEFAULT_VERSION
from workloads import Settings, SettingsError, SettingValue, reason_of, unknown_name

#: The number of the form of these files.
FORM: Final = 1
KAFKA: Final = "Apache Kafka"


class RecordedStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A step: its text, how long it lasted until the cluster was at rest, how it went, and what was shown then."""

    text: str
    lasted_ms: int
    shown: ShownState
    play: Play = Play.PLAYED
    note: str = ""


class RecordedTrace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A story as ``system`` performed it; ``steps`` are those that bring about its beginning too.

    ``day`` is that of its end (UTC). ``settings`` are those that have not their default. ``outcome`` is what the
    checkers found, None in old traces. ``client`` is the library of its clients; an old trace may lack it, and has the
    ``commit`` that brought it. ``script`` is the file of a reader's own story.
    """

    form: int
    story: str
    column: str
    system: str
    day: str = ""
    settings: dict[str, SettingValue]
    steps: tuple[RecordedStep, ...]
    outcome: StoryOutcome | None = None
    client: str = ""
    commit: str = ""
    script: str = ""

    @property
    def is_kafka(self) -> bool:
        """True if Apache Kafka performed it, and not the reference broker's own processes."""
        return self.system.startswith(KAFKA)

    @property
    def release(self) -> str:
        """The release of Apache Kafka; "" of the reference broker."""
        return self.system.removeprefix(KAFKA).strip() if self.is_kafka else ""

    @property
    def name(self) -> str:
        """The name of its file, with the release if it is of another than the default one."""
        words = [
            self.story,
            *self.column.split("/"),
            *([] if self.release in {"", DEFAULT_VERSION} else [self.release]),
        ]
        return f"{'-'.join(words)}.json"


class _Head(msgspec.Struct):
    """The part of these files that every form has."""

    form: int


def recorded(
    story: Story, spec: RunSpec, system: str, trace: Trace, outcome: StoryOutcome | None = None
) -> RecordedTrace:
    """The trace of a performance; what fresh clients do when all is healed is no step of it."""
    usual = Settings().to_mapping()
    return RecordedTrace(
        form=FORM,
        story=story.number,
        column=spec.cell,
        system=system,
        day=datetime.now(UTC).date().isoformat(),
        settings={name: value for name, value in spec.settings.items() if value != usual[name]},
        steps=tuple(steps_of(trace)),
        outcome=outcome,
        client=spec.world.client_name if isinstance(spec.world, RealTime) else "",
    )


def steps_of(trace: Trace) -> Iterator[RecordedStep]:
    """The steps of a performance, without its last entry."""
    names = {end.value: name for name, end in trace.records.items()}
    for entry in trace.entries[:-1]:
        yield RecordedStep(
            text=entry.text,
            lasted_ms=(entry.ended_us - entry.begun_us) // 1_000,
            shown=shown_after(entry, names),
            play=entry.play,
            note=entry.note,
        )


def write_trace(directory: Path, trace: RecordedTrace) -> Path:
    """Write the file of a trace, one step a line."""
    whole = msgspec.to_builtins(trace)
    steps = whole.pop("steps")
    head = msgspec.json.encode(whole).decode().removesuffix("}")
    lines = ",\n".join(msgspec.json.encode(step).decode() for step in steps)
    path = directory / trace.name
    with files_of(directory):
        directory.mkdir(parents=True, exist_ok=True)
        write_file(path, f'{head},"steps":[\n{lines}\n]}}\n'.encode())
    return path


def read_trace(path: Path) -> RecordedTrace:
    """The trace in a file.

    Raises:
        PlanError: it cannot be read, is no such file, or speaks of what this version does not know.
    """
    if path.exists() and not path.is_file():
        raise _no_trace(path, "it is not a regular file")
    try:
        content = path.read_bytes()
        form = msgspec.json.decode(content, type=_Head).form
        if form != FORM:
            raise PlanError(
                f"{path} has form {form}, and this version reads form {FORM}; "
                "use the version that recorded it, or record it again"
            )
        trace = msgspec.json.decode(content, type=RecordedTrace)
        Settings.from_mapping(trace.settings)
        column_named(trace.column)
    except OSError as error:
        raise _no_trace(path, reason_of(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, SettingsError) as error:
        raise _no_trace(path, str(error)) from error
    except KeyError as error:
        raise _no_trace(path, str(error.args[0])) from error
    return trace


def _no_trace(path: Path, why: str) -> PlanError:
    return PlanError(f"{path} is no recorded trace ({why}); record one: ackproof conform S01 --save DIR")


def story_of(trace: RecordedTrace) -> Story:
    """The story that a trace is of: of this package, or the reader's own that it keeps.

    Raises:
        PlanError: there is no such story.
    """
    if trace.script:
        return parse_story(trace.script, f"the story in {trace.name}")
    stories = known_stories()
    if trace.story not in stories:
        why = unknown_name("story", trace.story, stories)
        raise PlanError(f"this version lacks the story of the trace {trace.name} ({why}); record another trace")
    return stories[trace.story]


def traces_in(path: Path) -> list[RecordedTrace]:
    """The trace in a file, or all in a directory, by name.

    Raises:
        PlanError: the directory has no trace, or one cannot be read.
    """
    files = sorted(path.glob("*.json"), key=lambda file: file.stem) if path.is_dir() else [path]
    if not files:
        raise PlanError(f"{path} has no recorded traces; record one: ackproof conform S01 --save {path}")
    return [read_trace(file) for file in files]
