"""A fault is data that knows what it hits, how it begins and how it ends, and the facts about its kind.

Everybody who has to know something about a kind of fault (checkers, worlds, runner, report) asks for it here; there is
no other list of faults by their properties. A fault is one file, and one line in :mod:`nemesis.faults`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self

import msgspec
from typing_extensions import override

from nemesis.cluster import CLIENTS, Capability, ClusterView, Link, Target, node_name, require
from nemesis.disk_parts import Files
from nemesis.evidence import ByNode, Observed
from nemesis.repairs import HEAL, START, LinkGroup, Repair
from nemesis.roles import Role, RoleKind, resolve
from nemesis.topology import Shape, links_of

#: Chance: a label and a bound give a number from 0 up to the bound. What is drawn under one label shifts no other.
Draw = Callable[[str, int], int]


class FaultKind:
    """The facts about a kind of fault, planned or not. The defaults are those of an unknown kind."""

    __slots__ = ()

    kind: ClassVar[str] = ""
    """The name in receipts. It never changes: histories keep it."""
    ends_process: ClassVar[bool] = False
    """The processes of the nodes that it hit end when it begins."""
    may_end_process: ClassVar[bool] = False
    """A process that it hit may rightly end by itself afterwards, or must."""
    spares_process: ClassVar[bool] = False
    """It ends no process, so no broker returns from an unclean stop because of it (rule 15)."""
    spares_cluster: ClassVar[bool] = False
    """It touches no broker and no link, so it explains no leader that changes meanwhile. A promise does not rest on
    that: what changed it may have no receipt, in a history that was cut off."""
    destroys_copy: ClassVar[bool] = False
    """It takes bytes from a replica which that replica had already counted as its own. SIGKILL does not: what the
    operating system holds survives the process."""
    spares_flushed: ClassVar[bool] = False
    """It takes only bytes that had not been forced to the disk (flush.messages=1)."""
    empties_disk: ClassVar[bool] = False
    """A node that it hit returns with nothing on its disk."""
    waits_for_cleaner: ClassVar[bool] = False
    """It is put to the test by records that are written while it lasts and cleaned away, not by any write."""
    delivers_late: ClassVar[bool] = False
    """A request may be carried out because of it after its repetition was, and after what its client did next."""
    replaces_replica: ClassVar[bool] = False
    """Another broker may replicate a log partition because of it."""
    done_to_links: ClassVar[str] = "cut"
    """Its effect on the links that it hits, in a word before their names."""
    returns: ClassVar[str] = ""
    """The act of a broker that it hit and that came back with a shorter log, in words before the offset of its end."""

    @classmethod
    def in_words(cls, evidence: ByNode) -> str:  # noqa: ARG003
        """Say for people what ``begin_evidence`` tells beyond the nodes; mostly nothing."""
        return ""


class Aim(msgspec.Struct, frozen=True):
    """The target of a fault: nodes, or links. Both are empty where it is impossible now, and ``impossible`` says why.

    ``partition`` names the log partition of a fault that concerns one; ``replicas`` are its brokers as the fault wants
    them, ``replicas_before`` as they were.
    """

    nodes: tuple[int, ...] = ()
    links: tuple[Link, ...] = ()
    impossible: str = ""
    partition: str = ""
    replicas: tuple[int, ...] = ()
    replicas_before: tuple[int, ...] = ()


class Fault(FaultKind, msgspec.Struct, frozen=True, tag_field="kind", tag=str.lower):
    """Base of the faults that can be scheduled, written in a script, drawn by a hunt, or done by hand.

    ``role`` says around whom, unless it is begun with an aim, as by a script.
    """

    verb: ClassVar[str] = ""
    """The word for it in scripts, storms and by hand."""
    operands: ClassVar[str] = ""
    """The form of the words after the verb in a script (:mod:`harness.runs.stories.steps.form`); empty: none."""
    in_a_script: ClassVar[str] = ""
    """Its effect there, as the reference of steps says it."""
    undone_by: ClassVar[Repair[Any]] = START
    """The repair that undoes it in a script, where it ``lasts``."""
    lasts: ClassVar[bool] = True
    """False: it is over at once, and nothing undoes it; in a schedule it counts until its end as what is in effect."""
    needs: ClassVar[tuple[Capability, ...]] = ()
    """The parts of a target that it uses; where one is lacking it is skipped."""
    stops_brokers: ClassVar[bool] = False
    """Its nodes count against the budget of dead and frozen brokers."""
    shows: ClassVar[str] = ""
    """The key in the evidence of every node if the fault was more than ``degraded_to``; empty if it is never less."""
    shows_at_end: ClassVar[str] = ""
    """The key in the evidence of its end if it was more than ``degraded_to``, where it does that when it ends."""
    degraded_to: ClassVar[str] = ""
    """The kind of fault that it came to where it :meth:`was_less` or :meth:`ended_less`."""
    family: ClassVar[str] = ""
    """The family of :mod:`nemesis.scenarios` that a single fault of this kind belongs to."""
    hits: ClassVar[tuple[RoleKind, ...]] = ()
    """The roles that the scenarios of ``family`` hit, one each, where a scenario is this fault alone."""

    role: Role

    @classmethod
    def around(cls, role: Role, shape: Shape) -> Self:  # noqa: ARG003
        """One around ``role``, of ``shape`` where it has one."""
        return cls(role)

    @classmethod
    def drawn(cls, role: Role, shape: Shape, draw: Draw) -> Self:  # noqa: ARG003
        """As :meth:`around`; chance decides what else it needs."""
        return cls.around(role, shape)

    @classmethod
    def was_less(cls, evidence: ByNode) -> bool:
        """The evidence shows that it came to no more than ``degraded_to``; nothing observed shows nothing."""
        shown = any(cls.shows in seen for seen in evidence.values())
        return bool(cls.shows and evidence) and not shown

    @classmethod
    def ended_less(cls, evidence: ByNode) -> bool:
        """The evidence of its end does not show that it came to more than ``degraded_to``."""
        return bool(cls.shows_at_end) and not any(cls.shows_at_end in seen for seen in evidence.values())

    @classmethod
    def met_something(cls, evidence: Observed) -> bool:  # noqa: ARG003
        """Tell by what was observed at its end if there was something to hit; true where that shows nothing of it."""
        return True

    @property
    def holds_links_by(self) -> tuple[str, ...]:
        """Name the hold on its links: a link is free when the last fault with the same hold has ended."""
        return (self.kind,)

    def aim(self, view: ClusterView) -> Aim:
        """Choose its nodes or links, with the cluster as ``view`` says."""
        raise NotImplementedError

    def begin(self, target: Target, aim: Aim) -> Observed:
        """Do it. Evidence is by node where nodes are hit."""
        raise NotImplementedError

    def end(self, target: Target, aim: Aim) -> Observed:
        """Undo it as far as ``aim`` says: what another fault still holds is not in it."""
        raise NotImplementedError


class NodeFault(Fault, frozen=True):
    """Hits nodes, each by itself: those holders of ``role`` that run. Afterwards they are started again."""

    operands: ClassVar[str] = "NODES:nodes"

    def aim(self, view: ClusterView) -> Aim:
        """The holders of ``role`` whose process can still be hit."""
        holders = resolve(self.role, view)
        if not holders:
            return Aim(impossible=f"{self.role} does not exist now")
        running = {*view.running, *view.running_controllers, CLIENTS}
        nodes = tuple(node for node in holders if node in running)
        return Aim(nodes=nodes) if nodes else Aim(impossible=f"{self.role} ({listed(holders)}) does not run now")

    def hit(self, target: Target, aim: Aim, node: int) -> Observed:
        """Hit one node."""
        raise NotImplementedError

    def undo(self, target: Target, aim: Aim, node: int) -> Observed:
        """Let one node be as before."""
        return self.undone_by.do(target, node) if self.lasts else {}

    @override
    def begin(self, target: Target, aim: Aim) -> ByNode:
        return _by_node(lambda node: self.hit(target, aim, node), aim.nodes)

    @override
    def end(self, target: Target, aim: Aim) -> ByNode:
        return _by_node(lambda node: self.undo(target, aim, node), aim.nodes)


class DiskFault(NodeFault, frozen=True):
    """Ends the processes of its nodes at once and does something to what they have on their disks."""

    needs: ClassVar[tuple[Capability, ...]] = (Capability.FILES, Capability.PROCESSES)
    stops_brokers: ClassVar[bool] = True
    ends_process: ClassVar[bool] = True
    may_end_process: ClassVar[bool] = True
    destroys_copy: ClassVar[bool] = True
    #: Its kind if it had nothing to lose.
    degraded_to: ClassVar[str] = "kill"

    def damage(self, files: Files, aim: Aim, node: int) -> Observed:
        """Do it to the disk of a dead node."""
        raise NotImplementedError

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> Observed:
        return {**require(target.processes).kill(node), **self.damage(require(target.files), aim, node)}


class LinkFault(Fault, frozen=True):
    """Hits the links that a partition of ``shape`` would cut around the holders of ``role``."""

    operands: ClassVar[str] = "LINKS:links"
    undone_by: ClassVar[Repair[LinkGroup]] = HEAL
    spares_process: ClassVar[bool] = True

    shape: Shape

    @classmethod
    @override
    def around(cls, role: Role, shape: Shape) -> Self:
        return cls(role, shape)

    @override
    def aim(self, view: ClusterView) -> Aim:
        anchor = resolve(self.role, view)
        if not anchor:
            return Aim(impossible=f"{self.role} does not exist now")
        links = tuple(sorted(links_of(self.shape, view.brokers, anchor)))
        return Aim(links=links) if links else Aim(impossible=f"{self.shape} cuts nothing in a cluster this small")

    @override
    def end(self, target: Target, aim: Aim) -> Observed:
        ended: Observed = self.undone_by.do(target, aim.links)
        return ended


class PacketFault(LinkFault, frozen=True):
    """Takes packets on its links, which it counts: where nothing was sent, it was met by nothing."""

    @classmethod
    @override
    def met_something(cls, evidence: Observed) -> bool:
        """A packet was dropped; true where none were counted."""
        dropped = evidence.get("dropped")
        return not isinstance(dropped, dict) or any(dropped.values())


def _by_node(act: Callable[[int], Observed], nodes: Sequence[int]) -> ByNode:
    """Do ``act`` to every node, and collect what was observed of each; a node without evidence is left out."""
    observed = {str(node): act(node) for node in nodes}
    return {node: evidence for node, evidence in observed.items() if evidence}


def listed(nodes: Iterable[int]) -> str:
    """``broker 1, broker 2``."""
    return ", ".join(node_name(node) for node in nodes)
