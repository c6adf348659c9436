"""The cost of safety beside what it prevents: latency, throughput, refusals, unavailability, by settings and world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from checkers import Cell, ConsumerLag, Latency, quantile_us, settings_words


class Price(NamedTuple):
    """One choice of settings in one world, over all families of faults; times in microseconds, None where unknown.

    ``read_gap_us`` is the longest time that readers waited for a record that was there, ``lag_p99_us`` of their polls.
    ``calm_p99_us`` is of writes that began while no fault was in effect, the other quantiles of all of the workload.
    ``lost``, ``doubled`` and ``reordered`` count acknowledged writes that are gone, are in the log more than once, or
    were overtaken, permitted or not; None where no run could be judged.
    """

    settings: str
    world: str
    p50_us: int | None
    p99_us: int | None
    p999_us: int | None
    calm_p99_us: int | None
    per_second: float | None
    attempted: int
    rejected: int
    unknown: int
    gap_us: int
    recovery_us: int | None
    unrecovered: int
    read_gap_us: int | None
    lag_p99_us: int | None
    lost: int | None
    doubled: int | None
    reordered: int | None
    latency: Latency


def prices_of(cells: Sequence[Cell]) -> list[Price]:
    """In the order of the matrix, world by world."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.world, settings_words(cell.label)), []).append(cell)
    return [_price(world, settings, group) for (world, settings), group in groups.items()]


def _price(world: str, settings: str, cells: Sequence[Cell]) -> Price:
    latency, lag = Latency(), ConsumerLag()
    judged = any(cell.runs_judged for cell in cells)
    for cell in cells:
        latency.add(cell.latency)
        lag.add(cell.readers.lag)
        latency.workload_us += cell.latency.workload_us
    return Price(
        settings=settings,
        world=world,
        p50_us=quantile_us(latency.all, 0.5),
        p99_us=quantile_us(latency.all, 0.99),
        p999_us=quantile_us(latency.all, 0.999),
        calm_p99_us=quantile_us(latency.calm, 0.99),
        per_second=latency.per_second,
        attempted=sum(cell.attempted for cell in cells),
        rejected=sum(cell.rejected for cell in cells),
        unknown=sum(cell.unknown_writes for cell in cells),
        gap_us=max(cell.longest_gap_us for cell in cells),
        recovery_us=max((cell.recovery_us for cell in cells if cell.recovery_us is not None), default=None),
        unrecovered=sum(cell.unrecovered for cell in cells),
        read_gap_us=max(
            (cell.readers.longest_gap_us for cell in cells if cell.readers.longest_gap_us is not None), default=None
        ),
        lag_p99_us=quantile_us(lag.polls, 0.99),
        lost=sum(cell.lost for cell in cells) if judged else None,
        doubled=_count_of("duplicate", cells) if judged else None,
        reordered=_count_of("reordered", cells) if judged else None,
        latency=latency,
    )


def _count_of(anomaly: str, cells: Sequence[Cell]) -> int:
    """The number of findings of ``anomaly``, whether they break a promise or not."""
    return sum(cell.broken.get(anomaly, 0) + cell.permitted.get(anomaly, 0) for cell in cells)
