"""Which cell the next turn of a world is given to: drawn, so that what was rarely reached gets more turns.

The weight of a cell is a sum over the risky situations (coverage, docs/decisions/016): how often its runs met the
situation, as far as is known, divided by how many runs of that world met it at all. Beside it stands a share that falls
with the turns that a cell had, so that none is forgotten and all begin alike. The draw of turn n has a stream of its
own, and the weights follow from the ledger up to there: what was chosen can be computed again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from checkers import SITUATIONS
from harness.choices import Choices, derived_seed
from harness.plan import Plan, RunSpec, WorldPlan
from harness.soak.book import Arm, Tally
from harness.soak.ledger import Planned

#: Weights are whole numbers, so that a draw is exact on every machine.
_SCALE: Final = 1_000_000
_NOTHING: Final = Tally()


class Rotation:
    """The cells of ``plan``, and the draws of the soak with this ``seed``."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan = plan
        self._worlds = {str(world.world.name): world for world in plan.worlds}
        self._offered = {choice.label: choice for choice in plan.choices}
        self.seed = seed

    @property
    def worlds(self) -> Sequence[WorldPlan]:
        """Those of the plan."""
        return self._plan.worlds

    def world(self, name: str) -> WorldPlan:
        """The world of this name."""
        return self._worlds[name]

    def next_turn(self, turn: int, world: str, arms: Mapping[Arm, Tally]) -> Planned:
        """Turn number ``turn``, which goes to ``world``; ``arms`` are what all turns before it came to."""
        offered = [Arm(world, choice, family) for choice in self._offered for family in self._plan.families]
        weights = weights_of([arms.get(arm, _NOTHING) for arm in offered])
        drawn = Choices(self.seed).draw(f"turn {turn}", sum(weights))
        arm = offered[bisect_right(list(accumulate(weights)), drawn)]
        seed = derived_seed(self.seed, "run", turn)
        return Planned(turn=turn, world=world, choice=arm.choice, family=arm.family, seed=seed)

    def spec_of(self, planned: Planned) -> RunSpec:
        """The run of a turn."""
        world, choice = self._worlds[planned.world], self._offered[planned.choice]
        return self._plan.drawn(world, choice, planned.family, planned.seed)


def weights_of(tallies: Sequence[Tally]) -> list[int]:
    """The weight of each arm of one world, at least 1."""
    met = sum((tally.met for tally in tallies), Counter[str]())
    return [1 + round(_SCALE * _weight(tally, met)) for tally in tallies]


def _weight(tally: Tally, met: Counter[str]) -> float:
    """Chances are those of Laplace's rule: nothing is impossible because it did not happen yet."""
    reached = sum((tally.met[name] + 1) / (tally.judged + 2) / (1 + met[name]) for name in SITUATIONS)
    return reached + 1 / (1 + tally.planned)
