"""All states of nodes, and all messages, that a search has met, by the digests of their canonical forms.

A node's state is kept pickled, and each of its steps is performed once. A digest is the same in every process
(:mod:`harness.explore.canonical_form`).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from harness.explore.canonical_form import Tree, digest_of, tree_of
from harness.explore.events import NodeEvent, SentMessage
from harness.explore.normal_form import renumbered
from harness.reference.core.effects import Deliver
from harness.reference.core.messages import Message

N = TypeVar("N")
R = TypeVar("R")


class KeptNodes(Generic[N, R]):
    """Nodes by digest, and the results of their steps.

    A subclass performs the steps, and says by :meth:`_note` what it looks at of each node.
    """

    def __init__(self) -> None:
        self._pickled: dict[int, bytes] = {}
        self.trees: dict[int, Tree] = {}
        self.messages: dict[int, Message] = {}
        self._steps: dict[tuple[int, NodeEvent], tuple[R, ...]] = {}

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
        """The number of different steps of the core that were performed."""
        return len(self._steps)

    # --- what another process has to know ----------------------------------------------------------------------------

    def digests(self) -> set[int]:
        """The digests of all nodes and messages."""
        return {*self._pickled, *self.messages}

    def export(self, digests: set[int]) -> list[tuple[int, Any]]:
        """Return all that another process needs to go on from nodes and messages that only this one knows."""
        return [(digest, self._pickled.get(digest) or self.messages[digest]) for digest in sorted(digests)]

    def take(self, exported: list[tuple[int, Any]]) -> None:
        """Learn what another process has exported."""
        for digest, content in exported:
            if digest not in self.trees:
                self._keep(pickle.loads(content)) if isinstance(content, bytes) else self._keep_message(content)  # noqa: S301

    # --- keeping -----------------------------------------------------------------------------------------------------

    def _load(self, digest: int) -> Any:
        return pickle.loads(self._pickled[digest])  # noqa: S301 - pickled by a process of this search

    def _keep(self, node: N) -> int:
        tree = tree_of(node)
        digest = digest_of(tree)
        if digest not in self._pickled:
            self._pickled[digest] = pickle.dumps(node, pickle.HIGHEST_PROTOCOL)
            self.trees[digest] = tree
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
            self.trees[digest] = tree
        return digest
