"""The fate of the inputs of applications under test, a sentence a cell."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from checkers import ApplicationCounts, VerdictLine


def application_sentences(lines: Iterable[VerdictLine]) -> list[str]:
    """Say of each cell with an application what became of its inputs, over all runs."""
    cells: dict[str, ApplicationCounts] = {}
    for line in lines:
        if line.run is not None and line.application.promise:
            name = f"{line.run.cell} ({line.run.world}), {line.application.promise}"
            if name in cells:
                cells[name].add(line.application)
            else:
                cells[name] = copy.copy(line.application)
    return [f"{name}: {counts.sentence}" for name, counts in cells.items()]
