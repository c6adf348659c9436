"""Finding 008: a transaction that ends while one of its log partitions has no leader.

The partition has one replica, on a broker that is killed after the writes were acknowledged; the coordinator of the
transaction is on another one. The transaction is committed, or aborted; then the broker is started again, and the same
producer does another transaction on the partition, which ends the other way. With three replicas the followers are
frozen first, until their leader is alone in sync.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final, Literal, NamedTuple

from typing_extensions import override

from harness.broker.core.types import TRANSACTIONS_TOPIC
from harness.lab.findings.internal_topics import SAFE_SETTINGS, serving
from harness.lab.findings.playable import PlayableFinding, Played, Way
from harness.lab.findings.script import OperatedScript, Script
from harness.lab.findings.stage import PARTITIONS, FindingStage
from harness.worlds.kafka.administration import Administration
from nemesis.cluster import require
from workloads import EventType

#: The partition that loses its leader, and one that keeps it.
LEADERLESS, LED = PARTITIONS[:2]
#: One copy: the broker that has it leads, or no broker does.
ONE_COPY: Final = {
    "enable.idempotence": True,
    "replication.factor": 1,
    "request.timeout.ms": 5_000,
    "delivery.timeout.ms": 9_000,
}
#: Two replicas have to be in sync; followers that are frozen are out of sync soon.
SAFE: Final = SAFE_SETTINGS | {"replica.lag.time.max.ms": 3_000, "transaction.timeout.ms": 300_000}
#: The first broker leads the partition that loses its leader.
SAFE_ASSIGNMENT: Final = ((0, 1, 2), (3, 4, 0), (4, 3, 0))
COORDINATORS: Final = (3, 4, 0)
TRANSACTIONAL_ID: Final = "leaderless"
#: Markers are written within milliseconds once their partition has a leader; a machine may be busy.
MARKERS_US: Final = 15_000_000

End = Literal["commit", "abort"]


class EndSeen(NamedTuple):
    """The result of one end: how it was answered, and in which partitions readers of committed records get something.

    ``held`` says that the last stable offset is less than the high watermark after the leader's return; ``first`` and
    ``second`` are the partitions in which the values of the two transactions are read in the end.
    """

    answered: EventType
    held: bool
    first: set[str]
    second: set[str]


class LeaderlessEnd(Script):
    """One cluster, on which each partition has one replica, and the transactions of this finding with a library."""

    def play(self, end: End) -> EndSeen:
        """End a transaction without a leader, then another one the other way."""
        producer, calls = self.transactional(TRANSACTIONAL_ID)
        self.done(calls.begin)
        first = self.send(producer, [(partition, b"key") for partition in (LEADERLESS, LED)])
        with self._without_leader():
            self.wait(f"{LEADERLESS} has no leader", lambda: self.cluster.leader(LEADERLESS) is None)
            answered = self.ask(calls.commit if end == "commit" else calls.abort).type
        self.cluster.leads(LEADERLESS)
        held = not self.cluster.until(self._is_stable, MARKERS_US)
        self.done(calls.begin)
        second = self.send(producer, [(LEADERLESS, b"key")])
        self.ask(calls.abort if end == "commit" else calls.commit)
        self.cluster.until(self._is_stable, MARKERS_US)
        read = self.read((LEADERLESS, LED))
        producer.close()
        return EndSeen(
            answered, held, *({record.partition for record in read if record.value in sent} for sent in (first, second))
        )

    @contextmanager
    def _without_leader(self) -> Iterator[None]:
        """Kill the only broker that can lead, and start it again at the end."""
        broker, processes = self.cluster.leads(LEADERLESS), require(self.cluster.target.processes)
        processes.kill(broker)
        yield
        processes.restart(broker)

    def _is_stable(self) -> bool:
        """True if no transaction is open there."""
        return self.end(LEADERLESS, "read_committed") == self.end(LEADERLESS, "read_uncommitted")


class SafeLeaderlessEnd(LeaderlessEnd):
    """The same where each partition has three replicas, of five brokers, and two have to be in sync."""

    def place_coordinator(self, operator: Administration) -> None:
        """Have brokers coordinate the transaction that are neither killed nor frozen."""
        producer, _ = self.transactional(TRANSACTIONAL_ID)  # so that the topic is there
        producer.close()
        script = OperatedScript(self.cluster, self.clients, operator)
        log = serving(TRANSACTIONS_TOPIC, TRANSACTIONAL_ID)
        script.granted(operator.reassign(log, COORDINATORS))
        script.wait("the coordinators are reassigned", lambda: set(script.view(log).isr) == set(COORDINATORS))
        script.lead(log, COORDINATORS[0])

    @override
    @contextmanager
    def _without_leader(self) -> Iterator[None]:
        """Freeze the followers until the leader is alone in sync, kill it, and bring all back at the end."""
        processes = require(self.cluster.target.processes)
        leader, *followers = SAFE_ASSIGNMENT[0]
        for follower in followers:
            processes.pause(follower)
        self.wait(
            "the leader is alone in sync",
            lambda: self.cluster.target.view().partitions[LEADERLESS].isr == (leader,),
        )
        processes.kill(leader)
        yield
        processes.restart(leader)
        for follower in followers:
            processes.resume(follower)


def play(stage: FindingStage, end: End) -> Played:
    """End a transaction without a leader on a new cluster."""
    with ExitStack() as resources:
        library = stage.library(resources)
        cluster = resources.enter_context(stage.kafka(ONE_COPY))
        clients = resources.enter_context(cluster.clients_until_closed(library))
        seen = LeaderlessEnd(cluster, clients).play(end)
    return played(end, seen)


def play_safely(stage: FindingStage) -> Played:
    """Commit a transaction without a leader where all settings are safe."""
    with ExitStack() as resources:
        library = stage.library(resources)
        cluster = resources.enter_context(stage.kafka(SAFE, assignment=SAFE_ASSIGNMENT, brokers=5))
        clients = resources.enter_context(cluster.clients_until_closed(library))
        script = SafeLeaderlessEnd(cluster, clients)
        script.place_coordinator(resources.enter_context(cluster.operator(*COORDINATORS)))
        seen = script.play("commit")
    return played("commit", seen)


def played(end: End, seen: EndSeen) -> Played:
    """It shows where the end does not reach the partition that had no leader."""
    answered = {EventType.OK: "with success", EventType.FAIL: "with an error"}.get(seen.answered, "by no broker")
    ended = "aborted" if end == "commit" else "committed"
    wanted = {LEADERLESS, LED} if end == "commit" else set()
    return Played.of(
        [
            f"a transaction wrote to {LEADERLESS} and {LED}",
            f"its {end}, while {LEADERLESS} had no leader, was answered {answered}",
            f"when the leader was back, the last stable offset was {'below' if seen.held else 'at'} the high watermark",
            f"then the same producer wrote to {LEADERLESS} again, and {ended} that",
            f"what the first transaction wrote is read in {read_in(seen.first)}; it should be in {read_in(wanted)}",
            f"what the second one wrote is read in {read_in(seen.second)}",
        ],
        shown=seen.first != wanted,
    )


def read_in(partitions: Collection[str]) -> str:
    """Name the partitions in which something is read."""
    return " and ".join(sorted(partitions)) or "no partition"


FINDING: Final = PlayableFinding(
    "008",
    {
        "commit": Way("a commit, then an abort", partial(play, end="commit")),
        "abort": Way("an abort, then a commit", partial(play, end="abort")),
        "safe": Way("as commit, with three replicas and min.insync.replicas of 2", play_safely),
    },
    controls=("3.5.2", "3.9.2", "4.0.0", "4.1.1", "4.2.1"),
)
