"""The state of the run's log partitions, as the cluster's controller sees it: what they lack, and where they end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from checkers import PartitionEnd
from nemesis.cluster import ClusterView


def unhealthy(view: ClusterView, partitions: Iterable[str]) -> dict[str, str]:
    """The log partitions that lack a running leader or a full ISR, and what they lack."""
    lacks = {name: _lack(view, name) for name in partitions}
    return {name: lack for name, lack in lacks.items() if lack}


def ends_of(
    view: ClusterView, partitions: Iterable[str], reached: Mapping[str, int], *, compacted: bool = False
) -> dict[str, PartitionEnd]:
    """The state of ``partitions`` in ``view``; ``reached`` are the ends to which healthy ones were read."""
    return {
        name: PartitionEnd(
            leader=state.leader,
            isr=tuple(state.isr),
            running=tuple(node for node in state.isr if node in view.running),
            end_offset=reached.get(name),
            compacted=compacted,
        )
        for name in partitions
        if (state := view.partitions.get(name)) is not None
    }


def _lack(view: ClusterView, name: str) -> str:
    state = view.partitions.get(name)
    if state is None:
        return "the controller does not know it"
    if state.leader is None:
        return "it has no leader"
    if state.leader not in view.running:
        return f"its leader, broker {state.leader}, does not run"
    missing = sorted(set(state.replicas) - set(state.isr))
    return f"not in its ISR: {', '.join(f'broker {node}' for node in missing)}" if missing else ""
