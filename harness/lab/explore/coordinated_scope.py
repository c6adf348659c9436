"""The common part of scopes with a coordinator: what takes time, and what arrives late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from typing_extensions import override

from harness.lab.explore.any_scope import AnyScope, ScopeConstants, Times


class CoordinatedConstants(ScopeConstants, frozen=True):
    """The constants of every scope with a coordinator.

    ``moves`` are changes of the coordinator. ``delays`` are requests that are sent again though they were not lost:
    the first copy may arrive at any time after that, if it is of the kind ``delayed``. ``decisions_wait``: a record of
    the coordinator is committed later than it is appended, by the fetches of a follower. ``answers_wait``: answers are
    under way while something else happens.
    """

    moves: Times = 0
    delays: Times = 0
    delayed: str = "any"
    decisions_wait: bool = True
    answers_wait: bool = False


class CoordinatedScope(AnyScope, frozen=True):
    """A scope with a coordinator. Of a subclass ``bounded`` says what its constants bound, in words."""

    constants: CoordinatedConstants = CoordinatedConstants()
    bounded: ClassVar[Mapping[str, str]] = {}
    left_out: ClassVar[tuple[str, ...]] = ()

    @override
    def leaves_out(self) -> list[str]:
        chosen = self.constants
        words = {**self.bounded, **_BOUNDED}
        sentences = [", ".join(f"more than {getattr(chosen, name)} {text}" for name, text in words.items())]
        if self.rules:
            sentences.append(f"all rules but {', '.join(self.rules)}")
        if chosen.delayed != "any":
            sentences.append(f"requests that are delayed, other than {chosen.delayed}")
        if not chosen.decisions_wait:
            sentences.append("records of the coordinator that are appended and not committed")
        if not chosen.answers_wait:
            sentences.append("answers that are under way while something else happens")
        return [*sentences, *_LEFT_OUT, *self.left_out]


_BOUNDED: Final = {
    "moves": "changes of the coordinator",
    "delays": "requests that are sent again though they were not lost",
}
#: Features that no scope with a coordinator has, whatever its constants.
_LEFT_OUT: Final = (
    "liveness: only what must never happen is looked at",
    "a former coordinator that does not know of its successor; late requests of clients to it",
    "a coordinator that leads again with what its successor lacks",
    "answers to requests that were sent again; answers that are lost; brokers that die",
)
