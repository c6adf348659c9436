"""An anomaly: its name, its specification, which the report quotes, and a kernel that finds it in a log."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Self, TypeVar

import msgspec
import numpy as np

from checkers.anomalies.view import View, WriteView
from checkers.columns.ids import Numbers
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from checkers.words import written
from workloads.history import NONE, Origin, shown_key

#: Writes of one finding that a line of a terminal names.
_WRITES_MAX: Final = 3
Part = TypeVar("Part", bound=msgspec.Struct)
Kernel = TypeVar("Kernel", bound=Callable[..., "Found"])


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One occurrence of an anomaly. Each anomaly's module has its own struct; fields that are not known are left out.

    ``key`` is the log partition. Values are numbers in histories of our own, and any JSON in those of other tools.
    """

    key: str | int | None = None

    @property
    def written(self) -> list[Any]:
        """The values of the writes that it names, first the value that it is about."""
        fields = msgspec.structs.asdict(self)
        subject = [fields["value"]] if "value" in fields else []
        return [*subject, *(fields.get("values") or ()), *(fields.get("messages") or ())]

    def told(self, origin: Origin) -> Self:
        """The same with values, keys and indexes as the history's maker wrote them."""
        return _told_of(self, origin)

    @property
    def mark(self) -> str:
        """A word that tells it from findings of the same anomaly with another defect; "" if there is no such word."""
        return ""

    @property
    def aside(self) -> str:
        """The words behind the writes that it names, on one line."""
        return ""

    def words(self) -> str:
        """Say what it is, where the account of the write that it names does not say all; else nothing."""
        return ""

    def on_a_line(self) -> str:
        """Say it on one line: in words of its own, or by the writes that it names; as JSON where it names none."""
        if words := self.words():
            return words
        if not (writes := [written(value) for value in self.written]):
            return msgspec.json.encode(self).decode()
        more = f" and {len(writes) - _WRITES_MAX} more" if len(writes) > _WRITES_MAX else ""
        return f"{', '.join(writes[:_WRITES_MAX])}{more} to {self.key}{self.aside}"

    def view(self) -> View:
        """The data that shows it; by default, the life of the first write that it names."""
        return WriteView(values=tuple(self.written))


#: The fields that hold values, in findings and in what they consist of.
VALUE_FIELDS: Final = frozenset({"value", "values", "skipped", "messages", "next_value", "tombstone"})


def _told_of(part: Part, origin: Origin) -> Part:
    fields = {name: _told(name, getattr(part, name), origin) for name in part.__struct_fields__}
    return msgspec.structs.replace(part, **fields)


def _told(name: str, content: Any, origin: Origin) -> Any:
    match content:
        case EventPlace():
            return EventPlace(content.op_pos, origin.index(content.op_pos))
        case msgspec.Struct():
            return _told_of(content, origin)
        case list():
            return [_told(name, item, origin) for item in content]
        case int() if name in VALUE_FIELDS:
            return origin.value(content)
        case str() if name == "key":
            return shown_key(content)
    return content


class About(Enum):
    """The part of a system that an anomaly says something about."""

    PRODUCERS = "producers"
    READERS = "readers"
    CLIENTS = "client libraries"
    LOG = "the log"


class Allowed(Enum):
    """The conditions under which a history with an anomaly is valid all the same, as established checkers have it."""

    NEVER = "never"
    #: Kafka does not isolate writes.
    ALWAYS = "always"
    #: A group rebalance moves subscribed consumers without their knowing.
    SUBSCRIBED = "where consumers subscribe"
    #: Because of the same missing isolation of writes.
    ORDERED_BY_OVERWRITES = "where overwrites count as dependencies"


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """An entry of the registry, :data:`checkers.anomalies.ANOMALIES`.

    ``specification`` says what it is, with the smallest example and the false alarms that are avoided. ``finding`` is
    the struct of its findings. ``kernel`` is None for what is not decided from the columns of log partitions alone.
    ``title`` is that of its accounts, ``rule`` what is broken where a promise is; empty: the promise itself.
    """

    name: str
    specification: str
    finding: type[Finding]
    kernel: Callable[[Log], Found] | None = None
    allowed: Allowed = Allowed.NEVER
    about: About = About.LOG
    title: str = ""
    rule: str = ""

    @classmethod
    def documented(
        cls,
        name: str,
        text: str | None,
        finding: type[Finding],
        kernel: Callable[[Log], Found] | None = None,
        allowed: Allowed = Allowed.NEVER,
        *,
        about: About = About.LOG,
        title: str = "",
        rule: str = "",
    ) -> Anomaly:
        """Make one whose specification is a docstring."""
        return cls(
            name=name,
            specification=inspect.cleandoc(text or ""),
            finding=finding,
            kernel=kernel,
            allowed=allowed,
            about=about,
            title=title,
            rule=rule,
        )

    @classmethod
    def each_documented(
        cls,
        over: Callable[[Kernel], Callable[[Log], Found]],
        kernels: Iterable[tuple[str, Kernel, type[Finding], About, str, str]],
    ) -> tuple[Anomaly, ...]:
        """Make those of one subject, by name, whose specifications are the docstrings of their kernels.

        After its kernel each has its struct, what it is about, title and rule. ``over`` makes a kernel over a log of
        one that wants the log's subject.
        """
        return tuple(
            cls.documented(name, kernel.__doc__, finding, over(kernel), about=about, title=title, rule=rule)
            for name, kernel, finding, about, title, rule in kernels
        )


@dataclass(kw_only=True)
class Found:
    """The answer of a kernel: anomalies of one kind. Descriptions are made only for those that are shown.

    Attributes:
        partition: int64, one entry an anomaly: the index of its log partition.
        describe: makes the finding of the i-th anomaly.
        row: int64 by anomaly, the row of the log that shows when it happened (of the write that was lost, of the read
            that was wrong), -1 if no row does.
        rank: by anomaly, the lowest is shown first; by default in their own order.
        weight: by anomaly, how much it adds to the count; by default 1.
        value: by anomaly, the value by which replicas' logs mark it; None where they mark nothing.
    """

    partition: Numbers
    describe: Callable[[int], Finding]
    row: Numbers
    rank: Numbers | None = None
    weight: Numbers | None = None
    value: Numbers | None = None

    @classmethod
    def nothing(cls) -> Found:
        """The answer of a kernel that finds nothing, because no history is about its subject."""
        none = np.zeros(0, dtype=np.int64)
        return cls(partition=none, describe=lambda _: Finding(), row=none)

    def followed_by(self, other: Self) -> Found:
        """Both answers as one, in which each keeps its ranks; neither may have weights."""
        ranks = (np.zeros(len(part.row), np.int64) if part.rank is None else part.rank for part in (self, other))
        here = len(self.row)
        return Found(
            partition=np.concatenate([self.partition, other.partition]),
            describe=lambda number: self.describe(number) if number < here else other.describe(number - here),
            row=np.concatenate([self.row, other.row]),
            rank=np.concatenate([*ranks]),
        )

    def counts(self, partition_history: Numbers, histories: int) -> Numbers:
        """Count the anomalies of each history: int64 by history."""
        owner = partition_history[self.partition]
        weights = np.ones(len(owner)) if self.weight is None else self.weight
        return np.bincount(owner, weights=weights, minlength=histories).astype(np.int64)

    def shown(self, log: Log, limit: int | None) -> dict[int, list[tuple[Finding, int | None]]]:
        """Findings by history, at most ``limit`` of each, the lowest rank first, with their times in microseconds."""
        owner = log.partition_history[self.partition]
        rank = np.zeros(len(owner), np.int64) if self.rank is None else self.rank
        order = np.lexsort((rank, owner))
        shown: dict[int, list[tuple[Finding, int | None]]] = {}
        for number in order.tolist():
            mine = shown.setdefault(int(owner[number]), [])
            if limit is None or len(mine) < limit:
                row = int(self.row[number])
                mine.append((self.describe(number), None if row == NONE else int(log.time_us[row])))
        return shown
