"""A coordinator that missed a leader epoch: the script of finding 007, which is story S40 on Kafka's internal topics.

Broker 0 coordinates and leads the partition that it writes to. What it writes reaches broker 2 and not 1; then it is
cut off from the controller while leadership moves to 1 and back. As a program, for root, it says what becomes of a
group's commit, or of a transaction's; the exit code is 1 where something is lost or torn:

    python -m tests.harness.clients.missed_commits --version 4.3.1 commit
    python -m tests.harness.clients.missed_commits --version 4.3.1 decision
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

from harness.plan import Kafka
from harness.plan.worlds import Namespaces
from harness.reference.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from harness.worlds.kafka.administration import Administration
from nemesis.cluster import CONTROLLER, Link, require
from tests.harness.clients import killed_producer
from tests.harness.clients.internal_topics import SAFE_SETTINGS, OperatedScript, serving, stored, tuned_world
from tests.harness.clients.script import rules_of, script_options
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads import values
from workloads.client import Membership, Offsets

#: The name of the group, and of the transactional id.
NAME: Final = "missed"
#: The coordinator, the broker that leads between its epochs, and that which leads in the end.
FIRST, BETWEEN, LAST = 0, 1, 2
#: The user's partitions: one is led by a broker that the coordinator reaches, one by the other.
ASSIGNMENT: Final = ((BETWEEN, FIRST, LAST), (LAST, FIRST, BETWEEN), (FIRST, BETWEEN, LAST))
REACHED, OUT_OF_REACH = PARTITIONS[:2]
#: For the next fetch of a follower, with which the leader learns what it has.
FETCH_US: Final = 300_000
ANSWER_US: Final = 30_000_000
#: The limit for a group's commit; Kafka's own, 5 s, is too short for a busy machine.
OF_BROKERS: Final = {"offset.commit.timeout.ms": 40_000}
SETTINGS: Final = SAFE_SETTINGS | {"transaction.timeout.ms": 300_000}

What = Literal["commit", "decision"]


class Seen(NamedTuple):
    """The end of a commit: whether it was answered with success, and what is left of it.

    ``left`` are the offsets of the group, or the partitions in which a reader of committed records has the transaction.
    """

    acknowledged: bool
    left: dict[str, int]


class MissedEpoch(OperatedScript):
    """The script, on one cluster; ``told``: the control, in which broker 0 hears the controller throughout."""

    def __init__(self, cluster: Cluster, operator: Administration, *, told: bool) -> None:
        super().__init__(cluster, operator)
        self._told = told

    def commit_of_group(self) -> Seen:
        """A group commits 1, which all replicas have, and then 7."""
        partition = serving(OFFSETS_TOPIC, NAME)
        consumer = self.clients.consumer(self.cluster.next_process(), Membership(NAME))
        assert consumer.commits is not None
        commit = consumer.commits.commit
        self.commit(NAME, {REACHED: 1})
        self.lead(partition, FIRST)
        self.commit(NAME, {REACHED: 1})
        answers: list[Offsets] = []
        commit({REACHED: 1}, answers.append)  # so that it is connected
        self.until(lambda: bool(answers))
        self._miss(partition, lambda: commit({REACHED: 7}, answers.append))
        self.cluster.until(lambda: len(answers) > 1, ANSWER_US)
        acknowledged = answers[1:] != [] and answers[1].offsets == {REACHED: 7}
        self.lead(partition, LAST, whole=False)
        self._heal()
        self.until(lambda: self.is_whole(partition))
        left = self.committed(NAME, [REACHED])
        consumer.close()
        return Seen(acknowledged, left)

    def decision(self) -> Seen:
        """A producer writes to two partitions and is killed while it commits; its successor takes over."""
        partition = serving(TRANSACTIONS_TOPIC, NAME)
        first, _ = self.transactional(NAME)  # so that the topic is there
        first.close()
        self.lead(partition, FIRST)
        with self._producer() as (commit, kill):
            self._miss(partition, commit)
            self.cluster.until(lambda: self._marked(REACHED), ANSWER_US)
            acknowledged = kill()
        self.lead(partition, LAST, whole=False)
        successor, _ = self.transactional(NAME)
        sent = {values.join(killed_producer.PROCESS, number) for number in range(2)}
        read = {record.partition: record.value for record in self.read((REACHED, OUT_OF_REACH)) if record.value in sent}
        successor.close()
        self._heal()
        return Seen(acknowledged, read)

    @contextmanager
    def _producer(self) -> Iterator[tuple[Callable[[], None], Callable[[], bool]]]:
        """A producer that has written: its commit, and its end (SIGKILL), which says if the commit was answered."""
        servers = ",".join(self.cluster.world.clients.bootstrap)
        command = (sys.executable, "-m", killed_producer.__name__, servers, NAME, REACHED, OUT_OF_REACH)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            stdin, stdout = process.stdin, process.stdout

            def commit() -> None:
                stdin.write("\n")
                stdin.flush()

            def kill() -> bool:
                process.kill()
                return "committed" in stdout.read()

            try:
                assert stdout.readline() == "sent\n"
                yield commit, kill
            finally:
                process.kill()

    def _miss(self, partition: str, write: Callable[[], None]) -> None:
        """Broker 0 writes to ``partition`` what 1 does not have, and misses the epoch in which 1 leads."""
        end = self._log_end(partition, FIRST)
        self._cut((FIRST, BETWEEN))
        write()
        self.until(lambda: self._log_end(partition, FIRST) > end)
        self.until(lambda: self._log_end(partition, LAST) == self._log_end(partition, FIRST))
        self.let_pass(FETCH_US)
        self._cut((FIRST, LAST), *(() if self._told else ((FIRST, CONTROLLER),)))
        self.lead(partition, BETWEEN, whole=False)
        self.until(lambda: self._log_end(partition, LAST) == end)
        self.lead(partition, FIRST, whole=False)
        self._heal((FIRST, CONTROLLER), (FIRST, BETWEEN))

    def _log_end(self, partition: str, node: int) -> int:
        records = stored(self.cluster.directory, node, partition)
        return records[-1].offset + 1 if records else 0

    def _marked(self, partition: str) -> bool:
        return any(record.kind == "commit" for record in stored(self.cluster.directory, BETWEEN, partition) or ())

    def _cut(self, *pairs: tuple[int, int]) -> None:
        require(self.cluster.target.links).cut(_both_ways(pairs))

    def _heal(self, *pairs: tuple[int, int]) -> None:
        every = ((FIRST, BETWEEN), (FIRST, LAST), (FIRST, CONTROLLER))
        require(self.cluster.target.links).heal(_both_ways(pairs or every))


def _both_ways(pairs: Collection[tuple[int, int]]) -> list[Link]:
    return [link for first, second in pairs for link in (Link(first, second), Link(second, first))]


def played(version: str, what: What, directory: Path, *, told: bool = False) -> Seen:
    """Play it on a new cluster of this release."""
    planned = Kafka(version=version, client="confluent-kafka", host=Namespaces())
    world = tuned_world(planned, directory, SETTINGS | rules_of(version), OF_BROKERS, ASSIGNMENT)
    try:
        world.open()
        cluster = Cluster(world, directory)
        # Those that always hear the controller.
        servers = [world.clients.bootstrap[broker] for broker in (BETWEEN, LAST)]
        with closing(Administration(lambda: servers)) as operator:
            script = MissedEpoch(cluster, operator, told=told)
            return script.commit_of_group() if what == "commit" else script.decision()
    finally:
        world.close()


def main() -> None:
    """Play it, and say what is left."""
    parser = script_options(__doc__)
    parser.add_argument("what", choices=("commit", "decision"), help="of a group, or of a transaction")
    parser.add_argument("--told", action="store_true", help="the control: broker 0 hears the controller throughout")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        seen = played(asked.version, asked.what, Path(directory), told=asked.told)
    if asked.what == "commit":
        committed = seen.left.get(REACHED, "nothing")
        sys.stdout.write(
            f"acknowledged: {seen.acknowledged}; the group has committed {committed}, and had asked for 7\n"
        )
        sys.exit(seen.acknowledged and committed != 7)
    read = ", ".join(sorted(seen.left)) or "no partition"
    sys.stdout.write(f"acknowledged: {seen.acknowledged}; the transaction is read in {read}, of 2 partitions\n")
    sys.exit(len(seen.left) == 1 or (seen.acknowledged and not seen.left))


if __name__ == "__main__":
    main()
