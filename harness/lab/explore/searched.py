"""The contract of a space that is searched: its states, the steps between them, and the rules that a state breaks.

A state is a tuple of digests, so that it can be compared, packed and sent to another process. What a digest means is
known to the space, which tells other processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from harness.broker.core.invariants import Broken
from harness.broker.core.types import NONE
from harness.lab.explore.any_scope import AnyScope
from harness.lab.explore.counted_facts import CountedFacts
from harness.lab.explore.kept_nodes import KeptNodes
from harness.lab.explore.told import Told
from harness.lab.explore.wires import WireName

State = tuple[int, ...]
Nodes = TypeVar("Nodes", bound=KeptNodes[Any, Any])
Facts = TypeVar("Facts", bound=CountedFacts[Any])


class Action(NamedTuple):
    """One step of the cluster. ``wire`` names the message that arrives or is lost, if that is what happens."""

    kind: str
    broker: int = NONE
    peer: int = NONE
    number: int = NONE
    wire: WireName | None = None


class Next(NamedTuple):
    """A state that follows, by which action, and the rule that the step breaks; the state may break one too."""

    action: Action
    state: State
    broken: Broken | None


class SearchedSpace(Generic[Nodes, Facts]):
    """The states of one ``scope``, as tuples of ``width`` digests; ``rules`` are those of its kind of scopes.

    A digest is of one of the ``nodes`` or of a message, of ``facts``, or of several digests together (``contents``).
    The most that was ``acknowledged`` in one state, and whether a loss was ``permitted``, are of the states that
    :meth:`broken` has judged.
    """

    rules: ClassVar[tuple[str, ...]]
    scope: AnyScope
    width: int
    nodes: Nodes
    facts: Facts
    contents: Told[int, tuple[int, ...]]
    acknowledged: int
    permitted: bool

    def __init__(self) -> None:
        self.contents = Told()
        self.contents[0] = ()
        self.acknowledged = 0
        self.permitted = False

    def begin(self) -> State:
        """The first state."""
        raise NotImplementedError

    def follow(self, state: State) -> Iterator[Next]:
        """Every step that is possible in ``state``, always in the same order."""
        raise NotImplementedError

    def broken(self, state: State) -> Broken | None:
        """The rule that a state breaks, None if it breaks no rule that counts."""
        raise NotImplementedError

    def canonical(self, state: State) -> int:
        """The hash by which a state is remembered; states that it takes for one have the same future."""
        raise NotImplementedError

    def counts(self, broken: Broken | None) -> bool:
        """True if it is a breach of a rule that is looked at."""
        return broken is not None and broken[0] in (self.scope.rules or self.rules)

    def judged(self, step: Next) -> Next:
        """The same, with the rule that the state breaks where the step breaks none."""
        return step if step.broken is not None else step._replace(broken=self.broken(step.state))

    # --- what another process has to know ----------------------------------------------------------------------------

    def tell(self) -> list[Any]:
        """All that was learnt since other processes were told last, for :meth:`take`."""
        return [self.nodes.tell(), self.contents.fresh(), self.facts.by_digest.fresh()]

    def take(self, told: Sequence[list[Any]]) -> None:
        """Learn what other processes have told, and know that they know it."""
        for nodes, contents, facts in told:
            self.nodes.take(nodes)
            self.contents.update(contents)
            self.facts.by_digest.update(facts)
        self.tell()
