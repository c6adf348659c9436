"""A story as a space-time diagram: clients, brokers and controller as columns, time downwards, messages as arrows.

Time is not to scale. Each moment in which something happens has a row, as high as what must be read in it; a longer
silence between two rows is said in words. Lengths are pixels.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from textwrap import wrap
from typing import Final, NamedTuple

import msgspec

from harness.broker.core.types import TopicPartition
from harness.runs.stories.shown.messages import MessageWords
from harness.runs.stories.stage.trace import HEALED, Play, Trace, TraceEntry, broker_words, leader_words, record_name
from harness.runs.stories.steps import Step
from harness.runs.stories.steps.faults import Undo
from harness.worlds.contract import ReplicaState
from harness.worlds.simulated.steady import STEADY_DELAY_US
from harness.worlds.simulated.watching import Watching
from nemesis.cluster import CLIENTS, CONTROLLER, node_name
from nemesis.faults import Fault, LinkFault

WIDTH: Final = 1180
#: The width of the column of the steps, left of the times.
STEPS_WIDTH: Final = 250
_FIRST: Final = STEPS_WIDTH + 110
_LAST: Final = 170
_LINE: Final = 13
_SILENCE_US: Final = 100_000
_LETTERS: Final = 38


class Lane(NamedTuple):
    """A node's column; ``dead`` are the stretches (from, to) in which its process did not run."""

    name: str
    x: int
    dead: tuple[tuple[int, int], ...]


class Arrow(NamedTuple):
    """A message on its way; ``label_x``, ``label_y`` are the middle of its words."""

    x1: int
    y1: int
    x2: int
    y2: int
    text: str
    label_x: int
    label_y: int
    lost: bool


class Label(NamedTuple):
    """A change of what a node has or knows."""

    x: int
    y: int
    text: str
    lost: bool


class Band(NamedTuple):
    """A step of the script: its lines, its result, and whether it does harm or did not play as written."""

    y1: int
    y2: int
    lines: tuple[str, ...]
    harm: bool
    failed: bool


class Span(NamedTuple):
    """Something that lasts on links, from a step until it is healed."""

    x: int
    y1: int
    y2: int
    text: str


class Diagram(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the page draws."""

    height: int
    lanes: tuple[Lane, ...]
    arrows: tuple[Arrow, ...]
    labels: tuple[Label, ...]
    bands: tuple[Band, ...]
    spans: tuple[Span, ...]
    moments: tuple[tuple[int, str], ...]
    silences: tuple[tuple[int, str], ...]


class _Change(NamedTuple):
    time_us: int
    node: int
    text: str
    lost: bool


class _Message(NamedTuple):
    sent_us: int
    arrived_us: int
    source: int
    target: int
    text: str
    lost: bool


def diagram_of(
    trace: Trace, lost: Sequence[str], steps: Iterable[Step], watched: Watching, partition: TopicPartition
) -> Diagram:
    """The diagram of a performance of ``steps``; what has to do with the records ``lost`` is marked."""
    names = {record.value: name for name, record in trace.records.items()}
    words = MessageWords(partition, names)
    begun_us = trace.entries[0].begun_us
    said = [(seen, new) for seen in watched.messages if (new := words.of(seen)) is not None]
    messages = [
        _Message(
            seen.time_us - STEADY_DELAY_US,
            seen.time_us,
            min(seen.source, CLIENTS),
            min(seen.target, CLIENTS),
            new.text,
            bool(set(new.records) & set(lost)),
        )
        for seen, new in said
        if seen.time_us - STEADY_DELAY_US >= begun_us
    ]
    changes = [change for change in _changes(watched, names, set(lost)) if change.time_us >= begun_us]
    return _Drawing(trace, messages, changes, watched, steps).diagram()


def _changes(watched: Watching, names: dict[int, str], lost: set[str]) -> Iterator[_Change]:
    before: dict[int, ReplicaState] = {}
    for seen in watched.replicas:
        for text, records in _differences(before.get(seen.node), seen.state, names):
            yield _Change(seen.time_us, seen.node, text, bool(records & lost))
        before[seen.node] = seen.state
    for decided in watched.partitions:
        who, isr = leader_words(decided.leader), broker_words(decided.isr)
        yield _Change(decided.time_us, CONTROLLER, f"{who}, epoch {decided.leader_epoch}, ISR {isr}", lost=False)


def _differences(old: ReplicaState | None, new: ReplicaState, names: dict[int, str]) -> Iterator[tuple[str, set[str]]]:
    """The changes in words, each with the records that it is about."""
    had = {record._replace(intact=True): record.intact for record in (() if old is None else old.records)}
    has = {record._replace(intact=True): record.intact for record in new.records}
    if gone := [record_name(names, record.value) for record in had if record not in has]:
        yield f"− {' '.join(gone)}: log ends at {new.log_end}", set(gone)
    if more := [record_name(names, record.value) for record in has if record not in had]:
        yield f"+ {' '.join(more)}: log ends at {new.log_end}", set(more)
    if bad := [record_name(names, record.value) for record in has if had.get(record, True) and not has[record]]:
        yield f"torn or damaged: {' '.join(bad)}", set(bad)
    if old is None:
        return
    if old.running != new.running:
        yield ("started again" if new.running else "† dead"), set()
    if not new.running:
        return
    if (old.leading, old.leader_epoch) != (new.leading, new.leader_epoch) and new.leader_epoch is not None:
        yield f"{'leads' if new.leading else 'follows'}, epoch {new.leader_epoch}", set()
    if old.high_watermark != new.high_watermark and new.high_watermark is not None:
        yield f"high watermark {new.high_watermark}", set()
    if new.isr is not None and old.isr != new.isr:
        yield f"ISR {' '.join(map(str, new.isr))}", set()


class _Drawing:
    """Gives everything its position."""

    def __init__(
        self,
        trace: Trace,
        messages: Sequence[_Message],
        changes: Sequence[_Change],
        watched: Watching,
        steps: Iterable[Step],
    ) -> None:
        self._entries = trace.entries
        self._steps = {step.line: step for step in steps}
        self._messages = messages
        self._changes = changes
        self._watched = watched
        self._nodes = [CLIENTS, *sorted({replica.node for replica in watched.replicas}), CONTROLLER]
        self._step = (WIDTH - _FIRST - _LAST) // (len(self._nodes) - 1)
        self._times, self._rows, self._silences = self._lay_out()

    def diagram(self) -> Diagram:
        """Everything in its place."""
        height = self._rows[-1] + 2 * _LINE
        return Diagram(
            height=height,
            lanes=tuple(Lane(_named(node), self._x(node), tuple(self._dead(node, height))) for node in self._nodes),
            arrows=tuple(self._arrows()),
            labels=tuple(self._labels()),
            bands=tuple(self._bands(height)),
            spans=tuple(self._spans()),
            moments=tuple((y, f"{time_us / 1000:,.0f} ms") for time_us, y in zip(self._times, self._rows, strict=True)),
            silences=self._silences,
        )

    def _x(self, node: int) -> int:
        return _FIRST + self._nodes.index(node) * self._step

    def _y(self, time_us: int) -> int:
        return self._rows[max(bisect_right(self._times, time_us) - 1, 0)]

    def _gap(self, source: int, target: int) -> int:
        """The gap between two columns in which a message has its words: the one beside its source."""
        position = self._nodes.index(source)
        return position if self._nodes.index(target) > position else position - 1

    def _lay_out(self) -> tuple[list[int], list[int], tuple[tuple[int, str], ...]]:
        """Every moment with its row: words of messages are above it, changes and the script's steps below."""
        above: Counter[int] = Counter()
        for (time_us, _), count in Counter((time_us, gap) for time_us, gap, _ in self._said()).items():
            above[time_us] = max(above[time_us], count)
        below: Counter[int] = Counter()
        for entry in self._entries:
            below[entry.begun_us] += len(_lines(entry))
        for (time_us, _), count in Counter((change.time_us, change.node) for change in self._changes).items():
            below[time_us] = max(below[time_us], count)
        ends = {message.arrived_us for message in self._messages} | {entry.ended_us for entry in self._entries}
        times = sorted({*above, *below, *ends})
        rows, silences = [4 * _LINE], []
        for earlier, later in pairwise(times):
            y = rows[-1] + _LINE * below[earlier] + 9
            if later - earlier > _SILENCE_US:
                silences.append((y, f"{(later - earlier) / 1000:,.0f} ms"))
                y += _LINE
            rows.append(y + _LINE * max(above[later], 1))
        return times, rows, tuple(silences)

    def _said(self) -> dict[tuple[int, int, str], None]:
        """Times and gaps of the words of messages; a message to several nodes has its words once."""
        return dict.fromkeys(
            (message.sent_us, self._gap(message.source, message.target), message.text) for message in self._messages
        )

    def _arrows(self) -> Iterator[Arrow]:
        taken: Counter[tuple[int, int]] = Counter()
        unsaid = self._said()
        for message in self._messages:
            gap = self._gap(message.source, message.target)
            x1, x2, y1, y2 = (
                self._x(message.source),
                self._x(message.target),
                self._y(message.sent_us),
                self._y(message.arrived_us),
            )
            taken_here = taken[message.sent_us, gap]
            said_first = (message.sent_us, gap, message.text) in unsaid
            if said_first:
                del unsaid[message.sent_us, gap, message.text]
                taken[message.sent_us, gap] += 1
            label_x = self._x(self._nodes[gap]) + self._step // 2
            yield Arrow(
                x1, y1, x2, y2, message.text if said_first else "", label_x, y1 - taken_here * _LINE - 4, message.lost
            )

    def _labels(self) -> Iterator[Label]:
        taken: Counter[tuple[int, int]] = Counter()
        for change in sorted(self._changes, key=lambda change: change.time_us):
            above = taken[change.time_us, change.node]
            taken[change.time_us, change.node] += 1
            y = self._y(change.time_us) + above * _LINE + 11
            yield Label(self._x(change.node) + 6, y, change.text, change.lost)

    def _bands(self, height: int) -> Iterator[Band]:
        ends = [*(self._y(entry.begun_us) for entry in self._entries[1:]), height]
        below: Counter[int] = Counter()
        for entry, end in zip(self._entries, ends, strict=True):
            lines = tuple(_lines(entry))
            y = self._y(entry.begun_us) + below[entry.begun_us]
            below[entry.begun_us] += len(lines) * _LINE
            fault = self._begun(entry)
            harm = fault is not None and fault.lasts
            yield Band(y, max(end, y + len(lines) * _LINE), lines, harm, entry.play is Play.FAILED)

    def _begun(self, entry: TraceEntry) -> type[Fault] | None:
        step = self._steps.get(entry.line)
        return step.begins if step and entry.play is Play.PLAYED else None

    def _heals(self, entry: TraceEntry) -> bool:
        step = self._steps.get(entry.line)
        return entry.text == HEALED or (isinstance(step, Undo) and not step.nodes)

    def _spans(self) -> Iterator[Span]:
        """The faults of links, each until the next step that heals or releases."""
        healing = [entry for entry in self._entries if self._heals(entry)]
        lasting = [entry for entry in self._entries if issubclass(self._begun(entry) or Fault, LinkFault)]
        for number, entry in enumerate(lasting):
            end = next((other.begun_us for other in healing if other.begun_us >= entry.ended_us), self._times[-1])
            y1, y2 = self._y(entry.begun_us), self._y(end)
            yield Span(STEPS_WIDTH + 8 + 6 * (number % 4), y1, max(y2, y1 + _LINE), entry.text)

    def _dead(self, node: int, height: int) -> Iterator[tuple[int, int]]:
        own = [seen for seen in self._watched.replicas if seen.node == node]
        since: int | None = None
        for seen in own:
            running = seen.state.running
            if not running and since is None:
                since = self._y(seen.time_us)
            if running and since is not None:
                yield since, self._y(seen.time_us)
                since = None
        if since is not None:
            yield since, height


def _named(node: int) -> str:
    return "controller" if node == CONTROLLER else node_name(node)


def _lines(entry: TraceEntry) -> list[str]:
    note = "" if not entry.note else f"→ {entry.note}"
    return [line for text in (entry.text, note) for line in _wrapped(text)]


#: A text as lines of the column of steps.
_wrapped: Final = partial(wrap, width=_LETTERS, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
