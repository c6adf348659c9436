"""Changes of leader that no fault of the run asked for: a long garbage collection, or somebody else at the cluster.

Whatever caused one, it may lose what a leader acknowledged alone, so the checkers are given a receipt of it. Nobody
drew this fault, so it stands in no schedule and in no budget. It has no begin of its own: all that is known is that a
leader changed between the begin of the break phase and the end of the run, so no write counts as acknowledged in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from checkers import faults_possible
from nemesis.cluster import ClusterView
from nemesis.faults import UnexplainedElection
from nemesis.receipts import Receipt, moved
from nemesis.schedule import FAULTS_MAX

#: Beyond every number that a schedule or a death can have.
_SEQUENCE: Final = 2 * FAULTS_MAX


def unexplained_election(
    before: ClusterView, after: ClusterView, faults: Iterable[Receipt], span_us: tuple[int, int]
) -> Receipt | None:
    """A receipt of the leaders that changed between two views, if no fault that reached the cluster may explain it.

    ``faults`` are all receipts of the run, deaths among them; ``span_us`` the two moments on the run's clock. One fault
    that took effect, or may have, explains every change: an election may follow it much later.
    """
    changes = _led_otherwise(before, after)
    if not changes or any(not (seen.clients_only or seen.facts.spares_cluster) for seen in faults_possible(faults)):
        return None
    return Receipt(
        mark="end",
        sequence=_SEQUENCE,
        group=_SEQUENCE,
        family=UnexplainedElection.kind,
        story=UnexplainedElection.kind,
        fault=UnexplainedElection.kind,
        role=f"the leader of {', '.join(sorted(changes))}",
        begun_us=span_us[0],
        ended_us=span_us[1],
        moved=changes,
        took_effect=True,
        reason="a leader changed, and no fault that took effect reached the cluster",
    )


def _led_otherwise(before: ClusterView, after: ClusterView) -> dict[str, dict[str, Any]]:
    """What moved of the log partitions whose leader, or its epoch, did; the first leader of all replaces nobody."""
    led = {name for name, state in before.partitions.items() if state.leader is not None}
    changes = moved(before, after)
    return {name: pairs for name, pairs in changes.items() if name in led and {"leader", "leader_epoch"} & pairs.keys()}
