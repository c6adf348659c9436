"""Who led the partition when, as the brokers themselves told it, and which of them answered a producer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from harness.worlds.contract import Observation
from nemesis.receipts import Receipt

#: Words of a broker after which it leads, or leads no more. One that started again has said neither yet.
ROLES = frozenset({"leader", "follower", "recovered"})

#: Faults that end a broker's process when they begin, "died" included, which nobody ordered.
ENDING: Final = frozenset({"kill", "powerloss", "wipedisk", "corruptrecord", "died"})


class Reign(NamedTuple):
    """A stretch of time in which ``node`` believed to lead. The dead do not lead, though they cannot say so."""

    node: int
    epoch: int
    begin_us: int
    end_us: int


def reigns(cluster: Sequence[Observation], faults: Sequence[Receipt], end_us: int) -> list[Reign]:
    """All of them, by broker and time; two may overlap, and then one of the two is deposed and does not know it."""
    words = [seen for seen in cluster if seen.what in ROLES]
    found: list[Reign] = []
    for node in sorted({seen.node for seen in words if seen.what == "leader"}):
        own = [seen for seen in words if seen.node == node]
        ends = [*(seen.time_us for seen in own[1:]), end_us]
        for seen, told_us in zip(own, ends, strict=True):
            if seen.what == "leader":
                ended_us = min([told_us, *_deaths(faults, node, seen.time_us)])
                found.append(Reign(node, seen.facts.get("leader_epoch", -1), seen.time_us, ended_us))
    return found


def _deaths(faults: Sequence[Receipt], node: int, since_us: int) -> list[int]:
    killed = (fault for fault in faults if fault.fault in ENDING and node in fault.targets)
    return [fault.begun_us for fault in killed if fault.begun_us > since_us]


def answering(led: Sequence[Reign], time_us: int, removers: Sequence[int] | None) -> int | None:
    """Which broker answered at ``time_us``, where the client does not know; None if it cannot be told.

    One leader: it. Two: a write that is lost (``removers`` are brokers that truncated it later) was on a deposed one,
    any other on the one of the newest epoch.
    """
    then = [reign for reign in led if reign.begin_us <= time_us <= reign.end_us]
    if len(then) > 1 and removers is not None:
        then = [reign for reign in then if reign.node in removers]
    elif len(then) > 1:
        then = [max(then, key=lambda reign: reign.epoch)]
    return then[0].node if len(then) == 1 else None


def led_in(cluster: Sequence[Observation], node: int | None, time_us: int) -> dict[str, Any]:
    """What ``node`` last told at or before ``time_us`` of leading: ``leader_epoch`` and ``isr``; empty if nothing."""
    told: dict[str, Any] = {}
    for seen in cluster:
        if seen.node == node and seen.what in {"leader", "isr"} and seen.time_us <= time_us:
            told |= {name: seen.facts[name] for name in ("leader_epoch", "isr") if name in seen.facts}
    return told
