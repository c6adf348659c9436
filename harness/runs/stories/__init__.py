"""Scripted stories: files that say step by step what happens, and what must be seen then in each column.

A story is performed in a world through its contract alone, and judged by the checkers from the history of the run.
docs/reference/stories.md has the language. Faults that are drawn by chance are in :mod:`nemesis.scenarios`.
"""

from harness.runs.stories.script.language import lines_of
from harness.runs.stories.script.performer import perform_script
from harness.runs.stories.shown.documented import StepForm, form_of, state_forms, step_forms
from harness.runs.stories.shown.explanation import explained, step_lines
from harness.runs.stories.stage import questions
from harness.runs.stories.stage.names import BASE
from harness.runs.stories.stage.pauses import AsLongAs, UntilAtRest
from harness.runs.stories.stage.questions import STABLE_END
from harness.runs.stories.stage.trace import (
    ACKNOWLEDGED,
    HEALED,
    REFUSED,
    WHOLE,
    Play,
    RecordEnd,
    Told,
    Trace,
    TraceEntry,
    record_name,
)
from harness.runs.stories.table.cells import StoryCell, perform_cell, perform_table, verdict_in_memory
from harness.runs.stories.table.columns import (
    COLUMNS,
    OF_GROUPS,
    OF_PIPELINES,
    OF_TRANSACTIONS,
    Column,
    chosen_columns,
    column_named,
    of_replicas,
    own_column,
)
from harness.runs.stories.table.outcome import StoryOutcome, outcome_of
from harness.runs.stories.table.requirements import unmet
from harness.runs.stories.table.story import Sign, Story, known_stories, parse_story, read_story
