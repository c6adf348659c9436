"""Anomalies of applications under test: programs of others that make outputs of inputs.

An input carries an id, and an output names the input that it was made of (:class:`workloads.Effect`). Each kernel's
docstring is its specification. An input without its effect, and an input with too many, are the ``missing-effect`` and
``doubled-effect`` of pipelines (:mod:`checkers.anomalies.pipelines`). All are O(n log n) in the rows of inputs and
effects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.view import WriteView
from checkers.columns.effects import EffectRows
from checkers.columns.ids import Numbers
from checkers.columns.log import Log
from checkers.words import counted, written
from workloads import ApplicationFacts
from workloads.history import NONE

#: The words of an instance's log in a sentence.
WORDS_MAX: Final = 160


class UnexplainedOutput(Finding, kw_only=True):
    """An output, at ``offset`` of ``key``, that was made of no input, or of one that has no output."""

    offset: int
    value: Any = None

    @override
    def words(self) -> str:
        of = "names no input" if self.value is None else f"was made of {written(self.value)}, which should have none"
        return f"The output at offset {self.offset} of {self.key} {of}."

    @property
    @override
    def written(self) -> list[Any]:
        return [] if self.value is None else [self.value]


class StalledApplication(Finding, kw_only=True):
    """A log partition of the input with which the application had not caught up."""

    inputs: int
    value: Any
    offset: int
    committed: int | None = None
    waited_ms: int = 0

    @override
    def words(self) -> str:
        where = "had committed nothing" if self.committed is None else f"had committed offset {self.committed}"
        return (
            f"The application had not caught up with {self.key} {self.waited_ms / 1000:.1f} s after healing: "
            f"{counted(self.inputs, 'input')} from offset {self.offset} on had no output, and its group {where}."
        )


class CrashLoop(Finding, kw_only=True):
    """An instance that ended again and again as soon as it was started."""

    instance: int
    exit: str
    words_at_end: str

    @override
    def words(self) -> str:
        end = " ".join(self.words_at_end.split())[-WORDS_MAX:]
        return f"Instance {self.instance} ended at once each time it was started ({self.exit}). Its last words: {end}"

    @override
    def view(self) -> WriteView:
        return WriteView(values=())


def unexplained_output(_: Log, effects: EffectRows) -> Found:
    """``unexplained-output``: an application wrote an output that no input explains.

    Example: the inputs are ``a@0 b@1``; the output has one that names ``a``, one that names ``b``, and one whose id is
    missing, damaged, or of a record that no client sent or read. With ``shape = "some"`` an output of an input that
    should have none is one, too.

    False alarms avoided: outputs of aborted transactions, where readers of committed records are meant; an input that
    the log has lost since (``lost-write``), which was sent.

    Not found: an output that names the wrong one of two inputs; it is a ``doubled-effect`` of that one.

    Findings, one an output: key (of the output), offset, value.
    """
    log, source = effects.log, effects.source
    wanted = np.append(effects.wanted, False)  # the last is for outputs without an input
    odd = np.flatnonzero((source == NONE) | ~wanted[source])
    rows = effects.effects[odd]

    def describe(number: int) -> UnexplainedOutput:
        row, of = int(rows[number]), int(source[odd[number]])
        outputs = effects.of_partition(int(log.partition[row])).outputs
        value = None if of == NONE else int(log.values.number[of])
        return UnexplainedOutput(key=outputs[int(log.node[row])], offset=int(log.offset[row]), value=value)

    return Found(partition=log.partition[rows], describe=describe, row=rows)


def stalled_application(log: Log, effects: EffectRows) -> Found:
    """``stalled-application``: when all was healed, an application had not caught up within the limit.

    Example: the inputs are ``a@0 b@1``, the group has committed offset 1, and there is an output of ``a`` only, a
    minute after the last fault. ``b`` is not lost: the application would begin there. But it did not.

    An input is still to be done if the group has not committed past it, or, where the group has committed nothing at
    all, if no later input of its log partition has an output.

    False alarms avoided: an output that was not read to its end.

    Findings, one a log partition of the input: key, inputs (how many are left), value and offset of the first one,
    committed, waited_ms.
    """
    left = np.flatnonzero(effects.lacking & ~effects.passed)
    partition = log.values.partition[left]
    order = np.lexsort((effects.last_offset[left], partition))
    left, partition = left[order], partition[order]
    partitions, first, many = np.unique(partition, return_index=True, return_counts=True)
    rows = effects.rows_of(left[first])

    def describe(number: int) -> StalledApplication:
        facts, value = effects.of_partition(int(partitions[number])), int(left[first[number]])
        key = log.partition_key[int(partitions[number])]
        return StalledApplication(
            key=key,
            inputs=int(many[number]),
            value=int(log.values.number[value]),
            offset=int(effects.last_offset[value]),
            committed=facts.committed.get(key),
            waited_ms=facts.waited_ms,
        )

    return Found(partition=partitions, describe=describe, row=rows)


def crash_loop(log: Log, effects: EffectRows) -> Found:
    """``crash-loop``: an instance of an application ended as soon as it was started, again and again.

    Example: instance 0 ends with status 1 after 300 ms, is started again, and so five times in a row. It is left alone
    then, and the end of what it printed is kept.

    False alarms avoided: an instance that a fault killed; one that lived for longer than five seconds in between.

    Findings, one an instance: key (the first log partition of the input), instance, exit, words_at_end.
    """
    looping: list[tuple[int, ApplicationFacts, int]] = []
    for partition, key in enumerate(log.partition_key):
        facts = effects.facts[int(log.partition_history[partition])]
        if facts is not None and key == facts.inputs[0]:
            looping += [(partition, facts, instance) for instance in facts.crash_loops]

    def describe(number: int) -> CrashLoop:
        partition, facts, instance = looping[number]
        last = [end for end in facts.exits if end.instance == instance][-1:]
        return CrashLoop(
            key=log.partition_key[partition],
            instance=instance,
            exit=last[0].exit if last else "",
            words_at_end=last[0].words if last else "",
        )

    partitions = np.array([partition for partition, _, _ in looping], dtype=np.int64)
    return Found(partition=partitions, describe=describe, row=np.full(len(looping), NONE, dtype=np.int64))


def lacking_inputs(effects: EffectRows) -> Numbers:
    """The inputs that an application has passed without the effects that they must have."""
    return np.flatnonzero(effects.lacking & effects.passed)


def doubled_inputs(effects: EffectRows) -> Numbers:
    """The inputs with more effects than they may have; one that is not in the log any more may have those of one."""
    each = np.maximum(effects.due, effects.wanted * effects.each)
    read = effects.log.drained_end[effects.log.values.partition] != NONE
    return np.flatnonzero(effects.applied & read & effects.wanted & (effects.made > each))


def where_there_are(kernel: Callable[[Log, EffectRows], Found]) -> Callable[[Log], Found]:
    """The kernel over a log that may have no application."""

    def find(log: Log) -> Found:
        return Found.nothing() if log.effects is None else kernel(log, log.effects)

    return find


#: In the order in which a report lists them.
APPLICATIONS: Final = Anomaly.each_documented(
    where_there_are,
    (
        (
            "unexplained-output",
            unexplained_output,
            UnexplainedOutput,
            About.READERS,
            "The application wrote an output that no input explains",
            "An application makes its outputs of its inputs, and names them.",
        ),
        (
            "stalled-application",
            stalled_application,
            StalledApplication,
            About.READERS,
            "The application did not catch up",
            "Once all is healed, an application does what is left of its input.",
        ),
        (
            "crash-loop",
            crash_loop,
            CrashLoop,
            About.READERS,
            "An instance of the application ended again and again",
            "An instance that is started works.",
        ),
    ),
)
