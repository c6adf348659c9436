"""Reads the lines that Kafka's VerifiableProducer and VerifiableConsumer print, and gives operations.

Four lines, which may stand behind the prefix of a log, and among lines of other kinds::

    {"timestamp":1764360001020,"name":"producer_send_success","value":"1.0","topic":"orders","partition":0,"offset":0}
    {"timestamp":1764360001030,"name":"producer_send_error","exception":"...","topic":"orders","value":"1.2"}
    {"timestamp":1764360002010,"name":"record_data","value":"1.0","topic":"orders","partition":0,"offset":0}
    {"timestamp":1764360002011,"name":"records_consumed","count":1,"partitions":[{"topic":"orders","partition":0,...}]}

They say less than a history does, and :class:`Survey` says what is missing. A send has no begin, and is a process of
its own. One that failed may be in the log all the same, in any log partition of its topic. A producer that was killed
says nothing of its last sends, so a value that was read without a line of its producer counts as one of these. A log
partition may have several readers: all that were assigned it before it was revoked. Only VerifiableConsumer's
``--verbose`` says which records were read; counts alone prove nothing.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Final

import msgspec

from workloads.history.left_out import LeftOut

#: Records of a poll after which it is cut.
POLL_MAX: Final = 1_000
_OBJECT: Final = json.JSONDecoder()
_NUMBERED: Final = re.compile(r"(?:(.*)\.)?(0|[1-9][0-9]{0,17})", re.DOTALL)
_SUCCESS, _ERROR, _READ, _CONSUMED = "producer_send_success", "producer_send_error", "record_data", "records_consumed"
_ASSIGNED, _COMMITTED = "partitions_assigned", "offsets_committed"
_OF_SHARE_GROUPS: Final = "offsets_acknowledged"
_SILENT: Final = frozenset({"startup_complete", "shutdown_complete", "tool_data", "partitions_revoked"})
#: The names of lines by which a file is recognised.
NAMES: Final = _SILENT | {_SUCCESS, _ERROR, _READ, _CONSUMED, _ASSIGNED, _COMMITTED}
_TOGETHER: Final = "put the lines of all producers and consumers into one file, one after the other"
_NO_CONSUMER: Final = f"no line of a VerifiableConsumer is here; {_TOGETHER}"
_NO_PRODUCER: Final = f"no line of a VerifiableProducer is here; {_TOGETHER}"
_ENDS_ONLY: Final = (
    "when sends began, and what a producer sent before what: the lines tell only ends, so order in real time and the "
    "order of a producer's sends are not judged"
)
_COUNTS_ONLY: Final = (
    "the lines say how many records were read, and not of all of them which; run VerifiableConsumer with --verbose"
)


class LineError(ValueError):
    """A line that lacks what it must have, or contradicts another one; ``line`` is its number, from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


class _Values:
    """Values that were sent: numbers behind a prefix as stretches, since producers count; others one by one."""

    def __init__(self) -> None:
        self._stretches: dict[str | None, tuple[list[int], list[int]]] = {}
        self._others: set[Any] = set()

    def add(self, value: Any) -> bool:
        """Add a value; false if it was there."""
        if value in self:
            return False
        if (numbered := _numbered(value)) is None:
            self._others.add(value)
            return True
        prefix, number = numbered
        begins, ends = self._stretches.setdefault(prefix, ([], []))
        stretch = bisect_right(begins, number)
        joins, meets = (
            stretch > 0 and ends[stretch - 1] == number,
            stretch < len(begins) and begins[stretch] == number + 1,
        )
        if joins and meets:
            ends[stretch - 1] = ends.pop(stretch)
            begins.pop(stretch)
        elif joins:
            ends[stretch - 1] = number + 1
        elif meets:
            begins[stretch] = number
        else:
            begins.insert(stretch, number)
            ends.insert(stretch, number + 1)
        return True

    def __contains__(self, value: Any) -> bool:
        if (numbered := _numbered(value)) is None:
            return value in self._others
        prefix, number = numbered
        begins, ends = self._stretches.get(prefix, ([], []))
        stretch = bisect_right(begins, number) - 1
        return stretch >= 0 and number < ends[stretch]


def _numbered(value: Any) -> tuple[str | None, int] | None:
    match = _NUMBERED.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else (match[1], int(match[2]))


def decoded(line: str) -> list[dict[str, Any]]:
    """The objects with a name that a line holds, maybe behind a prefix, and maybe several: of writers of one pipe."""
    return _decoded(line)[0]


def _decoded(line: str) -> tuple[list[dict[str, Any]], bool]:
    """The objects with a name of a line; true if it has the begin of an object, too, that has no end."""
    begin = line.find("{")
    try:
        return (_named(msgspec.json.decode(line[begin:])) if begin >= 0 else []), False
    except (msgspec.DecodeError, RecursionError):
        pass
    entries: list[dict[str, Any]] = []
    torn = False
    while begin >= 0:
        try:
            entry, end = _OBJECT.raw_decode(line, begin)
        except (ValueError, RecursionError):
            end = begin + 1
            torn |= line.startswith('{"', begin)
        else:
            entries += _named(entry)
        begin = line.find("{", end)
    return entries, torn


def _named(entry: Any) -> list[dict[str, Any]]:
    return [entry] if isinstance(entry, dict) and isinstance(entry.get("name"), str) else []


class Survey:
    """A first look at all lines, for what each of them means depends on others.

    Attributes:
        left_out: what the lines cannot say.
        incomplete: why silence proves nothing; "" where it does.
    """

    def __init__(self, source: IO[str]) -> None:
        self.left_out = LeftOut()
        self._acknowledged, self._sent = _Values(), _Values()
        self._partitions: dict[str, set[int]] = {}
        self._first_read: dict[str, int] = {}
        self._assigned: set[str] = set()
        self._began_ms: int | None = None
        self._read = self._consumed = 0
        self._names: set[str] = set()
        self._takes: dict[str, Callable[[dict[str, Any]], None]] = {
            _SUCCESS: self._take_success,
            _ERROR: self._take_error,
            _READ: self._take_record,
            _CONSUMED: self._take_count,
            _ASSIGNED: self._take_assignment,
            _COMMITTED: self._take_commit,
        }
        for self._line, text in enumerate(source, 1):
            self.left_out.line = self._line
            self._look(text)
        if self._names & {_SUCCESS, _ERROR}:
            self.left_out.add(_ENDS_ONLY, first=0)

    @property
    def incomplete(self) -> str:
        """The reason why silence proves nothing; "" where it does."""
        if not self._names & {_SUCCESS, _ERROR}:
            return _NO_PRODUCER
        if not self._names & {_ASSIGNED, _CONSUMED, _READ}:
            return _NO_CONSUMER
        return _COUNTS_ONLY if self._consumed > self._read else ""

    def _look(self, text: str) -> None:
        entries, torn = _decoded(text)
        if not entries and text.strip():
            self.left_out.add("lines without an object of JSON that has a name")
        elif torn:
            self.left_out.add("objects of JSON without an end, before another one on the line")
        for entry in entries:
            self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        name = entry["name"]
        self._names.add(name)
        if self._began_ms is None and (time_ms := _time_ms(entry)) is not None:
            self._began_ms = time_ms
        if (take := self._takes.get(name)) is not None:
            take(entry)
        elif name == _OF_SHARE_GROUPS:
            raise self._wrong(
                "a VerifiableShareConsumer wrote this: members of a share group read in no order to judge"
            )
        elif name not in _SILENT:
            self.left_out.add(f"lines with the name {_shown(name)}")

    def _take_success(self, entry: dict[str, Any]) -> None:
        self._key_of(entry)
        value = entry.get("value")
        self._sent.add(value)
        if not self._acknowledged.add(value):
            raise self._wrong(
                f"the value {_shown(value)} is acknowledged twice, and values must be unique; give each producer a "
                "--value-prefix, and each run a file of its own"
            )

    def _take_error(self, entry: dict[str, Any]) -> None:
        self._sent.add(entry.get("value"))
        self._partitions.setdefault(self._field(entry, "topic", str), set())

    def _take_record(self, entry: dict[str, Any]) -> None:
        self._read += 1
        self._note_read(self._key_of(entry), self._field(entry, "offset", int))

    def _take_count(self, entry: dict[str, Any]) -> None:
        self._consumed += self._field(entry, "count", int)
        for part in self._field(entry, "partitions", list):
            if isinstance(part, dict) and isinstance(first := part.get("minOffset"), int):
                self._note_read(self._key_of(part), first)

    def _take_assignment(self, entry: dict[str, Any]) -> None:
        self._assigned |= {self._key_of(part) for part in self._field(entry, "partitions", list)}

    def _take_commit(self, _: dict[str, Any]) -> None:
        self.left_out.add("what groups committed (offsets_committed), for the lines do not name the group")

    def operations(self, source: IO[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The operations that the same lines are, each with the number of its line.

        Raises:
            LineError: a line lacks what it must have.
        """
        polls = _Polls(self)
        for self._line, text in enumerate(source, 1):
            self.left_out.line = self._line
            for entry in decoded(text):
                yield from self._at_line(self._operations_of(entry, polls))
        yield from self._at_line(polls.ended(polls.time))

    def _operations_of(self, entry: dict[str, Any], polls: _Polls) -> Iterator[dict[str, Any]]:
        time = self._time(entry)
        match entry["name"]:
            case "producer_send_success":
                yield self._acknowledgement(entry, time)
            case "producer_send_error":
                for key in self._possible(entry):
                    yield _attempt(time, key, entry.get("value"), self._error(entry))
            case "record_data" if entry.get("value") is None:
                self.left_out.add("records without a value, which no VerifiableProducer writes")
            case "record_data":
                yield from polls.read(self._key_of(entry), entry, time)
            case "records_consumed":
                yield from polls.ended(time)
            case "partitions_assigned":
                yield from polls.ended(time)
                polls.assigned(self._key_of(part) for part in self._field(entry, "partitions", list))
            case "partitions_revoked":
                yield from polls.ended(time)
                polls.revoked(self._key_of(part) for part in self._field(entry, "partitions", list))

    def _at_line(self, operations: Iterable[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
        return ((self._line, operation) for operation in operations)

    def is_known(self, value: Any) -> bool:
        """True if a producer's line tells of the value."""
        return value in self._sent

    def _acknowledgement(self, entry: dict[str, Any], time: int) -> dict[str, Any]:
        key, value, offset = self._key_of(entry), entry.get("value"), self._field(entry, "offset", int)
        first = self._first_read.get(key)
        if offset < 0:
            self.left_out.add("sends without an offset (acks=0), which no broker acknowledged")
        elif first is None and key not in self._assigned and not self.incomplete:
            self.left_out.add("acknowledged sends to log partitions that no consumer was assigned")
        elif first is not None and offset < first:
            self.left_out.add("acknowledged sends before the first record that any consumer read")
        else:
            return _operation(time, None, "ok", "send", [["send", key, [offset, value]]])
        return _operation(time, None, "info", "send", [["send", key, [offset if offset >= 0 else None, value]]])

    def _possible(self, entry: dict[str, Any]) -> list[str]:
        """The log partitions that a failed send may have reached: the one that its error names, or all of its topic."""
        topic = self._field(entry, "topic", str)
        self.left_out.add("whether failed sends (producer_send_error) are in the log; they may be or not")
        named = re.search(rf"(?<![\w.-]){re.escape(topic)}-(\d+)\b", str(entry.get("message", "")))
        numbers = [int(named[1])] if named else sorted(self._partitions.get(topic, ()))
        return [f"{topic}-{number}" for number in numbers]

    def _key_of(self, entry: Any) -> str:
        topic, partition = self._field(entry, "topic", str), self._field(entry, "partition", int)
        self._partitions.setdefault(topic, set()).add(partition)
        return f"{topic}-{partition}"

    def _note_read(self, key: str, offset: int) -> None:
        self._first_read[key] = min(offset, self._first_read.get(key, offset))

    def _field(self, entry: Any, name: str, kind: type[Any]) -> Any:
        value = entry.get(name) if isinstance(entry, dict) else None
        if type(value) is not kind:
            wanted = {int: "a whole number", str: "a text", list: "a list"}[kind]
            raise self._wrong(f"the line has no {name} that is {wanted}; restore the line, or remove it")
        return value

    def _time(self, entry: dict[str, Any]) -> int:
        time_ms = _time_ms(entry)
        return -1 if time_ms is None or self._began_ms is None else (time_ms - self._began_ms) * 1000

    def _error(self, entry: dict[str, Any]) -> str:
        kind = str(entry.get("exception", "")).removeprefix("class ").rpartition(".")[2]
        return f"{kind}: {entry.get('message')}" if entry.get("message") else kind

    def _wrong(self, why: str) -> LineError:
        return LineError(self._line, why)


class _Readers:
    """The consumers that may read a log partition: all that were assigned it since no consumer had it.

    Lines do not name their consumer. So a record is of the reader whose last one is nearest before it; a reader that
    has read nothing yet comes before those that would pass over an offset. No order is broken so that was not.
    """

    def __init__(self, places: int) -> None:
        self.places, self.open = places, places
        #: The process of each reader that has read, and its last offset.
        self._last: dict[int, int] = {}

    def reader(self, offset: int, made: int) -> int:
        """The process that read the record; ``made`` is that of a new one."""
        before = {last: process for process, last in self._last.items() if last < offset}
        nearest = max(before, default=-1)
        if len(self._last) < self.places and (nearest < 0 or nearest + 1 != offset):
            process = made
        else:
            process = before[nearest] if before else max(self._last)
        self._last[process] = offset
        return process


class _Polls:
    """Records that consumers read, as polls of one process for each reader of a log partition."""

    def __init__(self, survey: Survey) -> None:
        self.time = -1
        self._survey = survey
        self._readers: dict[str, _Readers] = {}
        self._made = 0
        self._waiting: dict[tuple[str, int], list[list[Any]]] = {}

    def read(self, key: str, entry: dict[str, Any], time: int) -> Iterator[dict[str, Any]]:
        """Take a record; a poll that is long enough ends."""
        self.time = time
        if not self._survey.is_known(entry.get("value")):
            self._survey.left_out.add("records without a producer's line; they count as sent, and not acknowledged")
            yield _attempt(time, key, entry.get("value"), None)
        process = self._readers.setdefault(key, _Readers(1)).reader(entry["offset"], self._made)
        self._made = max(self._made, process + 1)
        records = self._waiting.setdefault((key, process), [])
        records.append([entry["offset"], entry.get("value")])
        if len(records) >= POLL_MAX:
            yield from self._ended(key, process, time)

    def ended(self, time: int) -> Iterator[dict[str, Any]]:
        """End the polls that are open."""
        for key, process in [*self._waiting]:
            yield from self._ended(key, process, time)

    def assigned(self, keys: Iterable[str]) -> None:
        """Let one more consumer read these log partitions from here on."""
        for key in keys:
            readers = self._readers.setdefault(key, _Readers(0))
            if not readers.open:
                readers = self._readers[key] = _Readers(0)
            readers.places, readers.open = readers.places + 1, readers.open + 1

    def revoked(self, keys: Iterable[str]) -> None:
        """Let one consumer less read these log partitions."""
        for key in keys:
            readers = self._readers.setdefault(key, _Readers(1))
            readers.open = max(0, readers.open - 1)

    def _ended(self, key: str, process: int, time: int) -> Iterator[dict[str, Any]]:
        yield _operation(time, process, "invoke", "poll", [["poll"]])
        yield _operation(time, process, "ok", "poll", [["poll", {key: self._waiting.pop((key, process))}]])


def _attempt(time: int, key: str, value: Any, error: str | None) -> dict[str, Any]:
    """A send without a certain end."""
    operation = _operation(time, None, "info", "send", [["send", key, value]])
    return operation if error is None else operation | {"error": error}


def _operation(time: int, process: int | None, kind: str, function: str, value: list[Any]) -> dict[str, Any]:
    return {"type": kind, "process": process, "f": function, "value": value, "time": time}


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _time_ms(entry: dict[str, Any]) -> int | None:
    time = entry.get("timestamp", entry.get("time_ms"))
    if isinstance(time, str) and time.isdigit():
        time = int(time)
    return time if type(time) is int and 0 <= time < 2**52 else None
