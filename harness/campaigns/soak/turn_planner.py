"""Draws the cell of a world's next turn, so that what was rarely reached gets more turns.

Each cell of a world has its first turn before any has a second, mixtures of families first: they need most turns. Then
cells whose scenarios were not enough to be held go before others, one turn at a time, as long as they had less than
twice the turns that a scenario a turn would take. Then chance decides. The weight of a cell is one, and over the risky
situations (coverage, docs/decisions/016) the sum of how often its runs met the situation, as far as is known, times how
rare that is: how many runs of this world there were for one that met it. So none is forgotten. The draw of turn n has a
stream of its own, and the weights follow from the ledger up to there: what was chosen can be computed again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from checkers import SITUATIONS
from harness.campaigns.soak.ledger import Planned
from harness.campaigns.soak.state import CellCounts, CellName
from harness.ground.choices import Choices, derived_seed
from harness.ground.machine.versions import cores
from harness.plan import Plan, RunSpec, WorldPlan

#: Weights are whole numbers, so that a draw is exact on every machine.
_SCALE: Final = 1_000_000
#: The most other cells that a situation makes a cell worth: what is hardly ever met may be met by chance only.
_RARITY_MAX: Final = 20.0
_NOTHING: Final = CellCounts()


class TurnPlanner:
    """The cells of ``plan``, and the draws of the soak with this ``seed``."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan = plan
        self._worlds = {str(world.world.name): world for world in plan.worlds}
        self._offered = {choice.label: choice for choice in plan.choices}
        self.seed = seed

    @property
    def worlds(self) -> Sequence[WorldPlan]:
        """The worlds of the plan."""
        return self._plan.worlds

    def world(self, name: str) -> WorldPlan:
        """The world of this name."""
        return self._worlds[name]

    def places(self, name: str) -> int:
        """Runs at a time of this world: one in virtual time beside real worlds, unless the plan says more."""
        alone = all(world.world.virtual_time for world in self.worlds)
        return self._worlds[name].parallel or (cores() if alone else 1)

    def next_turn(self, turn: int, world: str, cells: Mapping[CellName, CellCounts]) -> Planned:
        """Turn number ``turn``, which goes to ``world``; ``cells`` are what all turns before it came to."""
        here = [CellName(world, choice, family) for choice in self._offered for family in self._plan.families]
        offered = _unplayed(here, cells) or self._unexercised(world, here, cells) or here
        weights = weights_of([cells.get(cell, _NOTHING) for cell in offered])
        drawn = Choices(self.seed).draw(f"turn {turn}", sum(weights))
        cell = offered[bisect_right(list(accumulate(weights)), drawn)]
        seed = derived_seed(self.seed, "run", turn)
        return Planned(turn=turn, world=world, choice=cell.choice, family=cell.family, seed=seed)

    def _unexercised(
        self, world: str, here: Sequence[CellName], cells: Mapping[CellName, CellCounts]
    ) -> list[CellName]:
        """Cells that need more scenarios to be held and have no turn under way, unless they had many turns."""
        enough = self._worlds[world].faults.exercised_min
        return [
            cell
            for cell in here
            for counts in [cells.get(cell, _NOTHING)]
            if counts.planned == counts.judged < 2 * enough
            and any(counts.exercised[family] < enough for family in cell.family.split("+"))
        ]

    def spec_of(self, planned: Planned) -> RunSpec:
        """The run of a turn."""
        world, choice = self._worlds[planned.world], self._offered[planned.choice]
        return self._plan.drawn(world, choice, planned.family, planned.seed)


def _unplayed(here: Sequence[CellName], cells: Mapping[CellName, CellCounts]) -> list[CellName]:
    """Cells without a turn: of these the ones with the most families."""
    unplayed = [cell for cell in here if not cells.get(cell, _NOTHING).planned]
    most = max((cell.family.count("+") for cell in unplayed), default=0)
    return [cell for cell in unplayed if cell.family.count("+") == most]


def weights_of(cells: Sequence[CellCounts]) -> list[int]:
    """The weight of each cell of one world, at least 1."""
    met, judged = sum((cell.met for cell in cells), Counter[str]()), sum(cell.judged for cell in cells)
    rarity = {name: min(_RARITY_MAX, (judged + 2) / (met[name] + 1)) for name in SITUATIONS}
    return [round(_SCALE * (1 + sum(_chance(cell, name) * rarity[name] for name in SITUATIONS))) for cell in cells]


def _chance(counts: CellCounts, situation: str) -> float:
    """The chance that a run of the cell meets it, by Laplace's rule: what did not happen yet is not impossible.

    Turns that are not judged yet count as if they had met nothing, so that not all places go to one cell at once.
    """
    return (counts.met[situation] + 1) / (max(counts.planned, counts.judged) + 2)
