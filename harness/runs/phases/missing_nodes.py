"""The nodes that a log partition waits for and that do not run: a log that waits for them is not stalled."""

from __future__ import annotations

from collections.abc import Iterable

from nemesis.cluster import ClusterView, PartitionView
from nemesis.faults import listed
from workloads import ACKS_ALL, Settings


def missing_nodes(view: ClusterView, partitions: Iterable[str], settings: Settings) -> dict[str, str]:
    """The nodes that a log partition waits for and that do not run; log partitions that wait for no node are left out.

    * With a leader it waits for the members of its ISR (rule 4). A replica outside the ISR is waited for only as long
      as, without it, too few run for min.insync.replicas: then the leader refuses writes with acks=all (rule 3), and
      with strict min ISR the high watermark, which alone proves a write with acks=0, does not move (rule 7).
    * Without a leader it waits for who may be elected: the members of the ISR and the eligible leader replicas (rules
      13, 15). Where both sets are empty, any replica may be the last known leader.
    * Where a number of replicas commits a record, it waits for any replica while fewer run than acknowledge (rules 27,
      28), and without a leader for all whose logs are compared.
    * Without an active controller every log partition waits for the controllers, which elect leaders and change ISRs.
    """
    deciding = () if view.controller_active else tuple(view.controllers)
    running = {*view.running, *view.running_controllers}
    states = {name: view.partitions[name] for name in partitions if name in view.partitions}
    gone = {
        name: sorted({*_waited_for(state, view.running, settings), *deciding} - running)
        for name, state in states.items()
    }
    return {name: f"{listed(nodes)} did not run" for name, nodes in gone.items() if nodes}


def _waited_for(state: PartitionView, running: Iterable[int], settings: Settings) -> tuple[int, ...]:
    if settings.commits_by_number:
        enough = state.leader is not None and len({*running} & {*state.replicas}) >= settings.copies
        return () if enough else state.replicas
    if state.leader is None:
        return (*state.isr, *state.elr) or state.replicas
    gated = settings.acks == ACKS_ALL or (settings.acks == 0 and settings.strict_min_isr)
    can_join = {*state.isr, *({*running} & {*state.replicas})}
    return state.replicas if gated and len(can_join) < settings.min_insync_replicas else state.isr
