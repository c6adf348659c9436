"""Rolling upgrades: nodes that are stopped in order and started again in another form, until there is no way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, ClusterView, Target, require
from nemesis.evidence import Finalized, NodeSaid, Observed, Prepared
from nemesis.faults.fault import Aim, NodeFault


class OperatorStep(NodeFault, frozen=True):
    """One step of an operator who waits for its result before the next (:mod:`nemesis.rollout`)."""

    def is_done(self, node: int, view: ClusterView, begun: Any, seen: NodeSaid) -> bool:
        """Tell if a step that lasts came about, once the cluster is whole.

        ``begun`` is what was observed when it began, ``seen`` what the node says now.
        """
        raise NotImplementedError


class Upgrade(OperatorStep, frozen=True):
    """Ask a node's process to end (SIGTERM), and start it again in another form as soon as it has.

    The form is another release (`upgrade_to`), other settings (`change`), or, without these, the same: a rolling
    restart. ``back`` is the way back to the first form. It ends when the node runs in the new form, and every replica
    is in sync again.
    """

    kind: ClassVar[str] = "upgrade"
    verb: ClassVar[str] = "upgrade"
    operands: ClassVar[str] = ""
    family: ClassVar[str] = "upgrade"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES, Capability.SUCCESSION)
    stops_brokers: ClassVar[bool] = True
    afresh: ClassVar[bool] = False
    """The cluster forgets the node, and its disk is emptied."""

    back: bool = False

    @classmethod
    @override
    def in_words(cls, evidence: Mapping[str, Prepared]) -> str:
        forms = [(seen.get("version", "?"), seen.get("wanted", "?")) for seen in evidence.values()]
        return ", ".join(f"from {before} to {wanted}" for before, wanted in forms)

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> Observed:
        succession, processes = require(target.succession), require(target.processes)
        before, stopped = succession.observe(node), processes.stop(node)
        if not stopped:  # it is frozen or dead
            return {}
        prepared = succession.prepare(node, "first" if self.back else "next", afresh=self.afresh)
        return {**before, **stopped, **prepared, **processes.restart(node)}

    @override
    def is_done(self, node: int, view: ClusterView, begun: Prepared, seen: NodeSaid) -> bool:
        """It has started again."""
        return seen.get("incarnation") != begun.get("incarnation")

    @override
    def undo(self, target: Target, aim: Aim, node: int) -> Observed:
        succession = require(target.succession)
        seen = succession.observe(node)
        return {**seen, **succession.describe(node)} if seen else {}


class Finalize(OperatorStep, frozen=True):
    """Raise the feature levels of the cluster to those of the release that every node runs: from then on there is no
    way back.
    """

    kind: ClassVar[str] = "finalize"
    verb: ClassVar[str] = "finalize"
    operands: ClassVar[str] = ""
    family: ClassVar[str] = "upgrade"
    lasts: ClassVar[bool] = False
    needs: ClassVar[tuple[Capability, ...]] = (Capability.SUCCESSION,)
    spares_process: ClassVar[bool] = True
    spares_cluster: ClassVar[bool] = True

    @classmethod
    @override
    def in_words(cls, evidence: Mapping[str, Finalized]) -> str:
        return "; ".join(_level_changes(seen) for seen in evidence.values())

    @override
    def aim(self, view: ClusterView) -> Aim:
        return Aim(nodes=view.controllers[:1])

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> Finalized:
        return require(target.succession).finalize()


def _level_changes(evidence: Finalized) -> str:
    """Name the features whose level was raised: ``metadata.version 21 to 30``."""
    before, after = evidence.get("features_before", {}), evidence.get("features", {})
    raised = {name: level for name, level in after.items() if before.get(name, 0) != level}
    return ", ".join(f"{name} {before.get(name, 0)} to {level}" for name, level in sorted(raised.items()))
