"""Known ways in which the core shows another state than Kafka does, each with its reason: deviations.toml beside it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources

import msgspec

from harness.lab.conform.shown import in_words
from harness.runs.stories import WHOLE


class Deviation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known way in which the core shows another state than Kafka.

    Without ``more`` or ``until`` any difference in its ``facts`` is explained, which says little: so its place is
    narrow.
    """

    name: str
    """A short name."""
    facts: list[str]
    """Patterns of the facts that differ: `"partition epoch"`, `"broker *: epochs"`."""
    why: str
    """The reason, in a sentence or two."""
    source: str
    """The place in which to see that: Kafka's source, an issue, a rule."""
    stories: list[str] = []
    """Only in these stories; none: in all."""
    since: str = "*"
    """Only from the first step on whose text fits this pattern."""
    times: int = 0
    """Only while this number of steps fits that pattern; 0: one or more."""
    after: str = "*"
    """Only after steps whose text fits this pattern."""
    then: str = ""
    """Such a step counts only when a later one fits this and names its brokers, or all dead brokers are started."""
    only: dict[str, list[tuple[str, str]]] = {}
    """A fact of these has two values of one such pair, Kafka's and the core's, in words as they are printed."""
    more: int | None = None
    """Kafka's number is larger by this for each such step, and by nothing else but what other deviations add to it.

    A step that names several brokers counts once for each.
    """
    until: str = ""
    """Kafka's list has more brokers: those that such steps name, until a later one fits this and has them or `all`."""

    def explains(self, story: str, texts: Sequence[str], fact: str, real: object, core: object) -> bool:
        """True if this is why ``fact`` differs after the last of the steps with these ``texts``."""
        if not self._is_about(story, fact):
            return False
        if fact in self.only and (in_words(real), in_words(core)) not in self.only[fact]:
            return False
        plain = [text.removeprefix("try ") for text in texts]
        if not fnmatchcase(plain[-1], self.after) or (self.times and self._steps(plain) != self.times):
            return False
        if self.until:
            return _is_longer(real, core, self._named(plain))
        if self.more is None:
            return self._steps(plain) > 0
        return isinstance(real, int) and isinstance(core, int) and real - core == self.more * self._steps(plain)

    def adds(self, story: str, texts: Sequence[str], fact: str) -> int:
        """The number by which Kafka's ``fact`` is larger for this after the last of the steps with these ``texts``."""
        if self.more is None or not self._is_about(story, fact):
            return 0
        return self.more * self._steps([text.removeprefix("try ") for text in texts])

    def _is_about(self, story: str, fact: str) -> bool:
        return (not self.stories or story in self.stories) and any(fnmatchcase(fact, pattern) for pattern in self.facts)

    def _steps(self, texts: Sequence[str]) -> int:
        fitting = ((text, texts[index + 1 :]) for index, text in enumerate(texts) if fnmatchcase(text, self.since))
        return sum(self._followed(named, later) for text, later in fitting for named in _one_by_one(text))

    def _named(self, texts: Iterable[str]) -> set[str]:
        """The brokers that these steps name, without those that a later step of ``until`` names."""
        brokers: set[str] = set()
        for text in texts:
            named, ends = _brokers(text), fnmatchcase(text, self.until)
            if text == WHOLE or (ends and not all(map(str.isdigit, named))):  # such as `start all`
                brokers.clear()
            elif ends:
                brokers -= named
            elif fnmatchcase(text, self.since):
                brokers |= named
        return brokers

    def _followed(self, named: set[str], later: Sequence[str]) -> bool:
        return not self.then or any(
            step == WHOLE or (fnmatchcase(step, self.then) and named <= _brokers(step)) for step in later
        )


def _one_by_one(text: str) -> list[set[str]]:
    """The brokers that a step names by their numbers, each alone; without any, all that it names at once."""
    return [{broker} for broker in _brokers(text) if broker.isdigit()] or [_brokers(text)]


def _brokers(text: str) -> set[str]:
    """The brokers that a step names."""
    return set(text.split()[1:])


def _is_longer(real: object, core: object, brokers: set[str]) -> bool:
    """True if Kafka's list has all that the core's has, and more, all of these ``brokers``."""
    if not (isinstance(real, tuple) and isinstance(core, tuple)):
        return False
    more = set(map(str, real)) - set(map(str, core))
    return set(core) < set(real) and more <= brokers


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    deviation: list[Deviation]


@cache
def known_deviations() -> tuple[Deviation, ...]:
    """All of them."""
    text = resources.files("harness.lab.conform").joinpath("deviations.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomllib.loads(text), _File).deviation)
