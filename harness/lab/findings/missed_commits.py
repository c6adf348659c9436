"""Finding 007: a coordinator that missed a leader epoch, which is story S40 on Kafka's internal topics.

Broker 0 coordinates and leads the partition that it writes to. What it writes reaches broker 2 and not 1; then it is
cut off from the controller while leadership moves to 1 and back.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple

from harness.broker.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from harness.lab.findings import killed_producer
from harness.lab.findings.internal_topics import SAFE_SETTINGS, log_end, serving, stored
from harness.lab.findings.playable import NETWORK, PlayableFinding, Played, Way, expects_defect, expects_nothing
from harness.lab.findings.script import OperatedScript, commits_of
from harness.lab.findings.stage import PARTITIONS, FindingStage, NotObservedError
from nemesis.cluster import CONTROLLER, Link, require
from workloads import Membership, Offsets, values

#: The name of the group, and of the transactional id.
NAME: Final = "missed"
#: The coordinator, the broker that leads between its epochs, and that which leads in the end.
FIRST, BETWEEN, LAST = 0, 1, 2
#: The user's partitions: one is led by a broker that the coordinator reaches, one by the other.
ASSIGNMENT: Final = ((BETWEEN, FIRST, LAST), (LAST, FIRST, BETWEEN), (FIRST, BETWEEN, LAST))
REACHED, OUT_OF_REACH = PARTITIONS[:2]
#: The offset that the group asks for while it is out of reach.
ASKED: Final = 7
#: For the next fetch of a follower, with which the leader learns what it has.
FETCH_US: Final = 300_000
ANSWER_US: Final = 30_000_000
#: The limit for a group's commit; Kafka's own, 5 s, is too short for a busy machine.
OF_BROKERS: Final = {"offsets.commit.timeout.ms": 40_000}
SETTINGS: Final = SAFE_SETTINGS | {"transaction.timeout.ms": 300_000}


class CommitSeen(NamedTuple):
    """The end of a commit: whether it was answered with success, and what is left of it.

    ``left`` are the offsets of the group, or the partitions in which a reader of committed records has the transaction.
    """

    acknowledged: bool
    left: dict[str, int]


class MissedEpoch(OperatedScript):
    """The script, on one cluster."""

    def commit_of_group(self, *, told: bool) -> CommitSeen:
        """A group commits 1, which all replicas have, and then 7; ``told``: broker 0 hears the controller."""
        partition = serving(OFFSETS_TOPIC, NAME)
        consumer = self.clients.consumer(self.cluster.next_process(), Membership(NAME))
        commit = commits_of(consumer).commit
        self.commit(NAME, {REACHED: 1})
        self.lead(partition, FIRST)
        self.commit(NAME, {REACHED: 1})
        answers: list[Offsets] = []
        commit({REACHED: 1}, answers.append)  # so that it is connected
        self.wait("the group has committed 1", lambda: bool(answers))
        self._miss(partition, lambda: commit({REACHED: ASKED}, answers.append), told=told)
        self.cluster.until(lambda: len(answers) > 1, ANSWER_US)
        acknowledged = answers[1:] != [] and answers[1].offsets == {REACHED: ASKED}
        self.lead(partition, LAST, whole=False)
        self._heal()
        self.wait_until_whole(partition)
        left = self.committed(NAME, [REACHED])
        consumer.close()
        return CommitSeen(acknowledged, left)

    def decision(self) -> CommitSeen:
        """A producer writes to two partitions and is killed while it commits; its successor takes over."""
        partition = serving(TRANSACTIONS_TOPIC, NAME)
        first, _ = self.transactional(NAME)  # so that the topic is there
        first.close()
        self.lead(partition, FIRST)
        with self._producer() as (commit, kill):
            self._miss(partition, commit, told=False)
            self.cluster.until(lambda: self._marked(REACHED), ANSWER_US)
            acknowledged = kill()
        self.lead(partition, LAST, whole=False)
        successor, _ = self.transactional(NAME)
        sent = {values.join(killed_producer.PROCESS, number) for number in range(2)}
        read = {record.partition: record.value for record in self.read((REACHED, OUT_OF_REACH)) if record.value in sent}
        successor.close()
        self._heal()
        return CommitSeen(acknowledged, read)

    @contextmanager
    def _producer(self) -> Iterator[tuple[Callable[[], None], Callable[[], bool]]]:
        """A producer that has written: its commit, and its end (SIGKILL), which says if the commit was answered."""
        servers = ",".join(self.cluster.world.clients.bootstrap)
        program = f"from {killed_producer.__name__} import main; main()"
        command = (sys.executable, "-c", program, servers, NAME, REACHED, OUT_OF_REACH)
        with subprocess.Popen(  # noqa: S603 - this very interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            stdin, stdout = process.stdin, process.stdout
            if stdin is None or stdout is None:
                raise NotObservedError("a producer's process has no pipes")

            def commit() -> None:
                stdin.write("\n")
                stdin.flush()

            def kill() -> bool:
                process.kill()
                return "committed" in stdout.read()

            try:
                if stdout.readline() != "sent\n":
                    raise NotObservedError("a producer could not write its records")
                yield commit, kill
            finally:
                process.kill()

    def _miss(self, partition: str, write: Callable[[], None], *, told: bool) -> None:
        """Broker 0 writes to ``partition`` what 1 does not have, and misses the epoch in which 1 leads."""
        end = self._log_end(partition, FIRST)
        self._cut((FIRST, BETWEEN))
        write()
        self.wait("broker 0 has written it", lambda: self._log_end(partition, FIRST) > end)
        self.wait("broker 2 has it", lambda: self._log_end(partition, LAST) == self._log_end(partition, FIRST))
        self.let_pass(FETCH_US)
        self._cut((FIRST, LAST), *(() if told else ((FIRST, CONTROLLER),)))
        self.lead(partition, BETWEEN, whole=False)
        # Where broker 0 was told of its successor, the client may have asked that again already.
        self.wait(
            "broker 2 follows broker 1, and lacks it",
            lambda: self._log_end(partition, LAST) == self._log_end(partition, BETWEEN),
        )
        self.lead(partition, FIRST, whole=False)
        self._heal((FIRST, CONTROLLER), (FIRST, BETWEEN))

    def _log_end(self, partition: str, node: int) -> int:
        return log_end(self.cluster.directory, node, partition)

    def _marked(self, partition: str) -> bool:
        return any(record.kind == "commit" for record in stored(self.cluster.directory, BETWEEN, partition) or ())

    def _cut(self, *pairs: tuple[int, int]) -> None:
        require(self.cluster.target.links).cut(_both_ways(pairs))

    def _heal(self, *pairs: tuple[int, int]) -> None:
        every = ((FIRST, BETWEEN), (FIRST, LAST), (FIRST, CONTROLLER))
        require(self.cluster.target.links).heal(_both_ways(pairs or every))


def _both_ways(pairs: Collection[tuple[int, int]]) -> list[Link]:
    return [link for first, second in pairs for link in (Link(first, second), Link(second, first))]


def play_commit(stage: FindingStage, *, told: bool = False) -> Played:
    """Play it with a commit of a group."""
    with _script(stage) as script:
        seen = script.commit_of_group(told=told)
    left = seen.left.get(REACHED, "nothing")
    return Played.of(
        [
            f"the commit of {ASKED} was {'' if seen.acknowledged else 'not '}acknowledged",
            f"the group has committed {left} by the word of its next coordinator",
        ],
        shown=seen.acknowledged and left != ASKED,
    )


def play_decision(stage: FindingStage) -> Played:
    """Play it with the decision of a transaction."""
    with _script(stage) as script:
        seen = script.decision()
    read = " and ".join(sorted(seen.left)) or "no partition"
    return Played.of(
        [
            f"a transaction wrote to {REACHED} and {OUT_OF_REACH}",
            f"its commit was {'' if seen.acknowledged else 'not '}answered before its producer was killed",
            f"readers of committed records get it in {read}",
        ],
        shown=len(seen.left) == 1 or (seen.acknowledged and not seen.left),
    )


@contextmanager
def _script(stage: FindingStage) -> Iterator[MissedEpoch]:
    cluster_of = stage.kafka(SETTINGS, OF_BROKERS, namespaces=True, assignment=ASSIGNMENT)
    # The operator asks those that always hear the controller.
    with cluster_of as cluster, cluster.operator(BETWEEN, LAST) as operator:
        yield MissedEpoch(cluster, cluster.world.clients, operator)


FINDING: Final = PlayableFinding(
    "007",
    {
        "commit": Way("a group commits", play_commit, expects_defect("finding-007-commit")),
        "decision": Way("a transaction is committed", play_decision, expects_defect("finding-007-decision")),
        "told": Way(
            "as commit, but broker 0 hears the controller throughout", partial(play_commit, told=True), expects_nothing
        ),
    },
    minutes=2,
    programs=NETWORK,
)
