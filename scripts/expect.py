#!/usr/bin/env python3
"""Holds a campaign against what continuous integration expects of it, by its matrix.json.

    scripts/expect.py SUMMARY EXPECTATION

SUMMARY is a file with what ``ackproof campaign PLAN --json`` printed; it names the campaign's directory. Says what each
cell showed, then whether that is what was expected: exit code 0, else 1.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

Cell = dict[str, Any]


def settings_are_told_apart(cells: Sequence[Cell]) -> Iterator[str]:
    """Say what is missing of: acks=1 lost acknowledged writes, and acks=all held wherever it promised to."""
    if not any(cell["lost"] for cell in cells if cell["settings"]["acks"] == 1):
        yield "no cell with acks=1 lost an acknowledged write"
    promised = [cell for cell in cells if cell["settings"]["acks"] == "all" and not cell["loss_permitted"]]
    if not promised:
        yield "no cell with acks=all promised anything"
    for cell in promised:
        if cell["outcome"] != "held":
            yield f"{cell['cell']} ({cell['world']}) did not hold what it promised: {cell['outcome']}, {cell['note']}"


def every_cell_lost_against_its_promise(cells: Sequence[Cell]) -> Iterator[str]:
    """Say what is missing of: acknowledged writes lost against the promise in every cell, and at least a cell."""
    if not cells:
        yield "there is no cell"
    for cell in cells:
        if not {"lost-write", "unseen"} & cell["broken"].keys():
            shown = f"{cell['outcome']}, {', '.join(cell['broken']) or cell['note']}"
            yield f"{cell['cell']} ({cell['world']}) should have lost acknowledged writes against its promise: {shown}"


def every_run_of_a_soak_counts_once(directory: Path, sessions: int) -> Iterator[str]:
    """Say what is missing of: this number of ``sessions``; one turn, verdict and place in the matrix for each run."""
    entries = [json.loads(line) for line in (directory / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]
    lines = (directory / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    histories = Counter(json.loads(line)["history"] for line in lines)
    drawn = [entry["turn"] for entry in entries if entry["entry"] == "planned"]
    judged = [turn for entry in entries if entry["entry"] == "judged" for turn in entry["turns"]]
    matrix = json.loads((directory / "matrix.json").read_text(encoding="utf-8"))
    runs = sum(cell["runs"] for cell in matrix["cells"])
    if (began := sum(entry["entry"] == "began" for entry in entries)) != sessions:
        yield f"the soak has {began} sessions, not {sessions}"
    if drawn != list(range(len(drawn))) or len(set(judged)) < len(judged) or max(histories.values(), default=0) > 1:
        yield "a run counts twice"
    if not len(judged) == len(histories) == runs > 0:
        yield f"{len(judged)} runs are judged, {len(histories)} have a verdict, {runs} are in the matrix"


EXPECTATIONS: Final[dict[str, Callable[[Sequence[Cell]], Iterator[str]]]] = {
    "told-apart": settings_are_told_apart,
    "broken": every_cell_lost_against_its_promise,
}


def main(summary: str, expectation: str) -> int:
    """The exit code."""
    directory = Path(json.loads(Path(summary).read_text(encoding="utf-8"))["directory"])
    cells = json.loads((directory / "matrix.json").read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        sys.stdout.write(f"{cell['world']} {cell['cell']}: {cell['outcome']}, {cell['lost']} lost, {cell['note']}\n")
    if expectation == "once":
        problems = list(every_run_of_a_soak_counts_once(directory, 2))
    else:
        problems = list(EXPECTATIONS[expectation](cells))
    for problem in problems:
        sys.stdout.write(f"NOT AS EXPECTED: {problem}\n")
    sys.stdout.write(f"{directory / 'report.html'}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
