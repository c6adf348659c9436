"""Finds out which setting is to blame for what a story shows, by performing it again with settings changed.

A harm that is gone with one change is that setting's. One that only two changes together take away is both settings'.
What is left with everything recommended no recommended setting prevents; then it is tried whether hardening does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final

import msgspec

from harness.assess.changes import HARDENING, RECOMMENDED, AdvisedChange, with_changes
from harness.assess.performing import Chosen, Harm, PerformedStory, Performer, possible
from workloads import KAFKA_DEFECTS, Settings

#: The name of a defect that the reference broker has by design, as Kafka has: some replicas forget a tombstone early.
COMPACTION: Final = "compaction"


class Blamed(msgspec.Struct, frozen=True, kw_only=True):
    """A harm that a story shows: its records, and the changes that prevent it, each alone or all ``together``.

    ``defect``: it is a defect of Kafka's that the reference broker can have, and is gone without it.
    """

    story: str
    harm: Harm
    records: tuple[str, ...]
    changes: tuple[str, ...] = ()
    together: bool = False
    defect: str = ""


class Causes(msgspec.Struct, frozen=True, kw_only=True):
    """The harms under some settings, and the changes that are recommended for them.

    ``weak``: a recommended setting prevents it; ``left``: none does, and ``changes`` are those of hardening.
    """

    recommended: tuple[AdvisedChange, ...]
    weak: tuple[Blamed, ...]
    left: tuple[Blamed, ...]
    performed: int
    departed: int
    unknown: tuple[PerformedStory, ...]


def causes_of(settings: Chosen, performer: Performer, *, transactional: bool) -> Causes:
    """Perform every story that fits under ``settings``, and those that show a harm again with settings changed."""
    chosen = Settings.from_mapping(settings)
    changes = tuple(change for change in RECOMMENDED if change.applies(chosen))
    performed = performer.perform(settings, transactional=transactional)
    harmed = [(each, harm) for each in performed.values() for harm in each.harms]
    ideal = with_changes(settings, changes)
    best = performer.perform(ideal, {each.story: None for each, _ in harmed}) if changes and harmed else performed
    weak, left = [], []
    for each, harm in harmed:
        blamed = Blamed(story=each.story, harm=harm, records=each.harms[harm])
        if not best[each.story].shows(harm) and not best[each.story].wrong:
            weak.append(_with_cause(blamed, settings, changes, performer))
        else:
            left.append(_hardened(blamed, ideal, performer))
    return Causes(
        recommended=changes,
        weak=tuple(weak),
        left=tuple(left),
        performed=len(performed),
        departed=sum(each.departed for each in performed.values()),
        unknown=tuple(each for each in performed.values() if each.wrong),
    )


def unperformed(settings: Settings, without: str) -> Causes:
    """The recommended changes where no write is accepted, so that no story can be performed; ``without`` one."""
    changes = tuple(change for change in RECOMMENDED if change.applies(settings) and change.name != without)
    return Causes(recommended=changes, weak=(), left=(), performed=0, departed=0, unknown=())


def _with_cause(blamed: Blamed, settings: Chosen, changes: tuple[AdvisedChange, ...], performer: Performer) -> Blamed:
    """Try one change, then two together, and so on: those of the first size that helps are to blame."""
    for size in range(1, len(changes) + 1):
        helping = [
            change.name
            for some in combinations(changes, size)
            if _prevents(blamed, with_changes(settings, some), performer)
            for change in some
        ]
        if helping:
            return msgspec.structs.replace(blamed, changes=tuple(dict.fromkeys(helping)), together=size > 1)
    return blamed


def _hardened(blamed: Blamed, ideal: Chosen, performer: Performer) -> Blamed:
    if blamed.harm is Harm.RETURNED:
        return msgspec.structs.replace(blamed, defect=COMPACTION)
    for defect, right in _defects(Settings.from_mapping(ideal)):
        if _prevents(blamed, {**ideal, defect: right}, performer):
            return msgspec.structs.replace(blamed, defect=defect)
    changes = tuple(change for change in HARDENING if change.applies(Settings.from_mapping(ideal)))
    return _with_cause(blamed, ideal, changes, performer)


def _defects(settings: Settings) -> Iterator[tuple[str, object]]:
    """The switches for Kafka's defects that are on, with their right values."""
    values: Mapping[str, object] = settings.to_mapping()
    right = Settings().to_mapping()
    yield from ((name, right[name]) for name in KAFKA_DEFECTS if values[name] != right[name])


def _prevents(blamed: Blamed, settings: Chosen, performer: Performer) -> bool:
    if possible(settings):
        return False
    performed = performer.perform(settings, [blamed.story])[blamed.story]
    return not performed.shows(blamed.harm) and not performed.wrong
