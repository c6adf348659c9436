"""Finding 011: a coordinator of a group that is cut off from its cluster, and not from clients.

Broker 0 coordinates the group, which has committed 5. It is cut off from the other brokers and from the controller.
Another broker takes over, and acknowledges a commit of 10. Then broker 0 is asked what the group has committed, by
single requests and by clients; again after a while; and again and again when the cut is healed. The controls lose the
coordinator in another way.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final, Literal, NamedTuple

from harness.lab.findings.group_requests import commits, connected, coordinator_by, told
from harness.lab.findings.internal_topics import SAFE_SETTINGS, SERVING
from harness.lab.findings.playable import NETWORK, PlayableFinding, Played, Way, expects_nothing
from harness.lab.findings.script import Asking, OperatedScript, commits_of
from harness.lab.findings.stage import LIMIT_US, PARTITIONS, FindingStage, NotObservedError, OpenCluster
from harness.worlds.clients import RealClients
from harness.worlds.kafka.administration import Administration
from nemesis.cluster import CONTROLLER, Link, PartitionView, require
from workloads import Consumer, Membership, Offsets

#: Broker 0 is cut off from brokers and the controller; from the brokers alone, so that it is told of its successor; not
#: at all, but another one is elected as planned; or it is stopped in order.
Loss = Literal["cut", "told", "moved", "stopped"]
GROUP: Final = "old"
#: The coordinator that is lost, and the others.
OLD, NEXT, THIRD = 0, 1, 2
ASSIGNMENT: Final = ((NEXT, THIRD, OLD),) * len(PARTITIONS)
#: The offsets that the group commits: before, and to the next coordinator.
BEFORE, AFTER = 5, 10
#: New clients of each kind that ask each time.
ASKING: Final = 6
#: A client that is told of another coordinator may say so, and ask that one the next time.
TRIES: Final = 3
OF_BROKERS: Final = {"offsets.topic.num.partitions": 1}
#: Between the two times at which all are asked.
WAIT_US: Final = 60_000_000
ASK_S: Final = 5.0
AGAIN_US: Final = 100_000
UNREACHED: Final = "not reached"

ToldOffset = int | str


class OldAnswers(NamedTuple):
    """The answers at one time to what the group has committed.

    Attributes:
        direct: of broker 0 to a request.
        stable: of broker 0 to a request for stable offsets.
        coordinator: the coordinator, as broker 0 names it.
        kept: to a client that had asked before broker 0 was lost.
        of_old: to new clients that begin at broker 0, if it runs, with the number of each.
        of_all: to new clients that begin at any broker.
    """

    direct: ToldOffset
    stable: ToldOffset
    coordinator: ToldOffset
    kept: ToldOffset
    of_old: Counter[ToldOffset]
    of_all: Counter[ToldOffset]

    @property
    def too_old(self) -> bool:
        """True if an answer was older than a commit that was acknowledged before."""
        return BEFORE in {self.direct, self.stable, self.kept, *self.of_old, *self.of_all}


class OldSeen(NamedTuple):
    """The answers after AFTER was acknowledged, after a time, and with all brokers in sync again.

    ``healing`` has the changes of what broker 0 answers from the healing on, with the milliseconds since.
    """

    once: OldAnswers
    later: OldAnswers
    healing: list[tuple[int, str]]
    healed: OldAnswers


class OldCoordinator(OperatedScript):
    """The script on one cluster."""

    def __init__(
        self, cluster: OpenCluster, of_old: RealClients, of_all: RealClients, operator: Administration, loss: Loss
    ) -> None:
        super().__init__(cluster, cluster.world.clients, operator)
        self._of_old, self._of_all = of_old, of_all
        self._loss = loss

    def play(self) -> OldSeen:
        """Lose the coordinator, commit at the next one, and ask; again after a minute, and after healing."""
        self.commit(GROUP, {PARTITIONS[0]: 0})  # so that there is a partition for commits
        self.lead(SERVING, OLD, then=(NEXT, THIRD))
        self._commit(OLD, BEFORE)
        kept = self._of_old.consumer(self.cluster.next_process(), Membership(GROUP))
        self.wait(f"a client is told {BEFORE}", lambda: self._asked(kept) == BEFORE)
        self._lose()
        self.wait(f"broker {NEXT} coordinates the group", lambda: self._serving.leader == NEXT)
        self._commit(NEXT, AFTER)
        once = self._answers(kept)
        self.cluster.does("a minute passes")
        self.let_pass(WAIT_US)
        later = self._answers(kept)
        healing = self._heal()
        return OldSeen(once, later, healing, self._answers(kept))

    def _commit(self, broker: int, offset: int) -> None:
        with connected(self.cluster, broker) as connection:
            self.wait(f"broker {broker} acknowledges {offset}", lambda: commits(connection, GROUP, offset))

    def _answers(self, kept: Consumer) -> OldAnswers:
        direct = self._of_broker_0()
        return OldAnswers(
            direct=direct,
            stable=self._of_broker_0(stable=True),
            coordinator=self._named(),
            kept=self._asked(kept),
            of_old=Counter(self._ask_new_client(self._of_old) for _ in range(ASKING) if direct != UNREACHED),
            of_all=Counter(self._ask_new_client(self._of_all) for _ in range(ASKING)),
        )

    def _of_broker_0(self, *, stable: bool = False) -> ToldOffset:
        try:
            with connected(self.cluster, OLD, ASK_S) as connection:
                return told(connection, GROUP, stable=stable)
        except OSError:
            return UNREACHED

    def _named(self) -> ToldOffset:
        try:
            with connected(self.cluster, OLD, ASK_S) as connection:
                return coordinator_by(connection, GROUP)
        except OSError:
            return UNREACHED

    def _ask_new_client(self, clients: RealClients) -> ToldOffset:
        consumer = clients.consumer(self.cluster.next_process(), Membership(GROUP))
        answer = self._asked(consumer)
        consumer.close()
        return answer

    def _asked(self, consumer: Consumer) -> ToldOffset:
        ask_committed: Asking[Offsets] = partial(commits_of(consumer).ask_committed, [PARTITIONS[0]])
        answer = Offsets({})
        for _ in range(TRIES):
            answer = self.ask(ask_committed)
            if answer.offsets:
                return answer.offsets[PARTITIONS[0]]
        return answer.error or "nothing"

    # --- the cluster -------------------------------------------------------------------------------------------------

    @property
    def _serving(self) -> PartitionView:
        """The group's partition by the controller's word: by that of broker 0 it leads, and all are in sync as ever."""
        return self.cluster.target.view().internal[SERVING]

    def _lose(self) -> None:
        if self._loss == "stopped":
            require(self.cluster.target.processes).stop(OLD)
        elif self._loss == "moved":
            self.lead(SERVING, NEXT)
        else:
            require(self.cluster.target.links).cut(
                _links((NEXT, THIRD, CONTROLLER) if self._loss == "cut" else (NEXT, THIRD))
            )
            if self._loss == "told":
                self.lead(SERVING, NEXT, whole=False)

    def _heal(self) -> list[tuple[int, str]]:
        """Heal, and ask broker 0 until all replicas are in sync: the changes of its answers."""
        if self._loss == "stopped":
            require(self.cluster.target.processes).restart(OLD)
        elif self._loss != "moved":
            require(self.cluster.target.links).heal(_links((NEXT, THIRD, CONTROLLER)))
        begun_s, seen, whole = time.monotonic(), list[tuple[int, str]](), False
        self.cluster.does("broker 0 is asked until it is in sync")
        while not whole:
            if time.monotonic() > begun_s + LIMIT_US / 1e6:
                raise NotObservedError("the replicas were not in sync again in time")
            whole = set(self._serving.isr) == {OLD, NEXT, THIRD}
            answer = f"{self._of_broker_0()}{', all in sync' * whole}"
            if not seen or seen[-1][1] != answer:
                seen.append((round((time.monotonic() - begun_s) * 1_000), answer))
            self.let_pass(AGAIN_US)
        return seen


def _links(ends: Sequence[int]) -> list[Link]:
    return [link for end in ends for link in (Link(OLD, end), Link(end, OLD))]


def play(stage: FindingStage, loss: Loss) -> Played:
    """Play it on a new cluster."""
    with ExitStack() as resources:
        library = stage.library(resources)
        cluster_of = stage.kafka(SAFE_SETTINGS, OF_BROKERS, namespaces=True, assignment=ASSIGNMENT)
        cluster = resources.enter_context(cluster_of)
        servers = cluster.world.clients.bootstrap
        of_old, of_all = (
            resources.enter_context(cluster.clients_until_closed(library, each)) for each in ([servers[OLD]], servers)
        )
        operator = resources.enter_context(cluster.operator(NEXT, THIRD))
        seen = OldCoordinator(cluster, of_old, of_all, operator, loss).play()
    return played(seen)


def played(seen: OldSeen) -> Played:
    """It shows where an answer was older than the commit that had been acknowledged."""
    facts = [f"the group committed {BEFORE} to broker {OLD}, and then {AFTER} to broker {NEXT}"]
    for when, answers in (("at once", seen.once), ("a minute later", seen.later), ("in sync again", seen.healed)):
        facts += [
            f"{when}, broker {OLD} told a request {answers.direct}, and {answers.stable} of stable offsets",
            f"{when}, it named {answers.coordinator} as the coordinator",
            f"{when}, the client that had asked it before was told {answers.kept}",
            f"{when}, new clients were told: at it {_counted(answers.of_old)}; at any {_counted(answers.of_all)}",
        ]
    healing = "; ".join(f"{answer} after {ms} ms" for ms, answer in seen.healing)
    facts.insert(-4, f"broker {OLD} told, from the healing on: {healing}")
    return Played.of(facts, shown=seen.once.too_old or seen.later.too_old)


def _counted(answers: Counter[ToldOffset]) -> str:
    return ", ".join(f"{answer} to {number}" for answer, number in sorted(answers.items(), key=str)) or "none asked"


FINDING: Final = PlayableFinding(
    "011",
    {
        "cut": Way("broker 0 is cut off", partial(play, loss="cut")),
        "told": Way("it is cut off, but not from the controller", partial(play, loss="told"), expects_nothing),
        "moved": Way(
            "it is not cut off; its successor is elected as planned", partial(play, loss="moved"), expects_nothing
        ),
        "stopped": Way("it is stopped in order", partial(play, loss="stopped"), expects_nothing),
    },
    clients=("confluent-kafka", "java"),
    minutes=3,
    programs=NETWORK,
)
