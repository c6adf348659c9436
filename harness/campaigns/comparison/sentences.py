"""A comparison in words: figures of two cells side by side, and a sentence for everything that is not as it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from checkers import Cell, Outcome, quantile_us, seconds
from harness.campaigns.comparison.acceptance import LISTED_MAX, accepted_sentences
from harness.campaigns.comparison.changes import Change, Compared
from harness.campaigns.comparison.finding_sentences import each_finding, finding_sentences
from harness.campaigns.comparison.settings import Differences
from workloads import spelled

HEADINGS: Final = ("outcome", "runs that lost", "writes lost", "at most", "longest gap", "recovery", "p50", "p99")
#: The text of an empty figure.
NONE: Final = "-"


def figures_of(cell: Cell | None) -> dict[str, str]:
    """The figures of a cell by the heading of their column; without a cell each is "-".

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
        "longest gap": seconds(cell.longest_gap_us),
        "recovery": seconds(cell.recovery_us),
        "p50": _milliseconds(quantile_us(cell.latency.all, 0.5)),
        "p99": _milliseconds(quantile_us(cell.latency.all, 0.99)),
    }


def side_by_side(before: Cell | None, after: Cell | None) -> dict[str, str]:
    """The figures of both, as one where they are the same."""
    first, second = figures_of(before), figures_of(after)
    return {name: figure if figure == second[name] else f"{figure} → {second[name]}" for name, figure in first.items()}


def made_with(record: Mapping[str, Any]) -> str:
    """Worlds with their releases and clients' libraries, the seed and the time, as ``campaign.json`` has them."""
    versions = record.get("versions", {})
    parts = [
        " ".join(filter(None, (name, world.get("version"), client and f"with {client} {release}", *others)))
        for name, world in record.get("worlds", {}).items()
        for client in [world.get("client")]
        for release in [world.get("client_version") or versions.get(client, "")]
        for others in [[f"and {other}" for other in world.get("other_clients", ())]]
    ]
    facts = [*parts, *(f"{name} {record[name]}" for name in ("seed", "began") if name in record)]
    return ", ".join(facts)


def sentences(compared: Compared, *, all_: bool = False) -> Iterator[str]:
    """Lines: cells that changed, the worst first; what is not the same under one name; findings that nothing permits.

    Those that the settings permit come and go with the schedules, and are in the cells' rates. With ``all_`` each
    finding has a line more.
    """
    worst = sorted(compared.cells, key=lambda cell: list(Change).index(cell.change))
    changed = [f"{cell.change}: {cell.key}: {cell.why}." for cell in worst if cell.change is not Change.SAME]
    yield from changed[:LISTED_MAX]
    if len(changed) > LISTED_MAX:
        yield f"... and {len(changed) - LISTED_MAX:,} more cells."
    yield from _other("settings under the same name", [cell.settings for cell in compared.cells])
    yield from _other("system", [cell.system for cell in compared.cells])
    if not compared.findings_known:
        yield "Findings are not compared: of one of the two only a matrix is left."
    elif not compared.kinds:
        yield "Findings that nothing permits: none in either."
    cells = [cell.after for cell in compared.cells if cell.after]
    yield from finding_sentences(compared.kinds, compared.after, cells)
    yield from accepted_sentences(cells)
    yield from each_finding(compared.kinds) if all_ else ()


def _other(what: str, differences: Iterable[Differences]) -> Iterator[str]:
    words = {
        f"{name} was {spelled(a)}, is {spelled(b)}" for difference in differences for name, (a, b) in difference.items()
    }
    yield from (f"not the same {what}: {sentence}." for sentence in sorted(words))


def _milliseconds(time_us: int | None) -> str:
    return NONE if time_us is None else f"{time_us / 1e3:.1f} ms"
