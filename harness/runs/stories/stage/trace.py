"""The record of a performance, step by step: enough to print it, and to draw it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from harness.worlds.contract import ReplicaState
from nemesis.cluster import PartitionView
from workloads import SettingValue

#: Facts about a record that may be known at the end.
ACKNOWLEDGED: Final = "acknowledged"
REFUSED: Final = "refused"
#: A fact that clients or operators are told: a number, a word, whether it is so, brokers, or names of records.
Told = int | bool | str | tuple[int | str, ...] | None
#: The texts of the entries for the healing at the end of every script.
HEALED: Final = "(all links are healed)"
WHOLE: Final = "(dead brokers are started, all are in sync)"


class StepError(Exception):
    """A step could not be performed, or a wait ended at its limit: the text says why."""


class Play(StrEnum):
    """The way a step went."""

    PLAYED = "played"
    TRIED = "tried"
    FAILED = "failed"


def record_name(names: Mapping[int, str], value: int) -> str:
    """The name of the record with this ``value``; one without a name was written by the run's fresh clients."""
    return names.get(value, "(fresh)")


def reader_words(read: tuple[str, ...], expected: tuple[str, ...]) -> str:
    """The names of the records that a reader got.

    Raises:
        StepError: they are others than ``expected``, or in another order.
    """
    words = " ".join(read) or "nothing"
    if read != expected:
        raise StepError(f"the reader finds {words}")
    return words


def leader_words(leader: int | None) -> str:
    """The controller's word about the leader."""
    return "nobody leads" if leader is None else f"{leader} leads"


def broker_words(brokers: Iterable[int], empty: str = "empty") -> str:
    """The numbers of brokers, such as those of an ISR."""
    return " ".join(map(str, brokers)) or empty


class TraceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One step. Times are microseconds of the run's clock; the states are those at its end.

    ``note`` is its result in words; ``view`` is the controller's word about the log partition, and ``fenced`` are the
    brokers that it counts as dead. ``answers`` are the outcomes of the records that were sent until then, ``told`` are
    facts by name, of a performance that is compared with another.
    """

    line: int
    text: str
    begun_us: int
    ended_us: int
    play: Play
    note: str
    view: PartitionView
    replicas: tuple[ReplicaState, ...]
    fenced: tuple[int, ...] = ()
    answers: dict[str, RecordEnd] = {}
    told: Mapping[str, Told] = {}


class RecordEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The client's knowledge of a record at the end: its ``value`` in the history, the outcome, the offset answered."""

    value: int
    outcome: str
    offset: int | None = None
    error: str | None = None


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A whole performance: its steps, its records by name, and the settings under which it was performed.

    ``leaderless``: with all links whole there was no leader, though a replica ran, before dead brokers were started;
    ``for_good``: nor was there one after that.
    """

    settings: dict[str, SettingValue]
    entries: tuple[TraceEntry, ...]
    records: dict[str, RecordEnd]
    leaderless: bool = False
    for_good: bool = False

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons for which the story did not play as it is written; none where it did."""
        return tuple(_problem(entry) for entry in self.entries if entry.play is Play.FAILED)

    def failed_tries(self, steps: Collection[str]) -> tuple[str, ...]:
        """The steps among these, by their text, that were tried without effect, and why."""
        return tuple(_problem(entry) for entry in self.entries if entry.play is Play.TRIED and entry.text in steps)


def _problem(entry: TraceEntry) -> str:
    return f'line {entry.line}, "{entry.text}": {entry.note}'
