"""The account of a finding's write in sentences: facts from the history, from receipts, and from what brokers observed.

A write that is lost, that is in the log more than once, or that was overtaken; of any other finding, what is known
of its first write. What the finding itself says: its ``words()``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from checkers import Duplicate, Finding, LostWrite, counted, write_name
from harness.campaigns.report.client_side import AcknowledgedWrite
from harness.campaigns.report.names import fault_name, link_names, moment, node_name, node_names, replica_set
from harness.campaigns.report.timeline import LOSSES, Timeline, lacks
from harness.ground.observations import BecameLeader, JvmPaused, LeaderElected, ReplicaRecovered, Seen, of_kind
from nemesis.evidence import ProcessSeen
from nemesis.faults import Crash, Partition, UnexplainedElection
from nemesis.receipts import Receipt
from nemesis.scenarios import preparation_of

#: Sentences of one kind (faults, elections, truncations, ...); the chart shows all of them.
SENTENCES_MAX: Final = 6
#: A time (microseconds of the run's clock), and the event then.
Moment = tuple[int, str]
WITHOUT_BROKERS: Final = (
    "What the brokers did was not recorded for this run, so leaders and high watermarks are missing here: the replay "
    "command below records them."
)
FIELDS: Final = {"isr": "in-sync replicas", "leader_epoch": "epoch"}


def narrate(timeline: Timeline) -> list[str]:
    """The write and its acknowledgement, what happened around it in order of time, and what is there now."""
    is_lost = timeline.anomaly in LOSSES
    gone_us = timeline.end_us if timeline.gone_us is None or not is_lost else timeline.gone_us
    faults = [fault for fault in timeline.faults if fault.begun_us <= gone_us][:SENTENCES_MAX]
    later = len(timeline.faults) - len(faults)
    happened = (_returns(timeline), _elections(timeline), _truncations(timeline)) if is_lost else (_leaders(timeline),)
    kinds = (*happened, _appended(timeline), _pauses(timeline, gone_us), _refusals(timeline))
    moments = [(fault.begun_us, _fault(fault, timeline.partition)) for fault in faults]
    moments += [moment for kind in kinds for moment in islice(kind, SENTENCES_MAX)]
    return [
        _acknowledged(timeline),
        *(sentence for _, sentence in sorted(moments, key=lambda moment: moment[0])),
        *([f"Not told here: {counted(later, 'later fault')}; the chart of the report shows all."] if later else []),
        *([*_told(timeline), _afterwards(timeline)] if is_lost else _overtaking(timeline)),
        *([] if timeline.observations else [WITHOUT_BROKERS]),
    ]


def remains(finding: Finding) -> list[str]:
    """Say what is left of the lost write on any disk at the end of the run; nothing where no disk was read."""
    if not isinstance(finding, LostWrite):
        return []
    copies = " and on ".join(f"{node_name(copy.node)} at offset {copy.offset}" for copy in finding.copies)
    by_fate = {
        "destroyed": "Destroyed: when the run had ended, no broker's log held a copy of it.",
        "hidden": f"Hidden: when the run had ended, a copy was left on {copies}, where no client reads.",
        "in the log": f"It is still in the log, on {copies}: the final readers missed it.",
        "unknown": "Whether a copy is left is not known: none was found, and not every disk could be read.",
    }
    return [by_fate[finding.fate]] if finding.fate in by_fate else []


def places(finding: Finding, *, idempotent: bool) -> list[str]:
    """The offsets of a record that is in the log more than once; nothing for any other finding."""
    if not isinstance(finding, Duplicate):
        return []
    shown = ", ".join(map(str, finding.offsets[:SENTENCES_MAX]))
    more = ", ..." if finding.count > SENTENCES_MAX else ""
    sentences = [f"{write_name(finding.value).capitalize()} was read at {finding.count} offsets: {shown}{more}."]
    if idempotent:
        sentences.append(
            "Its producer was idempotent. A broker knows a batch again only under the same producer id and epoch. "
            "Those of each copy are in the segment files (kafka-dump-log), and not in the files of this run."
        )
    return sentences


def unlike_title(finding: Finding) -> str:
    """The title of a finding that its anomaly's would not be true of, else ""."""
    still_there = isinstance(finding, LostWrite) and finding.fate == "in the log"
    return "A write that was acknowledged is in the log, and final readers missed it" if still_there else ""


def named_faults(effective: Sequence[Receipt]) -> list[str]:
    """The first faults by name, a sentence each, and how many there are beyond them: of a run, not of a write."""
    named = [f"Fault: {fault_name(receipt)} at {moment(receipt.begun_us)}." for receipt in effective[:SENTENCES_MAX]]
    later = len(effective) - len(named)
    return [*named, *([f"Not told here: {counted(later, 'later fault')} of the run."] if later else [])]


def _moment(time_us: int, words: str) -> Moment:
    return time_us, f"At {moment(time_us)} {words}."


# --- the write -------------------------------------------------------------------------------------------------------


def _acknowledged(timeline: Timeline) -> str:
    write = timeline.write
    name = f"{write_name(write.value).capitalize()} to {timeline.partition}"
    sent, answered = moment(write.invoked_us), f"{moment(write.acknowledged_us)}{_by_whom(timeline)}"
    if write.offset is None:
        without = "without an offset, because with acks=0 no broker answers: its place in the log is not known"
        return f"{name} was sent at {sent} and counted as acknowledged at {answered}, {without}."
    return f"{name} at offset {write.offset} was sent at {sent} and acknowledged at {answered}.{_deposed(timeline)}"


def _by_whom(timeline: Timeline) -> str:
    write, state = timeline.write, timeline.leader_state
    if write.node is None:
        return ""
    epoch = "" if state.epoch is None else f" in epoch {state.epoch}"
    isr = "" if state.isr is None else f" with in-sync replicas {replica_set(state.isr)}"
    if not write.node_certain:
        return f", when broker {write.node} led{epoch}{isr}"
    return f" by broker {write.node}" + (f", which led{epoch}{isr}" if epoch or isr else "")


def _deposed(timeline: Timeline) -> str:
    """Say that another broker led by then, in a newer epoch."""
    newer = [seen for seen in timeline.later_leaders if seen.time_us <= timeline.write.acknowledged_us]
    if not newer:
        return ""
    leads = f"broker {newer[-1].node} led in epoch {newer[-1].fact.leader_epoch}"
    return f" By then {leads}: broker {timeline.write.node} was deposed and did not know it."


def _afterwards(timeline: Timeline) -> str:
    write, other = timeline.write, timeline.successor_write
    if write.offset is None:
        return "After healing, no reader found this write anywhere in the log."
    if timeline.successor is None:
        end = "" if timeline.end_offset is None else f"; the log ends at {timeline.end_offset}"
        return f"After healing, no reader found anything at offset {write.offset}{end}."
    by = f" by broker {other.node}" if other and other.node is not None else ""
    answered = f", acknowledged at {moment(other.acknowledged_us)}{by}" if other else ""
    return f"Offset {write.offset} now holds {write_name(timeline.successor)}{answered}."


def _appended(timeline: Timeline) -> Iterator[Moment]:
    """The positions of a write that has several, each at about the time when it was appended."""
    for position in timeline.positions:
        epochs = " and ".join(map(str, position.leader_epochs))
        under = f", appended under leader epoch {epochs}" if epochs else ""
        if position.near_us is not None:
            yield _moment(position.near_us, f"or near it, the write was put at offset {position.offset}{under}")


def _overtaking(timeline: Timeline) -> list[str]:
    """The sentence on a write that is in the log before one that was sent earlier."""
    write, later = timeline.write, timeline.overtaking
    if later is None:
        return []
    name, sent, done = write_name(later.value), moment(later.invoked_us), moment(later.acknowledged_us)
    position = f"at offset {later.offset}, before offset {write.offset}" if later.offset is not None else "before it"
    ends = f"sent at {sent}, later, and acknowledged at {done}"
    return [f"{name.capitalize()} of the same producer was {ends}: it is {position}."]


# --- faults ----------------------------------------------------------------------------------------------------------


def _fault(receipt: Receipt, partition: str) -> str:
    begun = moment(receipt.begun_us)
    moves = _moves(receipt, partition)
    if receipt.fault == UnexplainedElection.kind:
        leader = f"changed ({moves})" if partition in receipt.moved else "stayed, others' changed"
        when = f"between {begun} and {moment(receipt.ended_us or receipt.begun_us)}"
        reason = "no fault of this run that reached the cluster explains it"
        return f"Not ordered: {when} the leader {leader}, and {reason}."
    until = "it lasted to the end" if receipt.ended_us is None else f"until {moment(receipt.ended_us)}"
    details = [f"{receipt.facts.done_to_links} {link_names(receipt)}"] if receipt.links else []
    details += [words] if (words := receipt.facts.in_words(receipt.of_nodes)) else []
    details += _preparation(receipt)
    details += [f"meanwhile {moves}"] if moves else []
    if receipt.fault == Crash.kind:
        of_nodes: Mapping[str, ProcessSeen] = receipt.of_nodes
        ends = [str(seen.get("exit")) for seen in of_nodes.values()]
        head = f"{node_names(receipt.targets)} ended by itself ({', '.join(ends)}) at {begun}, down {until}"
        return f"Not ordered: {'; '.join([head, *details])}."
    return f"Fault: {'; '.join([f'{fault_name(receipt)} from {begun} {until}', *details])}."


def _preparation(receipt: Receipt) -> list[str]:
    """Say why a scenario of another family than partitions begins with a cut."""
    why = preparation_of(receipt.family, receipt.story) if receipt.fault == Partition.kind else ""
    return [why] if why else []


def _moves(receipt: Receipt, partition: str) -> str:
    changes: Mapping[str, Any] = receipt.moved.get(partition, {})
    return ", ".join(f"{FIELDS.get(name, name)} {_shown(old)} → {_shown(new)}" for name, (old, new) in changes.items())


def _shown(value: object) -> str:
    if value is None:
        return "no broker"
    return replica_set(value) if isinstance(value, (list, tuple)) else str(value)


# --- brokers ---------------------------------------------------------------------------------------------------------


def _elections(timeline: Timeline) -> list[Moment]:
    """New leaders, up to the first that lacks the write: from then on it is gone, under any later leader."""
    write = timeline.write
    without = [seen.time_us for seen in timeline.later_leaders if lacks(seen.fact, write)]
    end_us = without[0] if without else timeline.end_us
    unclean = [
        _moment(time_us, f"the controller elected broker {fact.leader}, which was out of sync")
        for time_us, _, fact in of_kind(timeline.observations, LeaderElected)
        if fact.unclean and write.invoked_us < time_us <= end_us
    ]
    led = [seen for seen in timeline.later_leaders if seen.time_us <= end_us]
    return sorted([*unclean, *(_began(seen, write) for seen in led)])


def _leaders(timeline: Timeline) -> Iterator[Moment]:
    """Tell who began to lead within the stretch that is shown."""
    for seen in of_kind(timeline.observations, BecameLeader):
        if seen.time_us >= timeline.begin_us:
            yield _moment(seen.time_us, f"broker {seen.node} began to lead in epoch {seen.fact.leader_epoch}")


def _began(seen: Seen[BecameLeader], write: AcknowledgedWrite) -> Moment:
    end, without = seen.fact.end_offset, ", without the write" if lacks(seen.fact, write) else ""
    log = "" if end is None else f"; its log ended at offset {end}{without}"
    return _moment(seen.time_us, f"broker {seen.node} began to lead in epoch {seen.fact.leader_epoch}{log}")


def _truncations(timeline: Timeline) -> Iterator[Moment]:
    for time_us, node, fact in timeline.removals:
        begin, end = fact.from_offset, fact.to_offset
        # Old brokers do not say how long their log was.
        lengths, doubt = (f"to {end}", ", if it had it") if begin is None else (f"from {begin} to {end}", "")
        leader = f"following broker {fact.leader} in epoch {fact.leader_epoch}"
        yield _moment(time_us, f"broker {node} truncated its log {lengths}, {leader}: this removed the write{doubt}")


def _returns(timeline: Timeline) -> Iterator[Moment]:
    """Brokers that came back without what they once had: a disk that lost it leaves no truncation behind."""
    answered_us = timeline.write.acknowledged_us
    hit = {node: fault.facts.returns for fault in timeline.faults if fault.facts.returns for node in fault.targets}
    for time_us, node, fact in of_kind(timeline.observations, ReplicaRecovered):
        if node in hit and time_us > answered_us and lacks(fact, timeline.write):
            yield _moment(time_us, f"broker {node} {hit[node]} {fact.end_offset}, without the write")
    for fault in timeline.faults:  # Kafka makes a log again without a word about its end: only the receipt tells
        is_emptied = fault.facts.empties_disk and fault.took_effect and not fault.degraded_to
        if is_emptied and fault.ended_us and fault.begun_us > answered_us:
            for node in fault.targets:
                yield _moment(fault.ended_us, f"broker {node} was started again, its disk emptied")


def _refusals(timeline: Timeline) -> Iterator[Moment]:
    for time_us, node, fact in timeline.refusals:
        had = "nothing of it" if fact.last_sequence == -1 else f"it up to {fact.last_sequence}"
        log = "" if fact.last_sequence is None else f": its log had {had}{' already' if fact.repeats else ''}"
        refused = f"broker {node} refused a batch of producer id {fact.producer_id} that began with sequence"
        yield _moment(time_us, f"{refused} {fact.sequence}{log} (OUT_OF_ORDER_SEQUENCE_NUMBER)")


def _told(timeline: Timeline) -> list[str]:
    """Say whether clients were told that their log lacks what they count as acknowledged (KIP-185)."""
    if all(refusal.fact.repeats for refusal in timeline.refusals):
        return []
    if timeline.out_of_order:
        return [
            f"{timeline.out_of_order} writes to {timeline.partition} ended with that error: their clients were told."
        ]
    return ["No write ended with that error: the library restarted its sequence numbers, and told no application."]


def _pauses(timeline: Timeline, gone_us: int) -> Iterator[Moment]:
    """Tell when Java stood still, which no fault ordered and which looks like a slow network to all others."""
    for time_us, node, fact in of_kind(timeline.observations, JvmPaused):
        if timeline.begin_us <= time_us <= gone_us:
            java = f"the Java of {node_name(node)} stood still for {fact.pause_ms} ms ({fact.cause})"
            yield _moment(time_us, f"{java}: no fault had asked for that")
