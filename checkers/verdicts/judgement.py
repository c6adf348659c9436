"""One run's verdict held against its promise: what was broken, what was permitted, and whether it could be told."""

from __future__ import annotations

import msgspec

from checkers.verdicts.promises import Promise, promise
from checkers.verdicts.receipts import FaultSeen, faults_possible, faults_seen, read_receipts
from checkers.verdicts.verdict import Verdict
from workloads.settings import Settings


class JudgedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run as the cells need it.

    Attributes:
        cell: the name of settings and family within the campaign.
        run: where the run's files are, relative to the campaign.
        settings, family, world, seed: as in the run's specification.
        verdict: what the checkers found.
    """

    cell: str
    family: str
    world: str
    run: str
    seed: int
    settings: Settings
    verdict: Verdict


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict after its promise was applied.

    Attributes:
        broken, permitted: counts of findings by anomaly; each anomaly is in one of the two.
        lost: acknowledged writes that nobody can read any more.
        judged: whether the run says anything about loss: the log was read to its end, or loss was proved regardless.
        reason: why not, where it was not judged.
        faults: the faults that took effect; ``without_effect`` counts the others.
        possible: those, and the ones that may have: what a promise has to reckon with.
        promised: what had to hold under these.
    """

    broken: dict[str, int]
    permitted: dict[str, int]
    lost: int
    judged: bool
    reason: str | None
    faults: tuple[FaultSeen, ...]
    possible: tuple[FaultSeen, ...]
    promised: Promise
    without_effect: int


def judge(settings: Settings, verdict: Verdict) -> Judgement:
    """Apply the promise of ``settings`` under the verdict's own receipts.

    ``unseen`` of a log that was not read to its end proves nothing: the readers may have been slow. It makes the run
    unknown, not broken.
    """
    receipts = read_receipts(verdict.faults)
    faults, possible = faults_seen(receipts), faults_possible(receipts)
    promised = promise(settings, possible)
    drained = verdict.exercise.drained
    counts = {name: n for name, n in verdict.counts.items() if n > 0 and (drained or name != "unseen")}
    duplicates = counts.get("duplicate", 0) > 0
    permitted = {name: n for name, n in counts.items() if promised.about(name, duplicates_seen=duplicates).permitted}
    lost = _lost(counts)
    told = verdict.valid != "unknown" and drained
    return Judgement(
        broken={name: n for name, n in counts.items() if name not in permitted},
        permitted=permitted,
        lost=lost,
        judged=told or lost > 0,
        reason=None if told or lost > 0 else verdict.reason or "the final readers did not reach the end of the log",
        faults=faults,
        possible=possible,
        promised=promised,
        without_effect=len(receipts) - len(faults),
    )


def _lost(counts: dict[str, int]) -> int:
    """A write that is gone may be counted under both names; the larger count is a lower bound of their union."""
    return max(counts.get("lost-write", 0), counts.get("unseen", 0))
