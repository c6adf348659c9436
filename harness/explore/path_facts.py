"""Facts of a run up to a state, as a part of the state: what it has spent of its scope, what clients have seen."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from harness.explore.canonical_form import digest_of
from harness.explore.events import StepResult
from harness.explore.rules import Shown, as_permitted, contradiction
from harness.explore.scope import Constants
from harness.reference.core.invariants import Broken

#: The things that a scope limits, in the order in which facts count them.
SPENT: Final = ("records", "crashes", "fences", "moves", "shrinks", "proposals", "skips", "losses", "timeouts")


class PathFacts(NamedTuple):
    """The facts of a run up to a state: spent constants, what clients saw, and whether a loss is permitted."""

    spent: tuple[int, ...] = (0,) * len(SPENT)
    shown: Shown = Shown()
    permitted: bool = False

    @property
    def written(self) -> int:
        """The number of records that were written, which is also the number of the next one."""
        return self.spent[0]


class FactsByDigest:
    """All :class:`PathFacts` that a search has met, and what follows them; each step is worked out once.

    ``known`` has them by the digest that a state has of them.
    """

    def __init__(self, constants: Constants) -> None:
        self.known: dict[int, PathFacts] = {}
        self._limits = tuple(getattr(constants, name) for name in SPENT)
        self._paid: dict[tuple[int, str], int] = {}
        self._shown: dict[tuple[int, Any], tuple[int, Broken | None]] = {}

    def keep(self, facts: PathFacts) -> int:
        """The digest of ``facts``, which are known from now on."""
        digest = digest_of(("account", *facts))
        self.known[digest] = facts
        return digest

    def pay(self, digest: int, name: str) -> int:
        """The facts after one more of ``name``, 0 if the scope has no more of them."""
        key = (digest, name)
        paid = self._paid.get(key)
        if paid is None:
            index = SPENT.index(name)
            spent = list(self.known[digest].spent)
            spent[index] += 1
            within = spent[index] <= self._limits[index]
            paid = self.keep(self.known[digest]._replace(spent=tuple(spent))) if within else 0
            self._paid[key] = paid
        return paid

    def show(self, digest: int, outcome: StepResult) -> tuple[int, Broken | None]:
        """The facts after a step has shown something to clients, and what of it contradicts what they saw before."""
        if not outcome.acknowledged and outcome.exposed is None:
            return digest, None
        key = (digest, (outcome.acknowledged, outcome.exposed))
        answer = self._shown.get(key)
        if answer is None:
            facts = self.known[digest]
            shown, exposed = facts.shown, outcome.exposed or ()
            broken = contradiction(shown.read, exposed)
            if broken is not None and facts.permitted:
                broken = as_permitted(broken)
            acknowledged = tuple(sorted({*shown.acknowledged, *outcome.acknowledged}))
            after = facts._replace(shown=Shown(acknowledged, max(shown.read, exposed, key=len)))
            answer = self._shown[key] = (self.keep(after), broken)
        return answer
