#!/usr/bin/env python
"""Draws docs/matrix.svg, the matrix of the README: losses on real Kafka by client and settings, by day and by night.

From the root of a clone: .venv/bin/python -m scripts.matrix_picture
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Final

from checkers import Cell, Outcome
from harness.campaigns.report import exercised_faults
from harness.campaigns.report.grid import bound_words
from harness.campaigns.report.outcomes import OutcomeStyle, legend_of, style_of
from harness.campaigns.report.svg import drawing, element, group, text
from scripts.reference.losses import CAMPAIGNS, rows_of

PICTURE: Final = Path("docs/matrix.svg")
LABEL_PX: Final = 210
CELL_PX: Final = 204
ROW_PX: Final = 34
GAP_PX: Final = 30


def words_of(cell: Cell) -> str:
    """The cell in a line: how much was lost, or in how many faults nothing was."""
    sign = style_of(cell).sign
    if cell.outcome is Outcome.PERMITTED_LOSS:
        return f"{sign} {cell.lost:,} lost"
    bound = "" if cell.loss_permitted else f", {bound_words(cell).partition(' after')[0]}"
    return f"{sign} 0 in {exercised_faults(cell)} faults{bound}"


def style_words(styles: list[OutcomeStyle]) -> str:
    """The colours of cells, and of everything else, in both schemes."""
    rules = {False: ["text { fill: #1c2024; font: 13px system-ui, sans-serif; }"], True: ["text { fill: #e4e7eb; }"]}
    for night, lines in rules.items():
        for style in styles:
            lines.append(f".{style.name} rect {{ fill: {style.background[night]}; }}")
            lines.append(f".{style.name} text {{ fill: {style.ink[night]}; font-weight: 600; }}")
    day, night_rules = " ".join(rules[False]), " ".join(rules[True])
    return f"{day} .head {{ font-weight: 700; }} @media (prefers-color-scheme: dark) {{ {night_rules} }}"


def main() -> None:
    """Draw the cells that were run on Apache Kafka, a group of rows for each client."""
    listed = [row for campaign in CAMPAIGNS for row in rows_of(campaign)]
    clients = list(dict.fromkeys(row.client for row in listed))
    rows = sorted(listed, key=lambda row: clients.index(row.client))
    families = list(rows[0].cells)
    parts = [text(family, LABEL_PX + CELL_PX * number + 8, 18, class_="head") for number, family in enumerate(families)]
    y_px = 26.0
    for client, of_client in groupby(rows, key=lambda row: row.client):
        parts.append(text(client, 4, y_px + 16, class_="head"))
        y_px += GAP_PX - 6
        for row in of_client:
            unclean = ", unclean elections" if row.settings["unclean.leader.election.enable"] else ""
            parts.append(text(f"acks={row.settings['acks']}{unclean}", 16, y_px + 21))
            for number, family in enumerate(families):
                cell = row.cells[family]
                box = element("rect", x=0, y=0, width=CELL_PX - 6, height=ROW_PX - 6, rx=4)
                inside = group(box, text(words_of(cell), 8, 19), x_px=LABEL_PX + CELL_PX * number, y_px=y_px)
                parts.append(group(inside, class_=style_of(cell).name))
            y_px += ROW_PX
        y_px += 8
    shown = [row.cells[family] for row in rows for family in families]
    style = element("style", style_words(legend_of(shown)))
    label = "Acknowledged writes lost on Apache Kafka, by client, settings and faults"
    whole = drawing(LABEL_PX + CELL_PX * len(families), y_px, label, style, *parts)
    PICTURE.write_text(
        str(whole).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
