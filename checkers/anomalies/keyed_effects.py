"""Anomalies of applications under test that promise something of all inputs of a key: their order, or their fold.

Each kernel's docstring is its specification. The key of an input follows from its value (:func:`workloads.key_of`), and
each key is in one log partition of the input.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.applications import where_there_are
from checkers.columns.effects import EffectRows
from checkers.columns.ids import Flags, Numbers
from checkers.columns.log import Log
from checkers.words import written
from workloads import number_of
from workloads.history import NONE, OK


class ReorderedEffect(Finding, kw_only=True):
    """An input whose outputs all come before those of ``before``, an earlier input of its key.

    ``offset`` is that of its last output, ``before_offset`` that of the other's, both in ``output``.
    """

    value: Any
    offset: int
    before: Any
    before_offset: int
    output: str

    @override
    def words(self) -> str:
        return (
            f"The application wrote the output of {written(self.value)} at offset {self.offset} of {self.output}, and "
            f"the output of {written(self.before)} at offset {self.before_offset}, after it. Both inputs have one key, "
            f"and {written(self.before)} comes first in {self.key}."
        )

    @property
    @override
    def written(self) -> list[Any]:
        return [self.value, self.before]


class WrongFold(Finding, kw_only=True):
    """A key whose newest output, at ``offset`` of ``output``, is not the fold of its inputs up to ``last``.

    ``value`` is the input from which on outputs are wrong. Results of ``last`` folds are values of inputs.
    """

    value: Any
    last: int
    offset: int
    output: str
    fold: str
    result: int
    expected: int
    newest: int

    @override
    def words(self) -> str:
        has = self._shown(self.result) if self.result != NONE else "no result"
        of = "" if self.newest == self.last else f", and was made of {written(self.newest)}, an earlier input"
        return (
            f"The newest output of a key, at offset {self.offset} of {self.output}, has {has}{of}. The {self.fold} of "
            f"its inputs up to {written(self.last)} is {self._shown(self.expected)}. Outputs are wrong from "
            f"{written(self.value)} on."
        )

    @property
    @override
    def written(self) -> list[Any]:
        return [self.value]

    def _shown(self, result: int) -> str:
        return written(result) if self.fold == "last" else f"{result:,}"


class _Outputs(NamedTuple):
    """The outputs of one key in one log partition of the output, in the order of offsets: places in ``effects``."""

    key: int
    node: int
    places: Sequence[int]


def reordered_effect(log: Log, effects: EffectRows) -> Found:
    """``reordered-effect``: an application that promises order by key wrote the effects of a key in another order.

    Example: the inputs are ``a@0 b@1``, with one key. The output has ``b a``.

    Outputs are in order if repeats explain them: one output of each input can be chosen so that the chosen ones stand
    in the order of the inputs. So ``a b a b`` and ``b a b`` are in order, where the promise lets an input have several
    effects; if it does not, the repeat is a ``doubled-effect``. ``b a`` and ``b a c b`` are out of order, whatever the
    promise: leave out any repeat, and one is still before an earlier one.

    False alarms avoided: inputs with different keys; outputs in different log partitions, between which readers know no
    order; inputs that the log has lost, whose places are not known; outputs of aborted transactions, where readers of
    committed records are meant; applications that promise no order.

    Not found: with ``shape = "many"``, outputs of one input among those of another.

    Findings, one an input that no choice puts in its place: key, value, offset, before, before_offset, output.
    """
    source = effects.source
    wanted = effects.ordered & (effects.first_offset != NONE)
    late: list[tuple[int, int, int]] = []
    for outputs in _of_keys(effects, wanted):
        positions = effects.first_offset[source[list(outputs.places)]]
        if (np.diff(positions) < 0).any():
            pairs = _out_of_place(outputs.places, source, effects.first_offset)
            late += ((effect, before, outputs.node) for effect, before in pairs)

    def describe(number: int) -> ReorderedEffect:
        effect, before, node = late[number]
        value, earlier = int(source[effect]), int(source[before])
        partition = int(log.values.partition[value])
        return ReorderedEffect(
            key=log.partition_key[partition],
            value=int(log.values.number[value]),
            offset=int(log.offset[effects.effects[effect]]),
            before=int(log.values.number[earlier]),
            before_offset=int(log.offset[effects.effects[before]]),
            output=effects.of_partition(partition).outputs[node],
        )

    inputs = source[np.array([effect for effect, *_ in late], dtype=np.int64)]
    return Found(partition=log.values.partition[inputs], describe=describe, row=effects.rows_of(inputs))


def wrong_fold(log: Log, effects: EffectRows) -> Found:
    """``wrong-fold``: the newest output of a key is not the count, sum, or last of its inputs.

    Example: the inputs are ``a@0 b@1 c@2``, with one key. The outputs are ``1`` of ``a``, ``1`` of ``b`` and ``2`` of
    ``c``: ``b`` was done on a state that had forgotten ``a``, and outputs are wrong from ``b`` on.

    The newest output names the last input that any output of the key names, and has the fold of all inputs of the key
    up to that. Inputs behind it without an output are missing (``missing-effect``), or still to be done. An input that
    is in the log twice counts twice.

    A promise may explain it. With ``at-least-once`` a count or sum may be too large, with ``at-most-once`` too small:
    an input was done again, or passed over. ``exactly-once`` explains neither, and nothing explains another ``last``.

    False alarms avoided: a key that lacks an input, which the log has lost; an output that was not read to its end; a
    key in several log partitions of the output, where the newest output of any is right; a repeat that was not over.

    Findings, one a key: key, value (the input from which on outputs are wrong), last, offset, output, fold, result,
    expected, newest (the input that the newest output names).
    """
    state = _Folds.of(log, effects)
    wrong: list[tuple[int, int, int, int]] = []
    for outputs in state.outputs():
        wrong += state.judged(outputs)

    def describe(number: int) -> WrongFold:
        effect, first, last, node = wrong[number]
        partition, facts = int(log.values.partition[last]), effects.of(last)
        return WrongFold(
            key=log.partition_key[partition],
            value=int(log.values.number[first]),
            last=int(log.values.number[last]),
            offset=int(log.offset[effects.effects[effect]]),
            output=facts.outputs[node],
            fold=str(facts.fold),
            result=int(effects.result[effect]),
            expected=int(state.high[last]),
            newest=int(log.values.number[effects.source[effect]]),
        )

    inputs = np.array([first for _, first, _, _ in wrong], dtype=np.int64)
    return Found(partition=log.values.partition[inputs], describe=describe, row=effects.rows_of(inputs))


@dataclass(frozen=True)
class _Folds:
    """The results that outputs of folds must have.

    Attributes:
        low, high: by input, the fold of its key up to its first, and to its last place in the log.
        sound: by input, its key can be judged.
    """

    effects: EffectRows
    low: Numbers
    high: Numbers
    sound: Flags

    @classmethod
    def of(cls, log: Log, effects: EffectRows) -> _Folds:
        rows, count = log.final_reads, len(log.values)
        value, offset = np.unique(np.stack([log.value_id[rows], log.offset[rows]]), axis=1)
        order = np.lexsort((value, offset, effects.key[value]))
        value = value[order]
        key = effects.key[value]
        start = np.searchsorted(key, key)
        number = number_of(log.values.number[value])
        total = np.cumsum(number)
        folds = {"count": np.arange(len(value)) - start + 1, "sum": total - (total - number)[start]}
        folds["last"] = log.values.number[value]
        names = [facts.fold if facts is not None and facts.fold else "last" for facts in effects.facts]
        owner = log.partition_history[log.values.partition[value]]
        result = np.zeros(len(value), dtype=np.int64)
        for history, name in enumerate(names):
            result = np.where(owner == history, folds[name], result)
        low, high = np.full(count, NONE, dtype=np.int64), np.full(count, NONE, dtype=np.int64)
        low[value[::-1]], high[value] = result[::-1], result
        gone = effects.last_offset == NONE
        gone &= log.marked(log.sends[log.type[log.sends] == OK]) | (effects.named > 0)
        lost = np.zeros(int(effects.key.max(initial=0)) + 1, dtype=bool)
        lost[effects.key[gone]] = True
        sound = effects.folded & effects.told & (effects.last_offset != NONE) & ~lost[effects.key]
        return cls(effects, low, high, sound)

    def outputs(self) -> Iterator[list[_Outputs]]:
        """The outputs of each key, in all log partitions of the output."""
        of_key: dict[int, list[_Outputs]] = {}
        for outputs in _of_keys(self.effects, self.sound):
            of_key.setdefault(outputs.key, []).append(outputs)
        yield from of_key.values()

    def judged(self, of_key: Sequence[_Outputs]) -> list[tuple[int, int, int, int]]:
        """Newest output, first wrong input, last input that was named, and log partition, of a key that is wrong."""
        source, place_of = self.effects.source, self.effects.last_offset
        named = {int(source[effect]) for outputs in of_key for effect in outputs.places}
        last = max(named, key=lambda value: (int(place_of[value]), value))
        newest = [outputs.places[-1] for outputs in of_key]
        if any(source[effect] == last and not self._is_wrong(effect) for effect in newest):
            return []
        outputs = next(each for each in of_key if any(source[effect] == last for effect in each.places))
        effect = outputs.places[-1]
        if not self._is_wrong(effect):
            if not self.effects.passed[last]:
                return []
            later = [value for value in named if place_of[value] > place_of[source[effect]]]
            return [(effect, min(later, key=lambda value: (int(place_of[value]), value)), last, outputs.node)]
        first = effect
        for earlier in reversed(outputs.places):
            if not self._is_wrong(earlier):
                break
            first = earlier
        return [(effect, int(source[first]), last, outputs.node)]

    def _is_wrong(self, effect: int) -> bool:
        value, result = int(self.effects.source[effect]), int(self.effects.result[effect])
        low, high, facts = int(self.low[value]), int(self.high[value]), self.effects.of(value)
        return _EXPLAINS[facts.promise if facts.fold != "last" else "exactly-once"](result, low, high)


#: By promise, whether a result is wrong that lies beside those that it may be.
_EXPLAINS: Final[Mapping[str, Callable[[int, int, int], bool]]] = {
    "exactly-once": lambda result, low, high: result not in (low, high),
    "at-least-once": lambda result, low, _high: result < low,
    "at-most-once": lambda result, _low, high: not 0 <= result <= high,
}


def _of_keys(effects: EffectRows, wanted: Flags) -> Iterator[_Outputs]:
    """The outputs of these inputs (bool by input), by key and log partition of the output."""
    log, source = effects.log, effects.source
    places = np.flatnonzero((source != NONE) & wanted[source])
    key, node = effects.key[source[places]], log.node[effects.effects[places]]
    order = np.lexsort((log.offset[effects.effects[places]], node, key))
    places, key, node = places[order], key[order], node[order]
    new = np.flatnonzero((np.diff(key, prepend=-1) != 0) | (np.diff(node, prepend=-1) != 0))
    for begin, end in zip(new.tolist(), [*new[1:].tolist(), len(places)], strict=False):
        yield _Outputs(int(key[begin]), int(node[begin]), places[begin:end].tolist())


def _out_of_place(places: Sequence[int], source: Numbers, first_offset: Numbers) -> Iterator[tuple[int, int]]:
    """The last output of each input that cannot stand behind those before it, and the output that it should follow.

    The earliest output that is possible is chosen for one input after the other, which leaves most room for the others.
    """
    turns: dict[int, list[int]] = {}
    for turn, effect in enumerate(places):
        turns.setdefault(int(source[effect]), []).append(turn)
    chosen = -1
    for value in sorted(turns, key=lambda value: (int(first_offset[value]), value)):
        mine = turns[value]
        behind = bisect_right(mine, chosen)
        if behind == len(mine):
            yield places[mine[-1]], places[chosen]
        else:
            chosen = mine[behind]


#: In the order in which a report lists them.
KEYED_EFFECTS: Final = Anomaly.each_documented(
    where_there_are,
    (
        (
            "reordered-effect",
            reordered_effect,
            ReorderedEffect,
            About.READERS,
            "The application wrote the effects of a key in another order",
            "An application that promises order by key writes the effects of a key in the order of its inputs.",
        ),
        (
            "wrong-fold",
            wrong_fold,
            WrongFold,
            About.READERS,
            "The newest output of a key is not what its inputs make",
            "The newest output of a key is the fold of all its inputs up to it.",
        ),
    ),
)
