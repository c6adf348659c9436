"""A comparison in words: figures of two cells side by side, and a sentence for everything that is not as it was."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from checkers import Cell, Outcome, counted, quantile_us
from harness.comparison.changes import Change, Compared
from harness.comparison.findings import Fate, Traced

#: Cells, and runs with findings, that have a sentence.
LISTED_MAX: Final = 12
#: A finding that is gone may be there still, if silence is likelier than this.
CHANCE_MIN: Final = 0.05
HEADINGS: Final = ("outcome", "runs that lost", "writes lost", "at most", "longest gap", "recovery", "p50", "p99")
#: What stands where there is nothing to say.
NONE: Final = "-"


def figures_of(cell: Cell | None) -> dict[str, str]:
    """What decides and what it costs, by the heading of a column; the headings alone have "-" for no cell.

    ``at most`` is the share of faults that may lose a write though none did, at 95 % confidence; ``longest gap`` and
    ``recovery`` are the worst of all runs, ``p50`` and ``p99`` latencies of acknowledged writes ("-": not recorded).
    """
    if cell is None:
        return dict.fromkeys(HEADINGS, NONE)
    silent = cell.outcome is Outcome.HELD and not cell.lost
    return {
        "outcome": cell.outcome,
        "runs that lost": f"{cell.runs_lost:,}/{cell.runs_judged:,}",
        "writes lost": f"{cell.loss.rate:.2%}",
        "at most": f"{cell.bound:.2%}" if silent else NONE,
        "longest gap": _seconds(cell.longest_gap_us),
        "recovery": _seconds(cell.recovery_us),
        "p50": _milliseconds(quantile_us(cell.latency.all, 0.5)),
        "p99": _milliseconds(quantile_us(cell.latency.all, 0.99)),
    }


def side_by_side(before: Cell | None, after: Cell | None) -> dict[str, str]:
    """The figures of both, as one where they are the same."""
    first, second = figures_of(before), figures_of(after)
    return {name: one if one == second[name] else f"{one} → {second[name]}" for name, one in first.items()}


def made_with(record: Mapping[str, Any]) -> str:
    """Worlds with their releases and clients' libraries, the seed and the time, as ``campaign.json`` has them."""
    versions = record.get("versions", {})
    parts = [
        " ".join(filter(None, (name, world.get("version"), client and f"with {client} {versions.get(client, '')}")))
        for name, world in record.get("worlds", {}).items()
        for client in [world.get("client")]
    ]
    facts = [*parts, *(f"{name} {record[name]}" for name in ("seed", "began") if name in record)]
    return ", ".join(facts)


def sentences(compared: Compared) -> Iterator[str]:
    """Cells that changed, the worst first, settings that are not the same under one name, and findings that no promise
    permits: those that the settings permit come and go with the schedules, and are in the cells' rates.
    """
    worst = sorted(compared.cells, key=lambda one: list(Change).index(one.change))
    changed = [f"{one.change}: {one.key}: {one.why}" for one in worst if one.change is not Change.SAME]
    yield from _first(changed, "cells")
    other = {f"{name} was {a}, is {b}" for one in compared.cells for name, (a, b) in one.settings.items()}
    yield from (f"not the same settings under the same name: {words}" for words in sorted(other))
    if not compared.findings_known:
        yield "findings are not compared: of one of the two only a matrix is left"
    yield from finding_sentences(compared.findings, compared.after)


def finding_sentences(findings: Iterable[Traced], after: str) -> Iterator[str]:
    """A sentence for each run that shows findings that nothing permits; ``after`` is the directory of the latest."""
    together: dict[tuple[Fate, str], list[Traced]] = {}
    for one in findings:
        if not one.finding.permitted:
            together.setdefault((one.fate, one.finding.example.run), []).append(one)
    yield from _first([_findings(ones, after) for ones in together.values()], "such runs")


def _first(lines: Sequence[str], what: str) -> Iterator[str]:
    yield from lines[:LISTED_MAX]
    if len(lines) > LISTED_MAX:
        yield f"... and {len(lines) - LISTED_MAX:,} more {what}"


def _findings(ones: Sequence[Traced], after: str) -> str:
    """Findings with one fate that one run shows."""
    fate, example = ones[0].fate, ones[0].finding.example
    names = ", ".join(" ".join(dict.fromkeys((one.finding.anomaly, one.finding.identity))) for one in ones)
    runs = max(sum(one.finding.runs.values()) for one in ones)
    story = f" of {', '.join(example.stories)}" if example.stories else ""
    shows = f"{counted(example.faults, 'fault')}{story}, seed {example.seed}"
    words = f"{fate}: {names}, in {counted(runs, 'run')}; smallest: {shows}"
    if fate in {Fate.NEW, Fate.KNOWN, Fate.BACK}:
        return f"{words}; again: {shlex.join(['ackproof', 'replay', f'{after}/{example.run}'])}"
    missed = max(one.missed_by_chance for one in ones)
    if missed > CHANCE_MIN:
        return f"{words}; as often as before, so many runs would miss it with a chance of {missed:.0%}"
    return words


def _seconds(time_us: int | None) -> str:
    return "never" if time_us is None else f"{time_us / 1e6:.2f} s"


def _milliseconds(time_us: int | None) -> str:
    return NONE if time_us is None else f"{time_us / 1e3:.1f} ms"
