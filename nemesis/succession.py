"""The forms in which the nodes of a cluster start, one after the other: another release, other settings, or the same.

A rolling upgrade, a rolling change of a setting and a rolling restart are one thing with another difference between the
first form and the next. :mod:`nemesis.rollout` does it.
"""

from __future__ import annotations

from typing import Literal, Protocol

from nemesis.evidence import Described, Finalized, MembersChanged, NodeSaid, Prepared

FormName = Literal["first", "next"]
#: The ways in which a node gets its next form: it starts again, or another one takes its place, with the replicas of a
#: broker moved away before, or not.
UpgradeBy = Literal["restart", "replace", "move-and-replace"]


class Succession(Protocol):
    """The form of each node's next start, and what nodes say of the form that they run in."""

    def prepare(self, node: int, form: FormName, *, afresh: bool = False) -> Prepared:
        """Let ``node`` start in this form from now on.

        A running process goes on as it is. ``afresh``: once it has ended, the cluster forgets it, and its disk is
        emptied.
        """

    def leave(self, node: int) -> MembersChanged:
        """Take a controller from the voters, or a broker from the replicas of all its log partitions.

        It runs on.
        """

    def join(self, node: int) -> MembersChanged:
        """Make a controller that runs a voter, or give a broker the replicas back that it left."""

    def observe(self, node: int) -> NodeSaid:
        """Read what ``node`` itself has said since its newest start, once it is ready; nothing before."""

    def describe(self, node: int) -> Described:
        """Ask the cluster about a node that is ready.

        Of one that began afresh: what was ``wiped``, and the brokers ``registered`` without it, or the ``voters``.
        """

    def finalize(self) -> Finalized:
        """Raise the cluster's features to what the next form supports, after which there is no way back."""
