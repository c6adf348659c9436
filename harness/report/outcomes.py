"""What each outcome looks like wherever it is shown: on the page, in Markdown and on a terminal."""

from __future__ import annotations

from typing import Final, NamedTuple

from checkers import Cell, Outcome


class OutcomeStyle(NamedTuple):
    """How an outcome looks.

    Attributes:
        word: what a cell says on a terminal; ``name`` is made of it.
        sign: stands beside every colour, so that no reader depends on colour.
        chip: what a cell says first, in the page's legend.
        background, ink: colours in CSS, by day and at night; the border is that of quiet cells, "" for none.
    """

    word: str
    sign: str
    chip: str
    background: tuple[str, str]
    ink: tuple[str, str]
    border: str = ""

    @property
    def name(self) -> str:
        """The class in the page's style."""
        return "o-" + self.word.lower().replace(" ", "-")


#: "held" where the settings permit loss: so many runs were silent, and no more.
UNPROMISED: Final = OutcomeStyle(
    "none", "○", "0", ("#eaf1f4", "#1c2a32"), ("#37505e", "#a9c6d6"), "1px dashed light-dark(#9db2bd, #4c6573)"
)
#: Of every other cell.
STYLES: Final[dict[Outcome, OutcomeStyle]] = {
    Outcome.BROKEN_PROMISE: OutcomeStyle(
        "BROKEN", "✖", "broken promise", ("#b3261e", "#b3261e"), ("#ffffff", "#ffffff")
    ),
    Outcome.STALLED: OutcomeStyle("STALLED", "■", "stalled", ("#8c4a00", "#8c4a00"), ("#ffffff", "#ffffff")),
    Outcome.PERMITTED_LOSS: OutcomeStyle("loss", "▼", "lost", ("#fbdfa2", "#4a3610"), ("#6b4300", "#ffd98a")),
    Outcome.HELD: OutcomeStyle("held", "✓", "0", ("#d3ece0", "#12382a"), ("#0b5137", "#9fe3c5")),
    Outcome.NOT_EXERCISED: OutcomeStyle(
        "not exercised", "–", "not exercised", ("#ffffff", "#16191d"), ("#5b6570", "#9aa5b1"), "1px solid var(--line)"
    ),
    Outcome.UNKNOWN: OutcomeStyle("unknown", "?", "unknown", ("#e6e0f2", "#2f2745"), ("#49386b", "#d2c4f2")),
}
#: As the page explains them.
LEGEND: Final = {
    STYLES[Outcome.BROKEN_PROMISE]: "something happened that the settings forbid",
    STYLES[
        Outcome.STALLED
    ]: "after healing fresh clients could not write or read it, and no fault had destroyed a copy",
    STYLES[Outcome.PERMITTED_LOSS]: "acknowledged writes are gone, and the settings never promised more",
    STYLES[Outcome.HELD]: "held: every run judged and recovered, enough faults met writes, no loss is permitted and "
    "none was seen; at most this share of faults at 95 % confidence",
    UNPROMISED: "none seen, but the settings permit loss: not a promise",
    STYLES[Outcome.NOT_EXERCISED]: "nothing was lost, and too little was put to the test for that to prove anything",
    STYLES[Outcome.UNKNOWN]: "it could not be judged",
}


def style_of(cell: Cell) -> OutcomeStyle:
    """How a cell of the matrix looks."""
    return UNPROMISED if is_unpromised(cell) else STYLES[cell.outcome]


def terminal_colour(cell: Cell) -> str:
    """A cell's colour on a terminal, in Rich's words."""
    return "cyan" if is_unpromised(cell) else cell.outcome.colour


def is_unpromised(cell: Cell) -> bool:
    """True for silence that no promise explains."""
    return cell.outcome is Outcome.HELD and cell.loss_permitted
