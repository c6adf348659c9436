"""A run's verdict held against its promise: findings that break it, findings that it permits, and the outcome.

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
from checkers.verdicts.promises import OF_STALLED, Promise, promise
from checkers.verdicts.receipts import FaultSeen, faults_possible, faults_seen, latest_receipts
from checkers.verdicts.verdict import RunFacts, Verdict
from checkers.words import counted
from nemesis.plan import EXERCISED_MIN
from nemesis.receipts import Receipt
from workloads import Settings

#: Raised whenever a field of a line of verdicts.jsonl goes away or changes its meaning; new fields do not raise it.
VERDICTS_VERSION: Final = 1


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict's meaning under the promise of its settings.

    Attributes:
        outcome: the outcome of the run alone.
        broken, permitted: counts of findings by anomaly. An anomaly that is permitted on some log partitions only is in
            both: broken are then its findings on others, of those that are not listed one for each log partition.
        lost: acknowledged writes that no client can read any more.
        judged: true if the run says anything about loss: the log was read to its end, or loss was proved regardless.
        reason: why it was not judged, else None.
        stalled: by log partition, why fresh clients could not write or read it after healing, or why an application
            under test did not do what was left of it. A log partition whose last copy the faults may have destroyed is
            in ``reason`` instead.
        permits_loss, promise: the promise under the faults that took effect or may have, with its reasons in words.
        reasons: number of reasons that ``promise`` names; the run with most speaks for its cell.
        faults: the faults that took effect.
        uncertain, without_effect: numbers of faults that may have taken effect, and of receipts without evidence (those
            included).
        exercised: the faults that the run put to the test; None from an older version, which did not ask.
        lacks: the evidence that the run's silence lacks, "" if it lacks nothing.
        coverage: counts of each of :data:`checkers.verdicts.coverage.SITUATIONS`.
        identities: by anomaly, the identities of its findings, that of the first finding first; the same defect has the
            same identity in other runs (:mod:`checkers.verdicts.identity`). ``marks`` are those of identities that have
            one: what the finding shows beside its anomaly (:attr:`checkers.anomalies.Finding.mark`).
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
    marks: dict[str, str] = {}


class VerdictLine(Verdict, kw_only=True):
    """A line of ``verdicts.jsonl``: a verdict and, if ackproof ran it, the facts of the run and the judgement.

    ``history`` is the run's place in the campaign. Lines of other tools' histories and of 0.1.0 have
    neither ``run`` nor ``judgement``.
    """

    judgement: Judgement | None = None

    @classmethod
    def of(cls, verdict: Verdict, run: RunFacts | None = None) -> VerdictLine:
        """The line of ``verdict``, judged if the facts of the run are known, from here or from the history itself.

        Raises:
            workloads.settings.SettingsError: the settings of ``run`` cannot work.
        """
        run = run or verdict.run
        judgement = None if run is None else _judged(verdict, run)
        facts = {name: getattr(verdict, name) for name in Verdict.__struct_fields__} | {"run": run}
        return cls(**facts, judgement=judgement)

    @property
    def outcome(self) -> Outcome:
        """The judgement's outcome, else that of :attr:`valid`; what an older version called held is unknown."""
        if self.judgement is not None:
            silent = self.judgement.outcome in {Outcome.HELD, Outcome.NOT_EXERCISED}
            return Outcome.UNKNOWN if silent and self.judgement.exercised is None else self.judgement.outcome
        # The reason says why it proves nothing, also of an empty history, which other tools call not valid.
        if self.valid is True:
            return Outcome.HELD
        return Outcome.UNKNOWN if self.reason else Outcome.NOT_VALID

    @property
    def why_unknown(self) -> str | None:
        """The reason why it could not be judged, or the evidence that silence lacks; None if it proves something."""
        if self.judgement is None:
            return self.reason
        if self.outcome is Outcome.NOT_EXERCISED:
            return self.judgement.lacks
        return self._unknown_for(self.judgement)

    def _unknown_for(self, judgement: Judgement) -> str | None:
        """The reason of an unknown outcome: an older version did not ask, or wrote no facts down."""
        tells = judgement.exercised is not None and judgement.exercised.is_known
        return OLDER if self.outcome is Outcome.UNKNOWN and judgement.judged and not tells else judgement.reason

    @property
    def says_nothing(self) -> bool:
        """True if it only says that there was nothing to read."""
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
    applied = verdict.application.promise
    promised = promise(settings, possible, application=applied)
    drained = verdict.exercise.drained
    counts = {name: n for name, n in verdict.counts.items() if n > 0 and (drained or name != "unseen")}
    broken = _broken(
        verdict, counts, promised, lambda partition: promise(settings, possible, partition, application=applied)
    )
    permitted = {name: n - broken.get(name, 0) for name, n in counts.items() if n > broken.get(name, 0)}
    # A write that is gone may be counted under both names; the larger count is a lower bound of their union.
    lost = max(counts.get("lost-write", 0), counts.get("unseen", 0))
    starved = verdict.recovery.starved
    judged = lost > 0 or (verdict.valid != "unknown" and drained and not starved)
    exercised = exercised_by(verdict, receipts, settings, judged=judged)
    lacks = exercised.run_lacks(families, exercised_min)
    stalled, why_not = _stalled(verdict, settings, receipts)
    stalled |= _stalled_application(verdict)
    identified = identities(verdict, settings.to_mapping(), broken.keys())
    return Judgement(
        outcome=outcome_of(
            broken=bool(broken),
            stalled=bool(stalled),
            lost=lost > 0,
            judged_share=float(judged),
            is_known=exercised.is_known,
            lacks=lacks,
        ),
        broken=broken,
        permitted=permitted,
        lost=lost,
        judged=judged,
        reason=None if judged else (_starved(starved) or verdict.reason or _not_drained(verdict)) + why_not,
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
        identities={anomaly: [*marked] for anomaly, marked in identified.items()},
        marks={name: mark for marked in identified.values() for name, mark in marked.items() if mark},
    )


def _stalled_application(verdict: Verdict) -> dict[str, str]:
    """Say why an application under test did not do what was left of its input."""
    findings = [finding for name in OF_STALLED for finding in verdict.anomalies.get(name, ())]
    return {str(finding.key): finding.words() for finding in findings}


def _broken(
    verdict: Verdict, counts: Mapping[str, int], whole: Promise, promise_of: Callable[[str], Promise]
) -> dict[str, int]:
    """Count the findings that nothing permits, by anomaly.

    Those are all findings of an anomaly that is permitted nowhere, or else its findings on the log partitions where it
    is not permitted. ``whole`` is the promise of every log partition, ``promise_of`` gives that of one.
    """
    seen = "duplicate" in counts
    promises: dict[str, Promise] = {}
    broken = {}
    for name, count in counts.items():
        if not whole.about(name, duplicates_seen=seen).permitted:
            broken[name] = count
            continue
        listed = [key for finding in verdict.anomalies.get(name, ()) if isinstance(key := finding.key, str)]
        unlisted = {key for moment in verdict.moments.get(name, ()) for key in moment.keys}.difference(listed)
        promises |= {key: promise_of(key) for key in (*listed, *unlisted) if key not in promises}
        against = sum(
            not promises[key].about(name, duplicates_seen=seen).permitted for key in (*listed, *sorted(unlisted))
        )
        broken |= {name: against} if against else {}
    return broken


def _not_drained(verdict: Verdict) -> str:
    """Say that the log was not read to its end, and which keys help; a log that came back was only too long."""
    recovery = verdict.recovery
    only_long = recovery.tried and not (recovery.unread or recovery.lacking)
    long = ", though they still read when their time was over: raise drain_limit_ms"
    return (
        "the final readers did not reach the end of the log"
        f"{long if only_long else ', see drain_limit_ms and recovery_limit_ms'}"
    )


def _starved(starved: Mapping[str, str]) -> str:
    """Say that it is not known whether these log partitions came back, and what helps; "" without any."""
    if not starved:
        return ""
    why = next(iter(starved.values()))
    return (
        f"whether {counted(len(starved), 'log partition')} came back is not known: {why}; run it on a machine "
        "that does less else, or with fewer brokers"
    )


def _stalled(verdict: Verdict, settings: Settings, receipts: Iterable[Receipt]) -> tuple[dict[str, str], str]:
    """Say why log partitions did not come back, where nothing permits that, and add words on the permitted ones.

    It is permitted where a node that the log partition waits for did not run, where the machine was too slow for the
    limit to be a fair one, and where faults that touched it may have destroyed every copy that may lead. A receipt
    without the names of touched log partitions may have touched all.
    """
    recovery, possible = verdict.recovery, faults_possible(receipts)
    dead, destroyed = {}, []
    for key, why in (recovery.unread | recovery.unwritten).items():
        if key in recovery.absent or key in recovery.starved:
            continue
        if fate_of_copies(settings, possible, key).destroyed:
            destroyed.append(key)
        else:
            dead[key] = f"{why}; {recovery.lacking[key]}" if key in recovery.lacking else why
    words = "".join(f"; of {key}: {lack}" for key, lack in list((recovery.lacking | recovery.absent).items())[:1])
    if destroyed:
        words += f"; a copy of {', '.join(destroyed)} was destroyed, and the log may wait for it, which is permitted"
    return dead, words
