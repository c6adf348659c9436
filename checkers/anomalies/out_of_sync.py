"""``out-of-sync``: a replica never came back into the ISR, or a log partition never had a leader again.

Example: broker 2 was cut off for a while. All was healed at 20 s and every broker runs, but at 40 s ``t-0`` still has
brokers 0 and 1 in its ISR only. Both are written to and read, so nothing is lost and nothing stalls: the log has one
copy less than its settings say.

Only a simulated world can tell that nothing hinders the replica. It looks once the sessions and lag times of the
settings have passed twice since all was healed. False alarms avoided: brokers that do not run, leaders with a bad batch
in their log, which no follower gets past, and log partitions without a leader that no running broker may lead. What is
left is permitted by no setting. A real cluster may be slow, so such a run is unknown there.

Findings, at most one for each log partition: key, time_us (of the look), lack (which brokers are missing), op. O(1).
"""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from checkers.anomalies.anomaly import Anomaly, Finding
from checkers.columns.log_rows import EventPlace
from checkers.columns.phases import RunMarks
from checkers.words import seconds


class ReplicaOutOfSync(Finding, kw_only=True):
    """A log partition that never became whole again."""

    time_us: int
    lack: str
    op: EventPlace

    @override
    def words(self) -> str:
        return f"{self.key} at {seconds(self.time_us)}, when all had been healed for long: {self.lack}."


ANOMALY: Final = Anomaly.documented(
    "out-of-sync",
    __doc__,
    ReplicaOutOfSync,
    title="A replica never came back into the ISR",
    rule="A follower that runs, and reaches its leader, catches up and joins the ISR (rule 11).",
)


def replicas_out_of_sync(phases: RunMarks) -> list[ReplicaOutOfSync]:
    """The log partitions of one history that its world saw out of sync."""
    if (recovery := phases.recovery) is None:
        return []
    moment, fresh = recovery
    return [
        ReplicaOutOfSync(key=key, time_us=moment.time_us, lack=lack, op=EventPlace(moment.index))
        for key, lack in fresh.out_of_sync.items()
    ]
