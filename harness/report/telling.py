"""A lost write's story in sentences: facts from the history, from receipts, and from what brokers observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.report.timeline import Timeline, Write, removes
from harness.worlds.contract import Observation
from nemesis.contract import CLIENTS, CONTROLLER
from nemesis.receipts import Receipt
from workloads.values import split

#: Faults and truncations told in words; the chart shows all of them.
TOLD_MAX: Final = 6


def tell(timeline: Timeline) -> list[str]:
    """The story, in order of time."""
    return [
        *_acknowledged(timeline),
        *(_fault(receipt) for receipt in timeline.faults[:TOLD_MAX]),
        *_elections(timeline),
        *_truncations(timeline),
        _afterwards(timeline),
        *([] if timeline.cluster else [WITHOUT_BROKERS]),
    ]


WITHOUT_BROKERS: Final = (
    "What the brokers did was not recorded for this run, so leaders and high watermarks are missing here: the replay "
    "command below records them."
)


def write_name(value: int) -> str:
    """A value as people say it: who wrote it, and its number among that process's writes."""
    process, sequence = split(value)
    return f"write {sequence} of process {process}"


def seconds(time_us: int) -> str:
    """A moment of the run's clock."""
    return f"{time_us / 1e6:.3f} s"


def node_name(node: int) -> str:
    """A node as people call it."""
    return {CONTROLLER: "the controller", CLIENTS: "the clients"}.get(node, f"broker {node}")


def fault_name(receipt: Receipt) -> str:
    """A fault as people call it: what, whom, and which role that was."""
    nodes = ", ".join(node_name(node) for node in receipt.targets)
    what = f"{receipt.fault} ({receipt.shape})" if receipt.shape else receipt.fault
    return " ".join(part for part in (what, nodes, f"[{receipt.role}]" if receipt.role else "") if part)


def broker_at(cluster: Sequence[Observation], node: int | None, time_us: int) -> Observation | None:
    """The newest word of ``node`` itself about leading the partition, at or before ``time_us``."""
    told = [seen for seen in cluster if seen.node == node and seen.what == "leader" and seen.time_us <= time_us]
    return told[-1] if told else None


def isr_at(cluster: Sequence[Observation], node: int | None, time_us: int) -> Sequence[int] | None:
    """The committed ISR as ``node`` saw it while it led, at or before ``time_us``."""
    told = [
        seen for seen in cluster if seen.node == node and seen.what in {"leader", "isr"} and seen.time_us <= time_us
    ]
    return told[-1].facts.get("isr") if told else None


def _acknowledged(timeline: Timeline) -> list[str]:
    write = timeline.write
    where = f"to {timeline.partition}" + ("" if write.offset is None else f" at offset {write.offset}")
    by = "" if write.node is None else f" by broker {write.node}"
    times = f"sent at {seconds(write.invoked_us)} and acknowledged{by} at {seconds(write.acknowledged_us)}"
    first = f"{write_name(write.value).capitalize()} {where} was {times}{_epoch_and_isr(timeline)}."
    unknown = "The acknowledgement carries no offset (acks=0), so its place in the log is not known."
    return [first] if write.offset is not None else [first, unknown]


def _epoch_and_isr(timeline: Timeline) -> str:
    write = timeline.write
    led = broker_at(timeline.cluster, write.node, write.acknowledged_us)
    isr = isr_at(timeline.cluster, write.node, write.acknowledged_us)
    epoch = f", which led in epoch {led.facts.get('leader_epoch')}" if led else ""
    return epoch + (f" with in-sync replicas {listed(isr)}" if isr is not None else "")


def listed(nodes: Sequence[int]) -> str:
    """Brokers as a set."""
    return "{" + ", ".join(str(node) for node in nodes) + "}"


def _fault(receipt: Receipt) -> str:
    until = "it lasted to the end" if receipt.ended_us is None else f"until {seconds(receipt.ended_us)}"
    moves = "; ".join(_moves(name, changes) for name, changes in list(receipt.moved.items())[:TOLD_MAX])
    return f"Fault: {fault_name(receipt)} from {seconds(receipt.begun_us)}, {until}{f'; {moves}' if moves else ''}."


def _moves(partition: str, changes: Mapping[str, Any]) -> str:
    words = (f"{_field(name)} {_shown(old)} → {_shown(new)}" for name, (old, new) in changes.items())
    return f"{partition}: {', '.join(words)}"


def _field(name: str) -> str:
    return {"isr": "in-sync replicas", "leader_epoch": "epoch"}.get(name, name)


def _shown(value: object) -> str:
    if value is None:
        return "nobody"
    return listed(value) if isinstance(value, (list, tuple)) else str(value)


def _elections(timeline: Timeline) -> list[str]:
    after = [
        seen for seen in timeline.cluster if seen.what == "leader" and seen.time_us > timeline.write.acknowledged_us
    ]
    return [
        f"At {seconds(seen.time_us)} broker {seen.node} began to lead in epoch {seen.facts.get('leader_epoch')}; its "
        f"log ended at offset {seen.facts.get('end_offset')}{_lacks(seen, timeline.write)}."
        for seen in after[:TOLD_MAX]
    ]


def _lacks(seen: Observation, write: Write) -> str:
    end = seen.facts.get("end_offset")
    return ", so it never had the write" if write.offset is not None and end is not None and end <= write.offset else ""


def _truncations(timeline: Timeline) -> list[str]:
    return [
        f"At {seconds(seen.time_us)} broker {seen.node} truncated its log from {seen.facts.get('from_offset')} to "
        f"{seen.facts.get('to_offset')}, following broker {seen.facts.get('leader')} in epoch "
        f"{seen.facts.get('leader_epoch')}: this removed the write."
        for seen in timeline.cluster
        if removes(seen, timeline.write)
    ][:TOLD_MAX]


def _afterwards(timeline: Timeline) -> str:
    write, other = timeline.write, timeline.successor_write
    if write.offset is None:
        return "After healing, nobody read this write anywhere in the log."
    if timeline.successor is None:
        end = "" if timeline.end_offset is None else f"; the log ends at {timeline.end_offset}"
        return f"After healing, nobody read anything at offset {write.offset}{end}."
    answered = (
        f", acknowledged at {seconds(other.acknowledged_us)}{'' if other.node is None else f' by broker {other.node}'}"
        if other
        else ""
    )
    return f"Offset {write.offset} now holds {write_name(timeline.successor)}{answered}."
