"""From the lines of a script to its steps, and from faults to lines: one step a line, "#" begins a comment.

The forms of lines are with the steps and states that they make; here is the meaning of their slots. A line that has
none of the forms is refused with its place, the word that is wrong, what was expected there, and the nearest valid
word.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from harness.ground.errors import PlanError
from harness.runs.stories.script.grammar import Mismatch, Words
from harness.runs.stories.stage.names import BASE, BROKERS, Broker, BrokerRole, Record
from harness.runs.stories.steps import STATES, VERBS, Form, ScriptState, Step
from harness.runs.stories.steps.form import SLOT, slots_of, written_as
from harness.worlds.simulated import ERROR_NAMES
from nemesis.cluster import CLIENTS, CONTROLLER, Link
from nemesis.faults import DiskFault, Fault, Kill
from workloads import unknown_name

#: Messages that can be dropped or held, by the name of their request in Kafka's protocol.
APIS: Final = (
    "Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "Metadata", "InitProducerId", "UpdateMetadata",
    "BrokerRegistration", "BrokerHeartbeat", "AlterPartition", "AddPartitionsToTxn", "EndTxn", "WriteTxnMarkers",
    "ConsumerGroupHeartbeat", "OffsetCommit", "OffsetFetch", "DeleteGroups",
)  # fmt: skip
#: Words that no record can be called: those with which states begin, and brokers.
_RESERVED: Final = {"all", "and", "leader", "nothing", "the", *(form.verb for form in STATES)}
_ENDS: Final = {"controller": CONTROLLER, "clients": CLIENTS}
_ACKS: Final = {"acks=0": 0, "acks=1": 1, "acks=all": -1}
_ERRORS: Final = {name: name for name in sorted(ERROR_NAMES.values())}
_RECORD: Final = re.compile(r"[a-z][a-z0-9]*")
_LINK: Final = re.compile(r"([^->]+)(-|>)([^->]+)")
_MS: Final = {"ms": 1, "s": 1000}
_A_LINK: Final = "a link (0-1 both ways, 0>1 one way, 0-controller)"
_A_WRITER: Final = "a producer of single writes"
#: No step waits for longer.
MAX_WAIT_S: Final = 600


_ISOLATIONS: Final = {"committed": "read_committed", "uncommitted": "read_uncommitted"}


class Names:
    """The names that lines have given until now, by what they name, and the numbers of ``brokers``."""

    def __init__(self, brokers: Sequence[int], records: Iterable[str] = ()) -> None:
        self.brokers = tuple(brokers)
        self._given: defaultdict[str, set[str]] = defaultdict(set, record={*records})

    def of(self, what: str) -> set[str]:
        """The names of records, writers, producers, transactions or members."""
        return self._given[what]

    def note(self, form: Form, fields: Mapping[str, object]) -> None:
        """Note what a line of this form names for the first time."""
        for kind, field in slots_of(form.pattern):
            if (names := _SLOTS[kind].names) and field in fields:
                self._given[names].add(str(fields[field]))


class Where(NamedTuple):
    """A line of a file, for what is wrong with it."""

    file: str
    line: int

    def wrong(self, text: str) -> PlanError:
        """The error that says so."""
        return PlanError(f"{self.file}, line {self.line}: {text}")


def parse_script(
    text: str, file: str, first_line: int = 1, brokers: Sequence[int] = BROKERS, names: Names | None = None
) -> tuple[Step, ...]:
    """The steps of a script of ``file`` about these ``brokers``, whose first line there is ``first_line``.

    It comes after lines that gave these ``names``; by default there is the record "base".

    Raises:
        PlanError: a line is no step; or it speaks of a record that no line before it writes.
    """
    steps: list[Step] = []
    names = names or Names(brokers, [BASE])
    for number, line in enumerate(text.splitlines(), first_line):
        plain = " ".join(line.partition("#")[0].split())
        if plain:
            steps.append(_step(plain, Where(file, number), names))
    return tuple(steps)


def _step(text: str, where: Where, names: Names) -> Step:
    """The step of one line, after lines that gave these ``names``; its own are noted."""
    line = _Line(text, names)
    tried = line.follow("try")
    tried_in = _columns(line, text, where) if tried and line.follow("in") else None
    verb = line.next
    if verb not in VERBS:
        complaint = unknown_name("verb", verb, VERBS) if verb else "the step ends where a verb is expected"
        raise where.wrong(f'"{text}": {complaint}')
    try:
        form, fields = line.first_of(VERBS[verb], whole=True)
    except Mismatch:
        forms = " | ".join(shown(form) for form in VERBS[verb])
        states = f"; a STATE is one of: {', '.join(shown(form) for form in STATES)}" if "until" in text.split() else ""
        raise where.wrong(f'"{text}": {line.complaint()}; the form is: {forms}{states}') from None
    names.note(form, fields)
    step: Step = form.makes(line=where.line, text=text, tried=tried, tried_in=tried_in, **fields)
    return step


def _columns(line: _Line, text: str, where: Where) -> tuple[str, ...]:
    """The columns up to the next colon."""
    columns = [line.take()]
    while line.next and not columns[-1].endswith(":"):
        columns.append(line.take())
    if not columns[-1].endswith(":") or columns == [":"]:
        raise where.wrong(f'"{text}": behind "try in" there are columns and a colon: "try in a0 all/2*: kill 0"')
    return tuple(filter(None, (*columns[:-1], columns[-1].removesuffix(":"))))


class _Line(Words):
    """The words of one line, and what is meant by those in slots."""

    def __init__(self, text: str, names: Names) -> None:
        super().__init__(text)
        self.names = names

    def slot(self, kind: str) -> Any:
        """The words of a slot are those of its kind."""
        return _SLOTS[kind].read(self)

    def broker(self) -> Broker:
        """A broker by number or by role."""
        word = self.next
        for role in BrokerRole:
            if self.follow(*role.split()):
                return role
        brokers = self.names.brokers
        choices = [*map(str, brokers), *BrokerRole]
        expected = f"a broker ({', '.join(choices)})"
        if not word.isdecimal():
            said = self.coming(3) if word == "the" else word
            raise self.mismatch(expected, choices, said=said)
        if int(word) not in brokers:
            why = f"broker {word} does not exist; the brokers are {brokers[0]} to {brokers[-1]}"
            raise self.mismatch(expected, why=why, certain=True)
        return int(self.take())

    def brokers(self) -> tuple[Broker, ...]:
        """One broker or several, or all."""
        if self.follow("all"):
            return self.names.brokers
        brokers = [self.broker()]
        while (broker := self.attempt(self.broker)) is not None:
            brokers.append(broker)
        return tuple(brokers)

    def record(self) -> Record:
        """A record that a line before this one writes."""
        if self.next not in self.names.of("record"):
            written = sorted(self.names.of("record"))
            why = f'no line before this one writes "{self.next}"; there are {", ".join(written)}' if self.next else ""
            raise self.mismatch(f"a record ({', '.join(written)})", written, why)
        return self.take()

    def new_record(self) -> Record:
        """The name of a record that is written here."""
        word, why = self.next, ""
        if word in self.names.of("record"):
            why = f'"{word}" is written already; send it again with "retry {word} to ..."'
        elif word in _RESERVED:
            why = f'"{word}" has another meaning here; give the record another name'
        elif word and not _RECORD.fullmatch(word):
            why = f'"{word}" cannot be the name of a record; write a letter, then letters and digits'
        if why or not word:
            raise self.mismatch("the name of a record", why=why)
        return self.take()

    def records(self) -> tuple[Record, ...]:
        """Records that lines before this one write, or nothing."""
        if self.follow("nothing"):
            return ()
        records = [self.record()]
        while (record := self.attempt(self.record)) is not None:
            records.append(record)
        return tuple(records)

    def last_record(self) -> tuple[Record, ...]:
        """A record that a line before this one writes, or nothing."""
        return () if self.follow("nothing") else (self.record(),)

    def earlier_name(self, what: str, made_by: str, expected: str = "") -> str:
        """The name of ``what`` a line before this one has begun."""
        names = self.names.of(what)
        if self.next not in names:
            why = f'no line before this one has "{made_by.format(self.next)}"' if self.next else ""
            raise self.mismatch(expected or f"a {what}", sorted(names), why)
        return self.take()

    def fresh(self, what: str) -> str:
        """A name for ``what`` is begun here."""
        word, why = self.next, ""
        if word in self.names.of(what):
            why = f'"{word}" is a {what} already; choose another name'
        elif word and (word in _RESERVED or not _RECORD.fullmatch(word)):
            why = f'"{word}" cannot be the name of a {what}; write a letter, then letters and digits'
        if why or not word:
            raise self.mismatch(f"the name of a {what}", why=why)
        return self.take()

    def links(self) -> tuple[Link, ...]:
        """One link or several."""
        links = [*self.link()]
        while (more := self.attempt(self.link)) is not None:
            links += more
        return tuple(links)

    def link(self) -> tuple[Link, ...]:
        """A link in one direction, or in both."""
        parts = _LINK.fullmatch(self.next)
        if parts is None:
            raise self.mismatch(_A_LINK)
        source, target = self._end(parts[1]), self._end(parts[3])
        if source == target:
            raise self.mismatch(_A_LINK, why=f'"{self.next}" is not a link: its two ends are one', certain=True)
        self.take()
        return (Link(source, target), Link(target, source)) if parts[2] == "-" else (Link(source, target),)

    def _end(self, word: str) -> int:
        ends = {str(broker): broker for broker in self.names.brokers} | _ENDS
        if word not in ends:
            raise self.mismatch(_A_LINK, why=unknown_name("end of a link", word, ends, ", ".join(ends)), certain=True)
        return ends[word]

    def one_way(self) -> Link:
        """A link in one direction."""
        if ">" not in self.next:
            raise self.mismatch("a link in one direction (0>controller)")
        return self.link()[0]

    def time_ms(self) -> int:
        """A number and its unit."""
        number = self.next
        if not number.isdecimal():
            raise self.mismatch("a time (500 ms, 3 s)")
        self.take()
        unit = self.next
        time_ms = int(number) * int(self.one_of(_MS, '"ms" or "s"'))
        if time_ms > MAX_WAIT_S * 1000:
            why = f"{number} {unit} is too long; the most is {MAX_WAIT_S} s"
            raise self.mismatch("a time", why=why, certain=True)
        return time_ms

    def one_of(self, values: Mapping[str, object], expected: str) -> Any:
        """The value of one of these words."""
        if self.next not in values:
            raise self.mismatch(expected, [*values])
        return values[self.take()]

    def number(self) -> int:
        """A whole number."""
        if not self.next.isdecimal():
            raise self.mismatch("a number")
        return int(self.take())

    def name(self) -> str:
        """Any word as a name."""
        if not self.next:
            raise self.mismatch("the name of a producer")
        return self.take()

    def states(self) -> tuple[ScriptState, ...]:
        """One state or several, with "and" between them."""
        states: list[ScriptState] = []
        while not states or self.follow("and"):
            form, fields = self.first_of(STATES)
            states.append(form.makes(**fields))
        self.mismatch('"and"', ["and"])
        return tuple(states)


class _SlotKind(NamedTuple):
    """A kind of slot: the reader of its words, the words for it where they are not its name, and what it ``names``."""

    read: Callable[[_Line], Any]
    shown: str = ""
    names: str = ""


#: The slots of forms. One that names something does so for the first time.
_SLOTS: Final[Mapping[str, _SlotKind]] = {
    "ACKS": _SlotKind(lambda line: line.one_of(_ACKS, "acks=0, acks=1, acks=all"), "acks=0|1|all"),
    "API": _SlotKind(lambda line: line.one_of(dict(zip(APIS, APIS, strict=True)), f"an API ({', '.join(APIS)})")),
    "BROKER": _SlotKind(_Line.broker),
    "ERROR": _SlotKind(lambda line: line.one_of(_ERRORS, f"an error ({', '.join(_ERRORS)})")),
    "ISOLATION": _SlotKind(lambda line: line.one_of(_ISOLATIONS, "committed or uncommitted"), "committed|uncommitted"),
    "LAST": _SlotKind(_Line.last_record, "nothing|RECORD"),
    "LINK": _SlotKind(_Line.one_way),
    "LINKS": _SlotKind(_Line.links, "LINK..."),
    "NAME": _SlotKind(_Line.name, "PRODUCER", names="writer"),
    "NEW": _SlotKind(_Line.new_record, "RECORD", names="record"),
    "MEMBER": _SlotKind(lambda line: line.earlier_name("member", "join {}")),
    "NEWMEMBER": _SlotKind(lambda line: line.fresh("member"), "MEMBER", names="member"),
    "NEWPRODUCER": _SlotKind(lambda line: line.fresh("producer"), "PRODUCER", names="producer"),
    "NEWTRANSACTION": _SlotKind(lambda line: line.fresh("transaction"), "TRANSACTION", names="transaction"),
    "NODE": _SlotKind(lambda line: (line.broker(),), "BROKER"),
    "NODES": _SlotKind(_Line.brokers, "BROKER..."),
    "NOT": _SlotKind(lambda line: line.one_of({"not": False}, '"not"'), "not"),
    "NUMBER": _SlotKind(_Line.number),
    "PRODUCER": _SlotKind(lambda line: line.earlier_name("producer", "init {}")),
    "RECORD": _SlotKind(_Line.record),
    "RECORDS": _SlotKind(_Line.records, "nothing|RECORD..."),
    "STATES": _SlotKind(_Line.states, "STATE [and STATE]..."),
    "TIME": _SlotKind(_Line.time_ms),
    "TRANSACTION": _SlotKind(lambda line: line.earlier_name("transaction", "begin {} by ...")),
    "WRITER": _SlotKind(lambda line: line.earlier_name("writer", "write ... as {}", _A_WRITER), "PRODUCER"),
}


def shown(form: Form) -> str:
    """A form as documents and errors have it: slots without their fields."""
    return SLOT.sub(lambda slot: _SLOTS[slot[1]].shown or slot[1], form.pattern)


# --- from faults to lines --------------------------------------------------------------------------------------------


class Lines(NamedTuple):
    """The lines with which a fault begins, and ends."""

    begins: list[str]
    ends: list[str]


def lines_of(kind: type[Fault], nodes: Sequence[int] = (), links: Sequence[Link] = (), api: str = "") -> Lines | None:
    """The lines of a fault that hits ``nodes`` or ``links``; None where a script cannot say it."""
    values = {"nodes": " ".join(map(str, nodes)), "links": " ".join(_written(links)), "api": api}
    if (
        not kind.operands
        or not {slot.field for slot in slots_of(kind.operands)} <= values.keys()
        or not set(nodes) <= set(BROKERS)
    ):
        return None
    whom = f"{values['nodes']} {values['links']}".strip()
    dies_first = [f"{Kill.verb} {whom}"] if issubclass(kind, DiskFault) else []
    ends = [f"{kind.undone_by.verb} {whom}"] if kind.lasts else []
    return Lines([*dies_first, written_as(f"{kind.verb} {kind.operands}", values)], ends)


def _written(links: Sequence[Link]) -> Iterator[str]:
    """``0-1`` for both ways, ``0>1`` for one."""
    for link in links:
        source, target = (_NAMES.get(node, str(node)) for node in link)
        if Link(link.target, link.source) not in links:
            yield f"{source}>{target}"
        elif link.source < link.target:
            yield f"{source}-{target}"


_NAMES: Final = {node: name for name, node in _ENDS.items()}
