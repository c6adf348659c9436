"""A lost write's story in sentences: facts from the history, from receipts, and from what brokers observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.report.brokers import led_in
from harness.report.timeline import Timeline, Write, gone_at_us, is_newer_leader, lacks, removes
from harness.run.unexplained_elections import UNASKED
from harness.worlds.contract import Observation
from nemesis import cluster
from nemesis.cluster import CONTROLLER
from nemesis.receipts import Receipt
from workloads.values import split

#: Faults and truncations told in words; the chart shows all of them.
TOLD_MAX: Final = 6
#: When (microseconds of the run's clock), and what happened.
Moment = tuple[int, str]
#: All links of a cluster of three brokers, its controller and the clients.
LINKS_MAX: Final = 10


def tell(timeline: Timeline) -> list[str]:
    """The story: the write and its acknowledgement, what happened around it in order of time, what is there now."""
    gone_us = gone_at_us(timeline)
    faults = [fault for fault in timeline.faults if gone_us is None or fault.begun_us <= gone_us]
    untold = len(timeline.faults) - len(faults[:TOLD_MAX])
    moments = [
        *((receipt.begun_us, _fault(receipt, timeline.partition)) for receipt in faults[:TOLD_MAX]),
        *_returns(timeline),
        *_elections(timeline),
        *_truncations(timeline),
        *_pauses(timeline, gone_us),
    ]
    return [
        *_acknowledged(timeline),
        *(sentence for _, sentence in sorted(moments, key=lambda moment: moment[0])),
        *([f"Later faults ({untold}) stand in the chart only."] if untold else []),
        _afterwards(timeline),
        *([] if timeline.cluster else [WITHOUT_BROKERS]),
    ]


def remains(finding: Mapping[str, Any]) -> list[str]:
    """Whether a copy of the lost write was left on some disk when the run had ended; nothing where nobody looked."""
    copies = [f"{node_name(copy['node'])} at offset {copy['offset']}" for copy in finding.get("copies") or ()]
    told = {
        "destroyed": "Destroyed: when the run had ended, no broker's log held a copy of it.",
        "hidden": f"Hidden: when the run had ended, a copy was left on {' and on '.join(copies)}, where nobody reads.",
        "in the log": f"It is in the log all the same, on {' and on '.join(copies)}: the final readers missed it.",
        "unknown": "Whether a copy is left is not known: none was found, and not every disk could be read.",
    }
    fate = finding.get("fate")
    return [told[fate]] if fate in told else []


WITHOUT_BROKERS: Final = (
    "What the brokers did was not recorded for this run, so leaders and high watermarks are missing here: the replay "
    "command below records them."
)


def differing(finding: Mapping[str, Any]) -> list[str]:
    """Replicas that hold different records at one offset: who holds what."""
    held = [
        f"broker {node} holds {write_name(value) if value >= 0 else 'a record that is not sound'}"
        for node, value in sorted((int(node), value) for node, value in finding["replicas"].items())
    ]
    at = f"At offset {finding['offset']} of {finding['key']}"
    return [
        f"{at}, when the run had ended, {', '.join(held)}. All of them were in sync, and the log was read beyond that."
    ]


def write_name(value: int) -> str:
    """A value as people say it: who wrote it, and its number among that process's writes."""
    process, sequence = split(value)
    return f"write {sequence} of process {process}"


def seconds(time_us: int) -> str:
    """A moment of the run's clock."""
    return f"{time_us / 1e6:.3f} s"


def node_name(node: int) -> str:
    """A node as people call it."""
    return "the controller" if node == CONTROLLER else cluster.node_name(node)


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
    told = f"{name} at offset {write.offset} was sent at {sent} and acknowledged at {answered}{_by_whom(timeline)}."
    return [f"{told}{_deposed(timeline)}"]


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


def _deposed(timeline: Timeline) -> str:
    """Whether somebody else led by then, in a newer epoch."""
    answered_us = timeline.write.acknowledged_us
    newer = [seen for seen in timeline.cluster if seen.time_us <= answered_us and is_newer_leader(seen, timeline)]
    if not newer:
        return ""
    now = newer[-1]
    return (
        f" By then broker {now.node} led in epoch {now.facts.get('leader_epoch')}: broker {timeline.write.node} was "
        "deposed and did not know it."
    )


def listed(nodes: Sequence[int]) -> str:
    """Brokers as a set."""
    return "{" + ", ".join(str(node) for node in nodes) + "}"


def _fault(receipt: Receipt, partition: str) -> str:
    if receipt.fault == UNASKED:
        return _unasked(receipt, partition)
    until = "it lasted to the end" if receipt.ended_us is None else f"until {seconds(receipt.ended_us)}"
    moves = _moves(receipt, partition)
    told = [f"cut {cut_links(receipt)}"] if receipt.links else []
    told += [PREPARATIONS[receipt.story]] if _prepares(receipt) else []
    told += [f"meanwhile {moves}"] if moves else []
    head = f"{fault_name(receipt)} from {seconds(receipt.begun_us)} {until}"
    if receipt.fault == DIED:
        ended = [evidence.get("exit") for evidence in receipt.begin_evidence.values() if isinstance(evidence, dict)]
        who = ", ".join(node_name(node) for node in receipt.targets)
        head = f"{who} ended by itself ({', '.join(map(str, ended))}) at {seconds(receipt.begun_us)}, down {until}"
        return f"Nobody's order: {'; '.join([head, *told])}."
    return f"Fault: {'; '.join([head, *told])}."


def _unasked(receipt: Receipt, partition: str) -> str:
    moved = f"changed ({_moves(receipt, partition)})" if partition in receipt.moved else "stayed, others' changed"
    when = f"between {seconds(receipt.begun_us)} and {seconds(receipt.ended_us or receipt.begun_us)}"
    return f"Nobody's order: {when} the leader {moved}, and no fault of this run that reached the cluster explains it."


def _moves(receipt: Receipt, partition: str) -> str:
    changes = receipt.moved.get(partition, {})
    return ", ".join(f"{_field(name)} {_shown(old)} → {_shown(new)}" for name, (old, new) in changes.items())


#: A node that ended by itself, as receipts name it.
DIED: Final = "died"
#: Why a story of another family begins with a cut, by the story's name.
PREPARATIONS: Final = {
    "leader-ahead": "this lets followers fall a little behind, still in sync, before the leader is hit",
    "last-in-sync": "this drives followers out of sync, so that the leader alone has the writes when it is hit",
}


def _prepares(receipt: Receipt) -> bool:
    return receipt.fault == "partition" != receipt.family and receipt.story in PREPARATIONS


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


def _at(seen: Observation, words: str) -> Moment:
    return seen.time_us, f"At {seconds(seen.time_us)} {words}."


def _elections(timeline: Timeline) -> list[Moment]:
    """New leaders, up to the first that lacks the write: from then on it is gone, whoever leads later."""
    told: list[Moment] = []
    for seen in timeline.cluster:
        if _unclean(seen, timeline.write):
            told.append(_at(seen, f"the controller elected broker {seen.facts.get('leader')}, which was out of sync"))
        if is_newer_leader(seen, timeline):
            told.append(_at(seen, _began(seen, timeline.write)))
            if lacks(seen, timeline.write):
                break
    return told[:TOLD_MAX]


def _began(seen: Observation, write: Write) -> str:
    end = seen.facts.get("end_offset")
    log = f"; its log ended at offset {end}{_lacks(seen, write)}" if end is not None else ""
    return f"broker {seen.node} began to lead in epoch {seen.facts.get('leader_epoch')}{log}"


def _unclean(seen: Observation, write: Write) -> bool:
    return seen.what == "election" and bool(seen.facts.get("unclean")) and seen.time_us > write.invoked_us


def _lacks(seen: Observation, write: Write) -> str:
    return ", without the write" if lacks(seen, write) else ""


#: How a broker came back without what it once had, by the fault that hit its disk; truncation is told elsewhere.
RETURNS: Final = {
    "powerloss": "had its power again; its disk held the log up to offset",
    "corruptrecord": "read its log again and ended it before the damaged record, at offset",
}


def _returns(timeline: Timeline) -> list[Moment]:
    """Brokers that came back without what they once had: a disk that lost it leaves no truncation behind."""
    hit = {node: RETURNS[fault.fault] for fault in timeline.faults if fault.fault in RETURNS for node in fault.targets}
    back = [
        _at(seen, f"broker {seen.node} {hit[seen.node]} {seen.facts.get('end_offset')}, without the write")
        for seen in timeline.cluster
        if seen.what == "recovered" and seen.node in hit and seen.time_us > timeline.write.acknowledged_us
        if lacks(seen, timeline.write)
    ]
    return [*back, *_emptied(timeline)][:TOLD_MAX]


def _emptied(timeline: Timeline) -> list[Moment]:
    """Kafka makes a log anew without a word about its end, so this is known from the receipts alone."""
    return [
        (fault.ended_us, f"At {seconds(fault.ended_us)} broker {node} was started again, its disk emptied.")
        for fault in timeline.faults
        if fault.fault == "wipedisk" and fault.ended_us is not None and fault.took_effect
        for node in fault.targets
        if fault.begun_us > timeline.write.acknowledged_us
    ]


def _truncations(timeline: Timeline) -> list[Moment]:
    return [_at(seen, _cut_off(seen)) for seen in timeline.cluster if removes(seen, timeline.write)][:TOLD_MAX]


def _cut_off(seen: Observation) -> str:
    begin, end = seen.facts.get("from_offset"), seen.facts.get("to_offset")
    leader = f"following broker {seen.facts.get('leader')} in epoch {seen.facts.get('leader_epoch')}"
    if begin is None:  # old brokers do not say how long their log was
        return f"broker {seen.node} truncated its log to {end}, {leader}: this removed the write, if it had it"
    return f"broker {seen.node} truncated its log from {begin} to {end}, {leader}: this removed the write"


def _pauses(timeline: Timeline, gone_us: int | None) -> list[Moment]:
    """When Java stood still, which nobody ordered and which looks like a slow network to everybody else."""
    end_us = timeline.end_us if gone_us is None else gone_us
    return [
        _at(
            seen,
            f"the Java of {node_name(seen.node)} stood still for {seen.facts.get('pause_ms')} ms "
            f"({seen.facts.get('cause')}): no fault had asked for that",
        )
        for seen in timeline.cluster
        if seen.what == "jvm-pause" and timeline.begin_us <= seen.time_us <= end_us
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
