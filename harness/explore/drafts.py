"""The steps of a state, each worked out once for all states that have in common what it reads.

A step reads a few digests of a state and changes a few. So the steps from one source (a wire, a broker, ...) are kept
in a tree: each branch is at a digest that was read, and the leaves are the steps. Which digest is read next follows
from those that were read before, since steps are the same whenever they are worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from typing_extensions import override

from harness.explore.searched import Action, State
from harness.reference.core.invariants import Broken

C = TypeVar("C", bound=Hashable)
L = TypeVar("L")


class View(dict[int, int], Generic[C]):
    """A part of what digests mean: for each digest the first one with an equal part.

    A step that reads only this part is the same for all of them.
    """

    def __init__(self, part_of: Callable[[int], C]) -> None:
        super().__init__()
        self._part_of = part_of
        self._first: dict[C, int] = {}
        self.parts: dict[int, C] = {}

    @override
    def __hash__(self) -> int:  # type: ignore[override]  # It is no other view, whatever is in it.
        return id(self)

    @override
    def __eq__(self, other: object) -> bool:
        return self is other

    def __missing__(self, digest: int) -> int:
        part = self._part_of(digest)
        first = self[digest] = self._first.setdefault(part, digest)
        self.parts.setdefault(first, part)
        return first


#: The slot of a digest that was read, and the part that was read of what it means, None for all.
Read: TypeAlias = tuple[int, View[Any] | None]


class Draft:
    """A state that a step changes slot by slot; all drafts of one state note together what was ``read`` of it."""

    __slots__ = ("_state", "changes", "read")

    def __init__(self, state: State, read: dict[Read, int], changes: dict[int, int]) -> None:
        self._state = state
        self.read = read
        self.changes = changes

    def __getitem__(self, slot: int) -> int:
        changed = self.changes.get(slot)
        if changed is not None:
            return changed
        digest = self.read[slot, None] = self._state[slot]
        return digest

    def part(self, slot: int, view: View[C]) -> C:
        """A part of what the digest in a slot means."""
        if slot in self.changes or (slot, None) in self.read:
            return view.parts[view[self[slot]]]
        first = self.read[slot, view] = view[self._state[slot]]
        return view.parts[first]

    def __setitem__(self, slot: int, digest: int) -> None:
        self.changes[slot] = digest

    def copy(self) -> Draft:
        """Another draft, which begins with the same changes."""
        return Draft(self._state, self.read, dict(self.changes))

    def with_change(self, slot: int, digest: int) -> Draft:
        """Another draft, with one more change."""
        return Draft(self._state, self.read, {**self.changes, slot: digest})

    def state(self) -> State:
        """The state with all changes."""
        return with_changes(self._state, self.changes.items())


class DraftStep(NamedTuple):
    """One step of the cluster, by which action, and the rule that it breaks."""

    action: Action
    draft: Draft
    broken: Broken | None


#: A step as it is kept: by which action, what it changes, and the rule that it breaks.
KeptStep = tuple[Action, tuple[tuple[int, int], ...], Broken | None]


def with_changes(state: State, changes: Iterable[tuple[int, int]]) -> State:
    """A state that has other digests in some slots."""
    after = list(state)
    for slot, digest in changes:
        after[slot] = digest
    return tuple(after)


class _Branch:
    """A digest that was read, or a part of what it means, and what follows from it."""

    __slots__ = ("read", "ways")

    def __init__(self, read: Read) -> None:
        self.read = read
        self.ways: dict[int, Any] = {}


class Remembered(Generic[L]):
    """The answers of ``work_out``, which is asked once for all states in which it reads the same."""

    def __init__(self, work_out: Callable[[Draft], L]) -> None:
        self._work_out = work_out
        #: Before the first branch, so that all of them are in some branch's ways.
        self._root = _Branch((0, None))

    def __call__(self, state: State) -> L:
        """The answer for one state."""
        node = self._root.ways.get(0)
        while node.__class__ is _Branch:
            slot, view = node.read
            node = node.ways.get(state[slot] if view is None else view[state[slot]])
        if node is None:
            return self._learn(state)
        answer: L = node[0]
        return answer

    def _learn(self, state: State) -> L:
        draft = Draft(state, {}, {})
        answer = self._work_out(draft)
        branch, way = self._root, 0
        for read, digest in draft.read.items():
            below = branch.ways.setdefault(way, _Branch(read))
            assert below.read == read, "a step read something else than before"  # noqa: S101
            branch, way = below, digest
        branch.ways[way] = (answer,)
        return answer


RememberedSteps: TypeAlias = Remembered[tuple[KeptStep, ...]]


def remembered(steps: Callable[..., Iterator[DraftStep]], **chosen: Any) -> RememberedSteps:
    """All ``steps`` of a draft, with these other arguments."""

    def work_out(state: Draft) -> tuple[KeptStep, ...]:
        return tuple((action, tuple(draft.changes.items()), broken) for action, draft, broken in steps(state, **chosen))

    return Remembered(work_out)
