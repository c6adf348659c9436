"""Waits, and the states of replication that a script can wait for."""

from __future__ import annotations

from typing import ClassVar

from harness.runs.stories.stage.names import Broker
from harness.runs.stories.stage.stage import StoryStage
from harness.runs.stories.stage.trace import StepError, broker_words, leader_words
from harness.runs.stories.steps.step import ScriptState, Step


class Wait(Step, frozen=True, kw_only=True):
    """Let time pass."""

    form: ClassVar[str] = "wait TIME:ms"
    ms: int

    def act(self, stage: StoryStage) -> None:
        stage.let_pass(self.ms)


class WaitUntil(Step, frozen=True, kw_only=True):
    """Wait until all hold at one moment; default: 10 s (200 s on real nodes without try) plus twice session and lag."""

    form: ClassVar[str] = "wait [up to TIME:limit_ms] until STATES:states"
    states: tuple[ScriptState, ...]
    limit_ms: int | None = None

    def act(self, stage: StoryStage) -> None:
        usual_ms = stage.patience.tried_ms if self.tried else stage.patience.limit_ms
        limit_ms = usual_ms if self.limit_ms is None else self.limit_ms
        # A state of a record that was not sent raises. It is asked here first, before time passes: in a real world
        # an error that is raised while time passes closes the world.
        holding = [state.is_so(stage) for state in self.states]
        if not all(holding) and not stage.until(lambda: all_hold(self.states, stage), limit_ms):
            parts = zip(self.text.partition(" until ")[2].split(" and "), self.states, strict=True)
            wrong = [f"{part}: no, {state.why_not(stage)}" for part, state in parts if not state.is_so(stage)]
            raise StepError("; ".join([f"waited {limit_ms} ms without effect", *wrong]))


def all_hold(states: tuple[ScriptState, ...], stage: StoryStage) -> bool:
    """True if each of the states holds now; errors as :meth:`ScriptState.is_so`."""
    return all(state.is_so(stage) for state in states)


# --- states of replication -------------------------------------------------------------------------------------------


class LeadershipState(ScriptState, frozen=True):
    """A state of who leads."""

    def instead(self, stage: StoryStage) -> str:
        return _leader(stage)


class Leads(LeadershipState, frozen=True):
    """It leads by the controller's word and by its own."""

    form: ClassVar[str] = "BROKER:broker leads"
    broker: Broker

    def holds(self, stage: StoryStage) -> bool:
        return stage.leads(stage.node(self.broker))

    def instead(self, stage: StoryStage) -> str:
        stage.node(self.broker)
        return super().instead(stage)


class SomebodyLeads(LeadershipState, frozen=True):
    """The leader that the controller names runs and leads."""

    form: ClassVar[str] = "somebody leads"

    def holds(self, stage: StoryStage) -> bool:
        return stage.leads(stage.view.leader)


class NobodyLeads(LeadershipState, frozen=True):
    """The controller names no leader."""

    form: ClassVar[str] = "nobody leads"

    def holds(self, stage: StoryStage) -> bool:
        return stage.view.leader is None


class LeaderEpochIs(ScriptState, frozen=True):
    """It is that of the controller's last election."""

    form: ClassVar[str] = "leader epoch is NUMBER:epoch"
    epoch: int

    def holds(self, stage: StoryStage) -> bool:
        return stage.view.leader_epoch == self.epoch

    def instead(self, stage: StoryStage) -> str:
        return f"the leader epoch is {stage.view.leader_epoch}"


class ElectionsPrefer(ScriptState, frozen=True):
    """The replicas are listed in this order: the first that may lead is elected. A script begins with 0 1 2."""

    form: ClassVar[str] = "elections prefer NODES:brokers"
    brokers: tuple[Broker, ...]

    def holds(self, stage: StoryStage) -> bool:
        return stage.view.replicas == tuple(map(stage.node, self.brokers))

    def instead(self, stage: StoryStage) -> str:
        return f"elections prefer {broker_words(stage.view.replicas)}"


class IsFenced(ScriptState, frozen=True):
    """The controller counts it as dead."""

    form: ClassVar[str] = "BROKER:broker is [NOT:expected] fenced"
    broker: Broker
    expected: bool = True

    def holds(self, stage: StoryStage) -> bool:
        return (stage.node(self.broker) in stage.fenced()) is self.expected

    def instead(self, stage: StoryStage) -> str:
        stage.node(self.broker)
        return f"fenced: {broker_words(stage.fenced(), 'no broker')}"


class InIsr(ScriptState, frozen=True):
    """It is in the ISR of the controller."""

    form: ClassVar[str] = "BROKER:broker is [NOT:expected] in the isr"
    broker: Broker
    expected: bool = True

    def holds(self, stage: StoryStage) -> bool:
        return (stage.node(self.broker) in stage.view.isr) is self.expected

    def instead(self, stage: StoryStage) -> str:
        stage.node(self.broker)
        return _isr(stage)


class IsrIs(ScriptState, frozen=True):
    """The ISR of the controller has these members and no others."""

    form: ClassVar[str] = "isr is NODES:brokers"
    brokers: tuple[Broker, ...]

    def holds(self, stage: StoryStage) -> bool:
        return stage.is_isr(set(map(stage.node, self.brokers)))

    def instead(self, stage: StoryStage) -> str:
        return _isr(stage)


class AllInSync(ScriptState, frozen=True):
    """All are in the ISR; they have one log end, and their high watermarks are there."""

    form: ClassVar[str] = "all are in sync"

    def holds(self, stage: StoryStage) -> bool:
        return stage.all_in_sync(stage.view.replicas)

    def instead(self, stage: StoryStage) -> str:
        ends = ", ".join(f"{replica.node}: {replica.log_end}" for replica in stage.replicas() if replica.running)
        return f"{_isr(stage)}; log ends {ends}"


def _leader(stage: StoryStage) -> str:
    leader = stage.view.leader
    if leader is None or stage.leads(leader):
        return leader_words(leader)
    return f"the controller names {leader} as leader, but {leader} does not act as one"


def _isr(stage: StoryStage) -> str:
    return f"isr is {broker_words(stage.view.isr, 'no broker')}, and {_leader(stage)}"
