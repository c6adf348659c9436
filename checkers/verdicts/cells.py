"""Cells of the matrix: all runs of one choice of settings, one family of faults and one world, as one outcome.

Made from lines of ``verdicts.jsonl`` alone. :func:`checkers.verdicts.outcome.outcome_of` defines each outcome, and
:mod:`checkers.verdicts.exercised` the evidence that silence needs. A cell may be ``held`` although its settings permit
loss. That is *no* promise, and ``note`` says so: a weakness that did not show is not safety.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Final

import msgspec

from checkers.measures.latency import Latency
from checkers.verdicts.cell_tally import CellTally, note_of
from checkers.verdicts.exercised import FamilyExercised
from checkers.verdicts.judgement import VerdictLine
from checkers.verdicts.outcome import Outcome
from checkers.verdicts.proportions import Proportion, proportion
from checkers.verdicts.readers import CellReaders
from checkers.verdicts.verdict import RunFacts
from checkers.verdicts.witness import Witness
from nemesis.plan import AT_STAKE_MIN, EXERCISED_MIN
from workloads import SettingValue

#: The settings that name a cell where all cells have the same: those on which the promise rests most.
PROMISED_BY: Final = ("acks", "min.insync.replicas")


class Nearest(msgspec.Struct, frozen=True):
    """The smallest change of settings to a cell where no loss is permitted or was seen, and the settings it changes."""

    cell: str
    changes: dict[str, SettingValue]


class AcceptedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a cell that ``accepted.toml`` names, and what that is worth.

    ``status`` is a word of :class:`checkers.verdicts.acceptance.AcceptanceStatus`; all but "accepted" are red.
    ``more`` says how often one that is "more often" shows now, and did.
    """

    anomaly: str
    identity: str
    status: str
    reason: str
    owner: str
    until: date
    more: str = ""


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
        isr_changes: times that in-sync replicas became others, by the brokers' own account; None if no run knows.
        latency: latencies of acknowledged writes, and the duration of the workloads of all runs together.
        coverage: counts of each of :data:`checkers.verdicts.coverage.SITUATIONS` over all runs; None if no run knows.
        stalled: reasons why log partitions did not come back after healing, where nothing permits it, with counts.
        unknown_reasons: reasons why runs could not be judged, with counts.
        delivery: number of runs by the delivery that their producers got, for example ``exactly-once, in order``
            (:class:`checkers.measures.delivery.Delivery`).
        witness: the run with the fewest faults that shows the worst finding; None without a finding.
        nearest: the settings to change to be rid of a permitted loss; None without such a loss, or if no such cell was
            run. A broken promise is a defect, and no setting is offered as its cure.
        identities: of what nothing permits: by anomaly and identity, how many runs show the finding; ``marks`` are
            those of identities that have one (:class:`checkers.verdicts.judgement.Judgement`).
        accepted: those of them that ``accepted.toml`` names; ``excused``: it names all, so no exit code changes.
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
    isr_changes: int | None = None
    latency: Latency = msgspec.field(default_factory=Latency)
    readers: CellReaders = msgspec.field(default_factory=CellReaders)
    identities: dict[str, dict[str, int]] = {}
    marks: dict[str, str] = {}
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

    def red(self) -> list[tuple[str, str]]:
        """The findings that change the exit code: no entry that counts names them."""
        excused = {(finding.anomaly, finding.identity) for finding in self.accepted if finding.status == "accepted"}
        return [shown for shown in self.shown() if shown not in excused]


def build_cells(lines: Iterable[VerdictLine]) -> list[Cell]:
    """All cells of a campaign, by world, settings and family; every run is looked at once.

    The lines of a campaign come in that order, those of a soak in the order of its turns, which no night repeats.
    Lines without a judgement, which are histories of other tools, are in no cell.
    """
    tallies: dict[tuple[str, str, str], CellTally] = {}
    for line in lines:
        if line.run is not None and line.judgement is not None:
            key = (line.run.world, line.run.family, line.run.cell)
            tallies.setdefault(key, CellTally(line.run)).add(line, line.judgement, line.run.seed)
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


def _cell(tally: CellTally, varying: Sequence[str]) -> Cell:
    run, counts, outcome = tally.facts, tally.exercise, tally.outcome
    in_fault = counts["acknowledged_in_fault"]
    return Cell(
        cell=run.cell,
        family=run.family,
        world=run.world,
        label={name: run.settings[name] for name in varying},
        settings=run.settings,
        outcome=outcome,
        note=note_of(tally),
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
        isr_changes=tally.isr_changes,
        latency=tally.latency,
        readers=tally.readers,
        identities={anomaly: dict(runs) for anomaly, runs in tally.identities.items()},
        marks={name: mark for runs in tally.identities.values() for name in runs if (mark := tally.marks.get(name))},
    )
