"""The certificate of a rolling upgrade: what was written and put to the test, and at which step something was lost.

It is made from the files of a run: receipts say what each node ran, and brokers' observations when a write went. A loss
belongs to the step in which it could no longer be read. A fault at that time may have caused it: both are named. All
that the check counts are counted by step, those too that a verdict does not list: the history is looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from checkers import RunsExercised, VerdictLine, counted, latest_receipts, lost_in
from harness.campaigns.report.client_side import client_side
from harness.campaigns.report.names import fault_name, moment
from harness.campaigns.report.timeline import LOSSES, Timeline, end_of
from harness.ground.observations import BecameLeader, IsrChanged, Truncated
from harness.records.cluster_file import read_observations
from harness.records.files import HISTORY
from nemesis.evidence import Described, Finalized, Prepared, by_node
from nemesis.faults import Finalize, OperatorStep
from nemesis.receipts import Receipt

UNPLACED: Final = "at a time that is not known"
#: A fault that ended at most so long before a write was acknowledged can still be why it went: the next leader is
#: elected later.
STILL_CAUSE_US: Final = 3_000_000


class StepTaken(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a rollout, as its receipt has it.

    ``before`` and ``after`` are the releases that the node itself named, "" where it named none. ``done`` is true if
    the node came back as was wanted and every replica was in sync again; else ``why_not`` says what it lacks.
    ``raised`` names the features that were raised, or who votes or replicates since a node left or joined. ``wiped`` is
    true if another node took the place, with nothing on its disk. ``writes`` were acknowledged while it lasted,
    ``lost`` are those that went then, ``lost_at_least`` is true where others went at a time that is not known.
    ``beside`` are the faults that struck meanwhile.
    """

    number: int
    node: str
    act: str
    begun_us: int
    ended_us: int
    before: str = ""
    wanted: str = ""
    after: str = ""
    features: dict[str, int] = {}
    raised: str = ""
    changed: dict[str, str] = {}
    wiped: bool = False
    done: bool = False
    why_not: str = ""
    writes: int = 0
    lost: int = 0
    lost_at_least: bool = False
    beside: tuple[str, ...] = ()


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledged writes that went at one time for one cause.

    ``step`` is the number of the step ``during`` which they went, or after which; 0 before the first.
    """

    step: int
    during: bool
    faults: tuple[str, ...]
    writes: int
    first_us: int


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """The certificate of one run. ``granted`` is true if every step was done, and no promise was broken.

    Where faults were planned beside the steps and none struck, it is not granted.

    ``faults`` are those that took effect beside the steps, by kind, ``missed`` those that were planned and did not;
    ``broken`` are findings against the promise, by anomaly, ``permitted`` those that the settings permit. ``unknown``
    writes had no answer. ``exercised`` are the faults that met writes, by family, and ``bound`` is the largest share of
    such faults that may lose a write, at 95 % confidence. ``lacks`` says why silence is no evidence. Lost writes that
    went at no known moment are not in ``losses``: all of them where the run's history is not kept.
    """

    run: str
    cell: str
    outcome: str
    granted: bool
    attempted: int
    acknowledged: int
    lost: int
    steps: tuple[StepTaken, ...]
    losses: tuple[Loss, ...]
    faults: dict[str, int]
    broken: dict[str, int]
    permitted: dict[str, int] = {}
    unknown: int = 0
    exercised: dict[str, int] = {}
    bound: float = 1.0
    missed: dict[str, int] = {}
    lacks: str = ""
    sentence: str = ""

    @property
    def done(self) -> bool:
        """True if no step is missing."""
        return all(step.done for step in self.steps)


def certificates_of(directory: Path, lines: Mapping[str, VerdictLine]) -> list[Certificate]:
    """The certificate of each run of the campaign in ``directory`` in which nodes were upgraded."""
    certificates = (certificate_of(directory / name, line) for name, line in lines.items())
    return [certificate for certificate in certificates if certificate is not None]


def certificate_of(run: Path, line: VerdictLine) -> Certificate | None:
    """The certificate of the run in ``run`` with this verdict; None where no node was to be upgraded."""
    receipts = latest_receipts(line.faults)
    of_steps = [receipt for receipt in receipts if issubclass(receipt.facts, OperatorStep)]
    of_steps.sort(key=lambda receipt: receipt.sequence)
    if not of_steps or line.judgement is None:
        return None
    others = [receipt for receipt in receipts if receipt not in of_steps]
    beside = [receipt for receipt in others if receipt.took_effect]
    put_to_test = bool(beside) or not others
    losses = tuple(_losses(run, line, of_steps, beside))
    met = {fault.sequence: fault.acknowledged for fault in line.fault_exercise or ()}
    judgement = line.judgement
    exercised = judgement.exercised or RunsExercised()
    families = () if line.run is None else line.run.family.split("+")
    placed = sum(loss.writes for loss in losses)
    steps = tuple(
        msgspec.structs.replace(
            _step(number, receipt, losses, beside),
            writes=met.get(receipt.sequence, 0),
            lost_at_least=judgement.lost > placed,
        )
        for number, receipt in enumerate(of_steps, 1)
    )
    certificate = Certificate(
        run=line.history,
        cell="" if line.run is None else line.run.cell,
        outcome=line.outcome,
        granted=put_to_test
        and all(step.done for step in steps)
        and not judgement.broken
        and not line.outcome.proves_nothing,
        attempted=line.exercise.attempted,
        acknowledged=line.exercise.acknowledged,
        lost=judgement.lost,
        steps=steps,
        losses=losses,
        faults=dict(Counter(receipt.fault for receipt in beside)),
        broken=judgement.broken,
        permitted=judgement.permitted,
        unknown=line.exercise.unknown,
        exercised={name: family.exercised for name, family in exercised.of(families).items()},
        bound=exercised.bound(families),
        missed=dict(Counter(receipt.fault for receipt in others if not receipt.took_effect)),
        lacks=line.why_unknown
        or ("" if put_to_test else "none of the faults that were planned beside the steps struck"),
    )
    return msgspec.structs.replace(certificate, sentence=sentence_of(certificate))


def sentence_of(certificate: Certificate) -> str:
    """Say what is certified, or why nothing is."""
    steps, faults = len(certificate.steps), sum(certificate.faults.values())
    lost = f"{counted(certificate.lost, 'acknowledged write')} lost"
    if certificate.lost:
        permitted = "against the promise of the settings" if certificate.broken else "as the settings permit"
        return f"{lost} {permitted}{_places(certificate)}; {_undone(certificate) or 'every step was completed'}"
    if certificate.broken:
        return f"a promise was broken: {', '.join(f'{count} {name}' for name, count in certificate.broken.items())}"
    if why_not := _undone(certificate) or ("" if certificate.granted else certificate.lacks or certificate.outcome):
        return f"not certified: {why_not}"
    missed = f" ({sum(certificate.missed.values())} more did not strike)" if certificate.missed else ""
    return (
        f"certified: {lost} in {counted(steps, 'step')}, with {counted(faults, 'other fault')}{missed}. "
        f"Faults that met writes: {_by_kind(certificate.exercised)}. At 95 % confidence at most "
        f"{100 * certificate.bound:.0f} % of such faults lose a write"
    )


def _places(certificate: Certificate) -> str:
    """The steps at which writes were lost: with their numbers where that is more than one, or not known of all."""
    places: Counter[str] = Counter()
    for loss in certificate.losses:
        places[_when(loss)] += loss.writes
    if not places:
        return ""
    if (rest := certificate.lost - places.total()) > 0:
        places[UNPLACED] = rest
    words = [f"{writes:,} {step}" for step, writes in places.items()] if len(places) > 1 else [*places]
    return f", {', '.join(words)}"


def _undone(certificate: Certificate) -> str:
    first = next((step for step in certificate.steps if not step.done), None)
    return "" if first is None else f"step {first.number} ({first.act} {first.node}) was not done: {first.why_not}"


def _step(number: int, receipt: Receipt, losses: Iterable[Loss], beside: Sequence[Receipt]) -> StepTaken:
    (node,) = receipt.targets or (-1,)
    begun: Prepared = receipt.of_nodes.get(str(node), {})
    ended: Described = by_node(receipt.end_evidence).get(str(node), {})
    raised: Finalized = receipt.of_nodes.get(str(node), {})
    why_not = _why_not(receipt, begun.get("wanted", ""), ended)
    return StepTaken(
        number=number,
        node=receipt.role,
        act=receipt.fault,
        begun_us=receipt.begun_us,
        ended_us=end_of(receipt, receipt.begun_us),
        before=begun.get("version", ""),
        wanted=begun.get("wanted", ""),
        after=ended.get("version", ""),
        features=(raised if receipt.fault == Finalize.kind else ended).get("features", {}),
        raised=receipt.facts.in_words(receipt.of_nodes) if "wanted" not in begun else "",
        changed=ended.get("changed", {}),
        wiped="wiped" in ended,
        done=not why_not,
        why_not=why_not,
        lost=sum(loss.writes for loss in losses if loss.step == number and loss.during),
        beside=tuple(fault_name(other) for other in beside if _overlaps(other, receipt)),
    )


def _why_not(receipt: Receipt, wanted: str, ended: Described) -> str:
    if not receipt.took_effect:
        return receipt.reason
    if receipt.mark != "end":
        return "the run ended first"
    if not isinstance(receipt.cut_short, msgspec.UnsetType):
        return receipt.cut_short
    if wanted and (after := ended.get("version", "")) != wanted:
        return f"{receipt.role} runs {after or 'an unknown release'}, not {wanted}"
    return ended.get("refused", "") or (_not_afresh(ended) if receipt.facts.empties_disk else "")


def _not_afresh(ended: Described) -> str:
    """Say what was not seen of a node that another one replaced; "" where the cluster says who its members are."""
    if "wiped" not in ended:
        return "its disk was not emptied"
    return "" if {"registered", "voters"} & ended.keys() else ended.get("unconfirmed", "")


def _overlaps(other: Receipt, step: Receipt) -> bool:
    later_us = max(other.begun_us, step.begun_us)
    return later_us <= end_of(other, later_us) and later_us <= end_of(step, later_us)


def _losses(run: Path, line: VerdictLine, steps: Sequence[Receipt], beside: Sequence[Receipt]) -> Iterator[Loss]:
    """Lost writes by step and cause, in order of time."""
    causes: dict[tuple[int, bool, tuple[str, ...]], list[int]] = {}
    for gone_us, acknowledged_us in sorted(_moments(run, line)):
        step, during = _step_at(gone_us, steps)
        faults = tuple(
            f"{fault_name(fault)} at {moment(fault.begun_us)}"
            for fault in beside
            if fault.begun_us <= gone_us and end_of(fault, gone_us) + STILL_CAUSE_US >= acknowledged_us
        )
        causes.setdefault((step, during, faults), []).append(gone_us)
    for (step, during, faults), times_us in causes.items():
        yield Loss(step=step, during=during, faults=faults, writes=len(times_us), first_us=times_us[0])


def _moments(run: Path, line: VerdictLine) -> Iterator[tuple[int, int]]:
    """Give, of each lost write, the time at which it went, and that of its acknowledgement.

    A run whose history is not kept gives none.
    """
    counted_kinds = () if line.judgement is None else (*line.judgement.broken, *line.judgement.permitted)
    if LOSSES.isdisjoint(counted_kinds) or not (run / HISTORY).is_dir():
        return
    told = (seen for seen in read_observations(run) if isinstance(seen.fact, BecameLeader | IsrChanged | Truncated))
    observations = sorted(told, key=lambda seen: seen.time_us)
    for partition, values in lost_in(run, counted_kinds).items():
        here = tuple(seen for seen in observations if seen.partition == partition)
        acknowledged = client_side(run / HISTORY, partition).acknowledged
        for write in filter(None, map(acknowledged.get, values)):
            answered_us = write.acknowledged_us
            timeline = Timeline(partition=partition, write=write, begin_us=0, end_us=answered_us, observations=here)
            yield timeline.gone_us or answered_us, answered_us


def _step_at(time_us: int, steps: Sequence[Receipt]) -> tuple[int, bool]:
    """The number of the step that lasts at this time, or of the last before; and whether it lasts."""
    begun = [number for number, step in enumerate(steps, 1) if step.took_effect and step.begun_us <= time_us]
    if not begun:
        return 0, False
    step = steps[begun[-1] - 1]
    return begun[-1], time_us <= end_of(step, time_us)


def as_lines(certificate: Certificate) -> Iterator[str]:
    """The certificate for people, a line each."""
    yield f"{certificate.cell}: {certificate.sentence}"
    for step in certificate.steps:
        yield f"  {step.number}. {step_words(step)}"
    yield f"  written: {written_words(certificate)}"
    yield f"  other faults: {_by_kind(certificate.faults) or 'none'}"
    if certificate.missed:
        yield f"  did not strike: {_by_kind(certificate.missed)}"
    yield from (f"  lost: {loss_words(loss)}" for loss in certificate.losses)
    if certificate.lost > (placed := sum(loss.writes for loss in certificate.losses)):
        yield f"  lost: {certificate.lost - placed:,} more, {UNPLACED}"


def written_words(certificate: Certificate) -> str:
    """The writes, and what else was seen of them than losses."""
    told = f"{certificate.acknowledged:,} of {certificate.attempted:,} writes acknowledged"
    unknown = f", {certificate.unknown:,} without an answer" if certificate.unknown else ""
    seen = f"; permitted, and seen: {_by_kind(certificate.permitted)}" if certificate.permitted else ""
    return f"{told}{unknown}{seen}"


def _by_kind(faults: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in faults.items())


def step_words(step: StepTaken) -> str:
    """One step in a line."""
    if not step.done:
        return f"{step.act} {step.node}: not done, {step.why_not}"
    if step.act == Finalize.kind:
        return f"features finalized at {moment(step.begun_us)}: {step.raised or 'no feature was lower'}"
    if step.wanted:
        changed = "".join(f", {name}={value}" for name, value in step.changed.items())
        done = f"{step.before or '?'} to {step.after}{', on an empty disk' if step.wiped else ''}{changed}"
    else:
        done = f"{step.act}, {step.raised}"
    whole = f"every replica in sync again after {(step.ended_us - step.begun_us) / 1e6:.1f} s"
    beside = f"; at the same time: {', '.join(step.beside)}" if step.beside else ""
    lost = f"{'at least ' if step.lost_at_least else ''}{step.lost:,} lost"
    return f"{step.node}: {done}, {whole}; {step.writes:,} writes acknowledged, {lost}{beside}"


def loss_words(loss: Loss) -> str:
    """One loss in a line."""
    faults = f", after {'; '.join(loss.faults)}" if loss.faults else ", without another fault"
    return f"{counted(loss.writes, 'write')} {_when(loss)} at {moment(loss.first_us)}{faults}"


def _when(loss: Loss) -> str:
    return "before step 1" if not loss.step else f"{'during' if loss.during else 'after'} step {loss.step}"
