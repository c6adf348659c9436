"""What each outcome looks like wherever it is shown: on the page, in Markdown and on a terminal."""

from __future__ import annotations

from typing import Final, NamedTuple

from checkers import Cell, Outcome


class Look(NamedTuple):
    """One way to look.

    Attributes:
        word: what a cell says on a terminal; ``name`` is made of it.
        sign: stands beside every colour, so that no reader depends on colour.
        chip: what a cell says first, in the page's legend; ``meaning`` explains it.
        background, ink, border: colours in CSS; the border is that of quiet cells, "" for none.
    """

    word: str
    sign: str
    chip: str
    meaning: str
    background: str
    ink: str
    border: str = ""

    @property
    def name(self) -> str:
        """The class in the page's style."""
        return "o-" + self.word.lower().replace(" ", "-")


_BROKEN: Final = "something happened that the settings forbid"
_LOST: Final = "acknowledged writes are gone, and the settings never promised more"
_HELD: Final = "held: no loss is permitted and none was seen; at most this share at 95 % confidence"
_SILENT: Final = "none seen, but the settings permit loss: not a promise"
_IDLE: Final = "nothing was acknowledged during a fault, so silence proves nothing"
_UNKNOWN: Final = "it could not be told"

#: "held" where the settings permit loss: so many runs were silent, and no more.
UNPROMISED: Final = Look("none", "○", "0", _SILENT, "#eaf1f4", "#37505e", "1px dashed #9db2bd")
#: Of every other cell.
LOOKS: Final[dict[Outcome, Look]] = {
    Outcome.BROKEN_PROMISE: Look("BROKEN", "✖", "broken promise", _BROKEN, "#b3261e", "#ffffff"),
    Outcome.PERMITTED_LOSS: Look("loss", "▼", "lost", _LOST, "#fbdfa2", "#6b4300"),
    Outcome.HELD: Look("held", "✓", "0", _HELD, "#d3ece0", "#0b5137"),
    Outcome.NOT_EXERCISED: Look(
        "not exercised", "–", "not exercised", _IDLE, "#ffffff", "#5b6570", "1px solid #d8dee4"
    ),
    Outcome.UNKNOWN: Look("unknown", "?", "unknown", _UNKNOWN, "#e6e0f2", "#49386b"),
}
#: As the page explains them.
LEGEND: Final = (*list(LOOKS.values())[:3], UNPROMISED, *list(LOOKS.values())[3:])


def look_of(cell: Cell) -> Look:
    """How a cell of the matrix looks."""
    return UNPROMISED if is_unpromised(cell) else LOOKS[cell.outcome]


def style_of(cell: Cell) -> str:
    """A cell's colour on a terminal, in Rich's words."""
    return "cyan" if is_unpromised(cell) else cell.outcome.colour


def is_unpromised(cell: Cell) -> bool:
    """True for silence that no promise explains."""
    return cell.outcome is Outcome.HELD and cell.loss_permitted
