"""Performs scripted stories under exactly some settings, in virtual time, and says what harm each does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from types import TracebackType
from typing import Final, Self

import msgspec

from harness.ground.errors import AckproofError
from harness.ground.machine.forked import forked_pool
from harness.runs.stories import BASE, Play, Sign, Story, StoryCell, known_stories, own_column, perform_cell
from workloads import Settings, SettingsError

#: Stories in which one broker is away and all others are well, with a record that is then written.
ONE_AWAY: Final[Mapping[str, str]] = {"S02": "y", "S52": "x"}
#: Settings that a topic has as it is: a story that needs others is about other topics.
_OF_OTHER_TOPICS: Final = frozenset({"replication.factor", "flush.ms", "flush.messages"})
Chosen = Mapping[str, object]


class Harm(StrEnum):
    """Something that an operator would not want, by the words of a sentence about a record."""

    LOST = "acknowledged and lost"
    STRANDED = "acknowledged, and on no disk that is left"
    TWICE = "in the log twice"
    ORDER = "out of order"
    CHANGED = "read, and then replaced"
    REFUSED = "refused with one broker away"
    RETURNED = "deleted, and back"
    SKIPPED = "passed over by the group"
    WENT_BACK = "committed by the group, and then not"


#: The harms that are losses.
LOSSES: Final = (Harm.LOST, Harm.STRANDED)
_SIGNS: Final = {
    Sign.DUPLICATE: Harm.TWICE,
    Sign.REORDERED: Harm.ORDER,
    Sign.CHANGED_READ: Harm.CHANGED,
    Sign.RETURNED: Harm.RETURNED,
    Sign.WENT_BACK: Harm.WENT_BACK,
}
_POLICY: Final = "cleanup.policy"
#: Settings of members of a group, which only stories of groups have.
OF_MEMBERS: Final = ("commit.mode", "auto.offset.reset", "session.timeout.ms")
#: Settings of the cleaner that a story of a compacted topic keeps: its absences are as short as these.
_OF_CLEANING: Final = ("segment.ms", "min.cleanable.dirty.ratio", "delete.retention.ms", "min.compaction.lag.ms")


class PerformedStory(msgspec.Struct, frozen=True, kw_only=True):
    """One story that was performed. ``harms`` has the records of each harm; ``wrong`` says why nothing is known.

    ``departed``: the settings did not allow a step that its script demands, such as a write that is refused.
    """

    story: str
    harms: Mapping[Harm, tuple[str, ...]]
    departed: bool = False
    wrong: str = ""

    @property
    def loses(self) -> bool:
        """True if an acknowledged record is gone."""
        return any(harm in self.harms for harm in LOSSES)

    def shows(self, harm: Harm) -> bool:
        """True if a record came to this harm; one kind of loss counts for the other."""
        return self.loses if harm in LOSSES else harm in self.harms


@cache
def stories() -> dict[str, Story]:
    """Every story of the project, by number."""
    return known_stories()


def families_of(number: str) -> tuple[str, ...]:
    """The families of the faults that a story begins; a broker that never returns takes its disk along."""
    story = stories()[number]
    return tuple(sorted({fault.family for fault in story.faults()} | ({"wipe"} if story.abandons else set())))


def fits(number: str, settings: Chosen, *, transactional: bool) -> bool:
    """True if a story is about a topic with these settings.

    One of transactions needs a producer with a transactional.id, one of compaction a topic that is compacted, and one
    of groups the log of groups, and settings of members. One of retention says nothing of other settings: that records
    go at an age is the topic's own wish. Nor does one about another number of replicas, or about flushing now and then.
    """
    story = stories()[number]
    if story.transactions and not transactional:
        return False
    if Settings.from_mapping(story.settings).expires or not _OF_OTHER_TOPICS.isdisjoint(story.settings):
        return False
    if story.grouped:
        return all(name in settings for name in OF_MEMBERS)
    return not story.compacted or "compact" in str(settings.get(_POLICY, ""))


def settings_in(number: str, settings: Chosen) -> dict[str, object]:
    """The settings under which a story is performed: only one of compaction has a compacted topic, of groups members.

    Its times of the cleaner are its own: a day's retention and an absence of two days, made short.
    """
    story = stories()[number]
    others = {*(() if story.compacted else (_POLICY,)), *(() if story.grouped else OF_MEMBERS)}
    mine = {name: value for name, value in settings.items() if name not in others}
    if not story.compacted:
        return mine
    return {**mine, **{name: value for name, value in story.settings.items() if name in _OF_CLEANING}}


class Performer:
    """Performs stories, each at most once under the same settings; ``with`` ends its processes.

    ``only`` are those that it has; else it has all.
    """

    def __init__(self, workers: int = 1, only: Sequence[str] = ()) -> None:
        self._all = tuple(only) or tuple(stories())
        self._performed_so_far: dict[tuple[str, str], PerformedStory] = {}
        self._pool = forked_pool(workers) if workers > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=error is not None)

    def perform(
        self, settings: Chosen, numbers: Iterable[str] = (), *, transactional: bool = True
    ) -> dict[str, PerformedStory]:
        """These stories, or all that fit, under ``settings`` (Kafka's names), by number.

        ``transactional``: the producer may write in transactions.
        """
        fitting = (number for number in self._all if fits(number, settings, transactional=transactional))
        wanted = tuple(numbers) or tuple(fitting)
        chosen = {number: settings_in(number, settings) for number in wanted}
        keys = {number: (number, own_column(taken).name) for number, taken in chosen.items()}
        missing = [number for number in wanted if keys[number] not in self._performed_so_far]
        for performed in self._performed([(number, chosen[number]) for number in missing]):
            self._performed_so_far[keys[performed.story]] = performed
        return {number: self._performed_so_far[keys[number]] for number in wanted}

    def _performed(self, asked: Sequence[tuple[str, Chosen]]) -> Iterator[PerformedStory]:
        if self._pool is None or len(asked) < 2:
            return map(_perform, asked)
        return self._pool.map(_perform, asked, chunksize=4)


def possible(settings: Chosen) -> str:
    """The reason why no simulated cluster can have ``settings``; empty where one can."""
    try:
        Settings.from_mapping(settings)
    except SettingsError as error:
        return str(error)
    return ""


def _perform(asked: tuple[str, Chosen]) -> PerformedStory:
    number, settings = asked
    try:
        cell = perform_cell(stories()[number], own_column(settings))
    except AckproofError as error:
        return PerformedStory(story=number, harms={}, wrong=str(error))
    wrong = "; ".join(cell.disagreements)
    return PerformedStory(
        story=number,
        # What is not known is no harm: records that a reader did not reach look like lost ones.
        harms={} if wrong else {harm: records for harm, records in _harms(cell) if records},
        departed=_departed(stories()[number], cell),
        wrong=wrong,
    )


def _departed(story: Story, cell: StoryCell) -> bool:
    demanded = {step.line for step in story.steps if not step.tried}
    return any(entry.play is not Play.PLAYED and entry.line in demanded for entry in cell.trace.entries)


def _harms(cell: StoryCell) -> Iterator[tuple[Harm, tuple[str, ...]]]:
    yield Harm.LOST, cell.lost
    if cell.trace.for_good:
        yield Harm.STRANDED, tuple(sorted({*cell.acknowledged} - _left(cell) - {*cell.lost}))
    # Where a group begins at the end, it passes over what was there before it came: that is what is asked for.
    yield Harm.SKIPPED, tuple(record for record in cell.skipped if record != BASE)
    for sign, harm in _SIGNS.items():
        yield harm, ("a record",) if sign in cell.signs else ()
    if (record := ONE_AWAY.get(cell.story)) is not None:
        yield Harm.REFUSED, () if record in cell.acknowledged else (record,)


def _left(cell: StoryCell) -> set[str]:
    """The records that a broker that runs at the end has in its log."""
    names = {record.value: name for name, record in cell.trace.records.items()}
    return {
        names[record.value]
        for replica in cell.trace.entries[-1].replicas
        if replica.running
        for record in replica.records
        if record.value in names
    }
