"""The page of scripted stories: steps, states, the file, the columns, and every story with what is expected of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from harness.lab.conform import ELSEWHERE, why_not
from harness.runs.stories import (
    COLUMNS,
    OF_GROUPS,
    OF_PIPELINES,
    OF_TRANSACTIONS,
    Column,
    Sign,
    StepForm,
    Story,
    known_stories,
    of_replicas,
    state_forms,
    step_forms,
)
from harness.runs.stories.table.story import StoryFile
from scripts.reference.markdown import attributes, bullets, page, table, wrapped
from workloads import spelled

DOCS: Final = Path(__file__).parents[2] / "docs"
INTRODUCTION: Final = """
A scripted story says what happens to a cluster step by step, and what must be seen then in each column, which is a
choice of settings. [The guide](../guides/stories.md) has a first one; `ackproof stories` performs all of them.
"""
STEPS: Final = """
One step a line; `#` begins a comment. If a step cannot be performed, or a wait ends at its limit, the story did not go
as written, which is not as expected. With `try` before it, a step may fail; with `try in a0 all/2*:` before it, only in
these columns.

`BROKER` is `0`, `1`, `2`, and on to the last of the story's brokers; or `leader`, `the former leader`, `the other
follower` (the replica that is neither) or `the coordinator`, as it is when the step begins. Where several are possible
it may be `all`. A broker that was killed is still the leader for the controller until it is fenced. Right after `kill
0`, therefore, `leader` is 0, and neither `somebody leads` nor `nobody leads` holds: write `wait until 0 is fenced`
first.

`LINK` is `0-1` (both ways) or `0>1` (from 0 to 1). Its ends are brokers, `controller` and `clients`. The requests of 0
to 1 and the answers of 0 to 1 go over `0>1`, so what 1 fetches from 0 comes over `0>1`. If 1 leads then, what 0 fetches
from 1 is asked for over it, and held or dropped too: the step in which the leader changed says so. `API` is a name of
Kafka's protocol, such as `Fetch`, `Produce` or `AlterPartition`; without it the step means every message.

Real nodes differ from virtual time. Each write has a connection of its own, so writes to a frozen broker reach it in
any order when it goes on. `drop` and `hold` stop whole connections, also what is under way; TCP sends that again once
they end, if both ends still wait. A kernel writes files back by itself, at the latest some 30 s after a write: `power`
takes nothing of that, and the step then says that nothing was lost.
"""
OF_OTHERS_TEXT: Final = """
A story whose `[settings]` have another `replication.factor`, 16 at most, has as many brokers, and those of these
columns that fit. With four replicas or more it has another column:
"""
OF_OTHERS_OUTCOMES: Final = """
Stories with another number of replicas:
"""
#: The columns of stories with three replicas, by kind.
KINDS: Final = (COLUMNS, OF_TRANSACTIONS, OF_GROUPS, OF_PIPELINES)
OF_TRANSACTIONS_TEXT: Final = """
Stories with a transaction have columns of their own. Those with planted bugs are controls:
"""
OF_GROUPS_TEXT: Final = """
So have stories with members of a group. Between its steps a member sends heartbeats, and does nothing else. The topic
and the log of groups have the same settings. Members commit after they process unless a column says otherwise.
"""
OF_PIPELINES_TEXT: Final = """
So have stories with both, in which transactions commit offsets of the group:
"""
OUTCOMES: Final = """
The letters say what is expected in a column: `L` an acknowledged record is lost, `S` a group skips a record,
`.` nothing is wrong, `+` another anomaly, and these; [`ackproof stories`](commands.md#ackproof-stories) explains them.
"""

STORIES: Final = """
Apache Kafka in namespaces can perform those that do not say why not ([conform](../guides/conform.md)).
"""
#: The column of each kind of story that Kafka is asked for.
USUAL: Final = ("all/2", "all/1", "v2", "g", "o2")


def stories() -> str:
    """The language, the columns and the stories."""
    every = known_stories()
    letters = [f"`{sign.letter}` {sign.value}" for sign in Sign]
    return page(
        "Scripted stories",
        "`harness/runs/stories/`",
        wrapped(INTRODUCTION.strip()),
        "## Steps",
        wrapped(STEPS.strip()),
        table(["step", "meaning", "where"], _forms(step_forms())),
        "## States",
        wrapped("`wait until` waits for these."),
        table(["state", "meaning", "where"], _forms(state_forms())),
        "## The file",
        bullets(f"`{name}`: {text}" for name, text in attributes(StoryFile).items()),
        "## Columns",
        wrapped(
            "Every column has three brokers and three replicas. Producers are idempotent with `acks=all`, but in NI."
        ),
        bullets(_column(column) for column in COLUMNS.values()),
        wrapped(OF_OTHERS_TEXT.strip()),
        bullets(_column(column) for name, column in of_replicas(4).items() if name not in COLUMNS),
        wrapped(OF_TRANSACTIONS_TEXT.strip()),
        bullets(f"`{column.name}`: {column.meaning}." for column in OF_TRANSACTIONS.values()),
        wrapped(OF_GROUPS_TEXT.strip()),
        bullets(f"`{column.name}`: {column.meaning}." for column in OF_GROUPS.values()),
        wrapped(OF_PIPELINES_TEXT.strip()),
        bullets(f"`{column.name}`: {column.meaning}." for column in OF_PIPELINES.values()),
        "## Outcomes",
        wrapped(OUTCOMES.strip()),
        bullets(letters),
        *(_outcomes(columns, every) for columns in KINDS),
        wrapped(OF_OTHERS_OUTCOMES.strip()),
        *(_across(columns, every.values()) for columns in _of_others(every.values())),
        "## Stories",
        wrapped(STORIES.strip()),
        *(block for story in every.values() for block in _story(story)),
    )


def _forms(forms: list[StepForm]) -> Iterator[tuple[str, str, str]]:
    return ((f"`{form.form}`", form.meaning, form.limits) for form in forms)


def _column(column: Column) -> str:
    chosen = ", ".join(f"`{name}={spelled(value)}`" for name, value in column.settings.items())
    return f"`{column.name}`: {column.meaning}. {chosen}."


def _of_others(stories: Iterable[Story]) -> list[Mapping[str, Column]]:
    """The columns of stories with another number of replicas, each kind once."""
    kinds: list[Mapping[str, Column]] = []
    for story in stories:
        if story.columns not in (*KINDS, *kinds):
            kinds.append(story.columns)
    return kinds


def _across(columns: Mapping[str, Column], every: Iterable[Story]) -> str:
    """The table of the stories that are performed in these columns, a column of settings a line."""
    stories = [story for story in every if story.columns == columns]
    head = ["column", *(f"[{story.number}](#{story.number.lower()})" for story in stories)]
    return table(head, [(column, *(story.expected(column).letters for story in stories)) for column in columns])


def _outcomes(columns: Mapping[str, Column], every: Mapping[str, Story]) -> str:
    """The table of the stories that are performed in these columns."""
    rows = [
        (f"[{number}](#{number.lower()})", *(story.expected(column).letters for column in columns))
        for number, story in every.items()
        if story.columns == columns
    ]
    return table(["story", *columns], rows)


def _story(story: Story) -> Iterator[str]:
    yield f"### {story.number}"
    yield wrapped(f"{story.title}. {_linked(story.note)}".strip())
    if story.source:
        yield wrapped(f"Source: {_linked(story.source)}.")
    if lacking := _lacking_on_kafka(story):
        yield wrapped(f"Not on Kafka: it {lacking}.")


def _lacking_on_kafka(story: Story) -> str:
    """The reason why Kafka cannot perform it in the usual column of its kind, without the advice for a plan; or ""."""
    column = next(story.columns[name] for name in USUAL if name in story.columns)
    return re.sub("; (leave|write) .*", "", why_not(story, column, ELSEWHERE["kafka"]))


def _linked(text: str) -> str:
    """The text with its rules and findings as links."""
    text = re.sub(r"docs/findings/(\d+)(?:-[\w-]+\.md)?", _finding, text)
    return re.sub(r"\brules? \d[\d, and]*", _rules, text)


def _rules(match: re.Match[str]) -> str:
    return re.sub(r"(\d+)", r"[\1](replication-rules.md#rule-\1)", match[0])


def _finding(match: re.Match[str]) -> str:
    (file,) = (DOCS / "findings").glob(f"{match[1]}-*.md")
    return f"[finding {match[1]}](../findings/{file.name})"
