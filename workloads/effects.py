"""The inputs of an application and their effects: what was acknowledged, what was read of the output, what is left.

Readers of the output are ordinary ones (:mod:`workloads.consumers`) that decode ids, and whose own operations are not
in the history: it has the effects, once, when the output was read to its end at both isolation levels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from workloads.application_ids import finder, key_of, number_of, quoted
from workloads.application_payloads import InputId, input_of
from workloads.application_plan import ApplicationPlan
from workloads.client import Fetched
from workloads.operations import HARNESS, Effect, Event, EventType, Function, Poll, Record, Recorder, Send
from workloads.values import NO_VALUE

#: Outputs that are remembered; what comes after them is not looked at, and the output counts as not read.
OUTPUTS_MAX: Final = 2_000_000
#: Effects of one event.
EFFECTS_AN_EVENT: Final = 10_000
#: A result that is a number, below 10^18.
_WHOLE: Final = re.compile(r"\d{1,18}")
#: The key, and the payload, of the record that ends each log partition of the output.
LAST: Final = b"ackproof: the end"

#: The name of what an application writes to that is no topic; offsets in it are numbers of lines.
SINK: Final = "the sink"


def _line_of(output: Fetched) -> str:
    """The id that is all of a line."""
    return output.payload.decode(errors="replace").strip()


class Unrecorded:
    """A recorder (:class:`workloads.Recorder`) that writes nothing down."""

    def record(self, event: Event) -> None:
        """Pass over it."""


class _Output(msgspec.Struct):
    """One output: its input, None where it names none; whether readers of the run's level saw it; its result."""

    source: InputId | None
    counts: bool
    result: int | None = None


class Effects:
    """The effects of all inputs of one run.

    Attributes:
        last_us: when something new was read of the output, in microseconds of the run.
        acknowledged: the inputs that were acknowledged.
        nameless: an output in which no id was, None before there was one.
        named: True once an output had an id.
        overflowed: True if there were more outputs than are remembered.
    """

    def __init__(
        self,
        plan: ApplicationPlan,
        keys: int,
        inputs: Sequence[str],
        outputs: Sequence[str],
        recorder: Recorder,
    ) -> None:
        self._plan, self._finds_id, self._keys = plan, _line_of if plan.shape == "none" else finder(plan.id), keys
        self._finds_result = finder(plan.result) if plan.shape == "fold" else None
        #: The last acknowledged input, and its offset, by log partition and key of a fold.
        self._last: dict[tuple[str, int], tuple[int, InputId]] = {}
        #: The acknowledged inputs of a key of a fold since it was up to date.
        self._since: Counter[tuple[str, int]] = Counter()
        self._inputs = frozenset(inputs)
        self._first_input = inputs[0]
        self._outputs: dict[str, dict[int, _Output]] = {name: {} for name in outputs}
        self._recorder = recorder
        self._due: dict[InputId, int] = {}
        self._made: Counter[InputId] = Counter()
        self._remembered = 0
        self.last_us = self.acknowledged = 0
        self.nameless: str | None = None
        self.named = self.overflowed = False

    @property
    def pending(self) -> int:
        """The acknowledged inputs that lack an effect; of a fold the last of each key alone."""
        return len(self._due)

    @property
    def done(self) -> int:
        """The acknowledged inputs that lack no effect; of a fold those of a key count once its last has one."""
        return self.acknowledged - (self._since.total() if self._plan.shape == "fold" else self.pending)

    def record(self, event: Event) -> None:
        """Write down what producers do, and know the inputs that were acknowledged (:class:`workloads.Recorder`)."""
        self._recorder.record(event)
        if event.function is Function.SEND and event.type is EventType.OK:
            for sent in event.micro:
                if isinstance(sent, Send):
                    self._expect(InputId(sent.partition, sent.value), sent.offset)

    def read(self, counts: bool, now_us: int, records: Sequence[Fetched]) -> Poll:
        """Take outputs in; what a reader needs to know of them is the answer."""
        read: dict[str, list[Record]] = {}
        for output in records:
            read.setdefault(output.partition, []).append(Record(output.offset, NO_VALUE))
            if output.key == LAST:
                continue
            earlier = self._outputs[output.partition].get(output.offset)
            if earlier is None:
                self._take(output, counts, now_us)
            elif counts and not earlier.counts:
                earlier.counts = True
                self._count(earlier.source)
        return Poll({name: tuple(received) for name, received in read.items()})

    def read_lines(self, lines: Sequence[str], now_us: int) -> None:
        """Take in what a sink did: the id of an input in each line."""
        for number, line in enumerate(lines):
            self._take(Fetched(SINK, number, b"", line.encode()), True, now_us)

    def events(self, now_us: int) -> Iterator[Event]:
        """Every effect, as events of the history."""
        for number, outputs in enumerate(self._outputs.values()):
            told: list[tuple[EventType, list[Effect]]] = [
                (EventType.OK, []),
                (EventType.FAIL, []),
                (EventType.INFO, []),
            ]
            for offset, output in sorted(outputs.items()):
                partition, value = output.source or (self._first_input, NO_VALUE)
                told[not output.counts][1].append(Effect(partition, value, offset))
                if output.counts and output.result is not None and output.source is not None:
                    told[2][1].append(Effect(partition, output.result, offset))
            for kind, micro in told:
                event = partial(
                    Event, time_us=now_us, process=HARNESS, type=kind, function=Function.EFFECT, node=number
                )
                for begin in range(0, len(micro), EFFECTS_AN_EVENT):
                    yield event(micro=tuple(micro[begin : begin + EFFECTS_AN_EVENT]))

    def _take(self, output: Fetched, counts: bool, now_us: int) -> None:
        if self._remembered >= OUTPUTS_MAX:
            self.overflowed = True
            return
        self._remembered += 1
        self.last_us = now_us
        text = self._finds_id(output)
        source = None if text is None else input_of(text)
        if source is not None and source.partition not in self._inputs:
            source = None
        if source is None:
            self.nameless = self.nameless or quoted(output)
        else:
            self.named = True
        result = None if self._finds_result is None else self._number(self._finds_result(output))
        self._outputs[output.partition][output.offset] = _Output(source, counts, result)
        if counts:
            self._count(source)

    def _number(self, result: str | None) -> int:
        """The result that an output has; -1 where it has none."""
        if self._plan.fold == "last":
            named = None if result is None else input_of(result)
            return NO_VALUE if named is None else named.value
        return int(result) if result is not None and _WHOLE.fullmatch(result) else NO_VALUE

    def _expect(self, source: InputId, offset: int | None) -> None:
        self.acknowledged += 1
        if self._plan.shape == "fold":
            key = self._key(source)
            reached, earlier = self._last.get(key, (-1, None))
            if offset is None or offset < reached:
                self._since[key] += earlier in self._due
                return
            self._last[key] = offset, source
            if earlier is not None:
                self._due.pop(earlier, None)
            self._since[key] = 0 if self._made[source] else self._since[key] + 1
        if self._plan.shape == "some" and number_of(source.value) % self._plan.every:
            return
        if self._made[source] < self._plan.outputs_of_each:
            self._due[source] = self._plan.outputs_of_each

    def _count(self, source: InputId | None) -> None:
        if source is not None:
            self._made[source] += 1
            if self._made[source] >= self._plan.outputs_of_each and self._due.pop(source, 0):
                self._since.pop(self._key(source), None)

    def _key(self, source: InputId) -> tuple[str, int]:
        return source.partition, key_of(source.value, self._keys)
