"""Another campaign beside this one: what the page shows of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.campaigns.comparison import Change, compare_results, figures_of, read_results, sentences, side_by_side

#: Cells that are listed, those that changed first.
ROWS_MAX: Final = 200


def compared_with(other: Path, campaign: Path) -> dict[str, object]:
    """This ``campaign`` held against an earlier or ``other`` one, by the names that templates/compared.html.j2 uses.

    Raises:
        NamedWronglyError: ``other`` is not a campaign.
        ResultsError: a file of it cannot be read.
    """
    compared = compare_results(read_results(other), read_results(campaign))
    worst = sorted(compared.cells, key=lambda cell: list(Change).index(cell.change))
    return {
        "before": compared.before,
        "sentence": compared.sentence,
        "words": list(sentences(compared)),
        "headings": list(figures_of(None)),
        "rows": [
            {"change": cell.change, "key": cell.key, "values": list(side_by_side(cell.before, cell.after).values())}
            for cell in worst[:ROWS_MAX]
        ],
        "left_out": max(0, len(worst) - ROWS_MAX),
    }
