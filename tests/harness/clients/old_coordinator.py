"""A coordinator of a group that is cut off from its cluster, and not from clients: the script of finding 011.

Broker 0 coordinates the group, which has committed 5. It is cut off from the other brokers and from the controller.
Another broker takes over, and acknowledges a commit of 10. Then broker 0 is asked what the group has committed, by
single requests and by clients; again after a while; and again and again when the cut is healed. As a program, for root,
it prints the answers; the exit code is 1 where one was too old. The controls lose the coordinator in another way:

    python -m tests.harness.clients.old_coordinator --version 4.3.1
    python -m tests.harness.clients.old_coordinator --way moved
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from harness.clients import RealClients
from harness.plan import Kafka
from harness.plan.worlds import ClientName, Namespaces
from harness.reference.core.types import OFFSETS_TOPIC
from harness.worlds.kafka import client_library
from harness.worlds.kafka.administration import Administration
from nemesis.cluster import CONTROLLER, Link, PartitionView, require
from tests.harness.clients.group_requests import commits, connected, coordinator_by, told
from tests.harness.clients.internal_topics import SAFE_SETTINGS, OperatedScript, tuned_world
from tests.harness.clients.script import rules_of, script_options
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads.client import Consumer, Membership, Offsets

#: Broker 0 is cut off from brokers and the controller; from the brokers alone, so that it is told of its successor; not
#: at all, but another one is elected as planned; or it is stopped in order.
Way = Literal["cut", "told", "moved", "stopped"]
GROUP: Final = "old"
#: The coordinator that is lost, and the others.
OLD, NEXT, THIRD = 0, 1, 2
ASSIGNMENT: Final = ((NEXT, THIRD, OLD),) * len(PARTITIONS)
#: The one partition that serves every group.
SERVING: Final = f"{OFFSETS_TOPIC}-0"
#: The offsets that the group commits: before, and to the next coordinator.
BEFORE, AFTER = 5, 10
#: New clients of each kind that ask each time.
ASKING: Final = 6
#: A client that is told of another coordinator may say so, and ask that one the next time.
TRIES: Final = 3
OF_BROKERS: Final = {"offsets.topic.num.partitions": 1}
ASK_S: Final = 5.0
AGAIN_US: Final = 100_000
CLOSE_S: Final = 10
UNREACHED: Final = "not reached"

Answer = int | str


class Answers(NamedTuple):
    """The answers at one time to what the group has committed.

    Attributes:
        direct: of broker 0 to a request.
        stable: of broker 0 to a request for stable offsets.
        coordinator: the coordinator, as broker 0 names it.
        kept: to a client that had asked before broker 0 was lost.
        of_old: to new clients that begin at broker 0, if it runs, with the number of each.
        of_all: to new clients that begin at any broker.
    """

    direct: Answer
    stable: Answer
    coordinator: Answer
    kept: Answer
    of_old: Counter[Answer]
    of_all: Counter[Answer]

    @property
    def too_old(self) -> bool:
        """True if an answer was older than a commit that was acknowledged before."""
        return BEFORE in {self.direct, self.stable, self.kept, *self.of_old, *self.of_all}


class Seen(NamedTuple):
    """The answers after AFTER was acknowledged, after a time, and with all brokers in sync again.

    ``healing`` has the changes of what broker 0 answers from the healing on, with the milliseconds since.
    """

    once: Answers
    later: Answers
    healing: list[tuple[int, str]]
    healed: Answers


class OldCoordinator(OperatedScript):
    """The script on one cluster."""

    def __init__(
        self, cluster: Cluster, clients_at: Callable[[Collection[int]], RealClients], operator: Administration, way: Way
    ) -> None:
        super().__init__(cluster, operator)
        self._of_old, self._of_all = clients_at((OLD,)), clients_at((OLD, NEXT, THIRD))
        self._way = way

    def play(self, wait_us: int) -> Seen:
        """Lose the coordinator, commit at the next one, and ask; again after ``wait_us``, and after healing."""
        self.commit(GROUP, {PARTITIONS[0]: 0})  # so that there is a partition for commits
        self.lead(SERVING, OLD, then=(NEXT, THIRD))
        self._commit(OLD, BEFORE)
        kept = self._of_old.consumer(self.cluster.next_process(), Membership(GROUP))
        self.until(lambda: self._asked(kept) == BEFORE)
        self._lose()
        self.until(lambda: self._serving.leader == NEXT)
        self._commit(NEXT, AFTER)
        once = self._answers(kept)
        self.let_pass(wait_us)
        later = self._answers(kept)
        healing = self._heal()
        return Seen(once, later, healing, self._answers(kept))

    def _commit(self, broker: int, offset: int) -> None:
        with connected(self.cluster, broker) as connection:
            self.until(lambda: commits(connection, GROUP, offset))

    def _answers(self, kept: Consumer) -> Answers:
        direct = self._of_broker_0()
        return Answers(
            direct=direct,
            stable=self._of_broker_0(stable=True),
            coordinator=self._named(),
            kept=self._asked(kept),
            of_old=Counter(self._asked_anew(self._of_old) for _ in range(ASKING) if direct != UNREACHED),
            of_all=Counter(self._asked_anew(self._of_all) for _ in range(ASKING)),
        )

    def _of_broker_0(self, *, stable: bool = False) -> Answer:
        try:
            with connected(self.cluster, OLD, ASK_S) as connection:
                return told(connection, GROUP, stable=stable)
        except OSError:
            return UNREACHED

    def _named(self) -> Answer:
        try:
            with connected(self.cluster, OLD, ASK_S) as connection:
                return coordinator_by(connection, GROUP)
        except OSError:
            return UNREACHED

    def _asked_anew(self, clients: RealClients) -> Answer:
        consumer = clients.consumer(self.cluster.next_process(), Membership(GROUP))
        answer = self._asked(consumer)
        consumer.close()
        return answer

    def _asked(self, consumer: Consumer) -> Answer:
        assert consumer.commits is not None
        ask_committed = consumer.commits.ask_committed
        answer = Offsets({})
        for _ in range(TRIES):
            answer = self.ask(lambda done: ask_committed([PARTITIONS[0]], done))
            if answer.offsets:
                return answer.offsets[PARTITIONS[0]]
        return answer.error or "nothing"

    # --- the cluster -------------------------------------------------------------------------------------------------

    @property
    def _serving(self) -> PartitionView:
        """The group's partition by the controller's word: by that of broker 0 it leads, and all are in sync as ever."""
        return self.cluster.target.view().internal[SERVING]

    def _lose(self) -> None:
        if self._way == "stopped":
            require(self.cluster.target.processes).stop(OLD)
        elif self._way == "moved":
            self.lead(SERVING, NEXT)
        else:
            require(self.cluster.target.links).cut(
                _links((NEXT, THIRD, CONTROLLER) if self._way == "cut" else (NEXT, THIRD))
            )
            if self._way == "told":
                self.lead(SERVING, NEXT, whole=False)

    def _heal(self) -> list[tuple[int, str]]:
        """Heal, and ask broker 0 until all replicas are in sync: the changes of its answers."""
        if self._way == "stopped":
            require(self.cluster.target.processes).restart(OLD)
        elif self._way != "moved":
            require(self.cluster.target.links).heal(_links((NEXT, THIRD, CONTROLLER)))
        begun_s, seen, whole = time.monotonic(), list[tuple[int, str]](), False
        while not whole:
            whole = set(self._serving.isr) == {OLD, NEXT, THIRD}
            answer = f"{self._of_broker_0()}{', all in sync' * whole}"
            if not seen or seen[-1][1] != answer:
                seen.append((round((time.monotonic() - begun_s) * 1_000), answer))
            self.let_pass(AGAIN_US)
        return seen


def _links(ends: Sequence[int]) -> list[Link]:
    return [link for end in ends for link in (Link(OLD, end), Link(end, OLD))]


def played(version: str, client: ClientName, directory: Path, *, wait_s: int, way: Way = "cut") -> Seen:
    """Play it on a new cluster of this release, with one library."""
    planned = Kafka(version=version, client=client, host=Namespaces())
    with ExitStack() as ending:
        world = tuned_world(planned, directory, SAFE_SETTINGS | rules_of(version), OF_BROKERS, ASSIGNMENT)
        ending.callback(world.close)
        world.open()
        library = client_library(planned, directory, ending)
        settings, servers = world._spec.chosen(), world.clients.bootstrap

        def clients_at(brokers: Collection[int]) -> RealClients:
            clients = library.clients(world.clock, settings, [servers[broker] for broker in brokers])
            ending.callback(clients.close, CLOSE_S)
            return clients

        operator = ending.enter_context(closing(Administration(lambda: [servers[NEXT], servers[THIRD]])))
        return OldCoordinator(Cluster(world, directory), clients_at, operator, way).play(wait_s * 1_000_000)


def main() -> None:
    """Play it, and say what was answered."""
    parser = script_options(__doc__, client="confluent-kafka")
    parser.add_argument("--way", default="cut", choices=get_args(Way), help="how broker 0 is lost; cut: the finding")
    parser.add_argument("--wait", default=60, type=int, help="seconds after which is asked once more")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        seen = played(asked.version, asked.client, Path(directory), wait_s=asked.wait, way=asked.way)
    lines = [f"committed: {BEFORE}, then {AFTER}; broker 0 is lost: {asked.way}; with {asked.client}"]
    lines += _lines("at once", seen.once) + _lines(f"after {asked.wait} s", seen.later)
    lines += ["healed", *(f"  {ms} ms: {answer}" for ms, answer in seen.healing), *_lines("in sync", seen.healed)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.exit(seen.once.too_old or seen.later.too_old)


def _lines(when: str, answers: Answers) -> list[str]:
    return [
        when,
        f"  broker 0: {answers.direct}; of stable offsets: {answers.stable}; coordinator: {answers.coordinator}",
        f"  to a client that had asked before: {answers.kept}",
        f"  to new clients at broker 0: {_counted(answers.of_old)}; at any: {_counted(answers.of_all)}",
    ]


def _counted(answers: Counter[Answer]) -> str:
    return ", ".join(f"{answer} to {number}" for answer, number in sorted(answers.items(), key=str))


if __name__ == "__main__":
    main()
