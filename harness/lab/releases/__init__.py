"""A release of Apache Kafka judged by what is known: which harms show on it still, which are gone, which are new."""

from harness.lab.releases.entries import Entry, entries_of
from harness.lab.releases.judging import Budget, judge
from harness.lab.releases.kept import Kept, judged_releases
from harness.lab.releases.pages import as_markdown, as_page, headline
from harness.lab.releases.playing import Player, StoppedError, command_player

__all__ = [
    "Budget",
    "Entry",
    "Kept",
    "Player",
    "StoppedError",
    "as_markdown",
    "as_page",
    "command_player",
    "entries_of",
    "headline",
    "judge",
    "judged_releases",
]
