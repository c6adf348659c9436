"""Findings about what became of a record: it has no effect, or too many. Pipelines and applications have both.

A member of a pipeline tells its transactions, so that its effects are records that it sent. Of an application under
test the outputs are known that were read, and that name their inputs.
"""

from __future__ import annotations

from typing import Any, Final

from typing_extensions import override

from checkers.anomalies.anomaly import Finding, Found
from checkers.anomalies.applications import doubled_inputs, lacking_inputs
from checkers.anomalies.view import CommitsView, TransactionMoment, TransactionsView, WriteView
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from checkers.words import written

#: The outputs of one input that a sentence names.
PLACES_SHOWN: Final = 3


class MissingEffect(Finding, kw_only=True):
    """A record that a group has committed without an effect.

    Of an application ``outputs`` and ``due`` are those that it made, and should have made; ``committed`` is None where
    its group has committed nothing.
    """

    group: str
    value: Any
    offset: int
    committed: int | None
    reader: EventPlace
    outputs: int = 0
    due: int | None = None

    @override
    def words(self) -> str:
        if self.due is not None:
            return self._of_application(self.due)
        return (
            f"Group {self.group} had committed offset {self.committed} of {self.key}. No transaction with "
            f"what was made of {written(self.value)}, at offset {self.offset}, was committed."
        )

    def _of_application(self, due: int) -> str:
        passed = (
            f"its group had committed offset {self.committed} of {self.key}"
            if self.committed is not None
            else f"it had done later inputs of {self.key}"
        )
        has = "no output" if not self.outputs else f"{self.outputs} of {due} outputs"
        return (
            f"The application made {has} of {written(self.value)}, which is in the log at offset {self.offset}, and "
            f"{passed}."
        )

    @override
    def view(self) -> CommitsView | WriteView:
        if self.committed is None:
            return WriteView(values=(self.value,))
        return CommitsView(
            group=self.group,
            offset=self.offset,
            counts=self.committed,
            against=self.reader,
            words=("the group committed past it", "read, and without an effect"),
        )


class DoubledEffect(Finding, kw_only=True):
    """Records that were all made of one, whose log partition and offset are ``source`` and ``offset``.

    Of an application ``values`` has the input, and ``places`` say where its outputs are.
    """

    source: str
    offset: int
    values: list[Any]
    writers: list[EventPlace]
    places: tuple[str, ...] = ()

    @override
    def words(self) -> str:
        if self.places:
            where = ", ".join(self.places[:PLACES_SHOWN]) + (", ..." if len(self.places) > PLACES_SHOWN else "")
            return (
                f"The application made {len(self.places)} outputs of {written(self.values[0])}, at offset "
                f"{self.offset} of {self.source}: {where}."
            )
        made = " and ".join(map(written, self.values))
        return (
            f"Readers of {self.key} saw {made}. All were made of the record at offset {self.offset} of "
            f"{self.source}, in transactions of their own."
        )

    @override
    def view(self) -> TransactionsView | WriteView:
        if self.places:
            return WriteView(values=tuple(self.values))
        return TransactionsView(
            when=TransactionMoment.ENDED,
            word=f"made of offset {self.offset}",
            values=tuple(self.values),
            writers=tuple(self.writers),
        )


def missing_output(log: Log) -> Found:
    """The inputs of applications that lack outputs: ``missing-effect``."""
    if (effects := log.effects) is None:
        return Found.nothing()
    inputs = lacking_inputs(effects)
    rows = effects.rows_of(inputs)

    def describe(number: int) -> MissingEffect:
        value, row = int(inputs[number]), int(rows[number])
        facts, key = effects.of(value), log.key(row)
        return MissingEffect(
            key=key,
            group=facts.group,
            value=int(log.values.number[value]),
            offset=int(effects.last_offset[value]),
            committed=facts.committed.get(key),
            reader=log.op(row),
            outputs=int(effects.made[value]),
            due=int(effects.due[value]),
        )

    return Found(partition=log.partition[rows], describe=describe, row=rows)


def doubled_output(log: Log) -> Found:
    """The inputs of applications that have too many outputs: ``doubled-effect``."""
    if (effects := log.effects) is None:
        return Found.nothing()
    inputs = doubled_inputs(effects)

    def describe(number: int) -> DoubledEffect:
        value = int(inputs[number])
        facts, partition = effects.of(value), int(log.values.partition[value])
        rows = effects.effects[effects.source == value].tolist()
        return DoubledEffect(
            key=log.partition_key[partition],
            source=log.partition_key[partition],
            offset=int(effects.last_offset[value]),
            values=[int(log.values.number[value])],
            writers=[],
            places=tuple(f"offset {int(log.offset[row])} of {facts.outputs[int(log.node[row])]}" for row in rows),
        )

    return Found(partition=log.values.partition[inputs], describe=describe, row=effects.rows_of(inputs))
