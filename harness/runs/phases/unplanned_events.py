"""Events that no schedule planned and that may cost writes: nodes that ended by themselves, leaders that changed.

The checkers are given a receipt of each. These faults were not drawn, so no schedule and no budget has them.

*Nodes that ended.* A death takes a node's memory and leaves its disk, whatever caused it, so its receipt is as of a
kill: what it cost is then held against what the settings promise under one. Who is to blame depends on whose node it
is. A broker of the reference must not crash: its run says nothing about replication rules, and counts as failed in the
harness. Apache Kafka may (it halts on a full disk, for one), and that is a fact about the run.

*Leaders that changed* though no fault of the run asked for it: a long garbage collection, or another user of the
cluster. It has no begin of its own: all that is known is that a leader changed between the begin of the break phase and
the end of the run, so no write counts as acknowledged in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from checkers import faults_possible
from harness.plan import RunSpec
from harness.worlds.contract import NodeCrash
from nemesis.cluster import ClusterView
from nemesis.faults import Crash, UnexplainedElection
from nemesis.plan import FAULTS_MAX
from nemesis.receipts import Moves, Receipt, moved

#: Pause between looks. A few system calls; a fault lasts longer than this.
LOOK_EVERY_MS: Final = 500
#: The number of an unexplained election: beyond every number that a schedule or a death can have.
_SEQUENCE: Final = 2 * FAULTS_MAX


class CrashRecorder:
    """Writes a receipt for every death, through ``witness``: at its begin, and when the node runs again.

    ``receipts`` are all of them so far, the latest of each.
    """

    def __init__(self, witness: Callable[[Receipt], None]) -> None:
        self._witness = witness
        self.receipts: list[Receipt] = []

    def look(self, deaths: Sequence[NodeCrash], now_us: int) -> None:
        """Write down what is new among ``deaths``: all so far, in an order that only grows at its end."""
        for death in deaths[len(self.receipts) :]:
            self.receipts.append(_receipt(death, len(self.receipts)))
            self._witness(self.receipts[-1])
        for receipt, death in zip(self.receipts, deaths, strict=False):
            if receipt.ended_us is None and death.returned_us is not None:
                receipt.mark, receipt.ended_us = "end", now_us
                self._witness(receipt)


def _receipt(death: NodeCrash, number: int) -> Receipt:
    return Receipt(
        mark="begin",
        # Beyond every number that a schedule can give.
        sequence=FAULTS_MAX + number,
        group=FAULTS_MAX + number,
        family=Crash.kind,
        story=Crash.kind,
        fault=Crash.kind,
        role=f"node {death.node}",
        targets=(death.node,),
        begun_us=death.time_us,
        begin_evidence={str(death.node): {"exit": death.exit, "words": death.words}},
        took_effect=True,
        reason="the node ended by itself",
    )


def own_failure(spec: RunSpec, deaths: Iterable[NodeCrash], faults: Iterable[Receipt]) -> str | None:
    """The reason for which this run counts as failed: a node of the reference broker crashed, and no fault explains it.

    None if no node did, or if the broker is another system.
    """
    if not spec.world.reference:
        return None
    hit = [(node, fault.begun_us) for fault in faults if fault.facts.may_end_process for node in fault.targets]
    for death in deaths:
        if not any(node == death.node and begun_us <= death.time_us for node, begun_us in hit):
            return (
                f"node {death.node} of the reference broker crashed ({death.exit}), so this run proves nothing about "
                f"its settings; its last words: {death.words}"
            )
    return None


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


def _led_otherwise(before: ClusterView, after: ClusterView) -> dict[str, Moves]:
    """The changes of log partitions whose leader, or its epoch, changed; the first leader of all replaces no other."""
    led = {name for name, state in before.partitions.items() if state.leader is not None}
    changes = moved(before, after)
    return {name: pairs for name, pairs in changes.items() if name in led and {"leader", "leader_epoch"} & pairs.keys()}
