"""Accounting of nodes that ended by themselves: into the run's history while it goes on, and into how it ended.

A death takes a node's memory and leaves its disk, whatever caused it, so the checkers are given a receipt as of a kill:
what a crash cost is then held against what the settings promise under one. Nobody drew this fault, so it stands in no
schedule and in no budget.

Who is to blame depends on whose node it is. A broker of the reference must not crash: its run says nothing about
replication rules, and counts as failed in the harness. Apache Kafka may (it halts on a full disk, for one), and that is
a fact about the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from harness.plan import RunSpec
from harness.worlds.contract import NodeCrash
from nemesis.faults import Crash
from nemesis.receipts import Receipt
from nemesis.schedule import FAULTS_MAX

#: How often is looked. A few system calls; a fault lasts longer than this.
LOOK_EVERY_MS: Final = 500


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
    """Why this run counts as failed in the harness: a node of the reference broker crashed under no fault that may
    crash it; None if none did, or if it is another system's.
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
