"""From the lines of a script to its steps, and from faults to lines: one step a line, "#" begins a comment.

A line is read word by word, so that what is wrong can be named: the line, the word, what was expected, and the valid
word nearest to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from harness.errors import PlanError
from harness.stories import steps as s
from nemesis.cluster import CLIENTS, CONTROLLER, Link
from nemesis.faults import DiskFault, Fault, Kill

#: Messages that can be dropped or held, by the name of their request in Kafka's protocol.
APIS: Final = (
    "Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "Metadata", "InitProducerId", "UpdateMetadata",
    "BrokerRegistration", "BrokerHeartbeat", "AlterPartition",
)  # fmt: skip
#: Words that no record can be called.
_RESERVED: Final = ("all", "and", "high", "isr", "leader", "nobody", "somebody", "the")
_ENDS: Final = {"controller": CONTROLLER, "clients": CLIENTS}
_ACKS: Final = {"acks=0": 0, "acks=1": 1, "acks=all": -1}
_RECORD: Final = re.compile(r"[a-z][a-z0-9]*")
_LINK: Final = re.compile(r"([^->]+)(-|>)([^->]+)")
_MS: Final = {"ms": 1, "s": 1000}
#: No step waits for longer.
MAX_WAIT_S: Final = 600


class Where(NamedTuple):
    """A line of a file, for what is wrong with it."""

    file: str
    line: int

    def wrong(self, text: str) -> PlanError:
        """The error that says so."""
        return PlanError(f"{self.file}, line {self.line}: {text}")


def parse_script(text: str, file: str, first_line: int = 1) -> tuple[s.Step, ...]:
    """The steps of a script of ``file``, whose first line there is ``first_line``.

    Raises:
        PlanError: a line is no step; or it speaks of a record that no line before it writes.
    """
    found: list[s.Step] = []
    written: set[str] = {"base"}
    for number, line in enumerate(text.splitlines(), first_line):
        plain = " ".join(line.partition("#")[0].split())
        if plain:
            found.append(_Line(plain, Where(file, number), written).step())
    return tuple(found)


class _Line:
    """One line, read from left to right. ``written`` are the records of the lines before, and grows."""

    def __init__(self, text: str, where: Where, written: set[str]) -> None:
        self._text = text
        self._where = where
        self._words = text.split()
        self._at = 0
        self._written = written
        self._form = ""

    def step(self) -> s.Step:
        """The step that this line is."""
        tried = self._follows("try")
        verb = self._choose(s.VERBS, "a verb")
        kind, operands, fault = s.VERBS[verb]
        self._form = f"{verb} {operands}".rstrip()
        fields = _READERS[operands](self)
        kind = _WITH.get(next(iter(fields), ""), kind)
        if kind is s.Begin:
            fields["fault"] = fault
        elif kind is s.Undo:
            fields["verb"] = verb
        if self._at < len(self._words):
            raise self._wrong(f'"{self._words[self._at]}" is too much')
        return kind(line=self._where.line, text=self._text, tried=tried, **fields)

    # --- words -------------------------------------------------------------------------------------------------------

    def _wrong(self, what: str) -> PlanError:
        form = f"; it is written: {self._form}" if self._form else ""
        return self._where.wrong(f'"{self._text}": {what}{form}')

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _next(self, expected: str) -> str:
        word = self._peek()
        if not word:
            raise self._wrong(f"it ends where {expected} should stand")
        self._at += 1
        return word

    def _follows(self, *words: str) -> bool:
        """Take these words if they come next."""
        if self._words[self._at : self._at + len(words)] != list(words):
            return False
        self._at += len(words)
        return True

    def _expect(self, word: str) -> None:
        found = self._next(f'"{word}"')
        if found != word:
            raise self._wrong(f'"{found}" stands where "{word}" should')

    def _choose(self, known: Collection[str], what: str) -> str:
        word = self._next(what)
        if word not in known:
            raise self._wrong(f'"{word}" is not {what}; {_nearest(word, known)}')
        return word

    # --- what words mean ---------------------------------------------------------------------------------------------

    def _broker(self) -> s.Broker:
        word = self._next("a broker")
        if word.isdecimal():
            if int(word) not in s.BROKERS:
                raise self._wrong(f"there is no broker {word}; they are {s.BROKERS[0]} to {s.BROKERS[-1]}")
            return int(word)
        if word == "leader":
            return s.Role.LEADER
        if word == "the":
            for role in (s.Role.FORMER_LEADER, s.Role.OTHER_FOLLOWER):
                if self._follows(*role.split()[1:]):
                    return role
        rest = " ".join([word, *self._words[self._at : self._at + 2]]) if word == "the" else word
        raise self._wrong(f'"{rest}" is not a broker; {_nearest(rest, [*map(str, s.BROKERS), *s.Role])}')

    def _record(self) -> s.Record:
        word = self._next("a record")
        if word not in self._written:
            raise self._wrong(f'no line before this one writes "{word}"; {_nearest(word, self._written)}')
        return word

    def _new_record(self) -> s.Record:
        word = self._next("a record")
        if not _RECORD.fullmatch(word) or word in _RESERVED:
            raise self._wrong(f'"{word}" cannot be the name of a record: a letter, then letters and digits')
        if word in self._written:
            raise self._wrong(f'"{word}" is written already; send it again with "retry {word} to ..."')
        self._written.add(word)
        return word

    def _nodes(self) -> tuple[s.Broker, ...]:
        if self._follows("all"):
            return s.BROKERS
        found = [self._broker()]
        while self._peek() and self._peek() != "and":
            found.append(self._broker())
        return tuple(found)

    def _links(self, *, needed: bool) -> tuple[Link, ...]:
        found: list[Link] = []
        while self._peek():
            found += self._link(self._next("a link"))
        if needed and not found:
            raise self._wrong("it names no link, such as 0-1 (both ways), 0>1 (one way) or 0-controller")
        return tuple(found)

    def _link(self, word: str) -> Iterable[Link]:
        parts = _LINK.fullmatch(word)
        if parts is None:
            raise self._wrong(f'"{word}" is not a link, such as 0-1 (both ways), 0>1 (one way) or 0-controller')
        one, both, other = self._end(parts[1]), parts[2] == "-", self._end(parts[3])
        if one == other:
            raise self._wrong(f'"{word}" is not a link: its two ends are one')
        return [Link(one, other), Link(other, one)] if both else [Link(one, other)]

    def _end(self, word: str) -> int:
        if word.isdecimal() and int(word) in s.BROKERS:
            return int(word)
        if word not in _ENDS:
            known = [*map(str, s.BROKERS), *_ENDS]
            raise self._wrong(f'"{word}" is no end of a link; {_nearest(word, known)}')
        return _ENDS[word]

    def _time_ms(self) -> int:
        word = self._next("a number")
        if not word.isdecimal():
            raise self._wrong(f'"{word}" is not a whole number')
        time_ms = int(word) * _MS[self._choose(_MS, "a unit")]
        if time_ms > MAX_WAIT_S * 1000:
            raise self._wrong(f"that is too long; the most is {MAX_WAIT_S} s")
        return time_ms

    # --- steps -------------------------------------------------------------------------------------------------------

    def write(self) -> dict[str, Any]:
        record = self._new_record()
        self._expect("to")
        to, acks, producer = self._broker(), None, None
        if self._peek().startswith("acks"):
            acks = _ACKS[self._choose(_ACKS, "a number of acknowledgements")]
        if self._follows("as"):
            producer = self._next("the name of a producer")
        return {"record": record, "to": to, "acks": acks, "producer": producer}

    def retry(self) -> dict[str, Any]:
        record = self._record()
        self._expect("to")
        return {"record": record, "to": self._broker()}

    def bare(self) -> dict[str, Any]:
        return {}

    def wait(self) -> dict[str, Any]:
        limit_ms = None
        if self._follows("up"):
            self._expect("to")
            limit_ms = self._time_ms()
            self._expect("until")
        elif not self._follows("until"):
            return {"ms": self._time_ms()}
        self._form = f"{self._form}; a STATE is one of: {s.STATES}"
        states = [self._state()]
        while self._follows("and"):
            states.append(self._state())
        return {"states": tuple(states), "limit_ms": limit_ms}

    def nodes_step(self) -> dict[str, Any]:
        return {"nodes": self._nodes()}

    def never(self) -> dict[str, Any]:
        self._expect("start")
        return {"nodes": self._nodes()}

    def withhold(self) -> dict[str, Any]:
        self._expect("metadata")
        self._expect("from")
        return {"nodes": self._nodes()}

    def corrupt(self) -> dict[str, Any]:
        record = self._record()
        self._expect("on")
        return {"record": record, "nodes": (self._broker(),)}

    def links_step(self) -> dict[str, Any]:
        return {"links": self._links(needed=True)}

    def release(self) -> dict[str, Any]:
        if self._peek() not in ("first", "last"):
            return self.healing()
        newest = self._next("which of the messages") == "last"
        link, *more = self._links(needed=True)
        if more:
            raise self._wrong("it is about one link in one direction, such as 0>controller")
        return {"link": link, "newest": newest}

    def healing(self) -> dict[str, Any]:
        return {"links": self._links(needed=False)}

    def messages(self) -> dict[str, Any]:
        api = "" if _LINK.fullmatch(self._peek()) else self._choose(APIS, "an API or a link")
        return {"api": api, "links": self._links(needed=True)}

    def move(self) -> dict[str, Any]:
        self._expect("leader")
        self._expect("to")
        return {"nodes": (self._broker(),)}

    # --- states ------------------------------------------------------------------------------------------------------

    def _state(self) -> s.State:
        for words, state in _PHRASES.items():
            if self._follows(*words):
                return state
        if self._follows("isr", "is"):
            return s.IsrIs(self._nodes())
        if self._follows("high", "watermark", "of"):
            broker = self._broker()
            expected = self._choose(("covers", "misses"), '"covers" or "misses"') == "covers"
            return s.Covers(broker, self._record(), expected)
        word = self._peek()
        if word in self._written:
            return self._of_record(self._record())
        if word.isdecimal() or word in ("leader", "the"):
            return self._of_broker(self._broker())
        known = [*sorted(self._written), "leader", "isr", "high", *(words[0] for words in _PHRASES)]
        raise self._wrong(f'no state begins with "{word}"; {_nearest(word, known)}')

    def _of_record(self, record: s.Record) -> s.State:
        self._expect("is")
        return s.Answered(record, self._choose(("answered", "acknowledged"), "said of a record") == "acknowledged")

    def _of_broker(self, broker: s.Broker) -> s.State:
        word = self._choose(("leads", "has", "lacks", "is"), "said of a broker")
        if word == "leads":
            return s.Leads(broker)
        if word != "is":
            return s.Has(broker, self._record(), word == "has")
        expected = not self._follows("not")
        if self._follows("fenced"):
            return s.IsFenced(broker, expected)
        for part in ("in", "the", "isr"):
            self._expect(part)
        return s.InIsr(broker, expected)


_PHRASES: Final[dict[tuple[str, ...], s.State]] = {
    ("somebody", "leads"): s.SomebodyLeads(),
    ("nobody", "leads"): s.NobodyLeads(),
    ("all", "are", "in", "sync"): s.InSync(),
}
#: What reads the operands of a verb.
_READERS: Final[dict[str, Callable[[_Line], dict[str, Any]]]] = {
    "RECORD to BROKER [acks=0|1|all] [as PRODUCER]": _Line.write,
    "RECORD to BROKER": _Line.retry,
    "": _Line.bare,
    "N ms | wait N s | wait [up to N s] until STATE [and STATE]...": _Line.wait,
    "BROKER...": _Line.nodes_step,
    "start BROKER...": _Line.never,
    "metadata from BROKER...": _Line.withhold,
    "RECORD on BROKER": _Line.corrupt,
    "leader to BROKER": _Line.move,
    "LINK...": _Line.links_step,
    "[LINK...]": _Line.healing,
    "[API] LINK...": _Line.messages,
    "[LINK...] | release first|last LINK": _Line.release,
}
#: Of verbs with two forms the step that a field belongs to.
_WITH: Final[dict[str, type[s.Step]]] = {"states": s.WaitUntil, "link": s.ReleaseOne}


def _nearest(word: str, known: Iterable[str]) -> str:
    """The end of an error: the valid word nearest to ``word``, and what else there is."""
    words = sorted(known)
    near = get_close_matches(word.lower(), words, n=1, cutoff=0.5)
    listed = ", ".join(words)
    return f'did you mean "{near[0]}"? (there are {listed})' if near else f"there are {listed}"


# --- from faults to lines --------------------------------------------------------------------------------------------


class Lines(NamedTuple):
    """The lines with which a fault begins, and ends."""

    begins: list[str]
    ends: list[str]


def lines_of(kind: type[Fault], nodes: Sequence[int] = (), links: Sequence[Link] = (), api: str = "") -> Lines | None:
    """The lines of a fault that hits ``nodes`` or ``links``; None where a script cannot say it."""
    if not set(nodes) <= set(s.BROKERS):
        return None
    whom = " ".join([*map(str, nodes), *_written(links)])
    ends = [f"{kind.undone_by.verb} {whom}"] if kind.lasts else []
    said = {
        "BROKER...": whom,
        "leader to BROKER": f"leader to {whom}",
        "LINK...": whom,
        "[API] LINK...": f"{api} {whom}".strip(),
    }.get(kind.operands)
    dies_first = [f"{Kill.verb} {whom}"] if issubclass(kind, DiskFault) else []
    return None if said is None else Lines([*dies_first, f"{kind.verb} {said}"], ends)


def _written(links: Sequence[Link]) -> Iterator[str]:
    """``0-1`` for both ways, ``0>1`` for one."""
    for link in links:
        source, target = (_NAMES.get(node, str(node)) for node in link)
        if Link(link.target, link.source) not in links:
            yield f"{source}>{target}"
        elif link.source < link.target:
            yield f"{source}-{target}"


_NAMES: Final = {node: name for name, node in _ENDS.items()}
