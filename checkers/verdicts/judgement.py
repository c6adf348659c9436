"""One run's verdict held against its promise: what was broken, what was permitted, and whether it could be judged.

The promise is applied here and nowhere else, once, when histories are checked; the judgement is stored beside the
verdict (:class:`VerdictLine`), and cells, matrix and report are made from that.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkers.verdicts.identity import identities
from checkers.verdicts.outcome import Outcome, outcome_of
from checkers.verdicts.promises import promise
from checkers.verdicts.receipts import FaultSeen, faults_possible, faults_seen, read_receipts
from checkers.verdicts.verdict import Verdict
from workloads import Settings


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was run: as in the run's specification, but for ``settings``, which are complete, under Kafka's names.

    ``cell`` names the choice of settings and the family within the campaign; ``client_defaults`` are the names of
    settings that have the client library's own default.
    """

    cell: str
    family: str
    world: str
    seed: int
    settings: dict[str, Any]
    client_defaults: tuple[str, ...] = ()


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict means under the promise of its settings.

    Attributes:
        outcome: of the run alone.
        broken, permitted: counts of findings by anomaly; each anomaly is in one of the two.
        lost: acknowledged writes that nobody can read any more.
        judged: whether the run says anything about loss: the log was read to its end, or loss was proved regardless.
        reason: why not, where it was not judged.
        stalled: by log partition, why fresh clients could not write or read it after healing; nothing where the faults
            may have destroyed what it waits for, which ``reason`` says then.
        permits_loss, promise: what had to hold under the faults that took effect or may have, and why, in words.
        reasons: how many reasons ``promise`` names; of a cell's runs the one with most speaks for the cell.
        faults: the faults that took effect.
        uncertain, without_effect: how many may have, and how many receipts are no evidence of any (those included).
        identities: by anomaly, what makes its listed findings the same defect as those of other runs
            (:mod:`checkers.verdicts.identity`), that of the first first.
    """

    outcome: Outcome
    broken: dict[str, int]
    permitted: dict[str, int]
    lost: int
    judged: bool
    reason: str | None
    permits_loss: bool
    promise: str
    reasons: int
    faults: tuple[FaultSeen, ...]
    uncertain: int
    without_effect: int
    stalled: dict[str, str] = {}
    identities: dict[str, list[str]] = {}


class VerdictLine(Verdict, kw_only=True):
    """One line of ``verdicts.jsonl``: a verdict and, of a run of ours, what was run and the judgement.

    ``history`` is the run's place in the campaign. Lines of other tools' histories and of 0.1.0 have
    neither ``run`` nor ``judgement``.
    """

    run: RunFacts | None = None
    judgement: Judgement | None = None

    @classmethod
    def of(cls, verdict: Verdict, run: RunFacts | None = None) -> VerdictLine:
        """The line of ``verdict``, judged if it is known what was run.

        Raises:
            workloads.settings.SettingsError: the settings of ``run`` cannot work.
        """
        judgement = None if run is None else judge(Settings.from_mapping(run.settings), verdict)
        return cls(**{name: getattr(verdict, name) for name in Verdict.__struct_fields__}, run=run, judgement=judgement)

    @property
    def outcome(self) -> Outcome:
        """That of the judgement; without one, by what the field calls valid."""
        if self.judgement is not None:
            return self.judgement.outcome
        if self.valid == "unknown":
            return Outcome.UNKNOWN
        return Outcome.HELD if self.valid else Outcome.NOT_VALID

    @property
    def why_unknown(self) -> str | None:
        """Why it could not be judged, where it could not."""
        return self.reason if self.judgement is None else self.judgement.reason

    @property
    def says_nothing(self) -> bool:
        """Whether it only says that there was nothing to read."""
        return self.valid == "unknown" and not self.exercise.attempted + self.exercise.records_read


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
    broken = {name: n for name, n in counts.items() if name not in permitted}
    # A write that is gone may be counted under both names; the larger count is a lower bound of their union.
    lost = max(counts.get("lost-write", 0), counts.get("unseen", 0))
    judged = lost > 0 or (verdict.valid != "unknown" and drained)
    dead = verdict.recovery.unread | verdict.recovery.unwritten
    destroyed = any(fault.facts.destroys_copy for fault in possible)
    stalled = {} if destroyed else dead
    return Judgement(
        outcome=outcome_of(
            broken=bool(broken),
            stalled=bool(stalled),
            lost=lost > 0,
            judged_share=float(judged),
            exercised=verdict.exercise.acknowledged_in_fault > 0 and not dead,
        ),
        broken=broken,
        permitted=permitted,
        lost=lost,
        judged=judged,
        reason=None if judged else _reason(verdict, permitted_stall=bool(dead) and destroyed),
        permits_loss=promised.permits_loss,
        promise=promised.sentence(),
        reasons=len(promised.about("lost-write").reasons),
        faults=faults,
        uncertain=len(possible) - len(faults),
        without_effect=len(receipts) - len(faults),
        stalled=stalled,
        identities=identities(verdict, settings.to_mapping(), receipts),
    )


def _reason(verdict: Verdict, *, permitted_stall: bool) -> str:
    """Why a run could not be judged."""
    reason = verdict.reason or "the final readers did not reach the end of the log"
    if not permitted_stall:
        return reason
    return f"{reason}; a copy was destroyed, and the log may wait for it: that it did not come back is permitted"
