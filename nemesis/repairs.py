"""Repairs, by which people undo what lasts: each has a verb, and ends the faults that name it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Generic, NamedTuple, TypeVar

from nemesis.cluster import Capability, Link, Target, require
from nemesis.evidence import Observed

#: A node, or links.
Whom = TypeVar("Whom")


class Repair(NamedTuple, Generic[Whom]):
    """One way to undo: its ``verb``, the part of a target that it ``needs``, and the act on a node, or on links.

    Evidence is what was observed; where nothing was, nothing was undone. ``in_a_script`` is its effect there, as the
    reference of steps says it.
    """

    verb: str
    needs: Capability
    do: Callable[[Target, Whom], Observed]
    in_a_script: str = ""


LinkGroup = Collection[Link]

START: Final[Repair[int]] = Repair(
    "start",
    Capability.PROCESSES,
    lambda target, node: require(target.processes).restart(node),
    "Start it again on its disk",
)
HEAL: Final[Repair[LinkGroup]] = Repair(
    "heal",
    Capability.LINKS,
    lambda target, links: require(target.links).heal(links),
    "Deliver again; without links: everything on all links is as before",
)
RELEASE: Final[Repair[LinkGroup]] = Repair(
    "release",
    Capability.MESSAGES,
    lambda target, links: require(target.messages).release(links),
    "End drops and holds; held messages are delivered",
)
