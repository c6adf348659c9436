"""Differences of two cells of one name: other settings were asked of the log, or it was another log.

A defect that is put into the log by a switch, planted or as Apache Kafka has it, is no setting here: it asks for
nothing, and no promise knows it (docs/decisions/027). Like a release of Kafka it belongs to the system under test.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from checkers import Cell
from workloads import KAFKA_DEFECTS

#: Switches that put a defect into the log, or into its client.
SYSTEM: Final = frozenset({"planted.bug", *KAFKA_DEFECTS})

Differences = dict[str, tuple[Any, Any]]


class Differing(NamedTuple):
    """By name, what the first of two cells has and what the second has, where that is not the same."""

    settings: Differences
    system: Differences

    def __bool__(self) -> bool:
        return bool(self.settings or self.system)


def differing(before: Cell, after: Cell) -> Differing:
    """Compare two cells; a name that only one of them has is of another version of ackproof, and says nothing."""
    first, second = before.settings, after.settings
    others = {name: (first[name], second[name]) for name in first if name in second and first[name] != second[name]}
    return Differing(
        settings={name: values for name, values in others.items() if name not in SYSTEM},
        system={name: values for name, values in others.items() if name in SYSTEM},
    )
