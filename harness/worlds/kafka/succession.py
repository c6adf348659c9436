"""Two forms of a node of Apache Kafka, from one installed release or two, and the way from the first to the second."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from typing_extensions import override

from harness.ground.observations import NodeStarted
from harness.worlds.kafka.administration import Administration
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.log_events import LogTail
from harness.worlds.kafka.members import ClusterMembers, answered
from harness.worlds.real.nodes import Nodes
from nemesis.cluster import CONTROLLER
from nemesis.evidence import Described, Finalized, MembersChanged, NodeSaid, Prepared
from nemesis.succession import FormName, Succession

#: Brokers hear of a new feature level within a second.
CONFIRM_LIMIT_S: Final = 5.0
_LOOK_EVERY_S: Final = 0.1
#: Features that an upgrade leaves alone: the protocol of a quorum that was formatted without directories of voters, and
#: a rule that the run's settings choose.
LEFT_ALONE: Final = frozenset({"kraft.version", "eligible.leader.replicas.version"})


class NodeForm(NamedTuple):
    """One form of a node: its ``release``, and settings by name that differ from the run's own."""

    release: Installation
    change: Mapping[str, str] = {}


class Forms:
    """The form of each node's next start: the ``first`` one, until it is chosen otherwise."""

    def __init__(self, first: NodeForm, successor: NodeForm) -> None:
        self.first: Final = first
        self.successor: Final = successor
        self._chosen: dict[int, NodeForm] = {}
        self._before: dict[int, Callable[[], None]] = {}

    def of(self, node: int) -> NodeForm:
        """The form in which ``node`` starts next."""
        return self._chosen.get(node, self.first)

    def choose(self, node: int, form: NodeForm) -> None:
        """Let ``node`` start in this form from now on."""
        self._chosen[node] = form

    def once_ended(self, node: int, do: Callable[[], None]) -> None:
        """Let this be done once ``node`` has ended, before it starts again."""
        self._before[node] = do

    def begin(self, node: int) -> None:
        """Do what is to be done before ``node`` starts, which it is about to."""
        if (do := self._before.pop(node, None)) is not None:
            do()


class KafkaSuccession(Succession):
    """Chooses forms, reads in nodes' own logs which release runs, and asks the cluster for its features.

    Features that are ``left_alone`` are not raised in the end.
    """

    def __init__(
        self,
        nodes: Nodes,
        forms: Forms,
        administration: Administration,
        members: ClusterMembers,
        left_alone: Collection[str] = LEFT_ALONE,
    ) -> None:
        self._nodes = nodes
        self._forms = forms
        self._administration = administration
        self._members = members
        self._left_alone = left_alone
        self._tails: dict[tuple[int, int], LogTail] = {}
        self._seen: dict[tuple[int, int], NodeSaid] = {}

    @override
    def prepare(self, node: int, form: FormName, *, afresh: bool = False) -> Prepared:
        chosen = self._forms.first if form == "first" else self._forms.successor
        self._forms.choose(node, chosen)
        if afresh:
            self._forms.once_ended(node, lambda: self._members.renew(node))
        return {"wanted": str(chosen.release.version)}

    @override
    def leave(self, node: int) -> MembersChanged:
        return answered(lambda: self._members.leave(node))

    @override
    def join(self, node: int) -> MembersChanged:
        return answered(lambda: self._members.join(node))

    @override
    def observe(self, node: int) -> NodeSaid:
        start = node, self._nodes.starts(node)
        if start not in self._seen:
            tail = self._tails.setdefault(start, LogTail(self._nodes.log(node), self._nodes.log_begin(node)))
            versions = [event.version for event in tail.events() if isinstance(event, NodeStarted)]
            if versions:
                self._seen[start] = {"version": versions[-1], "incarnation": start[1]}
        return self._seen.get(start, {})

    @override
    def describe(self, node: int) -> Described:
        members = self._members.describe(node)

        def ask() -> Described:
            seen: Described = {"features": self._administration.features()}
            if (names := [*self._forms.successor.change]) and node < CONTROLLER:
                seen["changed"] = self._administration.configurations("broker", [str(node)], names)[str(node)]
            return seen

        return {**answered(ask), **members}

    @override
    def finalize(self) -> Finalized:
        return answered(self._finalize)

    def _finalize(self) -> Finalized:
        before, supported = self._administration.features(), self._administration.supported_features()
        wanted = {
            name: level
            for name, level in supported.items()
            if name not in self._left_alone and level > before.get(name, 0)
        }
        state: Finalized = {"features_before": before}
        if not wanted:
            return {**state, "features": before}
        if refused := self._administration.finalize(wanted):
            return {**state, "refused": refused}
        deadline = time.monotonic() + CONFIRM_LIMIT_S
        while not wanted.items() <= (after := self._administration.features()).items():
            if time.monotonic() > deadline:
                return {**state, "features": after, "unconfirmed": f"the levels {wanted} were not seen afterwards"}
            time.sleep(_LOOK_EVERY_S)
        return {**state, "features": after}
