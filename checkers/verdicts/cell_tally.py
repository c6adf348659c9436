"""Adds up the runs of one cell, and says in a sentence what that comes to."""

from __future__ import annotations

from collections import Counter

import msgspec

from checkers.measures.latency import Latency
from checkers.verdicts.coverage import summed
from checkers.verdicts.exercised import OLDER, RunsExercised
from checkers.verdicts.judgement import Judgement, VerdictLine
from checkers.verdicts.outcome import Outcome, outcome_of
from checkers.verdicts.readers import CellReaders
from checkers.verdicts.verdict import RunFacts, Verdict
from checkers.verdicts.witness import Witness
from checkers.words import counted


class CellTally:
    """Sums of one cell while its runs go by. It keeps one witness only, so memory does not grow with the runs."""

    def __init__(self, facts: RunFacts) -> None:
        self.facts = facts
        self.families = tuple(facts.family.split("+"))
        self.exercised = RunsExercised(runs=0)
        self.coverage: dict[str, int | None] = {}
        self.runs_lost = self.runs_stalled = self.lost = self.lost_against_promise = 0
        self.exercise: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.identities: dict[str, Counter[str]] = {}
        self.marks: dict[str, str] = {}
        self.permitted: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.without_effect = 0
        # The promise of the run that permits most; among equals, of the one with most faults.
        self.permits_loss, self.promise = False, ""
        self.promise_rank = (False, -1, 0)
        self.reasons: Counter[str] = Counter()
        self.stalled: Counter[str] = Counter()
        self.delivery: Counter[str] = Counter()
        self.gap_us, self.recovery_us, self.unrecovered = 0, -1, 0
        self.isr_changes: int | None = None
        self.latency = Latency()
        self.readers = CellReaders()
        self.witness: Witness | None = None
        self.witness_rank: tuple[bool, bool, int] | None = None

    def add(self, line: VerdictLine, judgement: Judgement, seed: int) -> None:
        """Count one run."""
        acknowledged = line.exercise.acknowledged if judgement.judged else 0
        self.exercised += judgement.exercised or RunsExercised(judged=int(judgement.judged), acknowledged=acknowledged)
        self.coverage = summed(self.coverage, judgement.coverage)
        self.runs_lost += judgement.lost > 0
        self.lost += judgement.lost
        self.lost_against_promise += 0 if judgement.permits_loss else judgement.lost
        self.broken.update(judgement.broken)
        for anomaly in judgement.broken:
            self.identities.setdefault(anomaly, Counter()).update(judgement.identities.get(anomaly, [anomaly]))
        self.marks |= judgement.marks
        self.permitted.update(judgement.permitted)
        self.runs_stalled += bool(judgement.stalled)
        self.stalled.update(judgement.stalled.values())
        self.delivery[line.delivery.words] += 1
        if judgement.reason is not None:
            self.reasons[judgement.reason] += 1
        self._add_faults(judgement)
        self._add_exercise(line, judgement)
        self._add_availability(line)
        self._offer_witness(line, judgement, seed)

    def _add_faults(self, judgement: Judgement) -> None:
        self.faults.update(fault.kind for fault in judgement.faults)
        self.without_effect += judgement.without_effect
        rank = (judgement.permits_loss, judgement.reasons, len(judgement.faults) + judgement.uncertain)
        if rank > self.promise_rank:
            self.permits_loss, self.promise, self.promise_rank = judgement.permits_loss, judgement.promise, rank

    def _add_exercise(self, verdict: Verdict, judgement: Judgement) -> None:
        counts = msgspec.structs.asdict(verdict.exercise)
        if not judgement.judged:
            counts["acknowledged_in_fault"] = 0
        self.exercise.update({name: n for name, n in counts.items() if name != "drained"})

    def _add_availability(self, verdict: Verdict) -> None:
        self.readers.add(verdict)
        if (changes := verdict.situations.isr_changes) is not None:
            self.isr_changes = changes + (self.isr_changes or 0)
        self.latency.add(verdict.latency)
        self.latency.workload_us += verdict.latency.workload_us
        for partition in verdict.availability.values():
            self.gap_us = max(self.gap_us, partition.longest_gap_us)
            self.recovery_us = max(self.recovery_us, -1 if partition.recovery_us is None else partition.recovery_us)
            self.unrecovered += partition.recovery_us is None

    def _offer_witness(self, verdict: Verdict, judgement: Judgement, seed: int) -> None:
        for anomaly in (*judgement.broken, *(("lost-write", "unseen") if judgement.lost else ())):
            for finding in verdict.anomalies.get(anomaly, [])[:1]:
                rank = (anomaly not in judgement.broken, anomaly != "lost-write", len(judgement.faults))
                if self.witness_rank is None or rank < self.witness_rank:
                    as_json = msgspec.Raw(msgspec.json.encode(finding))
                    identity, *_ = judgement.identities.get(anomaly, [""])
                    self.witness = Witness(verdict.history, seed, anomaly, as_json, identity)
                    self.witness_rank = rank

    @property
    def lacks(self) -> str:
        """The evidence that silence lacks, in words; "" if it lacks nothing."""
        return self.exercised.lacks(self.families, self.facts.exercised_min, self.facts.at_stake_min, self.why_unjudged)

    @property
    def why_unjudged(self) -> str:
        """The reason why most of those runs could not be judged that were not; "" if it is not known."""
        often = "most often " if len(self.reasons) > 1 else ""
        return "".join(f"{often}{reason}" for reason, _ in self.reasons.most_common(1))

    @property
    def outcome(self) -> Outcome:
        """The outcome of all runs so far."""
        return outcome_of(
            broken=bool(self.broken),
            stalled=self.runs_stalled > 0,
            lost=self.lost > 0,
            judged_share=self.exercised.judged / self.exercised.runs,
            is_known=self.exercised.is_known,
            lacks=self.lacks,
        )


def note_of(tally: CellTally) -> str:
    """The explanation of its outcome."""
    exercised, outcome = tally.exercised, tally.outcome
    runs = counted(exercised.judged, "run")
    if outcome is Outcome.HELD and tally.permits_loss:
        return f"no loss seen in {_faults(tally)}, {runs}; loss is permitted, so this is not a promise"
    if outcome is Outcome.HELD:
        rest = f"{_rebalanced(tally)}{_transactions(tally)}{_wedged(tally)}"
        return f"no loss in {_faults(tally)}, {runs}, as promised{rest}"
    if outcome is Outcome.STALLED:
        why = next(iter(dict(tally.stalled.most_common(1))))
        return f"the log did not come back in {tally.runs_stalled:,} of {exercised.runs:,} runs: {why.rstrip('.')}"
    if outcome is Outcome.NOT_EXERCISED:
        return tally.lacks
    if outcome is Outcome.UNKNOWN:
        share = f"{exercised.judged:,} of {counted(exercised.runs, 'run')} could be judged"
        why = f"{share}: {tally.why_unjudged}" if tally.why_unjudged else share
        return why if exercised.is_known else f"{why}; {OLDER}"
    findings = ", ".join(f"{count:,} {anomaly}" for anomaly, count in tally.broken.items())
    # What is broken shows in runs that prove nothing else, too.
    in_runs = f"{findings} in {counted(exercised.runs, 'run')}"
    return f"{tally.runs_lost:,} of {runs} lost acknowledged writes" if tally.lost else in_runs


def _rebalanced(tally: CellTally) -> str:
    times = tally.exercised.rebalanced
    return "" if times is None else f"; {counted(times, 'rebalance')} over commits"


def _transactions(tally: CellTally) -> str:
    exercised = tally.exercised
    if not exercised.transactions:
        return ""
    passed = counted(exercised.aborted_passed, "aborted write")
    seen = "" if exercised.unread_levels is None else f", {exercised.aborted_seen:,} read as uncommitted"
    taken = f"{counted(exercised.offsets_aborted, 'aborted commit')} of offsets, {exercised.offsets_refused:,} refused"
    offsets = f", {counted(exercised.effects, 'effect')}, {taken}" if exercised.effects else ""
    return f"; {counted(exercised.transactions, 'transaction')}, {passed} that readers passed{seen}{offsets}"


def _wedged(tally: CellTally) -> str:
    producers = tally.permitted["wedged-client"]
    return f"; {counted(producers, 'producer')} wrote nothing more to a log partition" if producers else ""


def _faults(tally: CellTally) -> str:
    exercised = sum(family.exercised for family in tally.exercised.of(tally.families).values())
    return counted(exercised, "exercised fault")
