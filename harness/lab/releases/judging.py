"""Judges a release: plays what is not known yet while the budget lasts, and says what follows from all tries.

A harm that shows where the compared release's page does not say so, and one that no longer shows, is played on the
compared release by the same command: what differs between releases, and not between pages and a machine, is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from harness.ground.progress import Progress
from harness.lab.releases.entries import Entry
from harness.lab.releases.kept import Kept
from harness.lab.releases.playing import Player, StoppedError
from harness.records.release_file import ReleaseEntry, ReleasePlay, Result

#: Tries of a harm that is expected before it counts as gone.
TRIES: Final = 3
#: A try that takes so many times what it needs on a quiet machine does not end.
_PATIENCE: Final = 5


class Budget:
    """The time that plays may take together, in seconds of ``now``."""

    def __init__(self, minutes: float, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._minutes = minutes
        self._end = now() + minutes * 60

    @property
    def left_s(self) -> float:
        """The seconds that are left, below 0 once it is over."""
        return self._end - self._now()

    @property
    def over(self) -> str:
        """The reason that an entry has which it left out."""
        return f"the budget of {self._minutes:g} minutes was over; the same command goes on"


class Side(NamedTuple):
    """One of the two releases: its name, its files, and what plays on it."""

    release: str
    kept: Kept
    play: Player


class _Seen(NamedTuple):
    """The tries of an entry on one release; ``why`` it was played no further."""

    plays: tuple[ReleasePlay, ...]
    why: str = ""

    @property
    def observed(self) -> list[ReleasePlay]:
        return [play for play in self.plays if play.shown is not None]

    @property
    def shown(self) -> bool | None:
        """Whether it shows in a try; None where nothing was observed."""
        return any(play.shown for play in self.observed) if self.observed else None

    @property
    def shows(self) -> int:
        return sum(bool(play.shown) for play in self.observed)

    @property
    def reason(self) -> str:
        """The reason why nothing was observed."""
        return next((play.why for play in reversed(self.plays) if play.why), self.why)


def judge(
    entries: Sequence[Entry], here: Side, there: Side, budget: Budget, progress: Progress
) -> Iterator[ReleaseEntry]:
    """Judge each entry in turn; those that the budget leaves out come too, not observed.

    Raises:
        HostError: something is not undone.
        KeyboardInterrupt: the user wants no more; what was played is kept.
    """
    for entry in entries:
        with progress.phase(entry.name, None):
            yield _judged(entry, here, there, budget)


def _judged(entry: Entry, here: Side, there: Side, budget: Budget) -> ReleaseEntry:
    said, other_said = entry.expects(here.release), entry.expects(there.release) if entry.compares else False
    seen = _play(entry, here, TRIES if said or other_said else 1, budget)
    other = _Seen(())
    # The compared release is asked where its page's word is not enough.
    differs = not other_said if seen.shown else (said or other_said)
    if entry.compares and seen.shown is not None and differs:
        other = _play(entry, there, TRIES, budget)
    result, why = _result(entry, seen, other, said=bool(said), other_said=bool(other_said))
    has = other_said if other.shown is None else other.shown
    deciding = next((play for play in seen.observed if play.shown), seen.observed[-1] if seen.observed else None)
    return ReleaseEntry(
        name=entry.name,
        kind=entry.kind,
        title=entry.title,
        page=entry.page,
        result=result,
        worse=result in {"new", "still"} and not has,
        command=" ".join(("ackproof", *entry.words(here.release))),
        tries=len(seen.observed),
        shown=seen.shows,
        against_tries=len(other.observed),
        against_shown=other.shows,
        seen=deciding.seen if deciding is not None else (),
        why=why,
    )


def _result(entry: Entry, seen: _Seen, other: _Seen, *, said: bool, other_said: bool) -> tuple[Result, str]:
    if seen.shown is None:
        return "not observed", seen.reason
    if seen.shown:
        return ("still" if said or other.shown or other_said else "new"), ""
    if not (said or other_said):
        return "not shown", ""
    if other.shown:
        return "gone", ""
    if other.shown is None:
        return "not observed", f"it did not show, and the compared release could not be asked: {other.reason}"
    tries = f"{len(seen.observed)} and {len(other.observed)} tries"
    return "not observed", f"{entry.page} says that it shows, and it showed on neither release in {tries}"


def _play(entry: Entry, side: Side, tries: int, budget: Budget) -> _Seen:
    """The tries of an entry: until it shows, ``tries`` of them at most; those of earlier calls count.

    What could not be observed earlier is played again.
    """
    plays = tuple(play for play in side.kept.plays(entry) if play.shown is not None)
    failed: tuple[ReleasePlay, ...] = ()
    while not any(play.shown for play in plays) and len(plays) + len(failed) < tries:
        if budget.left_s < entry.minutes * 60:
            return _Seen((*plays, *failed), budget.over)
        limit_s = min(budget.left_s, entry.minutes * 60 * _PATIENCE)
        try:
            play = side.play(entry, limit_s)
        except StoppedError:
            if budget.left_s <= 0:
                return _Seen((*plays, *failed), budget.over)
            play = ReleasePlay(shown=None, why=f"it did not end within {limit_s / 60:.0f} minutes", seconds=limit_s)
        if play.shown is None:
            failed = (*failed, play)
        else:
            plays = (*plays, play)
        side.kept.keep(entry, (*plays, *failed))
    return _Seen((*plays, *failed))
