"""What holds in every state, stated on the controller's decision, the brokers' copies and what clients were shown.

The rules have the names that :mod:`harness.worlds.simulated.invariants` gives them where a simulated run is looked at
step by step; here a whole state is looked at, dead brokers' disks too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from checkers import Copy as TakenCopy
from checkers import FaultSeen, fate_of_copies
from harness.explore.brokers import Copy
from harness.explore.controllers import ControllerState
from harness.explore.events import AT
from harness.reference.core.types import NONE
from nemesis.faults import Kill, Pause
from workloads import Settings

Records = tuple[tuple[int, int], ...]
#: The name of a rule, and a sentence.
Broken = tuple[str, str]


class Shown(NamedTuple):
    """What clients have seen: records that were ``acknowledged``, and the longest log that consumers could ``read``."""

    acknowledged: tuple[int, ...] = ()
    read: Records = ()


#: What must always hold. The last four are looked at in steps of a node, or between what consumers read and will read.
RULES: Final = (
    "candidates-are-complete",
    "logs-match",
    "isr-of-replicas",
    "one-leader-an-epoch",
    "maximal-isr-is-larger",
    "consistent-reads",
    "high-watermark-monotonic",
    "high-watermark-on-log",
    "assertion",
)
#: Those that say that something was lost, and what their breach is called where a loss is permitted.
_LOSSES: Final = frozenset({"candidates-are-complete", "logs-match", "consistent-reads"})
PERMITTED: Final = "permitted-loss"


def as_permitted(broken: Broken) -> Broken:
    """The same breach in a state in which a loss is permitted."""
    return (PERMITTED, broken[1]) if broken[0] in _LOSSES else broken


def may_be_last(
    settings: Settings,
    fault: str,
    number: int,
    controller_state: ControllerState,
    copies: Sequence[Copy],
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
    ended = [one.number for one in copies if one.number != number and (not one.alive or one.incarnation > 1)]
    faults += [FaultSeen(Kill.kind, nodes=(other,)) for other in ended]
    faults += [FaultSeen(Pause.kind)] * disturbed
    return bool(fate_of_copies(settings, faults, str(AT)).destroyed)


def contradiction(earlier: Records, later: Records) -> Broken | None:
    """Consistent reads: of two logs that consumers could read, one is the beginning of the other."""
    for offset, (one, other) in enumerate(zip(earlier, later, strict=False)):
        if one != other:
            return "consistent-reads", f"consumers read {_name(one)} at offset {offset}, and now {_name(other)}"
    return None


def broken_rules(controller_state: ControllerState, copies: Sequence[Copy], shown: Shown) -> Iterator[Broken]:
    """The rules that a state breaks, each with a sentence."""
    state = controller_state.state
    isr, elr = set(state.isr), set(state.elr)
    if isr & elr or not isr | elr <= set(state.replicas) or state.leader not in (NONE, *isr):
        yield "isr-of-replicas", f"ISR {sorted(isr)}, ELR {sorted(elr)}, leader {state.leader}"
    leaders: dict[int, int] = {}
    for copy in copies:
        if copy.leading:
            other = leaders.setdefault(copy.leader_epoch, copy.number)
            if other != copy.number:
                yield "one-leader-an-epoch", f"brokers {other} and {copy.number} lead in epoch {copy.leader_epoch}"
            if copy.leader_epoch == state.leader_epoch and not isr <= copy.maximal_isr:
                text = f"the controller's ISR is {sorted(isr)}, and the leader counts {sorted(copy.maximal_isr)}"
                yield "maximal-isr-is-larger", text
    for number in sorted(isr | elr):
        broken = _incomplete(copies[number], shown)
        if broken is not None:
            yield broken


def _incomplete(copy: Copy, shown: Shown) -> Broken | None:
    """A candidate has all that was acknowledged or read, with the same records at the same offsets.

    Not asked of a broker that died with its disk and was not started since: the controller hears of it when it
    registers, and before that nobody can elect it.
    """
    if copy.away != NONE:
        return None
    has = {record for _, record in copy.log}
    lacking = [record for record in shown.acknowledged if record not in has]
    if lacking:
        return (
            "candidates-are-complete",
            f"broker {copy.number} may lead without {record_name(lacking[0])}, acknowledged",
        )
    if len(copy.log) < len(shown.read):
        text = f"broker {copy.number} may lead with {len(copy.log)} of {len(shown.read)} records that could be read"
        return "candidates-are-complete", text
    for offset, (own, read) in enumerate(zip(copy.log, shown.read, strict=False)):
        if own != read:
            text = f"broker {copy.number} may lead with {_name(own)} at offset {offset}, where {_name(read)} was read"
            return "logs-match", text
    return None


def record_name(record: int) -> str:
    """Records are called a, b, c, ... in the order in which they are written."""
    return chr(ord("a") + record)


def _name(record: tuple[int, int]) -> str:
    return f"{record_name(record[1])} of epoch {record[0]}"
