"""Finding 012: offset commits that are cut from the log, and acknowledged all the same (KAFKA-20634).

Broker 0 coordinates all groups. What the others fetch from it is held, and groups commit there: none of it is
replicated. Then broker 0 is asked so often to list its groups that it is busy for seconds, and broker 1 is elected.
Broker 0 follows it, and cuts the commits from its log, but it stays a coordinator until it has done what it was asked
before. Meanwhile other groups commit to broker 1.
"""

from __future__ import annotations

import select
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import Final, NamedTuple

from kafka.errors import for_code
from kafka.protocol.admin import ListGroupsRequest

from harness.lab.findings.group_requests import ANSWER_S, commit_of, commits, connected, error_of, told
from harness.lab.findings.internal_topics import SAFE_SETTINGS, SERVING
from harness.lab.findings.playable import NETWORK, PlayableFinding, Played, Way, expects_nothing
from harness.lab.findings.script import OperatedScript
from harness.lab.findings.stage import PARTITIONS, FindingStage, NotObservedError, OpenCluster
from harness.worlds.clients import DirectConnection
from harness.worlds.kafka.administration import Administration
from nemesis.cluster import Link, require

#: The coordinator, the next one, and the third replica.
FIRST, NEXT, THIRD = 0, 1, 2
ASSIGNMENT: Final = ((FIRST, NEXT, THIRD),) * len(PARTITIONS)
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
#: The number of tries where broker 0 is idle: the moment is short, and none of twenty showed it.
IDLE_TRIES: Final = 5


class TruncatedSeen(NamedTuple):
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

    def __init__(self, cluster: OpenCluster, operator: Administration, busy: int) -> None:
        super().__init__(cluster, cluster.world.clients, operator)
        self._busy = busy
        self._tries = count()
        self._others = (f"other-{number}" for number in count())
        self.commit("first", {PARTITIONS[0]: BEFORE})  # so that there is a partition for commits
        self.lead(SERVING, FIRST)
        if busy:
            self._add_groups()

    def play(self) -> TruncatedSeen:
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
        self.wait_until_whole(SERVING)
        acknowledged = [group for group, answer in zip(groups, answers, strict=True) if not answer]
        with self._connection(NEXT) as connection:
            left = [told(connection, group) for group in acknowledged]
        if errors := [offset for offset in left if not isinstance(offset, int)]:
            raise NotObservedError(f"broker {NEXT} did not tell what groups have: {errors[0]}")
        named = Counter(for_code(answer).__name__ for answer in answers)
        return TruncatedSeen(named, sum(offset != LATER for offset in left), others, busy_ms)

    def _until_committed(self, connection: DirectConnection, group: str) -> None:
        self.wait(f"{group} commits", lambda: commits(connection, group, BEFORE))

    def _hold(self) -> None:
        """Hold what the others ask of broker 0 from now on; what they had asked for is answered before this returns."""
        links = [Link(NEXT, FIRST), Link(THIRD, FIRST)]
        if not require(self.cluster.target.connections).hold(links):
            raise NotObservedError("no connection could be held")
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
                if any(errors):
                    raise NotObservedError("groups that are to be listed could not commit")

    def _connection(self, broker: int) -> DirectConnection:
        return connected(self.cluster, broker)


def play(stage: FindingStage, *, busy: int = LISTINGS, tries: int = 1) -> Played:
    """Play it several times on a new cluster; broker 0 is asked for ``busy`` listings meanwhile."""
    cluster_of = stage.kafka(SAFE_SETTINGS, OF_BROKERS, namespaces=True, assignment=ASSIGNMENT)
    # The operator asks those that are not busy.
    with cluster_of as cluster, cluster.operator(NEXT, THIRD) as operator:
        script = TruncatedCommits(cluster, operator, busy)
        seen = [script.play() for _ in range(tries)]
    if busy and not any(each.others for each in seen):
        raise NotObservedError(f"broker {NEXT} acknowledged nothing while broker {FIRST} was busy")
    return played(seen)


def played(tries: Sequence[TruncatedSeen]) -> Played:
    """It shows where a commit was acknowledged that its group does not have."""
    facts = [f"{GROUPS} groups at offset {BEFORE} committed {LATER} to broker {FIRST}, and nothing was replicated"]
    for seen in tries:
        answers = ", ".join(
            f"{number} {'acknowledged' if name == 'NoError' else name}" for name, number in sorted(seen.answers.items())
        )
        facts += [
            f"broker {NEXT} was elected, and acknowledged {seen.others} commits of other groups",
            f"broker {FIRST} answered its own: {answers}, the last after {seen.busy_ms} ms",
            f"commits that broker {FIRST} acknowledged and their groups do not have: {seen.lost}",
        ]
    return Played.of(facts, shown=any(seen.lost for seen in tries))


FINDING: Final = PlayableFinding(
    "012",
    {
        "busy": Way("the former coordinator is busy with listings", play),
        "idle": Way("the former coordinator is idle", partial(play, busy=0, tries=IDLE_TRIES), expects_nothing),
    },
    minutes=2,
    programs=NETWORK,
)
