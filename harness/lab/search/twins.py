"""The simulated twin of a run on real processes: its faults and its writes, with their times, in virtual time.

A real run cannot be taken apart, because it does not repeat itself. What it did is in its record: whom each fault hit
and when, and when each write was sent. The same is done in the simulated world, with other draws until it shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from checkers import Verdict, check_one, latest_receipts
from harness.ground.errors import NamedWronglyError
from harness.ground.machine.translated_errors import translated_errors
from harness.lab.search.judged_run import JudgedRun, judged, run_in_memory
from harness.lab.search.list_form import with_role, with_steps, with_writes
from harness.lab.search.sameness import FindingToKeep, worst_of
from harness.plan import Kafka, RunSpec, Simulated
from harness.records.files import HISTORY
from harness.records.run_record import RunRecord
from nemesis.faults import FAULTS
from nemesis.receipts import Receipt
from nemesis.roles import Role, RoleKind
from nemesis.schedule import Schedule, ScheduledFault
from workloads import EventType, Function, LogPartition, PlannedWrite
from workloads.history import read_events

#: The number of tries, with roles and nodes in turn and other draws each time.
TRIES: Final = 20
_KINDS: Final = frozenset(kind.kind for kind in FAULTS)


class Twin(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the search for a twin: a ``run`` that shows ``finding``, None where none of ``tries`` did.

    ``verdict`` is that on the real run.
    """

    finding: FindingToKeep
    verdict: Verdict
    run: JudgedRun | None
    tries: int

    def in_words(self) -> str:
        """The end of the search for people."""
        if self.run is None:
            return f"No simulated twin: of {self.tries} runs with its faults and writes in virtual time none showed it."
        which = "the first" if self.tries == 1 else f"number {self.tries}"
        return f"A simulated twin shows it: {which} of the runs with its faults and writes in virtual time."


def twin_of(directory: Path, record: RunRecord, anomaly: str = "") -> Twin:
    """Look for a twin of the real run in ``directory`` that shows its finding, the worst or that of ``anomaly``.

    Raises:
        NamedWronglyError: it shows no such finding, or has no receipts of its faults.
    """
    with translated_errors():
        verdict = check_one(directory)
    spec = record.spec()
    finding = worst_of(str(directory), verdict, judged(spec, verdict), anomaly)
    tries = 0
    for candidate in islice(_candidates(directory, record, latest_receipts(verdict.faults)), TRIES):
        tries += 1
        run = run_in_memory(candidate)
        if finding.is_in(run):
            return Twin(finding=finding, verdict=verdict, run=run, tries=tries)
    return Twin(finding=finding, verdict=verdict, run=None, tries=tries)


def _candidates(directory: Path, record: RunRecord, receipts: Sequence[Receipt]) -> Iterator[RunSpec]:
    """Twins with other draws: whom the faults hit by number, and then by role, in turn."""
    if record.ended.report is None:
        raise NamedWronglyError(f"{directory} has no receipts of its faults; name a run that completed")
    planned = msgspec.convert(record.ended.report["schedule"], Schedule)
    begun_us, healed_us, writes = _writes(directory)
    done = [
        receipt
        for receipt in receipts
        if receipt.took_effect and receipt.fault in _KINDS and receipt.sequence < len(planned.steps)
    ]
    by_role = [_moved(planned.steps[receipt.sequence], receipt, begun_us) for receipt in done]
    by_number = [
        step for receipt, role in zip(done, by_role, strict=True) for step in _by_number(role, receipt, record)
    ]
    base = _base(record, (healed_us - begun_us) // 1000)
    numbered = msgspec.structs.replace(base, assignment=_assignment(record, done))
    for number in range(TRIES):
        spec, steps = ((numbered, by_number), (base, by_role))[number % 2]
        in_order = sorted(steps, key=lambda step: step.begin_ms)
        yield msgspec.structs.replace(with_writes(with_steps(spec, in_order), writes), seed=number // 2)


def _base(record: RunRecord, duration_ms: int) -> RunSpec:
    """The run in the simulated world, which follows Kafka where its core knows two ways."""
    spec = record.spec()
    rules = {"missed.epoch": "kafka", "producers.after.restart": "last-batch"} if isinstance(spec.world, Kafka) else {}
    workload = msgspec.structs.replace(spec.workload, duration_ms=duration_ms, topic="ackproof", replace_silent_ms=0)
    return msgspec.structs.replace(
        spec, world=Simulated(), settings=spec.settings | rules, workload=workload, client_defaults=()
    )


def _writes(directory: Path) -> tuple[int, int, list[PlannedWrite]]:
    """The begin of the workload, the moment of healing (both in microseconds), and the writes between the two."""
    begun_us = healed_us = 0
    sent: list[tuple[int, int, str]] = []
    places: dict[int, int] = {}
    for event in read_events(directory / HISTORY):
        if event.function is Function.PHASE and event.detail:
            mark = msgspec.json.decode(event.detail).get("mark")
            begun_us = event.time_us if mark == "break" else begun_us
            healed_us = event.time_us if mark == "heal" else healed_us
        elif event.function is Function.SEND and event.type is EventType.INVOKE and not healed_us:
            producer = places.setdefault(event.instance, len(places))
            sent += [(event.time_us, producer, micro.partition) for micro in event.micro if hasattr(micro, "partition")]
    writes = [
        PlannedWrite(due_us=time_us - begun_us, producer=producer, partition=LogPartition.named(name).number)
        for time_us, producer, name in sent
    ]
    return begun_us, healed_us, writes


def _moved(step: ScheduledFault, receipt: Receipt, begun_us: int) -> ScheduledFault:
    """The step at the time at which its fault really began and ended."""
    begin_ms = (receipt.begun_us - begun_us) // 1000
    ended_us = receipt.begun_us + 1000 * (step.end_ms - step.begin_ms) if receipt.ended_us is None else receipt.ended_us
    return msgspec.structs.replace(step, begin_ms=begin_ms, end_ms=(ended_us - begun_us) // 1000)


def _by_number(step: ScheduledFault, receipt: Receipt, record: RunRecord) -> list[ScheduledFault]:
    """The step for each broker that it hit; around the leader of then where it hit links."""
    hit = [node for node in receipt.targets if node < record.brokers]
    role = step.fault.role
    if not hit and role.kind is RoleKind.LEADER:
        looks = (receipt.seen or {}).get(_partition(record, role.partition), ())
        hit = [look.leader for look in looks[:1] if look.leader is not None]
    if not hit or role.kind not in _OF_BROKERS:
        return [step]
    return [with_role(step, Role(RoleKind.NAMED, role.partition, node)) for node in hit]


#: Roles that brokers have, so that a number can replace them.
_OF_BROKERS: Final = frozenset(RoleKind) - {
    RoleKind.CONTROLLER,
    RoleKind.PRODUCER,
    RoleKind.COORDINATOR,
    RoleKind.TRANSACTION_COORDINATOR,
    RoleKind.RACK,
    RoleKind.MINORITY,
}


def _assignment(record: RunRecord, receipts: Sequence[Receipt]) -> tuple[tuple[int, ...], ...]:
    """Replicas of each log partition, so that it is first led by whom the first fault saw lead."""
    leaders: dict[str, int] = {}
    for receipt in receipts:
        for name, looks in (receipt.seen or {}).items():
            if looks and looks[0].leader is not None:
                leaders.setdefault(name, looks[0].leader)
    copies = record.chosen().replication_factor
    first = [leaders.get(_partition(record, number), number) for number in range(record.workload.partitions)]
    return tuple(tuple((node + turn) % record.brokers for turn in range(copies)) for node in first)


def _partition(record: RunRecord, number: int) -> str:
    return str(LogPartition(record.workload.topic, number))
