"""The risky situations that runs met, under the run's own settings: the subjects of a cell's silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from checkers.verdicts.verdict import Verdict
from nemesis.evidence import PowerLost
from nemesis.receipts import Receipt
from workloads import ACKS_ALL, Settings

#: Each situation by its name in ``matrix.json``, and the exact things that are counted
#: (:class:`checkers.measures.situations.Situations` says how).
SITUATIONS: Final[Mapping[str, str]] = {
    "leader_changed_in_flight": "changes of leader during a fault with a send in flight that was acknowledged later",
    "acknowledged_across_epochs": "acknowledged sends that were in flight over a change of leader during a fault",
    "acknowledged_at_min_isr": "writes acknowledged during a fault while the ISR was at min.insync.replicas or below",
    "acknowledged_on_leader_only": "writes acknowledged less than 500 ms before a fault struck that may have been on "
    "the leader alone: the ISR was one, or acks is not all",
    "unflushed_at_power_loss": "losses of power that took what no fsync had reached",
    "read_across_truncation": "consumers that read a log partition before acknowledged writes were truncated and after",
    "refused_before_append": "attempts to append that leaders refused with NOT_ENOUGH_REPLICAS, as they say",
    "refused_after_append": "attempts that leaders appended and refused with NOT_ENOUGH_REPLICAS_AFTER_APPEND",
}


def coverage(verdict: Verdict, settings: Settings, receipts: Iterable[Receipt]) -> dict[str, int | None]:
    """Count how often a run met each of :data:`SITUATIONS`; None where its history does not show it."""
    met = verdict.situations
    strikes = met.acknowledged_before_strike
    losses = [_took_something(receipt) for receipt in receipts if receipt.took_effect and receipt.facts.spares_flushed]
    counts = {
        "leader_changed_in_flight": met.leader_changed_in_flight,
        "acknowledged_across_epochs": met.acknowledged_across_epochs,
        "acknowledged_at_min_isr": _up_to(met.acknowledged_at_isr, settings.min_insync_replicas),
        "acknowledged_on_leader_only": _up_to(strikes, 1 if settings.acks == ACKS_ALL else settings.replication_factor),
        "unflushed_at_power_loss": None if None in losses else sum(map(bool, losses)),
        "read_across_truncation": met.read_across_truncation,
        "refused_before_append": met.refused_before_append,
        "refused_after_append": met.refused_after_append,
    }
    return {name: counts[name] for name in SITUATIONS}


def summed(mine: Mapping[str, int | None], theirs: Mapping[str, int | None]) -> dict[str, int | None]:
    """The coverage of runs together: a situation that some of them do not know is counted over the others."""
    return {name: _sum(mine.get(name), theirs.get(name)) for name in SITUATIONS}


def _sum(mine: int | None, theirs: int | None) -> int | None:
    return mine if theirs is None else theirs if mine is None else mine + theirs


def _up_to(by_size: Mapping[int, int] | None, largest: int) -> int | None:
    return None if by_size is None else sum(count for size, count in by_size.items() if size <= largest)


def _took_something(receipt: Receipt) -> bool | None:
    """A loss of power took records or bytes, by its evidence; None where that counts neither."""
    took: bool | None = None
    of_nodes: Mapping[str, PowerLost] = receipt.of_nodes
    for seen in of_nodes.values():
        if "lost" in seen:
            took = bool(took) or any(seen["lost"].values())
        elif "log_bytes_before" in seen and "log_bytes_after" in seen:
            took = bool(took) or seen["log_bytes_before"] > seen["log_bytes_after"]
    return took
