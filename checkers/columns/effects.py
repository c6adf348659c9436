"""The inputs of applications under test, and their effects, as arrays.

An *input* is a different value of a log partition whose history has an application. Its effects are the rows of kind
EFFECT that name it. O(n log n) in the rows of final reads and of effects; None where no history has an application.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from checkers.columns.ids import Flags, Numbers, dense_ids
from checkers.columns.log_rows import LogRows
from workloads import ApplicationFacts, key_of, number_of
from workloads.history import INFO, NONE, OK, Kind


@dataclass(frozen=True)
class EffectRows:
    """Inputs and effects of a log; "input" means a value id of it.

    Attributes:
        facts: by history, its application, or None.
        effects: rows of effects that readers of the run's level read (int64).
        source: int64 by effect: the input, -1 where it names none that any client tried to send, or read.
    """

    log: LogRows
    facts: Sequence[ApplicationFacts | None]
    effects: Numbers
    source: Numbers

    def of(self, value: int) -> ApplicationFacts:
        """The application of an input's history."""
        return self.of_partition(int(self.log.values.partition[value]))

    def of_partition(self, partition: int) -> ApplicationFacts:
        """The application of a log partition's history."""
        facts = self.facts[int(self.log.partition_history[partition])]
        assert facts is not None, "only histories with an application have effects"  # noqa: S101
        return facts

    def _by_input(self, fact: Sequence[int]) -> Numbers:
        """A number of each history, by input."""
        numbers: Numbers = np.array(fact, dtype=np.int64)[self.log.partition_history[self.log.values.partition]]
        return numbers

    @cached_property
    def applied(self) -> Flags:
        """``bool[input]``: its history has an application."""
        return self._by_input([facts is not None for facts in self.facts]) > 0

    @cached_property
    def told(self) -> Flags:
        """``bool[input]``: the output was read to its end, so that the lack of an effect is a fact."""
        return self._by_input([facts is not None and not facts.unread for facts in self.facts]) > 0

    @cached_property
    def last_offset(self) -> Numbers:
        """``int64[input]``: the largest offset at which final readers read it; -1 where they did not."""
        last = np.full(len(self.log.values), NONE, dtype=np.int64)
        np.maximum.at(last, self.log.value_id[self.log.final_reads], self.log.offset[self.log.final_reads])
        return last

    @cached_property
    def copies(self) -> Numbers:
        """``int64[input]``: the offsets at which final readers read it."""
        rows = self.log.final_reads
        pairs = np.unique(np.stack([self.log.value_id[rows], self.log.offset[rows]]), axis=1)
        copies: Numbers = np.bincount(pairs[0], minlength=len(self.log.values))
        return copies

    @cached_property
    def wanted(self) -> Flags:
        """``bool[input]``: the application makes outputs of it, by the shape that the plan states."""
        every = self._by_input([1 if facts is None or facts.fold else facts.every for facts in self.facts])
        wanted = np.ones(len(every), dtype=bool)
        for value in np.flatnonzero(every > 1).tolist():
            wanted[value] = number_of(int(self.log.values.number[value])) % int(every[value]) == 0
        return wanted

    @cached_property
    def each(self) -> Numbers:
        """``int64[input]``: the outputs that an application makes of an input."""
        return self._by_input([1 if facts is None or facts.fold else facts.outputs_each for facts in self.facts])

    @cached_property
    def due(self) -> Numbers:
        """``int64[input]``: the outputs that it must have: for each of its places in the log.

        Of a fold it is one output of its key that names it, or a later input of the key.
        """
        due: Numbers = self.copies * self.each * (self.wanted & self.applied)
        return due

    @cached_property
    def named(self) -> Numbers:
        """``int64[input]``: the outputs that name it."""
        named: Numbers = np.bincount(self.source[self.source >= 0], minlength=len(self.log.values))
        return named

    @cached_property
    def made(self) -> Numbers:
        """``int64[input]``: its effects; of a fold all that are due, once an output names it or a later input."""
        if self.blind.any():
            return np.where(self.blind, self.due * self.passed, self.named)
        if not self.folded.any():
            return self.named
        reached = np.full(int(self.key.max(initial=0)) + 1, NONE, dtype=np.int64)
        has = (self.named > 0) & self.folded
        np.maximum.at(reached, self.key[has], self.last_offset[has])
        made: Numbers = np.where(self.folded, self.due * (self.last_offset <= reached[self.key]), self.named)
        return made

    @cached_property
    def folded(self) -> Flags:
        """``bool[input]``: the application folds the inputs of a key."""
        return self._by_input([facts is not None and facts.fold is not None for facts in self.facts]) > 0

    @cached_property
    def blind(self) -> Flags:
        """``bool[input]``: nothing tells what the application did but its group, so that all it passed is done."""
        return self._by_input([facts is not None and not facts.outputs for facts in self.facts]) > 0

    @cached_property
    def ordered(self) -> Flags:
        """``bool[input]``: the application promises the order of outputs of a key."""
        return self._by_input([facts is not None and facts.order == "key" for facts in self.facts]) > 0

    @cached_property
    def key(self) -> Numbers:
        """``int64[input]``: a dense number for its log partition and key."""
        keys = self._by_input([1 if facts is None else max(1, facts.keys) for facts in self.facts])
        number = key_of(self.log.values.number, keys)
        return dense_ids(self.log.values.partition, number, self.log.partition_count).of

    @cached_property
    def first_offset(self) -> Numbers:
        """``int64[input]``: the smallest offset at which final readers read it; -1 where they did not."""
        first = np.full(len(self.log.values), np.iinfo(np.int64).max)
        np.minimum.at(first, self.log.value_id[self.log.final_reads], self.log.offset[self.log.final_reads])
        return np.where(first == np.iinfo(np.int64).max, NONE, first)

    @cached_property
    def result(self) -> Numbers:
        """``int64[effect]``: the result that the output has, of a fold; -1 without one."""
        rows = np.flatnonzero((self.log.kind == Kind.EFFECT) & (self.log.type == INFO))
        both = np.concatenate([self.effects, rows])
        outputs = dense_ids(self.log.partition[both], self.log.node[both], self.log.partition_count).of
        places = dense_ids(outputs, self.log.offset[both], int(outputs.max(initial=0)) + 1)
        result = np.full(len(places), NONE, dtype=np.int64)
        result[places.of[len(self.effects) :]] = self.log.value[rows]
        told: Numbers = result[places.of[: len(self.effects)]]
        return told

    @cached_property
    def passed(self) -> Flags:
        """``bool[input]``: the application will not do it any more.

        Its group has committed past it; or, where the group has committed nothing, a later input of the log partition
        has an effect.
        """
        partition = self.log.values.partition
        upto = np.zeros(self.log.partition_count, dtype=np.int64)
        has = self.named > 0
        np.maximum.at(upto, partition[has], self.last_offset[has])
        for number, key in enumerate(self.log.partition_key):
            facts = self.facts[int(self.log.partition_history[number])]
            if facts is not None and facts.committed:
                upto[number] = facts.committed.get(key, 0)
        passed: Flags = self.last_offset < upto[partition]
        return passed

    @property
    def lacking(self) -> Flags:
        """``bool[input]``: it is in the log and lacks an effect that it must have."""
        lacking: Flags = self.told & (self.made < self.due)
        return lacking

    def rows_of(self, inputs: Numbers) -> Numbers:
        """A row of the final read of each of these inputs; -1 for one that was not read."""
        row = np.full(len(self.log.values), NONE, dtype=np.int64)
        row[self.log.value_id[self.log.final_reads]] = self.log.final_reads
        rows: Numbers = row[inputs]
        return rows


def effect_rows(log: LogRows) -> EffectRows | None:
    """The inputs and effects of ``log``."""
    if not any(log.applications):
        return None
    effects = np.flatnonzero((log.kind == Kind.EFFECT) & (log.type == OK))
    values, count = log.values, len(log.values)
    ids = dense_ids(
        np.concatenate([values.partition, log.partition[effects]]),
        np.concatenate([values.number, log.value[effects]]),
        log.partition_count,
    )
    value_of = np.full(len(ids), NONE, dtype=np.int64)
    value_of[ids.of[:count]] = np.arange(count)
    return EffectRows(log, log.applications, effects, value_of[ids.of[count:]])
