"""Facts of a run up to a state, by digest, and how much of its scope they have spent."""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar

from harness.lab.explore.canonical_form import digest_of
from harness.lab.explore.told import Told


class SpendingFacts(Protocol):
    """A named tuple of facts; ``spent`` counts what the scope limits."""

    @property
    def spent(self) -> tuple[int, ...]:
        """The number of times that each limited thing has happened, in the order of their names."""

    def _replace(self, *, spent: tuple[int, ...]) -> Self: ...


F = TypeVar("F", bound=SpendingFacts)


class CountedFacts(Generic[F]):
    """All facts that a search has met, and what follows when one more thing happens; each is worked out once.

    ``by_digest`` has them by the digest that a state has of them. ``limits`` says how often each thing may happen, by
    its name. At the beginning there are ``first`` ones, and nothing is spent.
    """

    def __init__(self, limits: dict[str, int], first: F) -> None:
        self.by_digest = Told[int, F]()
        self._names = tuple(limits)
        self._limits = limits
        self._first = first
        self._paid: dict[tuple[int, str], int] = {}

    def begin(self) -> int:
        """Nothing is spent."""
        return self.keep(self._first._replace(spent=(0,) * len(self._names)))

    def spent(self, digest: int, name: str) -> int:
        """Return how much of ``name`` is spent."""
        return self.by_digest[digest].spent[self._names.index(name)]

    def keep(self, facts: F) -> int:
        """The digest of ``facts``, which are known from now on."""
        content: Any = facts
        digest = digest_of(("account", *content))
        self.by_digest[digest] = facts
        return digest

    def pay(self, digest: int, name: str) -> int:
        """The facts after one more of ``name``, 0 if the scope has no more of them."""
        key = (digest, name)
        paid = self._paid.get(key)
        if paid is None:
            index = self._names.index(name)
            spent = list(self.by_digest[digest].spent)
            spent[index] += 1
            within = spent[index] <= self._limits[name]
            paid = self.keep(self.by_digest[digest]._replace(spent=tuple(spent))) if within else 0
            self._paid[key] = paid
        return paid
