"""Finds out which planted bugs of groups and transactions the recorded traces of Kafka show.

python -m scripts.shown_bugs

It writes beside the traces, by bug, the names of those that the core does not fit with it. This takes minutes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.broker.core.groups.coordinator import GroupCoordinator
from harness.broker.core.planted import WRONG, transacting
from harness.lab.conform import RecordedTrace, hold, story_of, traces_in
from harness.runs.stories import Story

TRACES: Final = Path(__file__).parents[1] / "results" / "reference" / "conform"
SHOWN_BUGS: Final = TRACES / "shown-bugs.toml"
#: The bugs of a rule of groups, or of offsets in transactions, and those of transactions.
OF_GROUPS: Final = ("commit-offsets-after-append", *(bug for bug, part in WRONG if part is GroupCoordinator))
OF_TRANSACTIONS: Final = tuple(bug for (bug, _), wrong in WRONG.items() if wrong.__module__ == transacting.__name__)


def bugs_for(story: Story) -> Sequence[str]:
    """The bugs that a trace of this story may show: those of its coordinators."""
    return (*(OF_GROUPS if story.grouped else ()), *(OF_TRANSACTIONS if story.transactions else ()))


def shown_bugs(traces: Sequence[RecordedTrace]) -> Mapping[str, Sequence[str]]:
    """Hold the core with each bug against the traces that may show it: those that do not fit."""
    shown: dict[str, list[str]] = {bug: [] for bug in (*OF_GROUPS, *OF_TRANSACTIONS)}
    for trace in traces:
        story = story_of(trace)
        for bug in bugs_for(story):
            if not hold(trace, story, bug).conforms:
                shown[bug].append(trace.name.removesuffix(".json"))
    return shown


if __name__ == "__main__":
    lists = [f"{bug} = {json.dumps(names)}\n" for bug, names in shown_bugs(traces_in(TRACES)).items()]
    SHOWN_BUGS.write_text("".join(lists), encoding="utf-8")
