"""What each outcome looks like wherever it is shown: on the page, in Markdown and on a terminal."""

from __future__ import annotations

from typing import Final, NamedTuple

from checkers.verdicts.cells import Cell
from checkers.verdicts.outcome import Outcome


class Look(NamedTuple):
    """One way to look.

    Attributes:
        name: of the class in the page's style.
        sign: stands beside every colour, so that no reader depends on colour.
        chip: what a cell says first, in the page's legend; ``meaning`` explains it.
        word, style: what a cell says on a terminal, and rich's style of it.
        background, ink, border: colours in CSS; the border is that of quiet cells, "" for none.
    """

    name: str
    sign: str
    chip: str
    meaning: str
    word: str
    style: str
    background: str
    ink: str
    border: str = ""


_BROKEN: Final = "something happened that the settings forbid"
_LOST: Final = "acknowledged writes are gone, and the settings never promised more"
_HELD: Final = "held: no loss is permitted and none was seen; at most this share at 95 % confidence"
_SILENT: Final = "none seen, but the settings permit loss: not a promise"
_NOT_EXERCISED: Final = "nothing was acknowledged during a fault, so silence proves nothing"
_UNKNOWN: Final = "it could not be told"
_LINE: Final = "1px solid #d8dee4"

LOOKS: Final[dict[Outcome, Look]] = {
    Outcome.BROKEN_PROMISE: Look(
        "broken-promise", "✖", "broken promise", _BROKEN, "BROKEN", Outcome.BROKEN_PROMISE.colour, "#b3261e", "#ffffff"
    ),
    Outcome.PERMITTED_LOSS: Look(
        "permitted-loss", "▼", "lost", _LOST, "loss", Outcome.PERMITTED_LOSS.colour, "#fbdfa2", "#6b4300"
    ),
    Outcome.HELD: Look("held", "✓", "0", _HELD, "held", Outcome.HELD.colour, "#d3ece0", "#0b5137"),
    Outcome.NOT_EXERCISED: Look(
        "not-exercised",
        "–",
        "not exercised",
        _NOT_EXERCISED,
        "not exercised",
        Outcome.NOT_EXERCISED.colour,
        "#ffffff",
        "#5b6570",
        _LINE,
    ),
    Outcome.UNKNOWN: Look("unknown", "?", "unknown", _UNKNOWN, "unknown", Outcome.UNKNOWN.colour, "#e6e0f2", "#49386b"),
}
#: "held" where the settings permit loss: so many runs were silent, and no more.
UNPROMISED: Final = Look("unpromised", "○", "0", _SILENT, "none", "cyan", "#eaf1f4", "#37505e", "1px dashed #9db2bd")
#: As the page explains them.
LEGEND: Final = (
    LOOKS[Outcome.BROKEN_PROMISE],
    LOOKS[Outcome.PERMITTED_LOSS],
    LOOKS[Outcome.HELD],
    UNPROMISED,
    LOOKS[Outcome.NOT_EXERCISED],
    LOOKS[Outcome.UNKNOWN],
)


def look_of(cell: Cell) -> Look:
    """How a cell of the matrix looks."""
    return UNPROMISED if cell.outcome is Outcome.HELD and cell.loss_permitted else LOOKS[cell.outcome]
