"""Takes nodes out of a cluster, and puts them in: brokers' replicas and registrations, voters among the controllers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar, cast

from kafka.errors import KafkaError

from harness.ground.errors import HostError
from harness.worlds.clients import add_voter, remove_voter, unregister_broker, without_secrets
from harness.worlds.hosts import Address
from harness.worlds.kafka.administration import Administration, UnansweredError
from harness.worlds.kafka.formatting import directory_id
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.storage import FileStorage
from nemesis.cluster import CONTROLLER
from nemesis.evidence import MembersChanged, WhyNot

Numbers = TypeVar("Numbers", bound=Collection[int])

Act = TypeVar("Act")
#: A question to one broker; one that is cut off or frozen gives no answer.
REQUEST_LIMIT_S: Final = 3.0
#: All questions of one act, of one broker after the other: a quorum that lost its leader has the next in a second.
ACT_LIMIT_S: Final = 12.0
_LOOK_EVERY_S: Final = 0.2


class ClusterMembers:
    """Changes the members of a cluster. ``running`` are the brokers that can be asked.

    Without a ``dynamic`` quorum the voters are those of the controllers' configuration.
    """

    def __init__(
        self, nodes: Nodes, administration: Administration, running: Callable[[], Sequence[int]], *, dynamic: bool
    ) -> None:
        self._nodes = nodes
        self._administration = administration
        self._running = running
        self._dynamic = dynamic
        self._replicas: dict[int, dict[str, tuple[int, ...]]] = {}
        self._renewed: dict[int, MembersChanged] = {}

    def leave(self, node: int) -> MembersChanged:
        """Take a controller from the voters, or a broker from the replicas of all its log partitions."""
        return self._leave_quorum(node) if node >= CONTROLLER else self._move_away(node)

    def join(self, node: int) -> MembersChanged:
        """Make a controller that runs a voter, or give a broker its replicas back."""
        return self._join_quorum(node) if node >= CONTROLLER else self._move_back(node)

    def renew(self, node: int) -> None:
        """Let the cluster forget a broker that has ended, and empty the node's disk: what it has comes from others."""
        seen = answered(lambda: self._unregister(node)) if node < CONTROLLER else MembersChanged()
        self._renewed[node] = {**seen, **FileStorage(self._nodes).wipe(node)}

    def describe(self, node: int) -> MembersChanged:
        """The acts of the newest :meth:`renew` of this node; of a controller's also who votes, if that is known."""
        seen = self._renewed.pop(node, MembersChanged())
        if node >= CONTROLLER and self._dynamic:
            return {**answered(lambda: MembersChanged(voters=sorted(self._administration.voters()))), **seen}
        return seen

    def _leave_quorum(self, node: int) -> MembersChanged:
        directory = self._administration.voters().get(node)
        if directory is not None:
            refused = self._repeated(lambda broker: remove_voter(broker, node, directory, REQUEST_LIMIT_S))
            if refused:
                return {"refused": refused}
        voters = self._once(self._administration.voters, lambda voters: node not in voters)
        return {"voters": voters}

    def _join_quorum(self, node: int) -> MembersChanged:
        address = self._nodes.host.address(node)
        # The quorum knows a controller that began afresh by its old directory too, and would take that for a voter's.
        directory = directory_id(self._nodes.data(node))

        def add(broker: Address) -> str:
            if (node, directory) in self._administration.observers():
                return add_voter(broker, node, directory, address, REQUEST_LIMIT_S)
            if self._administration.voters().get(node) == directory:
                return ""
            raise UnansweredError(f"controller {node} does not fetch the metadata yet")

        refused = self._repeated(add)
        if refused:
            return {"refused": refused}
        return {"voters": self._once(self._administration.voters, lambda voters: voters.get(node) == directory)}

    @staticmethod
    def _once(look: Callable[[], Numbers], are_right: Callable[[Numbers], bool]) -> list[int]:
        """These nodes, once they are as they should be: a broker that is asked may hear of a change a little later.

        Raises:
            UnansweredError: they stayed as they were.
        """
        deadline = time.monotonic() + REQUEST_LIMIT_S
        while not are_right(nodes := look()):
            if time.monotonic() > deadline:
                named = ", ".join(map(str, sorted(nodes)))
                raise UnansweredError(f"after {REQUEST_LIMIT_S:g} s the cluster still names the nodes {named}")
            time.sleep(_LOOK_EVERY_S)
        return sorted(nodes)

    def _move_away(self, node: int) -> MembersChanged:
        images = filter(None, map(self._administration.topic, self._administration.topics()))
        views = [named for image in images for named in image.partitions.items()]
        here = {name: view.replicas for name, view in views if node in view.replicas}
        self._replicas[node] = here
        spare = [broker for broker in self._running() if broker != node]
        return self._assign({name: _without(node, replicas, spare) for name, replicas in here.items()})

    def _move_back(self, node: int) -> MembersChanged:
        return self._assign(self._replicas.get(node, {}))

    def _assign(self, replicas: dict[str, tuple[int, ...]]) -> MembersChanged:
        refusals = {name: self._administration.reassign(name, wanted) for name, wanted in replicas.items()}
        if refused := "; ".join(f"{name}: {why}" for name, why in refusals.items() if why):
            return {"refused": refused}
        return {"assigned": {name: [*wanted] for name, wanted in replicas.items()}}

    def _unregister(self, node: int) -> MembersChanged:
        refused = self._repeated(lambda broker: unregister_broker(broker, node, REQUEST_LIMIT_S))
        if refused:
            return {"refused": refused}
        return {"registered": self._once(self._administration.registered, lambda brokers: node not in brokers)}

    def _repeated(self, ask: Callable[[Address], str]) -> str:
        """The answer of a broker; each that runs is asked in turn until one has answered.

        Raises:
            UnansweredError: none did in time.
        """
        deadline = time.monotonic() + ACT_LIMIT_S
        why = "no broker runs"
        while time.monotonic() < deadline:
            for broker in self._running():
                try:
                    return ask(self._nodes.host.address(broker))
                except (OSError, KafkaError, HostError) as error:
                    why = without_secrets(str(error) or type(error).__name__)
            time.sleep(_LOOK_EVERY_S)
        raise UnansweredError(f"no broker answered within {ACT_LIMIT_S:.0f} s: {why}")


def _without(node: int, replicas: Sequence[int], running: Sequence[int]) -> tuple[int, ...]:
    """These replicas with another running broker in ``node``'s place, or with the place gone."""
    spare = [broker for broker in running if broker not in replicas][:1]
    return tuple(other for replica in replicas for other in ([replica] if replica != node else spare))


def answered(ask: Callable[[], Act]) -> Act:
    """The evidence that ``ask`` gives; or why no answer came."""
    try:
        return ask()
    except (HostError, KafkaError) as error:
        return cast("Act", WhyNot(unconfirmed=without_secrets(str(error) or type(error).__name__)))
