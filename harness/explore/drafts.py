"""The steps of a state, each worked out once for all states that have in common what it reads.

A step reads a few digests of a state and changes a few. So the steps from one source (a wire, a broker, ...) are kept
in a tree: each branch is at a digest that was read, and the leaves are the steps. Which digest is read next follows
from those that were read before, since steps are the same whenever they are worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from harness.explore.canonical_form import Renaming
from harness.explore.searched import Action, State
from harness.reference.core.invariants import Broken

C = TypeVar("C", bound=Hashable)
L = TypeVar("L")


class View(Generic[C]):
    """A part of what digests mean: for each digest the ``first`` one with an equal part.

    A step that reads only this part is the same for all of them.
    """

    def __init__(self, part_of: Callable[[int], C]) -> None:
        self._part_of = part_of
        self._first_with: dict[C, int] = {}
        self.parts: dict[int, C] = {}
        self.first = Renaming(self._find)

    def _find(self, digest: int) -> int:
        part = self._part_of(digest)
        first = self._first_with.setdefault(part, digest)
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
            return view.parts[view.first[self[slot]]]
        first = self.read[slot, view] = view.first[self._state[slot]]
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


#: The same for most branches.
_NO_OTHERS: Final[dict[int, Any]] = {}


class _Branch:
    """A digest that was read, or a part of what it means, and what follows from it: mostly the same as at first.

    So there is a dictionary only where something else was read later.
    """

    __slots__ = ("digest", "first", "others", "read")

    def __init__(self, read: Read, digest: int) -> None:
        self.read = read
        self.digest = digest
        self.first: Any = None
        self.others: dict[int, Any] = _NO_OTHERS

    def below(self, digest: int) -> Any:
        """The node that follows this digest; None where that is not known."""
        return self.first if digest == self.digest else self.others.get(digest)

    def put(self, digest: int, node: Any) -> None:
        """Let this follow where ``digest`` was read."""
        if digest == self.digest:
            self.first = node
            return
        if self.others is _NO_OTHERS:
            self.others = {}
        self.others[digest] = node


class Remembered(Generic[L]):
    """The answers of ``work_out``, which is asked once for all states in which it reads the same."""

    def __init__(self, work_out: Callable[[Draft], L]) -> None:
        self._work_out = work_out
        self._root: Any = None
        self._reads: dict[Read, Read] = {}

    def __call__(self, state: State) -> L:
        """The answer for one state."""
        node = self._root
        while node.__class__ is _Branch:
            slot, view = node.read
            digest = state[slot] if view is None else view.first[state[slot]]
            node = node.first if digest == node.digest else node.others.get(digest)
        if node is None:
            return self._learn(state)
        answer: L = node[0]
        return answer

    def _learn(self, state: State) -> L:
        draft = Draft(state, {}, {})
        answer = self._work_out(draft)
        above, branch = None, self._root
        for read, digest in draft.read.items():
            if branch is None:
                branch = _Branch(self._reads.setdefault(read, read), digest)
                self._hang(above, branch)
            assert branch.read == read, "a step read something else than before"  # noqa: S101
            above = (branch, digest)
            branch = branch.below(digest)
        self._hang(above, (answer,))
        return answer

    def _hang(self, above: tuple[_Branch, int] | None, node: Any) -> None:
        if above is None:
            self._root = node
        else:
            above[0].put(above[1], node)


RememberedSteps: TypeAlias = Remembered[tuple[KeptStep, ...]]


def remembered(steps: Callable[..., Iterator[DraftStep]], **chosen: Any) -> RememberedSteps:
    """All ``steps`` of a draft, with these other arguments."""
    same: dict[Any, Any] = {}

    def once(content: Any) -> Any:
        return same.setdefault(content, content)

    def work_out(state: Draft) -> tuple[KeptStep, ...]:
        return tuple(
            once((once(action), tuple(map(once, draft.changes.items())), broken))
            for action, draft, broken in steps(state, **chosen)
        )

    return Remembered(work_out)
