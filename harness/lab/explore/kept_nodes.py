"""All states of nodes, and all messages, that a search has met, by the digests of their canonical forms.

A node's state is kept pickled and compressed, and each of its steps is performed once. A digest is the same in every
process (:mod:`harness.lab.explore.canonical_form`).
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from harness.broker.core.effects import Deliver
from harness.broker.core.messages import Message
from harness.lab.explore.canonical_form import Tree, digest_of, tree_of
from harness.lab.explore.events import NodeEvent, SentMessage
from harness.lab.explore.normal_form import renumbered
from harness.lab.explore.told import Told

#: Forms that are kept at a time.
_TREES: Final = 10_000

N = TypeVar("N")
R = TypeVar("R")


class KeptNodes(Generic[N, R]):
    """Nodes by digest, and the results of their steps.

    A subclass performs the steps, and says by :meth:`_note` what it looks at of each node.
    """

    def __init__(self) -> None:
        self._pickled = Told[int, bytes]()
        self.messages = Told[int, Message]()
        self._steps = Told[tuple[int, NodeEvent], tuple[R, ...]]()
        self._trees: dict[int, Tree] = {}

    def _note(self, digest: int, node: N) -> None:
        """Remember what is looked at of a node that was not met before."""
        raise NotImplementedError

    # --- steps -------------------------------------------------------------------------------------------------------

    def step(self, digest: int, event: NodeEvent) -> tuple[R, ...]:
        """Let ``event`` happen to a node: one result for each thing that may follow."""
        key = (digest, event)
        results = self._steps.get(key)
        if results is None:
            results = self._steps[key] = self.perform(digest, event)
        return results

    def perform(self, digest: int, event: NodeEvent) -> tuple[R, ...]:
        """The same by the real core, whether it was ever done before or not."""
        raise NotImplementedError

    @property
    def steps(self) -> int:
        """The number of different steps of the core that are known."""
        return len(self._steps)

    # --- what another process has to know ----------------------------------------------------------------------------

    def tell(self) -> list[Any]:
        """All that was learnt since another process was told last: nodes, messages, and steps."""
        return [self._pickled.fresh(), self.messages.fresh(), self._steps.fresh()]

    def take(self, told: list[Any]) -> None:
        """Learn what another process has told, which need not be told to it."""
        nodes, messages, steps = told
        for digest, pickled in nodes.items():
            if digest not in self._pickled:
                self._pickled[digest] = pickled
                self._note(digest, self._load(digest))
        self.messages.update(messages)
        self._steps.update(steps)

    def tree(self, digest: int) -> Tree | None:
        """The form of a node or a message; None of another digest."""
        tree = self._trees.get(digest)
        if tree is None and (digest in self._pickled or digest in self.messages):
            content = self._load(digest) if digest in self._pickled else self.messages[digest]
            tree = self._keep_tree(digest, tree_of(content))
        return tree

    def _keep_tree(self, digest: int, tree: Tree) -> Tree:
        """Keep a form for a while: it takes more memory than a node, and is mostly asked for soon."""
        if len(self._trees) >= _TREES:
            self._trees.clear()
        self._trees[digest] = tree
        return tree

    # --- keeping -----------------------------------------------------------------------------------------------------

    def _load(self, digest: int) -> Any:
        return pickle.loads(zlib.decompress(self._pickled[digest]))  # noqa: S301 - pickled by a process of this search

    def _keep(self, node: N) -> int:
        tree = tree_of(node)
        digest = digest_of(tree)
        if digest not in self._pickled:
            self._pickled[digest] = zlib.compress(pickle.dumps(node, pickle.HIGHEST_PROTOCOL), 1)
            self._keep_tree(digest, tree)
            self._note(digest, node)
        return digest

    def _sent_messages(self, effects: Iterable[Deliver], names: Mapping[int, int]) -> tuple[SentMessage, ...]:
        return tuple(
            SentMessage(effect.target, type(effect.message), self._keep_message(renumbered(effect, names)))
            for effect in effects
        )

    def _keep_message(self, message: Message) -> int:
        tree = tree_of(message)
        digest = digest_of(tree)
        if digest not in self.messages:
            self.messages[digest] = message
            self._keep_tree(digest, tree)
        return digest
