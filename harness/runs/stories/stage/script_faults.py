"""The faults of a script: begun at brokers or on links by number, and undone, each with its receipt."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from harness.runs.stories.stage.story_world import StoryWorld
from harness.runs.stories.stage.trace import StepError
from nemesis.cluster import Link, link_name, node_name, require
from nemesis.evidence import Observed, by_node
from nemesis.faults import Aim, DiskFault, FailDirectory, Fault, LinkFault, NodeFault
from nemesis.open_faults import Cause, OpenFaults
from nemesis.repairs import HEAL, RELEASE, START, Repair
from nemesis.roles import Role, RoleKind
from nemesis.topology import Shape

#: The API of followers, which ask the leader: a change of leader turns it round.
FETCH: Final = "Fetch"
#: A script says itself whom a fault hits.
_AIMED: Final = Role(RoleKind.NAMED)


class ScriptFaults:
    """Does what a script says to ``faults``. Each method raises a :class:`StepError` where it had no effect.

    ``abandoned`` are brokers that are not started again at the end.
    """

    def __init__(self, story_world: StoryWorld, faults: OpenFaults, cause: Cause) -> None:
        self._story_world = story_world
        self._faults = faults
        self._cause = cause
        self.abandoned: set[int] = set()
        #: The leader when fetches on a link were first held or dropped.
        self._leaders: dict[Link, int | None] = {}

    def hit(self, kind: type[Fault], node: int, **own: object) -> Observed:
        """Begin a fault of a node; ``own`` are its fields. What is done to a disk is done while its broker is dead."""
        if issubclass(kind, DiskFault) and node in self._story_world.running:
            raise self._changes_nothing(kind.verb, node)
        evidence = self._begin(kind, Aim(nodes=(node,), partition=self._story_world.partition), own)
        if not evidence:
            ended = kind.undone_by == START and not issubclass(kind, DiskFault)
            raise self._changes_nothing(kind.verb, node, already=ended and node not in self._story_world.running)
        hit: Observed = by_node(evidence)[str(node)]
        return hit

    def hit_links(self, kind: type[Fault], links: Collection[Link], **own: object) -> None:
        """Begin a fault on links; ``own`` are its fields."""
        leader = self._story_world.view.leader
        if not self._begin(kind, Aim(links=tuple(sorted(links))), own):
            raise _unharmed(kind.verb, links)
        if own.get("api") == FETCH:
            for link in links:
                self._leaders.setdefault(link, leader)

    def turned(self) -> str:
        """Say once of links whose fetches are held or dropped that others fetch over them since the leader changed."""
        leader, held = self._story_world.view.leader, self._faults.held(RELEASE)
        lasting = {link: before for link, before in self._leaders.items() if link in held}
        turned = [link for link, before in sorted(lasting.items()) if leader != before and {leader, before} == {*link}]
        self._leaders = {link: before for link, before in lasting.items() if link not in turned}
        return "; ".join(
            f"{FETCH} over {link_name(link)} is now what {lasting[link]} fetches from {leader}" for link in turned
        )

    def repair(self, repair: Repair[int], node: int) -> None:
        """End what holds a node."""
        if not self._faults.undo(repair, node):
            raise self._changes_nothing(
                repair.verb, node, already=repair == START and node in self._story_world.running
            )

    def repair_links(self, repair: Repair[Collection[Link]], links: Collection[Link]) -> None:
        """End what holds links; without any, all that ``repair`` undoes; HEAL then ends everything on links."""
        if not links and repair == HEAL:
            if not self.heal_links():
                raise StepError("no link is cut or slow, and no message is held or dropped")
            return
        if not self._faults.undo(repair, links or self._faults.held(repair)):
            raise _unharmed(repair.verb, links)

    def heal_links(self) -> bool:
        """End everything on links, cuts first, so that what is released arrives; False where there was nothing."""
        repairs = self._faults.repairs(LinkFault)
        for repair in sorted(repairs, key=lambda repair: repair != HEAL):
            self._faults.undo(repair, self._faults.held(repair))
        return bool(repairs)

    def release_one(self, link: Link, *, newest: bool) -> str:
        """Deliver one of the messages that are held on a link; the answer is its kind."""
        released = require(self._story_world.target.messages).release_one(link, newest=newest)
        if not released:
            raise _unharmed(RELEASE.verb, [link])
        return str(released["released"])

    def repair_all(self) -> bool:
        """End everything but the deaths of brokers and of their disks; True if links were freed."""
        freed = self.heal_links()
        for repair in self._faults.repairs(NodeFault):
            if repair not in (START, FailDirectory.undone_by):
                for node in sorted(self._faults.held(repair)):
                    self._faults.undo(repair, node)
        return freed

    def start_the_dead(self) -> None:
        """Start every dead broker that may return; what still lasts, lasts no longer than this."""
        for node in sorted({*self._story_world.brokers} - {*self._story_world.running} - self.abandoned):
            self._faults.undo(START, node)
        self._faults.close()

    def _begin(self, kind: type[Fault], aim: Aim, own: Mapping[str, object]) -> Observed:
        fault = msgspec.structs.replace(kind.around(_AIMED, Shape.ISOLATE), **own)
        return self._faults.begin(fault, aim, self._cause).begin_evidence

    def _changes_nothing(self, verb: str, node: int, *, already: bool = False) -> StepError:
        state = f"broker {node} {'runs' if node in self._story_world.running else 'is dead'}"
        return StepError(f"{state} already" if already else f"{state}, and {verb} changes nothing there")


def _unharmed(verb: str, links: Collection[Link]) -> StepError:
    where = ", ".join(f"{node_name(link.source)} > {node_name(link.target)}" for link in sorted(links))
    return StepError(f"nothing to {verb} on {where or 'any link'}")
