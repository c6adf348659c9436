"""The matcher that reads the words of a line by the forms of steps and states."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import cache, partial
from typing import Any, Final, NamedTuple, TypeVar

from harness.runs.stories.steps.form import SLOT, Form, Slot

Item = TypeVar("Item")

_PART: Final = re.compile(r"\[|\]|[^\s\[\]]+")
#: A word is offered instead of a wrong one if they are as alike as this.
_NEAR: Final = 0.5
_END: Final = "nothing more"


#: A word, a slot, or parts that may be left out together.
Part = str | Slot | tuple["Part", ...]


@cache
def parts_of(pattern: str) -> tuple[Part, ...]:
    """The parts of a form."""
    open_parts: list[list[Part]] = [[]]
    for word in _PART.findall(pattern):
        if word == "[":
            open_parts.append([])
        elif word == "]":
            optional = tuple(open_parts.pop())
            open_parts[-1].append(optional)
        else:
            slot = SLOT.fullmatch(word)
            open_parts[-1].append(Slot(*slot.groups()) if slot else word)
    return tuple(open_parts[0])


class Mismatch(Exception):  # noqa: N818 - no error of the program: another form may match
    """The next words are not what a form asks for."""


class Note(NamedTuple):
    """A mismatch: the words that were ``said`` at a position, and what was ``expected``; ``words`` are some of that.

    ``why`` is a sentence for where "unexpected" says too little. It is told whatever else could be there if the words
    can mean nothing else (``certain``).
    """

    position: int
    said: str
    expected: str
    words: Sequence[str] = ()
    why: str = ""
    certain: bool = False


class Words:
    """The words of a line, read from left to right."""

    def __init__(self, text: str) -> None:
        self._words = text.split()
        self._position = 0
        self._notes: list[Note] = []

    def slot(self, kind: str) -> Any:
        """Read the words of a slot.

        Raises:
            Mismatch: the next words are of another kind.
        """
        raise NotImplementedError

    @property
    def next(self) -> str:
        """The word that comes next, empty at the end."""
        return self._words[self._position] if self._position < len(self._words) else ""

    def take(self) -> str:
        """The word that comes next; reading goes on behind it."""
        word = self.next
        self._position += 1
        return word

    def follow(self, *words: str) -> bool:
        """Take these words if they come next."""
        if self._words[self._position : self._position + len(words)] != list(words):
            return False
        self._position += len(words)
        return True

    def mismatch(
        self, expected: str, words: Sequence[str] = (), why: str = "", said: str = "", *, certain: bool = False
    ) -> Mismatch:
        """Note what could be here instead of the next words, or of those that were ``said``, and raise the answer."""
        self._notes.append(Note(self._position, said or self.next, expected, words, why, certain))
        return Mismatch(expected)

    def coming(self, count: int) -> str:
        """The next ``count`` words."""
        return " ".join(self._words[self._position : self._position + count])

    def attempt(self, read: Callable[[], Item]) -> Item | None:
        """The answer of ``read``; None, and nothing is taken, if the words do not match."""
        begun = self._position
        try:
            return read()
        except Mismatch:
            self._position = begun
            return None

    def first_of(self, forms: Iterable[Form], *, whole: bool = False) -> tuple[Form, dict[str, object]]:
        """The first of these forms that matches, with its fields; ``whole``: up to the end of the line.

        Raises:
            Mismatch: none does.
        """
        for form in forms:
            fields = self.attempt(partial(self._fields, form, whole=whole))
            if fields is not None:
                return form, fields
        raise Mismatch

    def _fields(self, form: Form, *, whole: bool) -> dict[str, object]:
        fields = self._read(parts_of(form.pattern))
        if whole and self.next:
            raise self.mismatch(_END)
        return {**form.fixed, **fields}

    def _read(self, parts: Sequence[Part]) -> dict[str, object]:
        fields: dict[str, object] = {}
        for part in parts:
            if isinstance(part, Slot):
                fields[part.field] = self.slot(part.kind)
            elif isinstance(part, tuple):
                fields |= self.attempt(partial(self._read, part)) or {}
            elif not self.follow(part):
                raise self.mismatch(f'"{part}"', [part])
        return fields

    def complaint(self) -> str:
        """A sentence about the words that no form could take: of all mismatches those count that are furthest."""
        position = max(note.position for note in self._notes)
        notes = [note for note in self._notes if note.position == position]
        expected = sorted({note.expected for note in notes}, key=_order)
        telling = next((note for note in notes if note.certain), notes[0])
        if telling.why and (telling.certain or len(expected) == 1):
            return telling.why
        wanted = " or ".join(filter(None, [", ".join(expected[:-1]), expected[-1]]))
        if not telling.said:
            return f"the step ends where {wanted} is expected"
        if _END not in expected:
            return f'unexpected "{telling.said}"{_hint(notes, wanted)}'
        return f'unexpected "{telling.said}" at the end of the step{_hint(notes, wanted if expected[1:] else "")}'


def _order(expected: str) -> tuple[bool, bool, str]:
    """Kinds of words first, then single words, then the end."""
    return expected == _END, expected.startswith('"'), expected


def _hint(notes: Sequence[Note], wanted: str) -> str:
    """The end of a complaint: the valid word nearest to what was written, if there is one, and what is expected."""
    for said in dict.fromkeys(note.said for note in notes):
        words = [word for note in notes if note.said == said for word in note.words]
        if near := get_close_matches(said.lower(), words, n=1, cutoff=_NEAR):
            return f'; did you mean "{near[0]}"? (expected {wanted})'
    return f"; expected {wanted}" if wanted else ""
