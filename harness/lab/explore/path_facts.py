"""Facts of a run up to a state, as a part of the state: what it has spent of its scope, what clients have seen."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from harness.broker.core.invariants import Broken
from harness.lab.explore.counted_facts import CountedFacts
from harness.lab.explore.events import StepResult
from harness.lab.explore.keys import united
from harness.lab.explore.rules import Shown, as_permitted, contradiction
from harness.lab.explore.scope import Constants

#: The things that a scope limits, in the order in which facts count them.
_SPENT: Final = ("records", "crashes", "fences", "moves", "shrinks", "proposals", "skips", "losses", "timeouts")
#: And those of scopes in which logs are cleaned.
_CLEANED: Final = ("cleanings", "late_cleanings")
#: And those of scopes in which clients send records again.
_RETRIED: Final = ("retries",)


class PathFacts(NamedTuple):
    """The facts of a run up to a state: spent constants, what clients saw, and whether a loss is permitted."""

    spent: tuple[int, ...] = ()
    shown: Shown = Shown()
    permitted: bool = False

    @property
    def written(self) -> int:
        """The number of records that were written, which is also the number of the next one."""
        return self.spent[0]


class FactsByDigest(CountedFacts[PathFacts]):
    """All :class:`PathFacts` that a search has met, and what follows them; each step is worked out once."""

    def __init__(self, constants: Constants) -> None:
        names = _SPENT + _CLEANED * bool(constants.cleanings) + _RETRIED * bool(constants.retries)
        super().__init__({name: getattr(constants, name) for name in names}, PathFacts())
        self._shown: dict[tuple[int, Any], tuple[int, Broken | None]] = {}

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
