"""The invariants of the core, asked of a whole state (dead brokers' disks too), and of a single step of a broker.

The rules themselves are in :mod:`harness.broker.core.invariants`. This module brings what they compare: the
controller's decision, the brokers' copies, and what clients were shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from checkers import FaultSeen, TakenCopy, fate_of_copies
from harness.broker.core.invariants import (
    Broken,
    candidates_are_complete,
    consistent_reads,
    deleted_stay_deleted,
    high_watermark_monotonic,
    high_watermark_on_log,
    isr_of_replicas,
    logs_match,
    maximal_isr_is_larger,
    one_leader_an_epoch,
)
from harness.broker.core.types import NONE, NodeId, PartitionState
from harness.lab.explore.brokers import BrokerCopy
from harness.lab.explore.controllers import ControllerState
from harness.lab.explore.events import AT
from harness.lab.explore.keys import Kept, is_tombstone, lacking
from nemesis.faults import Kill, Pause
from workloads import Settings

Records = tuple[Kept, ...]


class Shown(NamedTuple):
    """Records that clients have seen: ``acknowledged`` ones, and the longest log that consumers could ``read``."""

    acknowledged: tuple[int, ...] = ()
    read: Records = ()


#: The rules that a search looks at. Some are about a step of a node, or about two reads of consumers.
RULES: Final = (
    "candidates-are-complete",
    "logs-match",
    "deleted-stay-deleted",
    "isr-of-replicas",
    "one-leader-an-epoch",
    "maximal-isr-is-larger",
    "consistent-reads",
    "duplicate",
    "reordered",
    "high-watermark-monotonic",
    "high-watermark-on-log",
    "assertion",
)
#: The rules whose breach is a loss, and what their breach is called where a loss is permitted.
_LOSSES: Final = frozenset(
    {"candidates-are-complete", "logs-match", "deleted-stay-deleted", "consistent-reads", "duplicate", "reordered"}
)
PERMITTED: Final = "permitted-loss"


def as_permitted(broken: Broken) -> Broken:
    """The same breach in a state in which a loss is permitted."""
    return (PERMITTED, broken[1]) if broken[0] in _LOSSES else broken


def may_be_last(
    settings: Settings,
    fault: str,
    number: int,
    controller_state: ControllerState,
    copies: Sequence[BrokerCopy],
    *,
    disturbed: bool,
) -> bool:
    """A broker that starts again may have had the last copy of what its disk lost, so that a loss is permitted.

    Asked as of a run, with what its receipts would say (docs/decisions/020-promises-by-destroyed-copy.md). ``fault`` is
    the kind that took its records; ``disturbed``: live brokers were silent too, in the eyes of the controller or of a
    leader.
    """
    isr, away = controller_state.state.isr, copies[number].away
    outlived = bool(isr) and number not in isr
    taken = TakenCopy(str(AT), number, True, away, outlived, in_doubt=away == len(copies) - 1)
    faults = [FaultSeen(fault, nodes=(number,), copies=(taken,))]
    ended = [copy.number for copy in copies if copy.number != number and (not copy.alive or copy.incarnation > 1)]
    faults += [FaultSeen(Kill.kind, nodes=(other,)) for other in ended]
    faults += [FaultSeen(Pause.kind)] * disturbed
    return bool(fate_of_copies(settings, faults, str(AT)).destroyed)


def contradiction(earlier: Records, later: Records) -> Broken | None:
    """Two logs that consumers could read begin in the same way; the answer says where they do not.

    A record that only one of the two has was cleaned away.
    """
    pairs = [(offset, pair) for offset, pair in enumerate(zip(earlier, later, strict=False)) if None not in pair]
    return next(filter(None, (consistent_reads("a leader", offset, *pair) for offset, pair in pairs)), None)


def broken_rules(state: PartitionState, copies: Sequence[BrokerCopy], shown: Shown, keys: str) -> list[Broken]:
    """The rules that a state breaks, each with a sentence; ``keys`` are of records (harness/lab/explore/keys.py)."""
    answers = [isr_of_replicas(state)]
    leaders: dict[int, NodeId] = {}
    for copy in copies:
        if copy.leading:
            first = leaders.setdefault(copy.leader_epoch, copy.number)
            answers.append(one_leader_an_epoch(copy.leader_epoch, first, copy.number))
            answers.append(maximal_isr_is_larger(state, copy.leader_epoch, copy.maximal_isr))
    answers += [_incomplete(copies[number], shown, keys) for number in sorted({*state.isr, *state.elr})]
    return [broken for broken in answers if broken is not None]


def in_sequence(read: Records) -> list[Broken]:
    """The ways in which what consumers could read is not what a producer with sequence numbers has sent.

    Each record is there once, and after all that were sent before it. A breach has the name of the anomaly.
    """
    broken: list[Broken] = []
    seen: set[int] = set()
    for offset, kept in enumerate(read):
        if kept is None:
            continue
        name = record_name(kept[1])
        if kept[1] in seen:
            broken.append(("duplicate", f"{name} can be read at {offset} again"))
        elif seen and kept[1] < max(seen):
            broken.append(("reordered", f"{name} can be read at {offset}, after {record_name(max(seen))}"))
        seen.add(kept[1])
    return broken


def broken_by_step(before: BrokerCopy, after: BrokerCopy) -> Broken | None:
    """The rule about high watermarks that a step of one broker breaks, None if it breaks none."""
    on_log = high_watermark_on_log(after.number, after.high_watermark, 0, len(after.log))
    return on_log or high_watermark_monotonic(after.number, _led(before), _led(after))


def _led(copy: BrokerCopy) -> tuple[int, int]:
    return copy.leader_epoch if copy.leading else NONE, copy.high_watermark


def _incomplete(copy: BrokerCopy, shown: Shown, keys: str) -> Broken | None:
    """The way in which a candidate lacks something that was acknowledged or read.

    Not asked of a broker that died with its disk and was not started since: the controller hears of it when it
    registers, and before that no election takes it.
    """
    if copy.away != NONE:
        return None
    missing, replaced = "", set[int]()
    if keys:  # Of records that consumers could read the last one of each key counts.
        record, instead = lacking(keys, copy.log, shown.read)
        missing, replaced = "" if record is None else record_name(record), _records_in(shown.read)
        if record is not None and is_tombstone(keys, record) and len(copy.log) >= len(shown.read):
            return deleted_stay_deleted(copy.number, "" if instead is None else record_name(instead), missing)
    if shown.acknowledged and not missing:
        has = _records_in(copy.log) | replaced
        missing = next((record_name(record) for record in shown.acknowledged if record not in has), "")
    broken = candidates_are_complete(copy.number, len(copy.log), len(shown.read), missing)
    for offset, (own, read) in enumerate(zip(copy.log, shown.read, strict=False)):
        if own is not None and read is not None:
            broken = broken or logs_match(copy.number, offset, own, read)
    return broken


def _records_in(log: Records) -> set[int]:
    return {kept[1] for kept in log if kept is not None}


def record_name(record: int) -> str:
    """The letter of a record: a, b, c, ... in the order in which they are written."""
    return chr(ord("a") + record)
