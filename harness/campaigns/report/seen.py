"""Groups the anomalies of a cell by what they are about, each permitted one with the run that shows it worst."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from checkers import ANOMALIES, Cell, Finding, VerdictLine

PlainFields = dict[str, bool | int | float | str]

#: An anomaly that this version does not know is listed under this.
_UNKNOWN = "others"


class WorstCase(msgspec.Struct, frozen=True):
    """The run of a cell, by its seed, with most findings of a permitted anomaly, and the first that is listed."""

    count: int
    seed: int
    finding: PlainFields


class SeenFindings(msgspec.Struct, frozen=True):
    """The findings of one anomaly in a cell. An account tells what is not permitted, so ``worst`` is None there."""

    anomaly: str
    count: int
    permitted: bool
    worst: WorstCase | None


def seen_in(
    cells: Sequence[Cell], lines: Iterable[VerdictLine]
) -> dict[tuple[str, str], dict[str, list[SeenFindings]]]:
    """Everything seen, by world and name of a cell, then by what it is about."""
    worst = _worst_cases(lines)
    seen: dict[tuple[str, str], dict[str, list[SeenFindings]]] = {}
    for cell in cells:
        key = (cell.world, cell.cell)
        parts = seen.setdefault(key, {})
        for anomaly, count in cell.broken.items():
            parts.setdefault(_about(anomaly), []).append(SeenFindings(anomaly, count, permitted=False, worst=None))
        for anomaly, count in cell.permitted.items():
            parts.setdefault(_about(anomaly), []).append(
                SeenFindings(anomaly, count, permitted=True, worst=worst.get((*key, anomaly)))
            )
    return seen


def plain_fields(finding: Finding) -> PlainFields:
    """The fields of a finding that fit into a sentence."""
    fields = msgspec.to_builtins(finding)
    return {name: value for name, value in fields.items() if isinstance(value, (bool, int, float, str))}


def _worst_cases(lines: Iterable[VerdictLine]) -> dict[tuple[str, str, str], WorstCase]:
    """The worst case of each permitted anomaly, by world, cell and anomaly."""
    worst: dict[tuple[str, str, str], WorstCase] = {}
    for line in lines:
        if line.run is None or line.judgement is None:
            continue
        for anomaly, count in line.judgement.permitted.items():
            key = (line.run.world, line.run.cell, anomaly)
            if key not in worst or count > worst[key].count:
                listed = line.anomalies.get(anomaly, [])
                worst[key] = WorstCase(count, line.run.seed, plain_fields(listed[0]) if listed else {})
    return worst


def _about(anomaly: str) -> str:
    return ANOMALIES[anomaly].about.value if anomaly in ANOMALIES else _UNKNOWN
