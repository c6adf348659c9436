"""The outcome of a run or of a cell, in one word: the only list of outcomes, and every fact that goes with one."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Self

#: Below this share the runs that could be judged are those which the faults happened to spare: a biased sample.
JUDGED_SHARE_MIN: Final = 0.5


class Outcome(StrEnum):
    """Outcomes, the worst first: the order in which a list of histories is sorted.

    Attributes:
        colour: on a terminal, in Rich's words.
        exit_code: exit code of a command that looked at nothing else (0 nothing broken, 1 broken, 2 not known).
        alarming: a person must look at each run that has it.
    """

    colour: str
    exit_code: int
    alarming: bool

    BROKEN_PROMISE = "broken promise", "bold red", 1, True
    #: A history of another tool: it has no settings, so no promise, and any finding that its anomaly does not allow
    #: makes it this. Cells never have it.
    NOT_VALID = "not valid", "bold red", 1, True
    STALLED = "stalled", "bold red", 1, True
    UNKNOWN = "unknown", "magenta", 2, True
    PERMITTED_LOSS = "permitted loss", "yellow", 0, False
    NOT_EXERCISED = "not exercised", "dim", 2, False
    HELD = "held", "green", 0, False

    def __new__(cls, word: str, colour: str, exit_code: int, alarming: bool) -> Self:
        """Make a member, whose value is the word."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.colour, member.exit_code, member.alarming = colour, exit_code, alarming
        return member

    @property
    def badness(self) -> int:
        """Its place in the order, 0 for the worst."""
        return list(Outcome).index(self)

    @property
    def proves_nothing(self) -> bool:
        """True if silence is no evidence: the run could not be judged, or put too little to the test."""
        return self in {Outcome.UNKNOWN, Outcome.NOT_EXERCISED}


#: The outcomes that a cell can have.
OF_CELLS: Final = tuple(outcome for outcome in Outcome if outcome is not Outcome.NOT_VALID)


def outcome_of(*, broken: bool, stalled: bool, lost: bool, judged_share: float, is_known: bool, lacks: str) -> Outcome:
    """The outcome of a run or a cell; the first that applies.

    * ``broken promise``: a finding that the settings forbid under the faults which took effect.
    * ``stalled``: after healing a fresh client could not write or read some log partition although every node that
      it may wait for ran (see ``absent`` in the run's RECOVERY fact), the machine had time for it (``starved``), and no
      fault had destroyed what it waited for.
    * ``permitted loss``: acknowledged writes were lost, and the settings never promised more.
    * ``unknown``: less than half of the runs could be judged, or ``is_known`` is false: some do not say what they put
      to the test.
    * ``not exercised``: nothing was lost, and ``lacks`` says which evidence that needs
      (:mod:`checkers.verdicts.exercised`).
    * ``held``: nothing was lost, and everything was put to the test.
    """
    if broken:
        return Outcome.BROKEN_PROMISE
    if stalled:
        return Outcome.STALLED
    if lost:
        return Outcome.PERMITTED_LOSS
    if judged_share < JUDGED_SHARE_MIN or not is_known:
        return Outcome.UNKNOWN
    return Outcome.NOT_EXERCISED if lacks else Outcome.HELD


def exit_code_of(outcomes: Iterable[Outcome]) -> int:
    """1 if anything is broken, not valid or stalled, 2 if anything is unknown or not exercised, else 0."""
    codes = {outcome.exit_code for outcome in outcomes}
    return 1 if 1 in codes else max(codes, default=0)
