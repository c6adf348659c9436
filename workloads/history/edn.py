"""Reads EDN, Clojure's notation, one form after the other, as plain objects of JSON.

Jepsen writes the operations of a test so (``history.edn``): a map a line, or all of them in one vector::

    {:index 0, :time 10, :type :invoke, :process 0, :f :send, :value [[:send 5 7]]}
    #jepsen.history.Op{:index 1, :time 20, :type :ok, :process 0, :f :send, :value [[:send 5 [3 7]]]}

Keywords, symbols and characters become texts, sets sorted lists, ratios and numbers out of range their own text, and
tagged values what the tag is of. The text is read in blocks, and no more is held than one block and one operation.

It is this project's own because Jepsen's files are of 10^5 operations and more. The reader of EDN that PyPI has
(edn_format 0.8) took sixteen times as long for the same operations, holds the whole text, refuses tags that it does not
know, and needs a parser generator that is not kept any more (ply).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import IO, Any, Final

import msgspec

#: Characters that are read at a time.
BLOCK: Final = 1 << 18
#: The longest operation, in characters, and the deepest one.
FORM_MAX: Final = 1 << 26
DEPTH_MAX: Final = 200
_TOKEN: Final = re.compile(
    r"""(?P<space> [\s,]+ | ;[^\n]* )
    | (?P<text> \#?"(?:[^"\\]|\\.)*" )
    | (?P<discard> \#_ )
    | (?P<set> \#\{ )
    | (?P<symbolic> \#\#-?[A-Za-z]+ )
    | (?P<tag> \#:{0,2}[A-Za-z][^\s,()\[\]{}"\\;]* )
    | (?P<meta> \^ )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<char> \\(?:[A-Za-z0-9]+|.) )
    | (?P<atom> [^\s,()\[\]{}"\\;\#^@~`'][^\s,()\[\]{}"\\;]* )
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSED_BY: Final = {"(": ")", "[": "]", "{": "}", "#{": "}"}
#: The begins of a collection of all operations.
_AROUND: Final = ("(", "[")
_WHOLE: Final = re.compile(r"[+-]?(0|[1-9][0-9]*)N?")
_REAL: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?M?")
_CHARACTERS: Final = {
    "newline": "\n", "return": "\r", "space": " ", "tab": "\t", "formfeed": "\f", "backspace": "\b",
}  # fmt: skip
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_NAMED: Final = {"nil": None, "true": True, "false": False}


class EdnError(ValueError):
    """The text is no EDN; ``line`` is the number of the line, from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


class _Kind(Enum):
    """The kinds of what is open: a collection, or a prefix that waits for its value."""

    COLLECTION = "collection"
    TAG = "tag"
    DISCARD = "discard"
    META = "meta"
    BEHIND_META = "behind meta"


class _Open:
    """A collection or a prefix whose end has not come."""

    def __init__(self, kind: _Kind, token: str) -> None:
        self.kind, self.token = kind, token
        self.items: list[Any] = []


def operations(source: IO[str]) -> Iterator[tuple[int, Any]]:
    """Every form of a text, or of the vector or the list that it is, with the number of the line in which it ends.

    Raises:
        EdnError: the text is no EDN, or a form is too long or too deep.
    """
    reader = _Reader(source)
    while (token := reader.token()) is not None:
        yield from ((reader.line, value) for value in reader.taken(*token))
    reader.check_end()


class _Reader:
    """Tokens of a text, and the forms that they make."""

    def __init__(self, source: IO[str]) -> None:
        self._source = source
        self._text, self._position, self._counted, self._over = "", 0, 0, False
        self._line = 1
        self._open: list[_Open] = []
        self._since = 0
        #: The token that closes the vector or the list that all forms are in; "" outside of one.
        self._around = ""

    @property
    def line(self) -> int:
        """The number of the line that was reached."""
        self._line += self._text.count("\n", self._counted, self._position)
        self._counted = self._position
        return self._line

    def token(self) -> tuple[str, str] | None:
        """The next token with its kind; None at the end."""
        while True:
            match = _TOKEN.match(self._text, self._position)
            # A token at the end of the block may go on in the next one.
            if match is None or match.end() == len(self._text):
                if self._more():
                    continue
                if match is None:
                    if self._position == len(self._text):
                        return None
                    raise self._wrong(f"{self._text[self._position : self._position + 20]!r} is no EDN")
            self._position = match.end()
            kind = str(match.lastgroup)
            if kind == "space":
                continue
            self._since += len(match[0])
            if self._since > FORM_MAX:
                raise self._wrong(f"an operation is longer than {FORM_MAX} characters")
            return kind, match[0]

    def taken(self, kind: str, written: str) -> Iterator[Any]:
        """Take a token; a form that it completes is the answer."""
        if kind in _PREFIXES:
            self._push(_Open(_PREFIXES[kind], written))
        elif kind in {"open", "set"}:
            if not self._open and not self._around and written in _AROUND:
                self._around = _CLOSED_BY[written]
            else:
                self._push(_Open(_Kind.COLLECTION, written))
        elif kind == "close":
            yield from self._closed(written)
        else:
            yield from self._completed(_simple(kind, written))

    def check_end(self) -> None:
        """Refuse a text that ends inside a form.

        Raises:
            EdnError: it does.
        """
        if self._open or self._around:
            raise self._wrong("the file ends inside an operation or a vector")

    def _more(self) -> bool:
        """Read a block behind what is left of the last one; false at the end."""
        if self._over or len(self._text) - self._position > FORM_MAX:
            return False
        _ = self.line
        if not (block := self._source.read(BLOCK)):
            self._over = True
            return False
        self._text, self._position, self._counted = self._text[self._position :] + block, 0, 0
        return True

    def _push(self, opened: _Open) -> None:
        if len(self._open) >= DEPTH_MAX:
            raise self._wrong("nested too deeply to be an operation")
        self._open.append(opened)

    def _closed(self, token: str) -> Iterator[Any]:
        if not self._open and token == self._around:
            self._around = ""
            return
        if not self._open or _CLOSED_BY.get(self._open[-1].token) != token:
            raise self._wrong(f"{token} closes nothing")
        opened = self._open.pop()
        yield from self._completed(self._collected(opened))

    def _collected(self, opened: _Open) -> Any:
        match opened.token:
            case "#{":
                return sorted(opened.items, key=lambda item: (type(item).__name__, _plain(item)))
            case "{":
                if len(opened.items) % 2:
                    raise self._wrong("a map has a key without a value")
                pairs = zip(opened.items[::2], opened.items[1::2], strict=True)
                return {_as_key(key): value for key, value in pairs}
        return opened.items

    def _completed(self, value: Any) -> Iterator[Any]:
        """Put a value where it belongs; one that belongs nowhere is a form."""
        while self._open:
            top = self._open[-1]
            match top.kind:
                case _Kind.COLLECTION:
                    top.items.append(value)
                    return
                case _Kind.DISCARD:
                    self._open.pop()
                    return
                case _Kind.META:
                    top.kind = _Kind.BEHIND_META
                    return
            self._open.pop()
            if top.kind is _Kind.TAG and top.token.startswith("#:") and isinstance(value, dict):
                prefix = top.token.lstrip("#:")
                value = {name if "/" in name else f"{prefix}/{name}": each for name, each in value.items()}
        self._since = 0
        yield value

    def _wrong(self, why: str) -> EdnError:
        return EdnError(self.line, why)


_PREFIXES: Final = {"tag": _Kind.TAG, "discard": _Kind.DISCARD, "meta": _Kind.META}


def _simple(kind: str, written: str) -> Any:
    """The value of a token that needs no other token."""
    if kind == "text":
        return _ESCAPE.sub(_unescaped, written[written.index('"') + 1 : -1])
    if kind == "char":
        return _character(written[1:])
    if kind == "symbolic":
        return written
    if written[0] == ":":
        return written.lstrip(":")
    return _NAMED[written] if written in _NAMED else _number(written)


def _number(written: str) -> int | float | str:
    """The number, or the text of a number that JSON has not."""
    if _WHOLE.fullmatch(written):
        number = int(written.removesuffix("N"))
        return number if -(2**63) <= number < 2**64 else str(number)
    return float(written.removesuffix("M")) if _REAL.fullmatch(written) else written


def _plain(value: Any) -> Any:
    return value if type(value) in {int, float} else msgspec.json.encode(value).decode()


def _as_key(key: Any) -> str:
    return key if isinstance(key, str) else str(_plain(key))


def _unescaped(match: re.Match[str]) -> str:
    what = match[1]
    if what[0] == "u" and len(what) > 1:
        return _code_point(what[1:], 16)
    return _code_point(what, 8) if what.isdigit() else _ESCAPED.get(what, what)


def _character(name: str) -> str:
    if len(name) > 1 and name[0] in "uo" and (digits := name[1:]).isalnum():
        try:
            return _code_point(digits, 16 if name[0] == "u" else 8)
        except ValueError:
            return name
    return _CHARACTERS.get(name, name)


def _code_point(digits: str, base: int) -> str:
    """The character; half of a pair, which no UTF-8 has, as the mark of one that is not known."""
    number = int(digits, base)
    return "\ufffd" if 0xD800 <= number < 0xE000 else chr(number)
