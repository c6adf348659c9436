"""Judges a release: plays what is not known yet while the budget lasts, and says what follows from all tries.

A harm that shows where the compared release's page does not say so, and one that no longer shows, is played on the
compared release by the same command: what differs between releases, and not between pages and a machine, is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.ground.progress import Progress
from harness.lab.releases.harms import KnownHarm, words_of
from harness.lab.releases.kept import Kept
from harness.lab.releases.playing import Player, StoppedError
from harness.records.release_file import ReleaseEntry, ReleasePlay, Result

#: Tries of a harm that is expected before it counts as gone.
TRIES: Final = 3
#: A try does not end that takes as many times what it needs on a quiet machine.
_PATIENCE: Final = 5


class PlayingTime:
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
        """The reason why a harm was not played."""
        return f"the budget of {self._minutes:g} minutes was over; the same command goes on"


class Side(NamedTuple):
    """One of the two releases: its name, its files, what plays on it, and the classes that come before its own."""

    release: str
    kept: Kept
    play: Player
    patch: Path | None = None


class _Seen(NamedTuple):
    """The tries of a harm on one release; ``why`` it was played no further."""

    plays: tuple[ReleasePlay, ...]
    why: str = ""

    @property
    def observed(self) -> list[ReleasePlay]:
        return [play for play in self.plays if play.shown is not None]

    @property
    def shown(self) -> bool | None:
        """True if it shows in a try; None where nothing was observed."""
        return any(play.shown for play in self.observed) if self.observed else None

    @property
    def shows(self) -> int:
        return sum(bool(play.shown) for play in self.observed)

    @property
    def reason(self) -> str:
        """The reason why nothing was observed."""
        return next((play.why for play in reversed(self.plays) if play.why), self.why)


def judge(
    harms: Sequence[KnownHarm], chosen: Side, other: Side, left: PlayingTime, progress: Progress
) -> Iterator[ReleaseEntry]:
    """Judge each harm in turn; one that the budget leaves out is an answer too, not observed.

    Raises:
        HostError: something is not undone.
        KeyboardInterrupt: the user wants no more; what was played is kept.
    """
    for harm in harms:
        yield _judged(harm, chosen, other, left, progress)


def _judged(harm: KnownHarm, chosen: Side, other: Side, left: PlayingTime, progress: Progress) -> ReleaseEntry:
    said = bool(harm.expects(chosen.release))
    other_said = harm.compares and bool(harm.expects(other.release))
    seen, compared = _play(harm, chosen, TRIES if said or other_said else 1, left, progress), _Seen(())
    # The compared release is asked where its page's word is not enough.
    differs = not other_said if seen.shown else (said or other_said)
    if harm.compares and seen.shown is not None and differs:
        compared = _play(harm, other, TRIES, left, progress)
    result, why = _result(harm, seen, compared, said=said, other_said=other_said)
    has = other_said if compared.shown is None else compared.shown
    deciding = next((play for play in seen.observed if play.shown), seen.observed[-1] if seen.observed else None)
    return ReleaseEntry(
        name=harm.name,
        kind=harm.kind,
        title=harm.title,
        page=harm.page,
        result=result,
        worse=bool(seen.shown) and not has,
        command=" ".join(("ackproof", *words_of(harm, chosen.release, chosen.patch))),
        tries=len(seen.observed),
        shown=seen.shows,
        against_tries=len(compared.observed),
        against_shown=compared.shows,
        seen=deciding.seen if deciding is not None else (),
        why=why,
    )


def _result(harm: KnownHarm, seen: _Seen, other: _Seen, *, said: bool, other_said: bool) -> tuple[Result, str]:
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
    return "not observed", f"{harm.page} says that it shows, and it showed on neither release in {tries}"


def _play(harm: KnownHarm, side: Side, tries: int, left: PlayingTime, progress: Progress) -> _Seen:
    """The tries of a harm: until it shows, ``tries`` of them at most; those of earlier calls count.

    What could not be observed earlier is played again.
    """
    plays = tuple(play for play in side.kept.plays(harm) if play.shown is not None)
    failed: tuple[ReleasePlay, ...] = ()
    while not any(play.shown for play in plays) and len(plays) + len(failed) < tries:
        if left.left_s < harm.minutes * 60:
            return _Seen((*plays, *failed), left.over)
        limit_s = min(left.left_s, harm.minutes * 60 * _PATIENCE)
        try:
            with progress.phase(f"{harm.name} on {side.release}", None):
                play = side.play(harm, limit_s)
        except StoppedError:
            if left.left_s <= 0:
                return _Seen((*plays, *failed), left.over)
            play = ReleasePlay(shown=None, why=f"it did not end within {limit_s / 60:.0f} minutes", seconds=limit_s)
        if play.shown is None:
            failed = (*failed, play)
        else:
            plays = (*plays, play)
        side.kept.keep(harm, (*plays, *failed))
    return _Seen((*plays, *failed))
