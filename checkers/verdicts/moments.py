"""Reduces all findings of an anomaly to what tells their defects apart, so that identities are of all and not of some.

A verdict lists the first findings of many. The identity of each is made of its mark, so the marks of all are kept, with
a time for each stretch of the run between two changes of a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from checkers.anomalies.anomaly import Finding, Found
from checkers.columns.ids import Numbers
from checkers.columns.log import Log
from checkers.columns.phases import RunMarks
from workloads.history import NONE

#: Gives the marks of values of one log partition.
Marks: TypeAlias = Callable[[str, Sequence[int]], Iterable[str]]


class MarkedMoment(msgspec.Struct, frozen=True, omit_defaults=True):
    """Findings of one anomaly amid the same faults, by a time amid these, None where it is not known, and their mark.

    ``keys`` are their log partitions, in order. ``values`` are those of findings that replicas' logs still mark, by log
    partition; nothing in a verdict.
    """

    time_us: int | None
    mark: str = ""
    keys: list[str] = []
    values: dict[str, list[int]] = {}


def moments_of(
    kind: type[Finding], occurrences: Found, log: Log, phases: Sequence[RunMarks]
) -> dict[int, list[MarkedMoment]]:
    """The moments of everything that a kernel found, by history; of runs of ours, which alone have faults."""
    owner = log.partition_history[occurrences.partition]
    own = (number for number in np.unique(owner).tolist() if phases[number].own)
    return {
        number: list(_moments(kind, occurrences, log, np.flatnonzero(owner == number), phases[number]))
        for number in own
    }


def _moments(
    kind: type[Finding], occurrences: Found, log: Log, mine: Numbers, phases: RunMarks
) -> Iterator[MarkedMoment]:
    ends = (receipt.ended_us for receipt in phases.receipts if receipt.ended_us is not None)
    edges = np.unique([0, *(receipt.begun_us for receipt in phases.receipts), *(end + 1 for end in ends)])
    rows = occurrences.row[mine]
    stretch = np.where(rows == NONE, NONE, np.searchsorted(edges, log.time_us[rows], side="right"))
    for number in np.unique(stretch).tolist():
        time_us = None if number == NONE else int(edges[max(number - 1, 0)])
        here = mine[stretch == number]
        keys = _keys(occurrences.partition[here], log)
        if occurrences.value is not None:
            yield MarkedMoment(
                time_us, keys=keys, values=_values(occurrences.partition[here], occurrences.value[here], log)
            )
        elif kind.mark is Finding.mark:
            yield MarkedMoment(time_us, keys=keys)
        else:
            yield from (
                MarkedMoment(time_us, mark, keys)
                for mark in dict.fromkeys(occurrences.describe(n).mark for n in here.tolist())
            )


def _keys(partition: Numbers, log: Log) -> list[str]:
    return sorted({log.partition_key[number] for number in np.unique(partition).tolist()})


def _values(partition: Numbers, value: Numbers, log: Log) -> dict[str, list[int]]:
    partitions = np.unique(partition).tolist()
    return {log.partition_key[number]: value[partition == number].tolist() for number in partitions}


def joined(mine: Iterable[MarkedMoment], others: Iterable[MarkedMoment]) -> list[MarkedMoment]:
    """The moments of the same anomaly in two parts of a history, each once."""
    all_values: dict[tuple[int | None, str], dict[str, list[int]]] = {}
    all_keys: dict[tuple[int | None, str], set[str]] = {}
    for moment in (*mine, *others):
        what = (moment.time_us, moment.mark)
        all_keys.setdefault(what, set()).update(moment.keys)
        values = all_values.setdefault(what, {})
        for key, more in moment.values.items():
            values[key] = values.get(key, []) + more
    return [MarkedMoment(*what, sorted(all_keys[what]), values) for what, values in all_values.items()]


def unmarked(_key: str, _values: Sequence[int]) -> Iterable[str]:
    """No mark, where there are no replicas' logs."""
    return ("",)


def marked(moments: Iterable[MarkedMoment], mark_of: Marks) -> list[MarkedMoment]:
    """The moments with the marks of their values in place of these."""
    each = (
        MarkedMoment(moment.time_us, mark, keys)
        for moment in moments
        for mark, keys in (_marks(moment, mark_of) if moment.values else [(moment.mark, moment.keys)])
    )
    return joined(each, ())


def _marks(moment: MarkedMoment, mark_of: Marks) -> Iterator[tuple[str, list[str]]]:
    for key, values in moment.values.items():
        yield from ((mark, [key]) for mark in mark_of(key, values))
