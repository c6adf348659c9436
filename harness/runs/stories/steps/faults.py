"""Faults: what is done to brokers, links and disks, and undone; and what an operator does.

A fault has its words with it (:class:`nemesis.faults.Fault`): each that has ``operands`` is a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final, cast

from harness.runs.stories.stage.names import Broker, BrokerRole, Record
from harness.runs.stories.stage.stage import StoryStage
from harness.runs.stories.stage.trace import StepError, broker_words
from harness.runs.stories.steps.form import Form
from harness.runs.stories.steps.step import Step, WorldLimits
from nemesis.cluster import CONTROLLER, Capability, Link
from nemesis.evidence import PowerLost
from nemesis.faults import FAULTS, DropMessages, Fault, LinkFault, Partition
from nemesis.repairs import RELEASE, Repair

#: The faults that a script can say.
SPOKEN: Final = tuple(fault for fault in FAULTS if fault.operands)
#: The steps that undo these, by verb.
REPAIRS: Final = {fault.undone_by.verb: fault.undone_by for fault in SPOKEN if fault.lasts}


class Begin(Step, frozen=True, kw_only=True):
    """A fault begins: at each of some brokers, one after the other, or on links.

    Links are by number; :data:`nemesis.cluster.CONTROLLER` and CLIENTS are ends too. ``api`` ("Fetch"; empty: all) is
    of faults of messages, ``record`` of one that damages it.
    """

    fault: type[Fault]
    nodes: tuple[Broker, ...] = ()
    links: tuple[Link, ...] = ()
    api: str = ""
    record: Record = ""

    @classmethod
    def forms(cls) -> Iterator[Form]:
        """The faults together that one repair undoes, each repair after its faults, and those that nothing undoes."""
        for verb, repair in REPAIRS.items():
            undone = [fault for fault in SPOKEN if fault.lasts and fault.undone_by == repair]
            yield from map(cls._form, undone)
            whom = "[LINKS:links]" if issubclass(undone[0], LinkFault) else "NODES:nodes"
            yield Form(Undo, f"{verb} {whom}", repair.in_a_script, (repair.needs,), {"verb": verb})
        yield from (cls._form(fault) for fault in SPOKEN if not fault.lasts)

    @classmethod
    def _form(cls, fault: type[Fault]) -> Form:
        return Form(cls, f"{fault.verb} {fault.operands}", fault.in_a_script, fault.needs, {"fault": fault})

    @property
    def begins(self) -> type[Fault]:
        return self.fault

    @property
    def uses(self) -> tuple[Capability, ...]:
        return self.fault.needs

    def act(self, stage: StoryStage) -> str:
        kept = []
        if self.links:
            stage.faults.hit_links(self.fault, self.links, **({"api": self.api} if self.api else {}))
        for node in map(stage.node, self.nodes):
            own = {"pick": stage.pick_of(self.record, node)} if self.record else {}
            evidence = stage.faults.hit(self.fault, node, **own)
            if "unconfirmed" in evidence:  # The node that was asked may be cut off; the next one may not be.
                evidence = stage.faults.hit(self.fault, node, **own)
            if reason := evidence.get("refused") or evidence.get("unconfirmed"):
                raise StepError(f"refused: {reason}")
            kept += [node] if kept_everything(cast("PowerLost", evidence)) else []
        return f"nothing was lost: the disk of {broker_words(kept)} had everything" if kept else ""


class Undo(Step, frozen=True, kw_only=True):
    """Whatever holds these brokers, or links, and is undone by the ``verb``, ends; without any: whatever holds links.

    ``heal`` alone ends everything on links.
    """

    verb: str
    nodes: tuple[Broker, ...] = ()
    links: tuple[Link, ...] = ()

    @property
    def frees_links(self) -> bool:
        return not self.nodes

    @property
    def uses(self) -> tuple[Capability, ...]:
        return (self.repair.needs,)

    @property
    def repair(self) -> Repair[Any]:
        """The repair of this verb; only the verb goes along to another process."""
        return REPAIRS[self.verb]

    def act(self, stage: StoryStage) -> None:
        for node in map(stage.node, self.nodes):
            stage.faults.repair(self.repair, node)
        if not self.nodes:
            stage.faults.repair_links(self.repair, self.links)


class MoveCoordinator(Step, frozen=True, kw_only=True):
    """Hand the log of transactions, or of groups, over: its leader is the coordinator, 1 when a script begins."""

    form: ClassVar[str] = "move coordinator to BROKER:broker"
    limits: ClassVar[WorldLimits] = WorldLimits.NOT_ON_PROCESSES
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LEADERSHIP,)
    broker: Broker

    def act(self, stage: StoryStage) -> None:
        node = stage.node(self.broker)
        if stage.coordinator != node and (refused := stage.move_coordinator(node)):
            raise StepError(f"refused: {refused}")


class ReleaseFirst(Step, frozen=True, kw_only=True):
    """Deliver the message that was sent first of those that are held; the others stay held."""

    form: ClassVar[str] = f"{RELEASE.verb} first LINK:link"
    limits: ClassVar[WorldLimits] = WorldLimits.VIRTUAL
    needs: ClassVar[tuple[Capability, ...]] = (Capability.MESSAGES,)
    newest: ClassVar[bool] = False
    link: Link

    @property
    def frees_links(self) -> bool:
        return True

    def act(self, stage: StoryStage) -> str:
        return stage.faults.release_one(self.link, newest=self.newest)


class ReleaseLast(ReleaseFirst, frozen=True, kw_only=True):
    """The same with the message that was sent last."""

    form: ClassVar[str] = f"{RELEASE.verb} last LINK:link"
    newest: ClassVar[bool] = True


class NodeStep(Step, frozen=True, kw_only=True):
    """A step that concerns some brokers, one after the other."""

    nodes: tuple[Broker, ...]


class Flush(NodeStep, frozen=True, kw_only=True):
    """Force to disk what a broker has written, its high watermark too."""

    form: ClassVar[str] = "flush NODES:nodes"

    def act(self, stage: StoryStage) -> None:
        for node in map(stage.node, self.nodes):
            stage.flush(node)


class Abandon(NodeStep, frozen=True, kw_only=True):
    """A dead broker does not return, not even at the end."""

    form: ClassVar[str] = "never start NODES:nodes"

    def act(self, stage: StoryStage) -> None:
        stage.faults.abandoned |= {stage.node(broker) for broker in self.nodes}


# --- what several faults together do ---------------------------------------------------------------------------------


class Withhold(NodeStep, frozen=True, kw_only=True):
    """Drop what the controller sends of its metadata; the broker stays registered."""

    form: ClassVar[str] = "withhold metadata from NODES:nodes"
    strikes: ClassVar[type[Fault]] = DropMessages
    needs: ClassVar[tuple[Capability, ...]] = DropMessages.needs

    def act(self, stage: StoryStage) -> None:
        links = [Link(CONTROLLER, stage.node(broker)) for broker in self.nodes]
        stage.faults.hit_links(self.strikes, links, api="UpdateMetadata")


class Isolate(NodeStep, frozen=True, kw_only=True):
    """Cut a broker off from all brokers and the controller, not from clients."""

    form: ClassVar[str] = "isolate NODES:nodes"
    strikes: ClassVar[type[Fault]] = Partition
    needs: ClassVar[tuple[Capability, ...]] = Partition.needs

    def act(self, stage: StoryStage) -> None:
        for node in map(stage.node, self.nodes):
            _cut(node, [other for other in (*stage.brokers, CONTROLLER) if other != node], stage)


class Shrink(NodeStep, frozen=True, kw_only=True):
    """Drop a broker's fetches to the leader, and write one record, until it is out of the ISR; they stay dropped.

    A follower that has everything is in sync however silent it is (rule 9), so it is given something to miss.
    """

    form: ClassVar[str] = "shrink NODES:nodes"
    strikes: ClassVar[type[Fault]] = DropMessages
    needs: ClassVar[tuple[Capability, ...]] = DropMessages.needs

    def act(self, stage: StoryStage) -> None:
        leader = stage.node(BrokerRole.LEADER)
        nodes = {stage.node(broker) for broker in self.nodes}
        stage.faults.hit_links(self.strikes, [Link(node, leader) for node in nodes], api="Fetch")
        # A fetch that arrived before waits at the leader, and its answer would bring the record that is written next.
        # So time passes until that fetch is answered, too.
        stage.let_pass(max(stage.patience.answer_ms, stage.settings.replica_fetch_wait_max_ms + 100))
        stage.writes.nudge(leader)
        if not stage.until(lambda: not nodes & set(stage.view.isr), stage.patience.limit_ms):
            raise StepError(f"still in the ISR after {stage.patience.limit_ms} ms")


class Fence(NodeStep, frozen=True, kw_only=True):
    """Cut a broker off from the controller until it counts as dead; it stays cut off."""

    form: ClassVar[str] = "fence NODES:nodes"
    strikes: ClassVar[type[Fault]] = Partition
    needs: ClassVar[tuple[Capability, ...]] = Partition.needs

    def act(self, stage: StoryStage) -> None:
        nodes = [stage.node(broker) for broker in self.nodes]
        for node in nodes:
            _cut(node, [CONTROLLER], stage)
        if not stage.until(lambda: {*nodes} <= {*stage.fenced()}, stage.patience.limit_ms):
            raise StepError(f"not fenced after {stage.patience.limit_ms} ms")


def _cut(node: int, others: Iterable[int], stage: StoryStage) -> None:
    links = [link for other in others for link in (Link(node, other), Link(other, node))]
    stage.faults.hit_links(Partition, links)


def kept_everything(evidence: PowerLost) -> bool:
    """True after a loss of power that took no record, or no byte of log segments where records are not counted."""
    before, after = evidence.get("log_bytes_before"), evidence.get("log_bytes_after")
    counted = evidence.get("lost")
    return not any(counted.values()) if counted is not None else before is not None and before == after
