"""What the nodes' logs say of a whole run, as the facts that the reference broker tells of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from harness.worlds.contract import Observation
from harness.worlds.kafka.log_patterns import Line, LogEvent, read_line, understand
from nemesis.cluster import CONTROLLER

#: What a broker last said of a partition, and another fact may need to be whole.
_KEPT: Final = ("leader", "leader_epoch", "end_offset", "isr")
#: In which epoch it told its role.
_TOLD_ROLE: Final = "role_epoch"


def observations_in(logs: Mapping[int, Path], wall_begin_us: int) -> list[Observation]:
    """What these logs, by node, say in order of time; time 0 is ``wall_begin_us``. Missing files say nothing."""
    found = [
        Observation(line.wall_us - wall_begin_us, node, said.what, said.partition, said.facts)
        for node, path in logs.items()
        for line, said in completed(sayings(path))
    ]
    return list(_once(sorted(found, key=lambda seen: seen.time_us)))


def _once(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Every change of the metadata as it was told first: other controllers tell it too, a restarted one again.

    With ZooKeeper it is brokers who tell what they hear from the controller, and only its elections: changes of the
    in-sync replicas are told by the leader that made them.
    """
    told: set[tuple[str | None, str, int]] = set()
    for seen in observations:
        if seen.what == "metadata":
            change = (seen.partition, "leader_epoch", seen.facts["leader_epoch"])
            heard = msgspec.structs.replace(seen, node=CONTROLLER, what="election")
        elif seen.node >= CONTROLLER and seen.what in {"election", "isr"}:
            change, heard = (seen.partition, "partition_epoch", seen.facts.get("partition_epoch", 0)), seen
        else:
            yield seen
            continue
        if change not in told:
            told.add(change)
            yield heard


def sayings(path: Path) -> Iterator[tuple[Line, LogEvent]]:
    """Every line of a log that matters, with what it says."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            line = read_line(text)
            if line is not None and (said := understand(line)) is not None:
                yield line, said


def completed(told: Iterable[tuple[Line, LogEvent]]) -> Iterator[tuple[Line, LogEvent]]:
    """The sayings of one node, each with the facts that only an earlier one names.

    A truncation names only where the log ends now; where it ended was said when the broker began to follow. A change
    at the controller names only what changed. Of its role an old broker says no more than that it has it; a younger
    one has told the rest before, in this epoch. High watermarks become facts of their own.
    """
    known: dict[str | None, dict[str, Any]] = {}
    for line, said in told:
        before = known.setdefault(said.partition, {})
        told_before = said.what == "role" and before.get(_TOLD_ROLE) == before.get("leader_epoch")
        if told_before or said.what == "assigned":
            continue
        if said.what == "role":  # and from now on the log grows, and nobody tells how far
            before.pop("end_offset", None)
        whole = _whole(said, before)
        if whole.what in {"leader", "follower", "recovered"}:
            before[_TOLD_ROLE] = whole.facts.get("leader_epoch")
        before.update({name: whole.facts[name] for name in _KEPT if name in whole.facts})
        if whole.what == "truncated":
            before["end_offset"] = whole.facts["to_offset"]
        yield line, whole
        if "high_watermark" in said.facts and said.partition is not None:
            yield line, LogEvent("high-watermark", said.partition, {"offset": said.facts["high_watermark"]})


def _whole(said: LogEvent, before: Mapping[str, Any]) -> LogEvent:
    if said.what == "truncated":
        told = {"from_offset": before.get("end_offset"), **_named(before, "leader", "leader_epoch")}
        return said._replace(facts=said.facts | told)
    if said.what == "role":
        what, facts = ("leader", ("isr",)) if said.facts["leads"] else ("follower", ("leader",))
        return said._replace(what=what, facts=_named(before, "leader_epoch", *facts))
    if said.what in {"leader", "follower"}:
        return said._replace(facts=_named(before, "isr" if said.what == "leader" else "leader") | said.facts)
    if said.what == "isr":
        return said._replace(facts=_named(before, "leader_epoch") | said.facts)
    if said.what == "change":
        what = "election" if {"leader", "leader_epoch"} & said.facts.keys() else "isr"
        return said._replace(what=what, facts=_named(before, "leader", "leader_epoch", "isr") | said.facts)
    return said


def _named(known: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: known[name] for name in names if name in known}
