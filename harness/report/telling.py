"""A lost write's story in sentences: facts from the history, from receipts, and from what brokers observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.report.brokers import led_in
from harness.report.timeline import Timeline, Write, removes
from harness.worlds.contract import Observation
from nemesis.contract import CLIENTS, CONTROLLER
from nemesis.receipts import Receipt
from workloads.values import split

#: Faults and truncations told in words; the chart shows all of them.
TOLD_MAX: Final = 6
#: All links of a cluster of three brokers, its controller and the clients.
LINKS_MAX: Final = 10


def tell(timeline: Timeline) -> list[str]:
    """The story, in order of time."""
    return [
        *_acknowledged(timeline),
        *(_fault(receipt, timeline.partition) for receipt in timeline.faults[:TOLD_MAX]),
        *_returns(timeline),
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


def _acknowledged(timeline: Timeline) -> list[str]:
    write = timeline.write
    name = f"{write_name(write.value).capitalize()} to {timeline.partition}"
    sent, answered = seconds(write.invoked_us), seconds(write.acknowledged_us)
    if write.offset is None:
        nobody = "without an offset, because with acks=0 no broker answers: its place in the log is not known"
        return [f"{name} was sent at {sent} and counted as acknowledged at {answered}{_by_whom(timeline)}, {nobody}."]
    return [f"{name} at offset {write.offset} was sent at {sent} and acknowledged at {answered}{_by_whom(timeline)}."]


def _by_whom(timeline: Timeline) -> str:
    write = timeline.write
    if write.node is None:
        return ""
    led = led_in(timeline.cluster, write.node, write.acknowledged_us)
    epoch = f" in epoch {led['leader_epoch']}" if "leader_epoch" in led else ""
    isr = f" with in-sync replicas {listed(led['isr'])}" if "isr" in led else ""
    if not write.told:
        return f", when broker {write.node} led{epoch}{isr}"
    return f" by broker {write.node}" + (f", which led{epoch}{isr}" if epoch or isr else "")


def listed(nodes: Sequence[int]) -> str:
    """Brokers as a set."""
    return "{" + ", ".join(str(node) for node in nodes) + "}"


def _fault(receipt: Receipt, partition: str) -> str:
    until = "it lasted to the end" if receipt.ended_us is None else f"until {seconds(receipt.ended_us)}"
    changes = receipt.moved.get(partition, {})
    moves = ", ".join(f"{_field(name)} {_shown(old)} → {_shown(new)}" for name, (old, new) in changes.items())
    told = [f"cut {cut_links(receipt)}"] if receipt.links else []
    told += [f"meanwhile {moves}"] if moves else []
    return f"Fault: {'; '.join([f'{fault_name(receipt)} from {seconds(receipt.begun_us)} {until}', *told])}."


def cut_links(receipt: Receipt) -> str:
    """The links that a fault cut: both directions with a dash, one direction with an arrow."""
    links = {(link[0], link[1]) for link in receipt.links}
    both = sorted(link for link in links if link[::-1] in links and link[0] < link[1])
    one_way = sorted(link for link in links if link[::-1] not in links)
    words = [f"{node_name(a)} – {node_name(b)}" for a, b in both] + [
        f"{node_name(a)} → {node_name(b)}" for a, b in one_way
    ]
    return ", ".join([*words[:LINKS_MAX], *(["…"] if len(words) > LINKS_MAX else [])])


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
    return ", without the write" if write.offset is not None and end is not None and end <= write.offset else ""


def _returns(timeline: Timeline) -> list[str]:
    """Brokers that came back without what they once had: loss of power leaves no truncation behind."""
    darkened = {node for fault in timeline.faults if fault.fault == "powerloss" for node in fault.targets}
    back = [
        seen
        for seen in timeline.cluster
        if seen.what == "recovered" and seen.node in darkened and seen.time_us > timeline.write.acknowledged_us
    ]
    return [
        f"At {seconds(seen.time_us)} broker {seen.node} had its power again; its disk held the log up to offset "
        f"{seen.facts.get('end_offset')}{_lacks(seen, timeline.write)}."
        for seen in back
        if _lacks(seen, timeline.write)
    ][:TOLD_MAX]


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
    by = f" by broker {other.node}" if other and other.node is not None else ""
    answered = f", acknowledged at {seconds(other.acknowledged_us)}{by}" if other else ""
    return f"Offset {write.offset} now holds {write_name(timeline.successor)}{answered}."
