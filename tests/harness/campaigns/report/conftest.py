"""A campaign made by hand: the story of a write that a dying leader took with it, once per losing run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers import Availability, Exercise, Verdict
from checkers.measures.recovery import Recovery
from checkers.measures.writes_met import FaultExercise
from harness.ground.machine.versions import MachineSize
from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    Fact,
    HighWatermarkMoved,
    IsrChanged,
    Observation,
    ReplicaRecovered,
    Truncated,
)
from harness.plan import AnyWorld, Kafka, Processes, RunSpec, Simulated
from harness.records.campaign_record import CampaignRecord, write_campaign_record
from harness.records.cluster_file import write_observations
from harness.records.files import HISTORY, VERDICTS_FILE
from harness.records.run_record import Ended, write_record
from nemesis.plan import FaultPlan
from nemesis.receipts import Receipt
from tests.checkers.findings import a_finding
from tests.nemesis.receipt_factory import a_receipt
from workloads.history import HistoryWriter
from workloads.operations import NEMESIS, Event, EventType, Function, Poll, Record, Send
from workloads.plan import WorkloadPlan
from workloads.settings import Settings
from workloads.values import join

PARTITION = "ackproof-0"
LOST = join(2, 41)
SUCCESSOR = join(1, 55)
WORLDS: dict[str, AnyWorld] = {"simulated": Simulated(), "processes": Processes(), "kafka": Kafka()}
MakeRun = Callable[..., Verdict]


def kill_receipt(**changes: Any) -> Receipt:
    usual: dict[str, Any] = {
        "role": "leader of partition 0",
        "begun_us": 4_200_000,
        "ended_us": 7_500_000,
        "begin_evidence": {"0": {"signal": 9}},
        "moved": {PARTITION: {"leader": [0, 1], "leader_epoch": [3, 4], "isr": [[0, 1, 2], [1, 2]]}},
        "reason": "observed when it began",
    }
    return a_receipt(**usual | changes)


def write_history(run: Path, *, offsets: bool, gone: int = 4) -> None:
    """Broker 0 acknowledges offsets 0 to 41 and dies; broker 1 goes on from 38; readers find its records.

    So four writes are ``gone``, or as many as this says. Without ``offsets`` producers are not told where their writes
    stand, as with acks=0.
    """
    history = HistoryWriter(run / HISTORY, "run")

    def send(at_us: int, process: int, value: int, offset: int, node: int) -> None:
        fixed = {"process": process, "function": Function.SEND}
        history.record(Event(time_us=at_us, type=EventType.INVOKE, micro=(Send(PARTITION, value),), **fixed))
        done = (Send(PARTITION, value, offset if offsets else None),)
        history.record(Event(time_us=at_us + 3_000, type=EventType.OK, micro=done, node=node, **fixed))

    for offset in range(38 + gone):
        since = offset - 38
        at_us = 100_000 * offset if since < 0 else 3_800_000 + 400_000 * since // gone
        send(at_us + 50_000, 2, join(2, offset), offset, 0)
    receipt = kill_receipt()
    detail = msgspec.json.encode(receipt).decode()
    history.record(
        Event(time_us=4_200_000, process=NEMESIS, type=EventType.INFO, function=Function.FAULT, detail=detail)
    )
    for number in range(20):
        send(6_300_000 + 100_000 * number, 1, join(1, 52 + number), 38 + number, 1)
    kept = [Record(offset, join(2, offset)) for offset in range(38)]
    kept += [Record(38 + number, join(1, 52 + number)) for number in range(20)]
    history.record(Event(time_us=9_000_000, process=5, type=EventType.INVOKE, function=Function.POLL, micro=(Poll(),)))
    read = (Poll({PARTITION: tuple(kept)}),)
    history.record(Event(time_us=9_010_000, process=5, type=EventType.OK, function=Function.POLL, micro=read))
    end = {"partitions": (PARTITION,), "offset": 58}
    history.record(Event(time_us=9_020_000, process=5, type=EventType.OK, function=Function.DRAIN, **end))
    history.close()


def write_cluster(run: Path) -> None:
    """The brokers' side of the same story."""

    def seen(time_us: int, node: int, kind: Callable[..., Fact], **facts: Any) -> Observation:
        return Observation(time_us, node, kind(partition=PARTITION, **facts))

    reported = [seen(10_000, 0, BecameLeader, leader_epoch=3, end_offset=0, isr=(0, 1, 2))]
    reported += [seen(100_000 * n + 60_000, 0, HighWatermarkMoved, offset=n) for n in range(1, 38)]
    reported += [seen(5_900_000, 1, BecameLeader, leader_epoch=4, end_offset=38, isr=(1, 2))]
    reported += [seen(6_310_000 + 100_000 * n, 1, HighWatermarkMoved, offset=39 + n) for n in range(20)]
    reported += [seen(7_600_000, 0, ReplicaRecovered, end_offset=42, high_watermark=37)]
    reported += [seen(7_900_000, 0, BecameFollower, leader=1, leader_epoch=4)]
    reported += [seen(7_910_000, 0, Truncated, from_offset=42, to_offset=38, leader_epoch=4, leader=1)]
    reported += [seen(8_200_000, 1, IsrChanged, isr=(0, 1, 2), leader_epoch=4, partition_epoch=9)]
    write_observations(run, reported)


@pytest.fixture
def campaign(tmp_path: Path) -> tuple[Path, MakeRun]:
    """An empty campaign, and a function that adds a run with its verdict to it."""
    return empty_campaign(tmp_path)


#: Markup wherever names, values and texts come from: what it wants must not happen.
EVIL = (
    "<img src=x onerror=window.executed=1>&'\"`{{7*7}}${window.executed=1}</script><script>window.executed=1</script>"
)


def campaign_record(**given: Any) -> CampaignRecord:
    """A finished campaign of nothing, but for what is ``given``."""
    machine = MachineSize(processor="p", cores=2, memory_bytes=1, system="s")
    usual: dict[str, Any] = {"name": "synthetic", "seed": 1, "status": "completed", "began": "", "command": ""}
    return CampaignRecord(**usual | {"machine": machine, "versions": {}, "worlds": {}} | given)


def make_hostile(directory: Path, make: MakeRun) -> None:
    """Add a run whose key, value, topic, node's name, error text and everything around it is markup."""
    finding = {"key": EVIL, "value": 1, EVIL: EVIL, "node": EVIL, "error": EVIL}
    wedged = {"key": "ackproof-0", "instance": 3, "client": EVIL, "errors": [EVIL]}
    fault = kill_receipt(role=EVIL, shape=EVIL, begin_evidence={EVIL: {EVIL: EVIL}}, reason=EVIL)
    make(
        Settings(acks=1),
        lost=1,
        family=EVIL,
        cell=f"acks=1{EVIL.replace('/', '|')}",
        history=True,
        cluster=True,
        anomalies={"lost-write": [finding], "wedged-client": [wedged]},
        counts={"lost-write": 1, "wedged-client": 1},
        faults=[msgspec.to_builtins(fault)],
        reason=EVIL,
    )
    (directory / "plan.toml").write_text(f"</pre>{EVIL}")
    machine = MachineSize(processor=EVIL, cores=2, memory_bytes=1, system=EVIL)
    write_campaign_record(
        directory, campaign_record(command=EVIL, machine=machine, versions={EVIL: EVIL}, name=EVIL, began=EVIL)
    )


def _fields(finding: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(finding)
    return fields


def _verdict(history: str, *, family: str, lost: int, in_fault: int) -> Verdict:
    exercise = Exercise(
        attempted=900, acknowledged=800, acknowledged_in_fault=in_fault, records_read=3_000, drained=True
    )
    return Verdict(
        history=history,
        valid=not lost,
        counts={"lost-write": lost} if lost else {},
        exercise=exercise,
        availability={PARTITION: Availability(longest_gap_us=2_100_000, gap_start_us=4_153_000, recovery_us=90_000)},
        faults=[kill_receipt(family=family, fault="pause" if family == "pause" else "kill")],
        fault_exercise=[FaultExercise(sequence=0, acknowledged=in_fault)],
        recovery=Recovery(tried=True),
    )


def empty_campaign(parent: Path) -> tuple[Path, MakeRun]:
    """See the fixture."""
    directory = parent / "results" / "synthetic"
    directory.mkdir(parents=True)
    (directory / VERDICTS_FILE).write_bytes(b"")

    def make(
        settings: Settings,
        *,
        family: str = "kill",
        world: str = "simulated",
        cell: str | None = None,
        seed: int = 7,
        lost: int = 0,
        in_fault: int = 300,
        history: bool = False,
        cluster: bool = False,
        offsets: bool = True,
        gone: int = 4,
        **changes: Any,
    ) -> Verdict:
        name = cell or f"acks={settings.acks},isr={settings.min_insync_replicas}/{family}"
        spec = RunSpec(
            world=WORLDS[world],
            cell=name,
            family=family,
            settings=settings.to_mapping(),
            workload=WorkloadPlan(),
            faults=FaultPlan(exercised_min=1),
            seed=seed,
        )
        run = directory / "runs" / world / name / str(seed)
        run.mkdir(parents=True)
        write_record(run, spec, Ended(status="completed"))
        if history:
            write_history(run, offsets=offsets, gone=gone)
        if cluster:
            write_cluster(run)
        finding = a_finding("lost-write", **{"key": PARTITION, "value": LOST, "index": 41, "max-read-index": 57})
        named = changes.pop("anomalies", {"lost-write": [finding]} if lost else {})
        anomalies = {
            name: [a_finding(name, **_fields(finding)) for finding in findings] for name, findings in named.items()
        }
        history_name = str(run.relative_to(directory))
        verdict = _verdict(history_name, family=family, lost=lost, in_fault=in_fault)
        verdict = msgspec.structs.replace(verdict, anomalies=anomalies, **changes)
        with (directory / VERDICTS_FILE).open("ab") as file:
            file.write(msgspec.json.encode(verdict) + b"\n")
        return verdict

    return directory, make
