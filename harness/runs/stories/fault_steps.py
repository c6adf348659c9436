"""Performs the steps of faults: what is done to brokers, links and disks, and undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final, cast

from harness.runs.stories import steps as s
from harness.runs.stories.holding import all_hold
from harness.runs.stories.patience import Patience
from harness.runs.stories.script_faults import ScriptFaults
from harness.runs.stories.story_world import StoryWorld
from harness.runs.stories.trace import StepError, broker_words
from harness.runs.stories.writes import Writes
from nemesis.cluster import CONTROLLER, Link
from nemesis.evidence import PowerLost
from workloads import Settings


class FaultSteps:
    """Performs them by ``faults``; ``writes`` are what a silent follower is given to miss."""

    def __init__(
        self, faults: ScriptFaults, story_world: StoryWorld, writes: Writes, settings: Settings, patience: Patience
    ) -> None:
        self._faults = faults
        self._story_world = story_world
        self._writes = writes
        self._settings = settings
        self._patience = patience
        self._nudges = count(1)

    def perform(self, step: s.Step) -> str | None:
        """Perform one of :data:`OF_FAULTS`; the result in words, or none.

        Raises:
            StepError: it could not be performed.
        """
        return _ACTIONS[type(step)](self, step)

    def begin_fault(self, step: s.Begin) -> str:
        """Begin a fault of nodes or of links. The result names the brokers whose disk kept everything."""
        kept = []
        if step.links:
            self._faults.hit_links(step.fault, step.links, **({"api": step.api} if step.api else {}))
        for node in map(self._story_world.node, step.nodes):
            own = {"pick": self._story_world.pick_of(step.record, node)} if step.record else {}
            evidence = self._faults.hit(step.fault, node, **own)
            if "unconfirmed" in evidence:  # The node that was asked may be cut off; the next one may not be.
                evidence = self._faults.hit(step.fault, node, **own)
            if reason := evidence.get("refused") or evidence.get("unconfirmed"):
                raise StepError(f"refused: {reason}")
            kept += [node] if kept_everything(cast("PowerLost", evidence)) else []
        return f"nothing was lost: the disk of {broker_words(kept)} had everything" if kept else ""

    def undo(self, step: s.Undo) -> None:
        """Undo what holds nodes or links."""
        for node in map(self._story_world.node, step.nodes):
            self._faults.repair(step.repair, node)
        if not step.nodes:
            self._faults.repair_links(step.repair, step.links)

    def flush(self, step: s.Flush) -> None:
        """Write to disk what brokers have in memory."""
        for node in map(self._story_world.node, step.nodes):
            self._story_world.flush(node)

    def abandon(self, step: s.Abandon) -> None:
        """Let brokers stay dead to the end."""
        self._faults.abandoned |= {self._story_world.node(broker) for broker in step.nodes}

    def release_one(self, step: s.ReleaseOne) -> str:
        """Deliver one message that is held."""
        return self._faults.release_one(step.link, newest=step.newest)

    def withhold(self, step: s.Withhold) -> None:
        """Keep the controller's metadata from brokers."""
        links = [Link(CONTROLLER, self._story_world.node(broker)) for broker in step.nodes]
        self._faults.hit_links(step.strikes, links, api="UpdateMetadata")

    def isolate(self, step: s.Isolate) -> None:
        """Cut brokers off from all others."""
        for node in map(self._story_world.node, step.nodes):
            others = [other for other in (*self._story_world.brokers, CONTROLLER) if other != node]
            self._faults.hit_links(
                step.strikes, [link for other in others for link in (Link(node, other), Link(other, node))]
            )

    def shrink(self, step: s.Shrink) -> None:
        """A follower that has everything is in sync however silent it is (rule 9), so it is given something to miss."""
        leader = self._story_world.node(s.BrokerRole.LEADER)
        nodes = {self._story_world.node(broker) for broker in step.nodes}
        self._faults.hit_links(step.strikes, [Link(node, leader) for node in nodes], api="Fetch")
        # For what was fetched before to be answered: a fetch that waits at the leader would bring what follows.
        self._story_world.let_pass(max(self._patience.answer_ms, self._settings.replica_fetch_wait_max_ms + 100))
        self._writes.send(f"(nudge {next(self._nudges)})", leader, acks=0, judged=False)
        if not self._story_world.until(lambda: not nodes & set(self._story_world.view.isr), self._patience.limit_ms):
            raise StepError(f"still in the ISR after {self._patience.limit_ms} ms")

    def fence(self, step: s.Fence) -> None:
        """Cut brokers off from the controller until it has fenced them."""
        nodes = [self._story_world.node(broker) for broker in step.nodes]
        for node in nodes:
            self._faults.hit_links(step.strikes, [Link(node, CONTROLLER), Link(CONTROLLER, node)])
        wanted = [s.IsFenced(node, expected=True) for node in nodes]
        if not self._story_world.until(lambda: all_hold(wanted, self._story_world), self._patience.limit_ms):
            raise StepError(f"not fenced after {self._patience.limit_ms} ms")


def kept_everything(evidence: PowerLost) -> bool:
    """True after a loss of power that took no record, or no byte of log segments where records are not counted."""
    before, after = evidence.get("log_bytes_before"), evidence.get("log_bytes_after")
    counted = evidence.get("lost")
    return not any(counted.values()) if counted is not None else before is not None and before == after


#: The performer of each step; it answers with the outcome in words, or with none.
_ACTIONS: Final[Mapping[type, Callable[[FaultSteps, Any], str | None]]] = {
    s.Begin: FaultSteps.begin_fault,
    s.Undo: FaultSteps.undo,
    s.Flush: FaultSteps.flush,
    s.Abandon: FaultSteps.abandon,
    s.ReleaseOne: FaultSteps.release_one,
    s.Withhold: FaultSteps.withhold,
    s.Isolate: FaultSteps.isolate,
    s.Shrink: FaultSteps.shrink,
    s.Fence: FaultSteps.fence,
}
#: The steps of faults.
OF_FAULTS: Final = tuple(_ACTIONS)
