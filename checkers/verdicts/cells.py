"""Cells of the matrix: all runs of one choice of settings, one family of faults and one world, as one outcome.

Made from lines of ``verdicts.jsonl`` alone. :func:`checkers.verdicts.outcome.outcome_of` defines each outcome, and
:mod:`checkers.verdicts.exercised` the evidence that silence needs. A cell may be ``held`` although its settings permit
loss. That is *no* promise, and ``note`` says so: a weakness that did not show is not safety.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Final

import msgspec

from checkers.anomalies import ANOMALIES, Finding
from checkers.measures.latency import Latency
from checkers.verdicts.coverage import summed
from checkers.verdicts.exercised import OLDER, FamilyExercised, RunsExercised
from checkers.verdicts.judgement import Judgement, RunFacts, VerdictLine
from checkers.verdicts.outcome import Outcome, outcome_of
from checkers.verdicts.proportions import Proportion, proportion
from checkers.verdicts.readers import CellReaders
from checkers.verdicts.verdict import Verdict
from checkers.words import counted
from nemesis.plan import AT_STAKE_MIN, EXERCISED_MIN
from workloads import SettingValue

#: The settings that name a cell where all cells have the same: those on which the promise rests most.
PROMISED_BY: Final = ("acks", "min.insync.replicas")


class Witness(msgspec.Struct, frozen=True):
    """The finding that is shown of a cell: its run, seed, anomaly, the finding as JSON, and its identity.

    The identity is the same in two runs of the same defect; "" in a matrix that 0.1.0 wrote.
    """

    run: str
    seed: int
    anomaly: str
    finding: msgspec.Raw
    identity: str = ""

    def __post_init__(self) -> None:
        """Format the JSON, so that equal findings are equal."""
        msgspec.structs.force_setattr(self, "finding", msgspec.Raw(msgspec.json.format(self.finding, indent=-1)))

    @property
    def shown(self) -> Finding:
        """The finding; only its key if this version does not know the anomaly."""
        kind = ANOMALIES[self.anomaly].finding if self.anomaly in ANOMALIES else Finding
        return msgspec.json.decode(self.finding, type=kind)


class Nearest(msgspec.Struct, frozen=True):
    """The smallest change of settings to a cell where no loss is permitted or was seen, and the settings it changes."""

    cell: str
    changes: dict[str, SettingValue]


class AcceptedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a cell that ``accepted.toml`` names, and what that is worth.

    ``status`` is a word of :class:`checkers.verdicts.acceptance.AcceptanceStatus`; all but "accepted" are red.
    """

    anomaly: str
    identity: str
    status: str
    reason: str
    owner: str
    until: date


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of ``matrix.json``. Counts are sums over the runs; times are microseconds.

    Attributes:
        cell, family, world: names of what was run. ``label`` holds the settings that vary within the campaign.
        settings: the complete settings, under Kafka's names; ``client_defaults`` are those of them that have the
            client library's own default. Those that follow from the others are in no label.
        outcome: the outcome in a word or two; ``note`` explains it.
        runs, runs_judged, runs_lost: numbers of all runs, of those that could be judged, of those that lost writes.
        acknowledged_in_fault: writes acknowledged while a fault was in effect; ``lost`` of them and others are gone,
            ``lost_against_promise`` of these in runs whose settings and faults permit no loss.
        rejected, unknown_writes: writes that certainly failed, and writes of unknown outcome.
        loss: ``lost`` among the writes acknowledged in runs that were judged, with an interval that assumes independent
            writes. ``lossy_runs``: runs that lost among runs judged; its interval needs no such assumption.
        broken, permitted: findings by anomaly.
        longest_gap_us: the longest time that any partition of any run took no write; ``recovery_us``: the longest time
            from the last heal to the next acknowledged write; ``unrecovered``: partitions that took no write after it.
        faults: number of faults of each kind that took effect; ``faults_without_effect``: receipts without evidence.
        loss_permitted, promise: true if the settings permit loss under the faults of any run, and the reasons of the
            run that permits most in words. Faults of different runs never meet, so together they permit nothing.
        exercised: by family, the numbers of faults that took effect and of those that met writes; a scenario is one
            fault. ``bound``: at most this share of the faults of any family loses a write, at 95 % confidence, if no
            exercised fault did; the family with the fewest decides. ``bound_writes``: the same of the writes that were
            at stake, None if their number is not known. ``exercised_min``, ``at_stake_min``: what the plan asks for.
        readers: how long readers waited for records that were there, and their lag.
        latency: latencies of acknowledged writes, and the duration of the workloads of all runs together.
        coverage: counts of each of :data:`checkers.verdicts.coverage.SITUATIONS` over all runs; None if no run knows.
        stalled: reasons why log partitions did not come back after healing, where nothing permits it, with counts.
        unknown_reasons: reasons why runs could not be judged, with counts.
        delivery: number of runs by the delivery that their producers got, for example ``exactly-once, in order``
            (:class:`checkers.measures.delivery.Delivery`).
        witness: the run with the fewest faults that shows the worst finding; None without a finding.
        nearest: the settings to change to be rid of a permitted loss; None without such a loss, or if no such cell was
            run. A broken promise is a defect, and no setting is offered as its cure.
        identities: of what nothing permits: by anomaly and identity, how many runs show the finding.
        accepted: those of them that ``accepted.toml`` names; ``excused``: it names all, so this cell reddens nothing.
    """

    cell: str
    family: str
    world: str
    label: dict[str, SettingValue]
    settings: dict[str, SettingValue]
    outcome: Outcome
    note: str
    runs: int
    runs_judged: int
    runs_lost: int
    attempted: int
    acknowledged: int
    acknowledged_in_fault: int
    lost: int
    lost_against_promise: int
    rejected: int
    unknown_writes: int
    records_read: int
    loss: Proportion
    lossy_runs: Proportion
    broken: dict[str, int]
    permitted: dict[str, int]
    longest_gap_us: int
    recovery_us: int | None
    unrecovered: int
    faults: dict[str, int]
    faults_without_effect: int
    loss_permitted: bool
    promise: str
    unknown_reasons: dict[str, int]
    witness: Witness | None
    nearest: Nearest | None = None
    stalled: dict[str, int] = {}
    client_defaults: tuple[str, ...] = ()
    delivery: dict[str, int] = {}
    exercised: dict[str, FamilyExercised] = {}
    bound: float = 1.0
    bound_writes: float | None = None
    exercised_min: int = EXERCISED_MIN
    at_stake_min: int = AT_STAKE_MIN
    coverage: dict[str, int | None] = {}
    latency: Latency = msgspec.field(default_factory=Latency)
    readers: CellReaders = msgspec.field(default_factory=CellReaders)
    identities: dict[str, dict[str, int]] = {}
    accepted: list[AcceptedFinding] = []
    excused: bool = False

    @property
    def key(self) -> str:
        """Its name in every campaign, as its runs lie below ``runs/``: ``simulated/acks=all,isr=2/kill``."""
        return f"{self.world}/{self.cell}"

    def shown(self) -> Iterator[tuple[str, str]]:
        """Anomaly and identity of every finding that nothing permits; of a log that did not come back its outcome."""
        for anomaly in self.broken:
            yield from ((anomaly, identity) for identity in self.identities.get(anomaly) or (anomaly,))
        if self.stalled:
            yield Outcome.STALLED, Outcome.STALLED


class _Tally:
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
        often = "most often " if len(self.reasons) > 1 else ""
        why = "".join(f"{often}{reason}" for reason, _ in self.reasons.most_common(1))
        return self.exercised.lacks(self.families, self.facts.exercised_min, self.facts.at_stake_min, why)

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


def build_cells(lines: Iterable[VerdictLine]) -> list[Cell]:
    """All cells of a campaign, by world, settings and family; every run is looked at once.

    The lines of a campaign come in that order, those of a soak in the order of its turns, which no night repeats.
    Lines without a judgement, which are histories of other tools, are in no cell.
    """
    tallies: dict[tuple[str, str, str], _Tally] = {}
    for line in lines:
        if line.run is not None and line.judgement is not None:
            key = (line.run.world, line.run.family, line.run.cell)
            tallies.setdefault(key, _Tally(line.run)).add(line, line.judgement, line.run.seed)
    in_order = sorted(tallies.values(), key=lambda tally: _directory(tally.facts))
    varying = _varying([tally.facts for tally in in_order])
    cells = [_cell(tally, varying) for tally in in_order]
    return [msgspec.structs.replace(cell, nearest=nearest_held(cell, cells)) for cell in cells]


def _directory(run: RunFacts) -> tuple[str, ...]:
    """The directory of a cell's runs below ``runs/``."""
    return (run.world, *run.cell.split("/"))


def nearest_held(cell: Cell, cells: Sequence[Cell]) -> Nearest | None:
    """The cell of the same world and family, fewest settings away from a permitted loss, that held a promise."""
    if cell.outcome is not Outcome.PERMITTED_LOSS:
        return None
    green = [
        other
        for other in cells
        if (other.world, other.family, other.outcome) == (cell.world, cell.family, Outcome.HELD)
        and not other.loss_permitted
    ]
    if not green:
        return None
    nearest = min(green, key=lambda other: len(_changes(cell, other)))
    return Nearest(nearest.cell, _changes(cell, nearest))


def _changes(old: Cell, new: Cell) -> dict[str, SettingValue]:
    """Settings to change; a client's default changes by itself."""
    named = (name for name in new.settings if name not in new.client_defaults)
    return {name: new.settings[name] for name in named if old.settings.get(name) != new.settings[name]}


def _varying(runs: Sequence[RunFacts]) -> list[str]:
    """Names of the settings that differ between cells, in their own order; without a difference, the promise's."""
    if not runs:
        return []
    varying = [
        name
        for name in runs[0].settings
        if len({repr(run.settings[name]) for run in runs}) > 1
        and not (name in runs[0].client_defaults and _follows(name, runs))
    ]
    return varying or [name for name in PROMISED_BY if name in runs[0].settings]


def _follows(name: str, runs: Sequence[RunFacts]) -> bool:
    """Tell that the value of ``name`` follows from the other settings: no two clients decided otherwise."""
    values: dict[str, set[str]] = {}
    for run in runs:
        others = {other: value for other, value in run.settings.items() if other != name}
        values.setdefault(repr(others), set()).add(repr(run.settings[name]))
    return all(len(texts) == 1 for texts in values.values())


def _cell(tally: _Tally, varying: Sequence[str]) -> Cell:
    run, counts, outcome = tally.facts, tally.exercise, tally.outcome
    in_fault = counts["acknowledged_in_fault"]
    return Cell(
        cell=run.cell,
        family=run.family,
        world=run.world,
        label={name: run.settings[name] for name in varying},
        settings=run.settings,
        outcome=outcome,
        note=_note(outcome, tally),
        runs=tally.exercised.runs,
        runs_judged=tally.exercised.judged,
        runs_lost=tally.runs_lost,
        attempted=counts["attempted"],
        acknowledged=counts["acknowledged"],
        acknowledged_in_fault=in_fault,
        lost=tally.lost,
        lost_against_promise=tally.lost_against_promise,
        rejected=counts["rejected"],
        unknown_writes=counts["unknown"],
        records_read=counts["records_read"],
        loss=proportion(tally.lost, max(tally.exercised.acknowledged, tally.lost)),
        lossy_runs=proportion(tally.runs_lost, tally.exercised.judged),
        broken=dict(tally.broken),
        permitted=dict(tally.permitted),
        longest_gap_us=tally.gap_us,
        recovery_us=None if tally.recovery_us < 0 else tally.recovery_us,
        unrecovered=tally.unrecovered,
        faults=dict(tally.faults),
        faults_without_effect=tally.without_effect,
        loss_permitted=tally.permits_loss,
        promise=tally.promise,
        unknown_reasons=dict(tally.reasons.most_common(3)),
        witness=tally.witness,
        stalled=dict(tally.stalled.most_common(3)),
        client_defaults=run.client_defaults,
        delivery=dict(tally.delivery.most_common()),
        exercised=tally.exercised.of(tally.families),
        bound=tally.exercised.bound(tally.families),
        bound_writes=tally.exercised.bound_writes(tally.families),
        exercised_min=run.exercised_min,
        at_stake_min=run.at_stake_min,
        coverage=tally.coverage,
        latency=tally.latency,
        readers=tally.readers,
        identities={anomaly: dict(runs) for anomaly, runs in tally.identities.items()},
    )


def _note(outcome: Outcome, tally: _Tally) -> str:
    exercised = tally.exercised
    runs = counted(exercised.judged, "run")
    if outcome is Outcome.HELD and tally.permits_loss:
        return f"no loss seen in {_faults(tally)}, {runs}; loss is permitted, so this is not a promise"
    if outcome is Outcome.HELD:
        besides = f"{_rebalanced(tally)}{_transactions(tally)}{_wedged(tally)}"
        return f"no loss in {_faults(tally)}, {runs}, as promised{besides}"
    if outcome is Outcome.STALLED:
        why = next(iter(dict(tally.stalled.most_common(1))))
        return f"the log did not come back in {tally.runs_stalled:,} of {exercised.runs:,} runs: {why.rstrip('.')}"
    if outcome is Outcome.NOT_EXERCISED:
        return tally.lacks
    if outcome is Outcome.UNKNOWN:
        share = f"{exercised.judged:,} of {exercised.runs:,} runs could be judged"
        return share if exercised.is_known else f"{share}; {OLDER}"
    findings = ", ".join(f"{count:,} {anomaly}" for anomaly, count in tally.broken.items())
    # What is broken shows in runs that prove nothing else, too.
    in_runs = f"{findings} in {counted(exercised.runs, 'run')}"
    return f"{tally.runs_lost:,} of {runs} lost acknowledged writes" if tally.lost else in_runs


def _rebalanced(tally: _Tally) -> str:
    times = tally.exercised.rebalanced
    return "" if times is None else f"; {counted(times, 'rebalance')} over commits"


def _transactions(tally: _Tally) -> str:
    exercised = tally.exercised
    if not exercised.transactions:
        return ""
    passed = counted(exercised.aborted_passed, "aborted write")
    taken = f"{counted(exercised.offsets_aborted, 'aborted commit')} of offsets, {exercised.offsets_refused:,} refused"
    offsets = f", {counted(exercised.effects, 'effect')}, {taken}" if exercised.effects else ""
    return f"; {counted(exercised.transactions, 'transaction')}, {passed} that readers came past{offsets}"


def _wedged(tally: _Tally) -> str:
    producers = tally.permitted["wedged-client"]
    return f"; {counted(producers, 'producer')} wrote nothing more to a log partition" if producers else ""


def _faults(tally: _Tally) -> str:
    exercised = sum(family.exercised for family in tally.exercised.of(tally.families).values())
    return counted(exercised, "exercised fault")
