"""Offset commits that are cut from the log, and acknowledged all the same (KAFKA-20634): the script of finding 012.

Broker 0 coordinates all groups. What the others fetch from it is held, and groups commit there: none of it is
replicated. Then broker 0 is asked so often to list its groups that it is busy for seconds, and broker 1 is elected.
Broker 0 follows it, and cuts the commits from its log, but it stays a coordinator until it has done what it was asked
before. Meanwhile other groups commit to broker 1. As a program it says how many commits broker 0 acknowledged in each
try, and how many of these the groups have not; the exit code is 1 where there are some:

    python -m tests.harness.clients.truncated_commits --version 4.3.0
    python -m tests.harness.clients.truncated_commits --version 4.3.0 --busy 0 --tries 20
"""

from __future__ import annotations

import select
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from kafka.errors import for_code
from kafka.protocol.admin import ListGroupsRequest

from harness.clients import DirectConnection
from harness.plan import Kafka
from harness.plan.worlds import Namespaces
from harness.reference.core.types import OFFSETS_TOPIC
from harness.worlds.kafka.administration import Administration
from nemesis.cluster import Link, require
from tests.harness.clients.group_requests import ANSWER_S, commit_of, commits, connected, error_of, told
from tests.harness.clients.internal_topics import SAFE_SETTINGS, OperatedScript, tuned_world
from tests.harness.clients.script import rules_of, script_options
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster

#: The coordinator, the next one, and the third replica.
FIRST, NEXT, THIRD = 0, 1, 2
ASSIGNMENT: Final = ((FIRST, NEXT, THIRD),) * len(PARTITIONS)
#: The one partition that serves every group.
SERVING: Final = f"{OFFSETS_TOPIC}-0"
#: The offsets that each group has committed before, and those that it commits while nothing is replicated.
BEFORE, LATER = 1, 7
GROUPS: Final = 60
#: Groups that are there to be listed: a listing looks at each of them.
LISTED: Final = 10_000
LISTINGS: Final = 150
#: Connections on which these groups commit at a time.
AT_A_TIME: Final = 50
#: Followers' requests wait so long at the leader, at most (replica.fetch.wait.max.ms); then the next one is held.
FETCH_US: Final = 700_000
#: Commits that come in one such interval would be one batch of the log.
APART_US: Final = 15_000
#: The followers do not give up the connections that are held; 30 s is Kafka's default.
OF_BROKERS: Final = {"offsets.topic.num.partitions": 1, "replica.socket.timeout.ms": 30_000}
AFFECTED: Final = "4.3.0"


class Seen(NamedTuple):
    """The result of a try.

    Attributes:
        answers: how broker 0 answered the commits that were not replicated, by the name of the error.
        lost: the acknowledged ones that the groups do not have.
        others: commits of other groups that broker 1 acknowledged meanwhile.
        busy_ms: until broker 0 had answered all commits, from the election on.
    """

    answers: Counter[str]
    lost: int
    others: int
    busy_ms: int


class TruncatedCommits(OperatedScript):
    """The script, on one cluster. ``busy``: the listings that broker 0 is asked for; none: it is idle."""

    def __init__(self, cluster: Cluster, operator: Administration, busy: int) -> None:
        super().__init__(cluster, operator)
        self._busy = busy
        self._tries = count()
        self._others = (f"other-{number}" for number in count())
        self.commit("first", {PARTITIONS[0]: BEFORE})  # so that there is a partition for commits
        self.lead(SERVING, FIRST)
        if busy:
            self._add_groups()

    def play(self) -> Seen:
        """Commit, elect another coordinator, and look what is left."""
        self.lead(SERVING, FIRST)
        number = next(self._tries)
        groups = [f"group-{number}-{each}" for each in range(GROUPS)]
        with ExitStack() as ending:
            committing = [ending.enter_context(self._connection(FIRST)) for _ in groups]
            listing = [ending.enter_context(self._connection(FIRST)) for _ in range(self._busy)]
            for connection, group in zip(committing, groups, strict=True):
                self._until_committed(connection, group)
            self._hold()
            ending.callback(self._deliver)
            for connection, group in zip(committing, groups, strict=True):
                connection.send(commit_of(group, LATER))
                self.let_pass(APART_US)
            for connection in listing:
                connection.send(ListGroupsRequest[4](states_filter=["Dead"]))
            self.lead(SERVING, NEXT, whole=False)
            begun_s = time.monotonic()
            others = self._commit_elsewhere(committing)
            busy_ms = round((time.monotonic() - begun_s) * 1_000)
            answers = [error_of(connection.answer(ANSWER_S)) for connection in committing]
        self.until(lambda: self.is_whole(SERVING))
        acknowledged = [group for group, answer in zip(groups, answers, strict=True) if not answer]
        with self._connection(NEXT) as connection:
            left = [told(connection, group) for group in acknowledged]
        assert all(isinstance(offset, int) for offset in left), left
        named = Counter(for_code(answer).__name__ for answer in answers)
        return Seen(named, sum(offset != LATER for offset in left), others, busy_ms)

    def _until_committed(self, connection: DirectConnection, group: str) -> None:
        self.until(lambda: commits(connection, group, BEFORE))

    def _hold(self) -> None:
        """Hold what the others ask of broker 0 from now on; what they had asked for is answered before this returns."""
        links = [Link(NEXT, FIRST), Link(THIRD, FIRST)]
        assert require(self.cluster.target.connections).hold(links)
        self.let_pass(FETCH_US)

    def _deliver(self) -> None:
        require(self.cluster.target.connections).deliver([Link(NEXT, FIRST), Link(THIRD, FIRST)])

    def _commit_elsewhere(self, waiting: Sequence[DirectConnection]) -> int:
        """Let other groups commit to the next coordinator until these connections have answers; how many it took."""
        acknowledged = 0
        until_s = time.monotonic() + ANSWER_S
        with self._connection(NEXT) as connection:
            while len(select.select(waiting, [], [], 0)[0]) < len(waiting) and time.monotonic() < until_s:
                if commits(connection, next(self._others), LATER):
                    acknowledged += 1
                else:
                    self.let_pass(APART_US)
        return acknowledged

    def _add_groups(self) -> None:
        with ExitStack() as ending:
            connections = [ending.enter_context(self._connection(FIRST)) for _ in range(AT_A_TIME)]
            self._until_committed(connections[0], "first")
            for begin in range(0, LISTED, AT_A_TIME):
                for number, connection in enumerate(connections, begin):
                    connection.send(commit_of(f"listed-{number}", BEFORE))
                errors = [error_of(connection.answer(ANSWER_S)) for connection in connections]
                assert not any(errors), errors

    def _connection(self, broker: int) -> DirectConnection:
        return connected(self.cluster, broker)


def played(version: str, directory: Path, tries: int = 1, busy: int = LISTINGS) -> Iterator[Seen]:
    """Play it several times on a new cluster of this release."""
    planned = Kafka(version=version, client="confluent-kafka", host=Namespaces())
    world = tuned_world(planned, directory, SAFE_SETTINGS | rules_of(version), OF_BROKERS, ASSIGNMENT)
    try:
        world.open()
        cluster = Cluster(world, directory)
        # Those that are not busy.
        servers = [world.clients.bootstrap[broker] for broker in (NEXT, THIRD)]
        with closing(Administration(lambda: servers)) as operator:
            script = TruncatedCommits(cluster, operator, busy)
            for _ in range(tries):
                yield script.play()
    finally:
        world.close()


def main() -> None:
    """Play it, and say what is left."""
    parser = script_options(__doc__, version=AFFECTED)
    parser.add_argument("--tries", type=int, default=1)
    parser.add_argument("--busy", type=int, default=LISTINGS, help="listings of groups asked for; 0: broker 0 is idle")
    asked = parser.parse_args()
    lost = 0
    with tempfile.TemporaryDirectory() as directory:
        for seen in played(asked.version, Path(directory), asked.tries, asked.busy):
            lost += seen.lost
            answers = ", ".join(f"{number} {name}" for name, number in sorted(seen.answers.items()))
            sys.stdout.write(
                f"broker 0 answered {answers}, the last after {seen.busy_ms} ms; "
                f"broker 1 acknowledged {seen.others} others; acknowledged and gone: {seen.lost}\n"
            )
            sys.stdout.flush()
    sys.exit(lost > 0)


if __name__ == "__main__":
    main()
