"""A release of Apache Kafka judged by what is known: which harms show on it still, which are gone, which are new."""

from harness.lab.releases.harms import KnownHarm, harms_of
from harness.lab.releases.judging import PlayingTime, judge
from harness.lab.releases.kept import Kept, judged_releases
from harness.lab.releases.pages import as_markdown, as_page, headline
from harness.lab.releases.playing import Player, StoppedError, command_player

__all__ = [
    "Kept",
    "KnownHarm",
    "Player",
    "PlayingTime",
    "StoppedError",
    "as_markdown",
    "as_page",
    "command_player",
    "harms_of",
    "headline",
    "judge",
    "judged_releases",
]
