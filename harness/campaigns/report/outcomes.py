"""Look and meaning of each outcome wherever it is shown: on the page, in Markdown and on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from checkers import Cell, Outcome


class OutcomeStyle(NamedTuple):
    """Look and meaning of an outcome.

    Attributes:
        word: the outcome's own word.
        sign: is shown with the word, so that no reader depends on colour; it tells the two kinds of ``held`` apart.
        meaning: explains the outcome in every legend.
        background, ink: colours in CSS, by day and at night; the border is that of quiet cells, "" for none.
        promised: False for silence that no promise explains.
    """

    word: str
    sign: str
    meaning: str
    background: tuple[str, str]
    ink: tuple[str, str]
    border: str = ""
    promised: bool = True

    @property
    def name(self) -> str:
        """The class in the page's style."""
        return "o-" + self.word.replace(" ", "-") + ("" if self.promised else "-unpromised")

    @property
    def signed(self) -> str:
        """The word after its sign, as every table and legend has it."""
        return f"{self.sign} {self.word}"


#: Nothing was lost where the settings permit loss.
UNPROMISED: Final = OutcomeStyle(
    "held",
    "○",
    "none lost, though these settings permit it: not a promise",
    ("#eaf1f4", "#1c2a32"),
    ("#37505e", "#a9c6d6"),
    "1px dashed light-dark(#9db2bd, #4c6573)",
    promised=False,
)


#: A promise that is broken, as is known: each finding of the cell is in ``accepted.toml``.
EXCUSED: Final = OutcomeStyle(
    "accepted",
    "◆",
    "a promise is broken, or the log did not come back, and accepted.toml names each finding until a day",
    ("#f3d9e4", "#43202f"),
    ("#7a1f47", "#f0b4cd"),
)


#: Every other cell, the worst outcome first.
STYLES: Final[dict[Outcome, OutcomeStyle]] = {
    Outcome.BROKEN_PROMISE: OutcomeStyle(
        "broken promise",
        "✖",
        "something happened that must never happen under these settings and faults",
        ("#b3261e", "#b3261e"),
        ("#ffffff", "#ffffff"),
    ),
    Outcome.STALLED: OutcomeStyle(
        "stalled",
        "■",
        "after healing, the log did not come back, and no fault had destroyed a copy",
        ("#8c4a00", "#8c4a00"),
        ("#ffffff", "#ffffff"),
    ),
    Outcome.PERMITTED_LOSS: OutcomeStyle(
        "permitted loss",
        "▼",
        "acknowledged writes are lost, and these settings never promised more",
        ("#fbdfa2", "#4a3610"),
        ("#6b4300", "#ffd98a"),
    ),
    Outcome.HELD: OutcomeStyle(
        "held",
        "✓",
        "none lost, as promised, and enough faults met writes",
        ("#d3ece0", "#12382a"),
        ("#0b5137", "#9fe3c5"),
    ),
    Outcome.NOT_EXERCISED: OutcomeStyle(
        "not exercised",
        "–",
        "none lost, but too few faults met writes",
        ("#ffffff", "#16191d"),
        ("#5b6570", "#9aa5b1"),
        "1px solid var(--line)",
    ),
    Outcome.UNKNOWN: OutcomeStyle(
        "unknown",
        "?",
        "too few runs could be judged",
        ("#e6e0f2", "#2f2745"),
        ("#49386b", "#d2c4f2"),
    ),
}
ALL_STYLES: Final = (*STYLES.values(), EXCUSED, UNPROMISED)
#: Follows the meaning of "held" wherever a bound is shown.
BOUND_MEANING: Final = "≤ x % after n faults: at most x % of such faults lose a write (95 %); n alone decides x"


def legend_of(cells: Iterable[Cell]) -> list[OutcomeStyle]:
    """The looks that occur among the cells, the worst first."""
    styles = {style_of(cell) for cell in cells}
    return [style for style in ALL_STYLES if style in styles]


def style_of(cell: Cell) -> OutcomeStyle:
    """Give the look of a cell of the matrix."""
    if cell.excused:
        return EXCUSED
    return UNPROMISED if is_unpromised(cell) else STYLES[cell.outcome]


def terminal_colour(cell: Cell) -> str:
    """Give a cell's colour on a terminal, in Rich's words."""
    if cell.excused:
        return "blue"
    return "cyan" if is_unpromised(cell) else cell.outcome.colour


def is_unpromised(cell: Cell) -> bool:
    """True for silence that no promise explains."""
    return cell.outcome is Outcome.HELD and cell.loss_permitted
