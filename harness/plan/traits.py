"""Traits of workloads on which keys, settings and faults of a plan depend."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from workloads import WORKLOADS, WorkloadKind

Trait = Callable[[WorkloadKind], bool]
GROUPED: Final[Trait] = attrgetter("grouped")
TRANSACTIONAL: Final[Trait] = attrgetter("transactional")


def workloads_with(trait: Trait) -> str:
    """The workloads that have a trait, by name, as one may be written instead of another."""
    return " or ".join(f'"{name}"' for name, kind in WORKLOADS.items() if trait(kind))
