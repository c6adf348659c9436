"""Names what is broken in a cluster at the moment in which it was read: no setting tells that, and it comes first."""

from __future__ import annotations

from collections.abc import Iterator

from checkers import counted
from harness.assess.configuration import Now
from harness.assess.grouping import TopicGroup
from harness.records.assessment_file import Concern

_NO_PRICE = "none"


def broken_now(group: TopicGroup) -> Iterator[Concern]:
    """The concerns about the state of a group's log partitions, the worst first."""
    now = group.now
    if now.leaderless:
        yield _now(
            "no-leader",
            f"{_share(now.leaderless, group)} no leader: no write or read succeeds there",
            f"start {_to_start(now)}; only if no such broker can start, elect an unclean leader, which loses "
            "acknowledged writes",
        )
    if group.refuses_writes:
        demanded = group.settings["min.insync.replicas"]
        yield _now(
            "refused-writes",
            f"{counted(now.in_sync or 0, 'replica')} in sync where min.insync.replicas={demanded}: writes with "
            "acks=all are refused",
            "bring the missing replicas back",
        )
    if now.behind:
        yield _now(
            "out-of-sync",
            f"{_share(now.behind, group)} fewer replicas in sync than replicas: writes are lost or refused after "
            "fewer faults than the settings allow for",
            "bring the missing replicas back before anything is restarted or moved",
        )
    if now.absent:
        yield _now(
            "missing-broker",
            f"replicas are on brokers that do not run, or do not answer: {', '.join(map(str, now.absent))}",
            "start these brokers again, or move their replicas: `kafka-reassign-partitions.sh`",
        )


def _to_start(now: Now) -> str:
    """The brokers that may lead and lose nothing, where the listing named them."""
    if not now.eligible:
        return "a broker that has a replica in sync"
    return f"one of these brokers, whose replicas may lead and lose nothing (Elr): {', '.join(map(str, now.eligible))}"


def _now(name: str, sentence: str, change: str) -> Concern:
    return Concern(kind="now", name=name, sentence=sentence, change=change, price=_NO_PRICE)


def _share(number: int, group: TopicGroup) -> str:
    verb = "has" if number == 1 else "have"
    return f"{number:,} of {counted(group.partitions, 'log partition')} {verb}"
