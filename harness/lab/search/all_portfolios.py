"""The portfolios of a hunt: all of them, or those that fit what is hunted for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.lab.search.coordinated_portfolios import GROUPED, PIPELINED, TRANSACTIONAL
from harness.lab.search.portfolios import ELIGIBLE, FLUSHED, IDEMPOTENT, MAJORITY, PORTFOLIOS, RACKS, UNCLEAN, Portfolio
from nemesis.cluster import Capability
from nemesis.scenarios import FAMILIES, needs_of
from workloads import Settings, SettingsError, kind_of

#: The portfolios of a plain hunt, which looks at every workload.
PLAIN: Final = (*PORTFOLIOS, *TRANSACTIONAL, *GROUPED, *PIPELINED)
#: The settings that do nothing but in workloads of a trait.
_COUNTING_IN: Final = {**Settings.counting_in(), "transaction.version": "transactional"}


def portfolios_for(changed: Mapping[str, Any]) -> tuple[Portfolio, ...]:
    """The portfolios that these settings fit; a hunt does not know which of them would show what is wrong."""
    traits = [trait for name, trait in _COUNTING_IN.items() if name in changed]
    chosen = [each for each in PLAIN if all(getattr(kind_of(each.workload), trait) for trait in traits)]
    return tuple(each for each in chosen if _takes(each, changed)) or tuple(chosen)


def _takes(portfolio: Portfolio, changed: Mapping[str, Any]) -> bool:
    """True if the settings that are drawn into its runs, with those ``changed``, can be together."""
    try:
        portfolio.storms(changed)
    except SettingsError:
        return False
    return True


#: Settings of further runs, of the core as it is, under every family in virtual time and their mixtures.
_SAFE: Final[Mapping[str, Mapping[str, Any]]] = {
    "in-sync": IDEMPOTENT,
    "eligible": ELIGIBLE | FLUSHED,
    "all-replicas": UNCLEAN | {"min.insync.replicas": 3},
    "majority": MAJORITY,
}
_MIXED: Final = ("kill", "pause", "stop", "cut", "cut", "slow", "hold", "move", "power", "wipe", "corrupt", "fail")
#: Faults that a cluster in virtual time cannot do.
_LACKING: Final = {
    Capability.CLOCKS,
    Capability.DISK_SPACE,
    Capability.DISK_SPEED,
    Capability.REASSIGNMENT,
    Capability.SUCCESSION,
}

#: Families for compacted topics, which these further runs do not have.
_COMPACTING: Final = {"away", "away-wiped"}


def _everything() -> Iterator[Portfolio]:
    yield from PLAIN
    families = tuple(name for name in FAMILIES if not needs_of(name) & _LACKING and name not in _COMPACTING)
    for settings, changed in _SAFE.items():
        for family in families:
            yield Portfolio(
                name=f"{settings}/{family}",
                settings=changed,
                families=(family,),
                racks=RACKS,
                log_dirs=2,
                partitions=3,
            )
        yield Portfolio(
            name=f"{settings}/all-families", settings=changed, families=families, racks=RACKS, log_dirs=2, partitions=3
        )
        yield Portfolio(name=f"{settings}/storms", settings=changed, kinds=_MIXED, log_dirs=2, partitions=2)


#: For hunts in the core as it is.
EVERYTHING: Final = tuple(_everything())
