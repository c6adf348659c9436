"""A shrunk run as a scripted story, where its few faults and writes can be said step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from harness.ground.errors import AckproofError
from harness.lab.search.judged_run import JudgedRun
from harness.lab.search.list_form import operations_of, steps_of
from harness.plan import RunSpec
from harness.runs.stories import COLUMNS, lines_of, parse_story, perform_cell
from workloads import LISTED, Settings, SettingsError, in_toml

#: The number of every story that is written here; give one that you keep another number.
NUMBER: Final = "X1"
#: With more steps than this a plan is easier to read.
STEPS_MAX: Final = 24
_LEADER: Final = "leader"


class StoryText(msgspec.Struct, frozen=True):
    """The text of a story file, and the ``column`` in which it shows the finding."""

    text: str
    column: str


def story_text_of(run: JudgedRun, title: str) -> StoryText | None:
    """A story that loses a write as ``run`` does; None where its steps, or the settings, cannot be said so.

    Times stay as they are, as steps that wait. It was performed, and what it shows was seen.
    """
    column = _column(run.spec)
    if column is None or len(run.spec.workload.log_partitions) != 1 or run.spec.workload.name != LISTED:
        return None
    for leader in (_LEADER, "0"):
        moments = list(_moments(run, leader))
        if any(text is None for _, text in moments) or len(moments) > STEPS_MAX:
            return None
        text = _text(run.spec, title, list(_steps([(at_us, text or "") for at_us, text in moments])))
        if _loses(text, column):
            return StoryText(text, column)
    return None


def _loses(text: str, column: str) -> bool:
    try:
        cell = perform_cell(parse_story(text, "shrunk story"), column)
    except AckproofError:
        return False
    return bool(cell.lost) and not cell.trace.problems


def _column(spec: RunSpec) -> str | None:
    """The column of scripted stories that has the run's settings, with the times that the run gives them."""
    overrides = _overrides(spec)
    for name, column in COLUMNS.items():
        try:
            if column.chosen(overrides).to_mapping() == spec.settings:
                return name
        except SettingsError:
            continue
    return None


def _overrides(spec: RunSpec) -> dict[str, object]:
    """The settings that differ from the defaults and that no column chooses."""
    chosen = {name for column in COLUMNS.values() for name in column.settings or ()}
    defaults = Settings().to_mapping()
    return {n: value for n, value in spec.settings.items() if n not in chosen and value != defaults[n]}


def _text(spec: RunSpec, title: str, steps: Sequence[str]) -> str:
    settings = _overrides(spec)
    lines = [f'number = "{NUMBER}"', f"title = {in_toml(title)}", "steps = '''", *steps, "'''"]
    if settings:
        lines += ["", "[settings]", *(f"{in_toml(name)} = {in_toml(value)}" for name, value in settings.items())]
    return "\n".join(lines) + "\n"


def _steps(moments: Sequence[tuple[int, str]]) -> Iterator[str]:
    """The lines, with a wait where time passes between two of them."""
    now_us = 0
    for at_us, text in sorted(moments, key=lambda moment: moment[0]):
        if wait_ms := round((at_us - now_us) / 1000):
            yield f"wait {wait_ms} ms"
        now_us = at_us
        yield text


def _moments(run: JudgedRun, leader: str) -> Iterator[tuple[int, str | None]]:
    """Every step with its time in microseconds; None for a fault that scripts do not have. Writes come after faults."""
    steps = steps_of(run.spec)
    for receipt in run.receipts:
        if receipt.mark != "skipped":
            step = steps[receipt.sequence]
            api = getattr(step.fault, "api", "")
            lines = lines_of(type(step.fault), receipt.targets, receipt.links, api)
            yield from ((step.begin_ms * 1000, line) for line in (lines.begins if lines else (None,)))
            yield from ((step.end_ms * 1000, line) for line in (lines.ends if lines else ()))
    for number, write in enumerate(operations_of(run.spec), 1):
        yield write.due_us, f"send w{number} to {leader}"
