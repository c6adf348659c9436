"""Facts of a run up to a state, as a part of the state: what it has spent of its scope, what clients have seen."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from harness.explore.canonical_form import digest_of
from harness.explore.events import StepResult
from harness.explore.keys import united
from harness.explore.rules import Shown, as_permitted, contradiction
from harness.explore.scope import Constants
from harness.reference.core.invariants import Broken

#: The things that a scope limits, in the order in which facts count them.
_SPENT: Final = ("records", "crashes", "fences", "moves", "shrinks", "proposals", "skips", "losses", "timeouts")
#: And those of scopes in which logs are cleaned.
_CLEANED: Final = ("cleanings", "late_cleanings")


class PathFacts(NamedTuple):
    """The facts of a run up to a state: spent constants, what clients saw, and whether a loss is permitted."""

    spent: tuple[int, ...] = ()
    shown: Shown = Shown()
    permitted: bool = False

    @property
    def written(self) -> int:
        """The number of records that were written, which is also the number of the next one."""
        return self.spent[0]


class FactsByDigest:
    """All :class:`PathFacts` that a search has met, and what follows them; each step is worked out once.

    ``by_digest`` has them by the digest that a state has of them.
    """

    def __init__(self, constants: Constants) -> None:
        self.by_digest: dict[int, PathFacts] = {}
        self._names = _SPENT + _CLEANED * bool(constants.cleanings)
        self._limits = {name: getattr(constants, name) for name in self._names}
        self._paid: dict[tuple[int, str], int] = {}
        self._shown: dict[tuple[int, Any], tuple[int, Broken | None]] = {}

    def begin(self) -> int:
        """Nothing is spent, and clients have seen nothing."""
        return self.keep(PathFacts((0,) * len(self._names)))

    def spent(self, digest: int, name: str) -> int:
        """Return how much of ``name`` is spent."""
        return self.by_digest[digest].spent[self._names.index(name)]

    def keep(self, facts: PathFacts) -> int:
        """The digest of ``facts``, which are known from now on."""
        digest = digest_of(("account", *facts))
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

    def show(self, digest: int, outcome: StepResult) -> tuple[int, Broken | None]:
        """The facts after a step has shown something to clients, and what of it contradicts what they saw before."""
        if not outcome.acknowledged and outcome.exposed is None:
            return digest, None
        key = (digest, (outcome.acknowledged, outcome.exposed))
        answer = self._shown.get(key)
        if answer is None:
            facts = self.by_digest[digest]
            shown, exposed = facts.shown, outcome.exposed or ()
            broken = contradiction(shown.read, exposed)
            if broken is not None and facts.permitted:
                broken = as_permitted(broken)
            acknowledged = tuple(sorted({*shown.acknowledged, *outcome.acknowledged}))
            after = facts._replace(shown=Shown(acknowledged, united(shown.read, exposed)))
            answer = self._shown[key] = (self.keep(after), broken)
        return answer
