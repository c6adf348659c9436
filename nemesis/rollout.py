"""Takes a cluster from one form to the next, node by node, beside the faults of a schedule.

A step begins when every node has said that it is ready and every replica is in sync. It ends when the node that was
stopped is ready in its new form, and all is whole again; then comes the next. A step that has no such moment within its
limit ends the rollout, as it would end an operator's: what is left is skipped, with a receipt that says why.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from nemesis.cluster import CONTROLLER, ClusterView, Target, node_name, require
from nemesis.evidence import NodeSaid
from nemesis.faults import Aim, Finalize, Join, Leave, OperatorStep, Replace, Upgrade
from nemesis.open_faults import Cause, OpenFaults
from nemesis.player import LOOK_EVERY_MS, RunClock
from nemesis.receipts import Receipt
from nemesis.roles import Role, RoleKind
from nemesis.succession import UpgradeBy

FAMILY: Final = Upgrade.family
#: A node of Kafka ends in a second or two and is ready five later. On a machine with twenty times the work that it can
#: do it takes a minute, and again after a fault that hits the node of the step.
STEP_LIMIT_MS: Final = 300_000


class RolloutStep(msgspec.Struct, frozen=True):
    """One step: a fault done to one node; ``name`` is its place in the rollout."""

    fault: OperatorStep
    node: int
    name: str


def rollout_steps(
    nodes: Sequence[int], *, way: UpgradeBy = "restart", back: bool = False, finalize: bool = False
) -> list[RolloutStep]:
    """Every node in this order, the first of them a controller; in the reverse order ``back``, if that is wanted."""
    steps = [step for node in nodes for step in _of_node(node, way, back=False)]
    if back:
        steps += [step for node in reversed(nodes) for step in _of_node(node, way, back=True)]
    if finalize:
        steps.append((Finalize(Role(RoleKind.CONTROLLER)), nodes[0]))
    return [RolloutStep(fault, node, f"step-{number}") for number, (fault, node) in enumerate(steps, 1)]


def _of_node(node: int, way: UpgradeBy, *, back: bool) -> list[tuple[OperatorStep, int]]:
    role = Role(RoleKind.NAMED, pick=node)
    if way == "restart":
        return [(Upgrade(role, back=back), node)]
    leaves = node >= CONTROLLER or way == "move-and-replace"
    steps = [Leave(role), Replace(role, back=back), Join(role)] if leaves else [Replace(role, back=back)]
    return [(step, node) for step in steps]


class Rollout:
    """Does ``steps`` in their order. Receipts go through ``faults``, those of the schedule that is played beside it.

    ``first_sequence`` and ``first_group`` are the numbers of the first step, after those of that schedule.
    """

    def __init__(
        self,
        steps: Sequence[RolloutStep],
        faults: OpenFaults,
        target: Target,
        clock: RunClock,
        *,
        first_sequence: int = 0,
        first_group: int = 0,
    ) -> None:
        self._steps = steps
        self._faults = faults
        self._target = target
        self._clock = clock
        self._first_sequence = first_sequence
        self._first_group = first_group
        self._turn = 0
        self._begun: Receipt | None = None
        self._since_us = 0
        self._stopped = False

    @property
    def over(self) -> bool:
        """True if nothing is left to do."""
        return self._stopped or self._turn == len(self._steps)

    def settled(self) -> bool:
        """Tell if only the node of the step that lasts is missing from the cluster, and not ready yet.

        Faults beside a rollout wait for this, or on a slow machine they would strike nodes that are still coming back
        from those before, and no step would have its moment.
        """
        if self.over:
            return True
        view = self._faults.view()
        unready = self._unready(view)
        spared = {self._steps[self._turn].node} if self._begun is not None else set()
        return not _lacking(view, spared.intersection(unready)) and spared.issuperset(unready)

    def start(self) -> None:
        """Begin as soon as the cluster is whole; where this world cannot do it at all, skip everything."""
        needs = {need for step in self._steps for need in step.fault.needs}
        if why_not := self._target.why_not(needs):
            self.stop(why_not)
            return
        self._since_us = self._clock.now_us()
        self._look()

    def stop(self, why: str) -> None:
        """End the step that lasts, and skip all others. Idempotent."""
        if self.over:
            return
        if self._begun is not None:
            self._begun.cut_short = why
            self._end()
        for turn in range(self._turn, len(self._steps)):
            step = self._steps[turn]
            self._faults.skip(step.fault, Aim(impossible=why), self._cause(turn), self._first_sequence + turn)
        self._stopped = True

    def _look(self) -> None:
        if self.over:
            return
        view = self._faults.view()
        if self._is_ready(view):
            self._go_on(view)
        elif self._clock.now_us() - self._since_us > STEP_LIMIT_MS * 1000:
            self.stop(self._why_late(view))
        if not self.over:
            self._clock.call_at(self._clock.now_us() + LOOK_EVERY_MS * 1000, self._look)

    def _go_on(self, view: ClusterView) -> None:
        """End the step that lasts, or else begin the next; one that is over at once ends here."""
        self._since_us = self._clock.now_us()
        if self._begun is not None:
            self._end()
            return
        step, sequence = self._steps[self._turn], self._first_sequence + self._turn
        self._begun = self._faults.begin(
            step.fault, Aim(nodes=(step.node,)), self._cause(self._turn), view=view, sequence=sequence
        )
        if not self._begun.took_effect:
            self.stop(f"{step.name} ({node_name(step.node)}) did not come about: {self._begun.reason}")
        elif not step.fault.lasts:
            self._end()

    def _end(self) -> None:
        self._faults.end(self._first_sequence + self._turn)
        self._begun = None
        self._turn += 1

    def _is_ready(self, view: ClusterView) -> bool:
        """True if the cluster is whole, every node is ready, and a step that lasts has come about."""
        return not _lacking(view) and not self._unready(view)

    def _unready(self, view: ClusterView) -> list[int]:
        """The nodes that have not said since their newest start that they are ready, or whose step is not done."""
        unready = [node for node in (*view.controllers, *view.brokers) if not self._seen(node)]
        if self._begun is not None and not unready:
            node, fault = self._steps[self._turn].node, self._steps[self._turn].fault
            begun = self._begun.of_nodes.get(str(node), {})
            return [] if fault.is_done(node, view, begun, self._seen(node)) else [node]
        return unready

    def _seen(self, node: int) -> NodeSaid:
        return require(self._target.succession).observe(node)

    def _why_late(self, view: ClusterView) -> str:
        unready = [f"{node_name(node)} was not ready" for node in self._unready(view)[:1]]
        lacks = "; ".join((*unready, *_lacking(view))) or "the cluster was whole for too short a time"
        step = self._steps[self._turn]
        when = "after it had begun" if self._begun is not None else "before it could begin"
        return f"{step.name} ({node_name(step.node)}): {STEP_LIMIT_MS // 1000} s {when}, {lacks}"

    def _cause(self, turn: int) -> Cause:
        step = self._steps[turn]
        return Cause(FAMILY, step.name, node_name(step.node), group=self._first_group + turn)


def _lacking(view: ClusterView, spared: Collection[int] = ()) -> list[str]:
    """Say what keeps an operator from the next step; nothing of nodes that are ``spared``."""
    away = [node for node in view.brokers if node not in view.running]
    away += [node for node in view.controllers if node not in view.running_controllers]
    lacking = [f"{node_name(node)} did not run" for node in away if node not in spared]
    if not view.controller_active and view.controllers[0] not in spared:
        lacking.append("no controller was active")
    states = view.partitions.items()
    short = [name for name, state in states if state.leader is None or {*state.replicas} - {*state.isr, *spared}]
    if short:
        lacking.append(f"{short[0]} had a replica out of sync")
    return lacking
