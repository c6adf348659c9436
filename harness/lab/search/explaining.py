"""Explains how a finding came about, and from which step on it could not be avoided.

A run in virtual time is taken back to a moment by performing it again up to there; from then on every draw of chance is
another one. It is continued in two ways: with the faults that were still to come, and with every fault ended then and
none to follow. The first says how much of the finding was chance; the second, when it was too late to help.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from checkers import Finding, Verdict, check_one
from harness.campaigns.campaign import trace_runs
from harness.campaigns.report import Narration, fault_name, narration_of, replica_set
from harness.ground.choices import derived_seed
from harness.ground.machine.translated_errors import translated_errors
from harness.ground.observations import BecameLeader, BrokerFenced, IsrChanged, LeaderElected, Observation, Truncated
from harness.ground.progress import Progress
from harness.lab.search.judged_run import JudgedRun, OtherDraws, run_in_memory
from harness.lab.search.list_form import steps_of, with_steps
from harness.lab.search.sameness import FindingToKeep, finding_of
from harness.lab.search.shrinking import shrunk
from harness.lab.search.shrinking_recorded import drawn_record, left_in
from harness.lab.search.twins import twin_of
from harness.plan import RunSpec
from harness.records.explanation_file import Explanation, StepBack, write_explanation
from harness.records.run_record import RunRecord
from harness.runs.run import perform_run
from nemesis.receipts import Receipt
from nemesis.schedule import Schedule
from workloads import IDEMPOTENCE

#: The directory of a real run's simulated twin, in its own.
TWIN: Final = "twin"
#: Continuations of each step and kind: where all of 20 show it, 86 % of all do, at 95 % confidence (0.05^(1/20)).
FUTURES: Final = 20
#: Steps to which a run is taken back at most, those nearest to the acknowledgement.
STEPS_MAX: Final = 16


def explain_run(directory: Path, progress: Progress, anomaly: str = "", futures: int = FUTURES) -> Explanation:
    """Explain the finding of the run in ``directory``, the worst or that of ``anomaly``; leave ``explanation.json``.

    Raises:
        NamedWronglyError: it shows no such finding, or performed a scripted story.
        ResultsError: it cannot be read, or nothing can be written there.
    """
    record = drawn_record(directory)
    if record.world.virtual_time:
        explanation = explained(directory, record.spec(), progress, anomaly, futures)
    else:
        explanation = _by_twin(directory, record, progress, anomaly, futures)
    write_explanation(directory, explanation)
    return explanation


def _by_twin(directory: Path, record: RunRecord, progress: Progress, anomaly: str, futures: int) -> Explanation:
    """The real run's own narrative, and the steps of its twin, which is performed in a directory below it."""
    twin = twin_of(directory, record, anomaly)
    narration, _ = _narration(directory, twin.verdict, twin.finding, record.spec())
    sentences = tuple(narration.sentences)
    if twin.run is None:
        return Explanation(finding=twin.finding.in_words(), sentences=sentences, twin=twin.in_words())
    smaller = shrunk(twin.run.spec, twin.finding)
    path = directory / TWIN
    if path.exists():
        shutil.rmtree(path)
    perform_run(smaller.spec, path, observe=True)
    left_in(path, smaller, twin.in_words())
    explained_twin = explained(path, smaller.spec, progress, anomaly, futures)
    both = (*sentences, f"{twin.in_words()} Shrunk to {smaller.in_words()}:", *explained_twin.sentences)
    return msgspec.structs.replace(explained_twin, sentences=both, twin=f"The steps are those of the twin, {path}.")


def explained(directory: Path, spec: RunSpec, progress: Progress, anomaly: str, futures: int) -> Explanation:
    """The explanation of the simulated run ``spec`` in ``directory``."""
    run = run_in_memory(spec, shown=None)
    finding = finding_of(run, anomaly)
    trace_runs([directory], progress)
    with translated_errors():
        verdict = check_one(directory, shown=None)
    narration, subject = _narration(directory, verdict, finding, spec)
    if narration.timeline is None or subject is None:
        return Explanation(finding=finding.in_words(), sentences=tuple(narration.sentences))
    moments = _moments(narration, run.receipts)
    with progress.phase("taking the run back", len(moments)):
        steps = []
        for time_us, what in moments:
            steps.append(_step_back(run, finding, subject, (time_us, what), futures))
            progress.advance()
    avoidable_us, no_return_us = _point_of_no_return(steps)
    return Explanation(
        finding=finding.in_words(),
        sentences=tuple(narration.sentences),
        steps=tuple(steps),
        avoidable_us=avoidable_us,
        no_return_us=no_return_us,
    )


def _narration(
    directory: Path, verdict: Verdict, finding: FindingToKeep, spec: RunSpec
) -> tuple[Narration, Finding | None]:
    """The narration of the first finding of its kind whose fate is the same, and that finding."""
    listed = verdict.anomalies.get(finding.anomaly or finding.invariant, ())
    alike = [other for other in listed if finding.fate in {"", getattr(other, "fate", "")}]
    if not alike:
        return Narration(None, [finding.in_words()]), None
    first = alike[0]
    idempotent = spec.settings[IDEMPOTENCE] is True
    return narration_of(directory, finding.anomaly, first, verdict, idempotent=idempotent), first


# --- the steps -------------------------------------------------------------------------------------------------------


def _moments(narration: Narration, receipts: Sequence[Receipt]) -> list[tuple[int, str]]:
    """The moments around the write, each with everything that happened then, in order of time."""
    timeline = narration.timeline
    assert timeline is not None  # noqa: S101 - asked before
    write, partition = timeline.write, timeline.partition
    end_us = timeline.end_us if timeline.gone_us is None else timeline.gone_us
    moments = [(write.invoked_us, "the write is sent"), (write.acknowledged_us, "the write is acknowledged")]
    moments += _fault_moments(receipts)
    moments += [(seen.time_us, words) for seen in timeline.observations for words in _words(seen, partition)]
    begin_us = timeline.begin_us
    within = sorted(moment for moment in moments if begin_us <= moment[0] <= end_us)
    joined: dict[int, str] = {}
    for time_us, what in within:
        joined[time_us] = f"{joined[time_us]}; {what}" if time_us in joined else what
    near = sorted(joined, key=lambda time_us: abs(time_us - write.acknowledged_us))[:STEPS_MAX]
    return [(time_us, joined[time_us]) for time_us in sorted({*near, *_decisive(joined, end_us)})]


def _decisive(moments: Iterable[int], end_us: int) -> list[int]:
    """The moment at which the write was gone, which is not to be left out."""
    return [time_us for time_us in moments if time_us == end_us]


def _fault_moments(receipts: Iterable[Receipt]) -> Iterator[tuple[int, str]]:
    for receipt in receipts:
        if receipt.took_effect:
            yield receipt.begun_us, f"{fault_name(receipt)} begins"
            if receipt.ended_us is not None:
                yield receipt.ended_us, f"{fault_name(receipt)} ends"


def _words(seen: Observation, partition: str) -> Iterator[str]:
    """An observation in words, where it matters for who has the write."""
    match seen.fact:
        case BrokerFenced(broker=broker):
            yield f"broker {broker} counts as dead"
        case LeaderElected(partition=of, leader=leader, leader_epoch=epoch) if of == partition:
            yield f"the controller elects {'no leader' if leader is None else f'broker {leader}'} in epoch {epoch}"
        case BecameLeader(partition=of, leader_epoch=epoch, end_offset=end) if of == partition:
            yield f"broker {seen.node} leads in epoch {epoch}, its log ends at {end}"
        case IsrChanged(partition=of, isr=isr) if of == partition and isr is not None:
            yield f"in-sync replicas {replica_set(isr)}"
        case Truncated(partition=of, to_offset=to) if of == partition:
            yield f"broker {seen.node} truncates its log to {to}"


# --- futures ---------------------------------------------------------------------------------------------------------


def _step_back(
    run: JudgedRun, finding: FindingToKeep, subject: Finding, moment: tuple[int, str], futures: int
) -> StepBack:
    """Take the run back to right after a moment, and continue it both ways."""
    time_us, what = moment
    calm = with_steps(run.spec, list(_until(run, time_us)))
    calm = msgspec.structs.replace(calm, schedule=Schedule(steps=steps_of(calm), healed_ms=run.schedule.healed_ms))
    seeds = [derived_seed(run.spec.seed, "future", number) for number in range(futures)]
    invariants = bool(finding.invariant)

    def shown_by(spec: RunSpec) -> int:
        others = (OtherDraws(time_us + 1, seed) for seed in seeds)
        ends = (run_in_memory(spec, others=other, shown=None, invariants=invariants) for other in others)
        return sum(_shows(future, finding, subject) for future in ends)

    return StepBack(
        time_us=time_us, what=what, futures=futures, as_planned=shown_by(run.spec), if_healed=shown_by(calm)
    )


def _until(run: JudgedRun, time_us: int) -> Iterator[Any]:
    """The faults that had begun by then, each ended at once."""
    if not run.receipts:
        return
    first = run.receipts[0]
    zero_us = first.begun_us - run.schedule.steps[first.sequence].begin_ms * 1000
    now_ms = (time_us - zero_us) // 1000 + 1
    for step in run.schedule.steps:
        if zero_us + step.begin_ms * 1000 <= time_us:
            yield msgspec.structs.replace(step, end_ms=min(step.end_ms, now_ms))


def _shows(future: JudgedRun, finding: FindingToKeep, subject: Finding) -> bool:
    """The future shows it of the same write, where the finding names one."""
    if not finding.is_in(future):
        return False
    listed = future.verdict.anomalies.get(finding.anomaly, ())
    if "value" not in subject.__struct_fields__:
        return True
    return any(other.written == subject.written and other.key == subject.key for other in listed)


def _point_of_no_return(steps: Sequence[StepBack]) -> tuple[int | None, int | None]:
    """The last moment at which some future without further faults went well, and the first from which on none did."""
    avoidable = [step.time_us for step in steps if step.if_healed < step.futures]
    after = [step.time_us for step in steps if not avoidable or step.time_us > avoidable[-1]]
    return (avoidable[-1] if avoidable else None), (after[0] if after else None)
