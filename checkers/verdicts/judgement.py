"""One run's verdict held against its promise: what was broken, what was permitted, and whether it could be judged.

The promise is applied here and nowhere else, once, when histories are checked; the judgement is stored beside the
verdict (:class:`VerdictLine`), and cells, matrix and report are made from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from checkers.verdicts.copies import fate_of_copies
from checkers.verdicts.coverage import coverage
from checkers.verdicts.exercised import OLDER, RunsExercised, exercised_by
from checkers.verdicts.identity import identities
from checkers.verdicts.outcome import Outcome, outcome_of
from checkers.verdicts.promises import Promise, promise
from checkers.verdicts.receipts import FaultSeen, faults_possible, faults_seen, latest_receipts
from checkers.verdicts.verdict import Verdict
from nemesis.plan import EXERCISED_MIN
from nemesis.receipts import Receipt
from workloads import Settings, SettingValue

#: Raised whenever a field of a line of verdicts.jsonl goes away or changes its meaning; new fields do not raise it.
VERDICTS_VERSION: Final = 1


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The run that is judged, as its specification has it; ``settings`` are complete, under Kafka's names.

    ``cell`` names the choice of settings and the family within the campaign; ``client_defaults`` are the names of
    settings that have the client library's own default; ``exercised_min`` is the plan's
    (:class:`nemesis.plan.FaultPlan`).
    """

    cell: str
    family: str
    world: str
    seed: int
    settings: dict[str, SettingValue]
    client_defaults: tuple[str, ...] = ()
    exercised_min: int = EXERCISED_MIN


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict's meaning under the promise of its settings.

    Attributes:
        outcome: of the run alone.
        broken, permitted: counts of findings by anomaly. One that is permitted of some log partitions only is in both:
            broken are then those listed findings that are of others, a lower bound where not all are listed.
        lost: acknowledged writes that no client can read any more.
        judged: whether the run says anything about loss: the log was read to its end, or loss was proved regardless.
        reason: why not, where it was not judged.
        stalled: by log partition, why fresh clients could not write or read it after healing; nothing where the faults
            may have destroyed what it waits for, which ``reason`` says then.
        permits_loss, promise: what had to hold under the faults that took effect or may have, and why, in words.
        reasons: how many reasons ``promise`` names; of a cell's runs the one with most speaks for the cell.
        faults: the faults that took effect.
        uncertain, without_effect: how many may have, and how many receipts are no evidence of any (those included).
        exercised: what the run put to the test; None where an older version judged it, which did not ask.
        lacks: what is missing for the run's silence to be evidence, "" where nothing is.
        coverage: how often the run met each of :data:`checkers.verdicts.coverage.SITUATIONS`.
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
    exercised: RunsExercised | None = msgspec.field(default=None, name="trial")
    lacks: str = ""
    coverage: dict[str, int | None] = {}
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
        judgement = None if run is None else _judged(verdict, run)
        return cls(**{name: getattr(verdict, name) for name in Verdict.__struct_fields__}, run=run, judgement=judgement)

    @property
    def outcome(self) -> Outcome:
        """That of the judgement, without one by :attr:`valid`; silence that an older version called held is unknown."""
        if self.judgement is not None:
            silent = self.judgement.outcome in {Outcome.HELD, Outcome.NOT_EXERCISED}
            return Outcome.UNKNOWN if silent and self.judgement.exercised is None else self.judgement.outcome
        # The reason says why it proves nothing, also of an empty history, which other tools call not valid.
        if self.valid is True:
            return Outcome.HELD
        return Outcome.UNKNOWN if self.reason else Outcome.NOT_VALID

    @property
    def why_unknown(self) -> str | None:
        """Say why it could not be judged, or what its silence lacks to be evidence; None where neither is so."""
        if self.judgement is None:
            return self.reason
        if self.outcome is Outcome.NOT_EXERCISED:
            return self.judgement.lacks
        return self._unknown_for(self.judgement)

    def _unknown_for(self, judgement: Judgement) -> str | None:
        """An older version did not ask, or wrote no facts down."""
        known = judgement.exercised is not None and judgement.exercised.is_known
        return OLDER if self.outcome is Outcome.UNKNOWN and judgement.judged and not known else judgement.reason

    @property
    def says_nothing(self) -> bool:
        """It only says that there was nothing to read."""
        return self.valid == "unknown" and not self.exercise.attempted + self.exercise.records_read


def _judged(verdict: Verdict, run: RunFacts) -> Judgement:
    return judge(Settings.from_mapping(run.settings), verdict, run.exercised_min, run.family.split("+"))


def judge(
    settings: Settings, verdict: Verdict, exercised_min: int = EXERCISED_MIN, families: Iterable[str] = ()
) -> Judgement:
    """Apply the promise of ``settings`` under the verdict's own receipts; ``families`` are the run's own.

    ``unseen`` of a log that was not read to its end proves nothing: the readers may have been slow. It makes the run
    unknown, not broken.
    """
    receipts = latest_receipts(verdict.faults)
    faults, possible = faults_seen(receipts), faults_possible(receipts)
    promised = promise(settings, possible)
    drained = verdict.exercise.drained
    counts = {name: n for name, n in verdict.counts.items() if n > 0 and (drained or name != "unseen")}
    broken = _broken(verdict, counts, promised, lambda partition: promise(settings, possible, partition))
    permitted = {name: n - broken.get(name, 0) for name, n in counts.items() if n > broken.get(name, 0)}
    # A write that is gone may be counted under both names; the larger count is a lower bound of their union.
    lost = max(counts.get("lost-write", 0), counts.get("unseen", 0))
    judged = lost > 0 or (verdict.valid != "unknown" and drained)
    exercised = exercised_by(verdict, receipts, settings, judged=judged)
    lacks = exercised.run_lacks(families, exercised_min)
    stalled, why_not = _stalled(verdict, settings, receipts)
    return Judgement(
        outcome=outcome_of(
            broken=bool(broken),
            stalled=bool(stalled),
            lost=lost > 0,
            judged_share=float(judged),
            known=exercised.is_known,
            lacks=lacks,
        ),
        broken=broken,
        permitted=permitted,
        lost=lost,
        judged=judged,
        reason=None if judged else (verdict.reason or _not_drained(verdict)) + why_not,
        permits_loss=promised.permits_loss,
        promise=promised.sentence(),
        reasons=len(promised.about("lost-write").reasons),
        faults=faults,
        uncertain=len(possible) - len(faults),
        without_effect=len(receipts) - len(faults),
        stalled=stalled,
        exercised=exercised,
        lacks=lacks,
        coverage=coverage(verdict, settings, receipts),
        identities=identities(verdict, settings.to_mapping(), receipts),
    )


def _broken(
    verdict: Verdict, counts: Mapping[str, int], whole: Promise, promise_of: Callable[[str], Promise]
) -> dict[str, int]:
    """Findings that nothing permits: of an anomaly that is permitted nowhere all, else those of other log partitions.

    ``whole`` is what is promised of every log partition, ``promise_of`` of one.
    """
    seen = "duplicate" in counts
    promises: dict[str, Promise] = {}
    broken = {}
    for name, count in counts.items():
        if not whole.about(name, duplicates_seen=seen).permitted:
            broken[name] = count
            continue
        keys = [key for finding in verdict.anomalies.get(name, ()) if isinstance(key := finding.key, str)]
        promises |= {key: promise_of(key) for key in keys if key not in promises}
        against = sum(not promises[key].about(name, duplicates_seen=seen).permitted for key in keys)
        broken |= {name: against} if against else {}
    return broken


def _not_drained(verdict: Verdict) -> str:
    """That the log was not read to its end, with the keys that help; where it came back, it was only too long."""
    recovery = verdict.recovery
    only_long = recovery.tried and not (recovery.unread or recovery.lacking)
    long = ", though they still read when their time was over: raise drain_limit_ms"
    return (
        "the final readers did not reach the end of the log"
        f"{long if only_long else ', see drain_limit_ms and recovery_limit_ms'}"
    )


def _stalled(verdict: Verdict, settings: Settings, receipts: Iterable[Receipt]) -> tuple[dict[str, str], str]:
    """Say why log partitions did not come back, where nothing permits that; and words on those where something does.

    It is permitted where nodes did not run that the log partition waits for, and where faults that touched it may have
    destroyed every copy that may lead. A receipt that does not name what was touched may have touched all.
    """
    recovery, possible = verdict.recovery, faults_possible(receipts)
    dead, destroyed = {}, []
    for key, why in (recovery.unread | recovery.unwritten).items():
        if key in recovery.absent:
            continue
        if fate_of_copies(settings, possible, key).destroyed:
            destroyed.append(key)
        else:
            dead[key] = f"{why}; {recovery.lacking[key]}" if key in recovery.lacking else why
    words = "".join(f"; of {key}: {what}" for key, what in list((recovery.lacking | recovery.absent).items())[:1])
    if destroyed:
        words += (
            f"; a copy of {', '.join(destroyed)} was destroyed, and the log may wait for it: that it does is permitted"
        )
    return dead, words
