"""The command that repeats a story under the settings of a group, as short as it can be while it shows the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.assess.causes import Blamed
from harness.assess.performing import Chosen, Performer, possible, settings_in
from harness.assess.reckoning import TIMES
from harness.runs.stories import own_column
from workloads import Settings

#: Settings that a command names in any case, for its reader.
_NAMED: Final = ("era", "acks", "min.insync.replicas")


def command_of(story: str, settings: Chosen) -> str:
    """The command that performs a story under exactly these settings."""
    return f"ackproof stories {story} --settings {own_column(_shortest(settings_in(story, settings))).name}"


def command_that_shows(blamed: Blamed, settings: Chosen, performer: Performer) -> str:
    """The command without times where the story shows the same harm without them."""
    untimed = _shortest({name: value for name, value in settings.items() if name not in TIMES})
    if not possible(untimed):
        performed = performer.perform(untimed, [blamed.story])[blamed.story]
        if performed.shows(blamed.harm) and not performed.wrong:
            return command_of(blamed.story, untimed)
    return command_of(blamed.story, settings)


def _shortest(settings: Chosen) -> Mapping[str, object]:
    """The same settings without those that follow from the others."""
    kept = dict(settings)
    for name in settings:
        fewer = {other: value for other, value in kept.items() if other != name}
        if name not in _NAMED and not possible(fewer) and _same(fewer, kept):
            kept = fewer
    return kept


def _same(fewer: Chosen, more: Chosen) -> bool:
    return Settings.from_mapping(fewer) == Settings.from_mapping(more)
