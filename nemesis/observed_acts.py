"""Receipts for what a script does to a cluster: its target, with parts that write down what was observed of each act.

A script has no schedule: what it does begins when it is asked for, and ends when it is undone. A kill ends with the
start of the node, a cut when the last of its links is whole again; a planned move is over at once. All of it is one
story.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from nemesis.cluster import Capability, ClusterView, Evidence, Link, Target
from nemesis.faults import (
    Aim,
    CorruptRecord,
    DropMessages,
    FailDirectory,
    Fault,
    HoldMessages,
    Kill,
    LyingDisk,
    MoveLeader,
    Partition,
    Pause,
    PowerLoss,
    Stop,
    WipeDisk,
)
from nemesis.receipts import OpenFault, Receipt


class _Act(NamedTuple):
    """An act that was not undone yet. ``left`` are the nodes or links that it still holds."""

    lasting: OpenFault
    left: set[int | Link]


class ObservedActs:
    """What one script did. ``witness`` is given every receipt as it is marked: begun, and ended.

    ``story`` names it, and the family in its receipts is its ``number``. ``receipts`` are in the order of the acts.
    """

    def __init__(
        self, target: Target, now_us: Callable[[], int], witness: Callable[[Receipt], None], *, number: str, story: str
    ) -> None:
        self._target = target
        self._now_us = now_us
        self._witness = witness
        self._number = number
        self._story = story
        self._acts: list[_Act] = []
        self.receipts: Final[list[Receipt]] = []

    @property
    def target(self) -> Target:
        """The cluster, each act on which leaves a receipt."""
        given, changes = self._target, dict[str, object](view=self._view)
        for capability, part in _PARTS.items():
            if getattr(given, capability) is not None:
                changes[capability] = part(self, getattr(given, capability))
        return msgspec.structs.replace(given, **changes)

    def act(self, fault: type[Fault], aim: Aim, do: Callable[[], Evidence], *, at_once: bool = False) -> Evidence:
        """Do something, and write its receipt. The evidence is what ``do`` observed."""
        view, now_us = self._look()
        receipt = Receipt(
            mark="begin",
            sequence=len(self.receipts),
            group=0,
            family=self._number,
            story=self._story,
            fault=fault.kind,
            role="as the script says",
            targets=aim.nodes,
            links=aim.links,
            begun_us=now_us,
        )
        self.receipts.append(receipt)
        act = _Act(OpenFault(receipt, aim, view), {*aim.nodes, *aim.links})
        evidence = do()
        by_node = {str(node): evidence for node in aim.nodes if evidence}
        act.lasting.begun(fault, by_node if aim.nodes else evidence)
        self._witness(receipt)
        self._acts.append(act)
        if at_once:
            self._end(act, {})
        return evidence

    def undo(
        self, kinds: Collection[type[Fault]], these: Collection[int | Link], do: Callable[[], Evidence]
    ) -> Evidence:
        """Acts of these kinds hold ``these`` nodes or links no longer; those that hold nothing else have ended.

        Where ``do`` observed nothing, nothing was undone.
        """
        self._look()
        evidence = do()
        if not evidence:
            return evidence
        names = {kind.kind for kind in kinds}
        for act in [one for one in self._acts if one.lasting.receipt.fault in names and one.left & {*these}]:
            act.left.difference_update(these)
            if not act.left:
                self._end(act, evidence)
        return evidence

    def end(self) -> None:
        """The script is over: what lasts, lasts no longer than this. Idempotent."""
        for act in tuple(self._acts):
            self._end(act, {})

    def _view(self) -> ClusterView:
        """Whoever looks at the cluster lets the receipts of what lasts see it too."""
        return self._look()[0]

    def _look(self) -> tuple[ClusterView, int]:
        view, now_us = self._target.view(), self._now_us()
        for act in self._acts:
            act.lasting.look(view, now_us)
        return view, now_us

    def _end(self, act: _Act, evidence: Evidence) -> None:
        view, now_us = self._look()
        self._acts.remove(act)
        act.lasting.end(view, now_us, evidence)
        self._witness(act.lasting.receipt)


class _Part:
    """A part of a target that leaves receipts with ``script``; ``real`` does what is asked."""

    def __init__(self, script: ObservedActs, real: Any) -> None:
        self._script = script
        self._real = real

    def _hit(self, fault: type[Fault], node: int, do: Callable[..., Evidence]) -> Evidence:
        return self._script.act(fault, Aim(nodes=(node,)), lambda: do(node))

    def _undo(self, kinds: Collection[type[Fault]], node: int, do: Callable[..., Evidence]) -> Evidence:
        return self._script.undo(kinds, (node,), lambda: do(node))

    def _take(self, fault: type[Fault], links: Collection[Link], do: Callable[..., Evidence], *more: str) -> Evidence:
        return self._script.act(fault, Aim(links=tuple(sorted(links))), lambda: do(links, *more))


class _Processes(_Part):
    """See :class:`nemesis.cluster.Processes`."""

    def kill(self, node: int) -> Evidence:
        return self._hit(Kill, node, self._real.kill)

    def stop(self, node: int) -> Evidence:
        return self._hit(Stop, node, self._real.stop)

    def pause(self, node: int) -> Evidence:
        return self._hit(Pause, node, self._real.pause)

    def restart(self, node: int) -> Evidence:
        return self._undo(_ENDED_BY_A_START, node, self._real.restart)

    def resume(self, node: int) -> Evidence:
        return self._undo((Pause,), node, self._real.resume)


class _Power(_Part):
    """See :class:`nemesis.cluster.Power`."""

    def cut_power(self, node: int) -> Evidence:
        return self._hit(PowerLoss, node, self._real.cut_power)


class _Files(_Part):
    """See :class:`nemesis.cluster.Files`."""

    def wipe(self, node: int) -> Evidence:
        return self._hit(WipeDisk, node, self._real.wipe)

    def corrupt(self, node: int, partition: str, pick: int) -> Evidence:
        aim = Aim(nodes=(node,), partition=partition)
        return self._script.act(CorruptRecord, aim, lambda: self._real.corrupt(node, partition, pick))


class _WriteCaches(_Part):
    """See :class:`nemesis.cluster.WriteCaches`."""

    def lie(self, node: int) -> Evidence:
        return self._hit(LyingDisk, node, self._real.lie)

    def obey(self, node: int) -> Evidence:
        return self._undo((LyingDisk,), node, self._real.obey)


class _LogDirectories(_Part):
    """See :class:`nemesis.cluster.LogDirectories`."""

    def fail(self, node: int, partition: str) -> Evidence:
        aim = Aim(nodes=(node,), partition=partition)
        return self._script.act(FailDirectory, aim, lambda: self._real.fail(node, partition))

    def replace(self, node: int) -> Evidence:
        return self._undo((FailDirectory,), node, self._real.replace)


class _Links(_Part):
    """See :class:`nemesis.cluster.Links`."""

    def cut(self, links: Collection[Link]) -> Evidence:
        return self._take(Partition, links, self._real.cut)

    def heal(self, links: Collection[Link]) -> Evidence:
        return self._script.undo((Partition,), links, lambda: self._real.heal(links))


class _Messages(_Part):
    """See :class:`nemesis.cluster.Messages`."""

    def hold(self, links: Collection[Link], api: str = "") -> Evidence:
        return self._take(HoldMessages, links, self._real.hold, api)

    def drop(self, links: Collection[Link], api: str = "") -> Evidence:
        return self._take(DropMessages, links, self._real.drop, api)

    def release(self, links: Collection[Link], action: str = "", api: str = "") -> Evidence:
        return self._script.undo((HoldMessages, DropMessages), links, lambda: self._real.release(links, action, api))

    def release_one(self, link: Link, *, newest: bool) -> Evidence:
        evidence: Evidence = self._real.release_one(link, newest=newest)
        return evidence


class _Leadership(_Part):
    """See :class:`nemesis.cluster.Leadership`."""

    def move_leader(self, partition: str, broker: int) -> Evidence:
        aim = Aim(nodes=(broker,), partition=partition)
        return self._script.act(MoveLeader, aim, lambda: self._real.move_leader(partition, broker), at_once=True)


_ENDED_BY_A_START: Final = (Kill, Stop, PowerLoss, WipeDisk, CorruptRecord)
#: Parts by their names in a target; what a script cannot ask for stays as it is.
_PARTS: Final[Mapping[Capability, type[_Part]]] = {
    Capability.PROCESSES: _Processes,
    Capability.POWER: _Power,
    Capability.FILES: _Files,
    Capability.WRITE_CACHES: _WriteCaches,
    Capability.LOG_DIRECTORIES: _LogDirectories,
    Capability.LINKS: _Links,
    Capability.MESSAGES: _Messages,
    Capability.LEADERSHIP: _Leadership,
}
