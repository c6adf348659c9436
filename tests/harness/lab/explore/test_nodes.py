"""Remembered steps are the core's own: the same as those of brokers and a controller that simply run on."""

from __future__ import annotations

import random
from collections import defaultdict, deque

import pytest

from harness.broker.core.effects import Effect
from harness.broker.core.messages import MetadataUpdate, RecordBatch
from harness.broker.core.request_handler import DEADLINES
from harness.broker.core.types import CONTROLLER, BrokerState, Image, PartitionState, TopicState
from harness.lab.explore import Scope, scope_named
from harness.lab.explore.brokers import BrokerNode, WritingClient, happen
from harness.lab.explore.controllers import Controller, controller_state_of, decide
from harness.lab.explore.events import AT, NodeEvent, sent
from harness.lab.explore.normal_form import NOW_US
from harness.lab.explore.searched import Action
from harness.lab.explore.space import Space
from harness.lab.explore.wires import WireName, wire_kind
from tests.harness.lab.explore.twin import Separate

SCOPE = scope_named("calm-1").varied(
    {"records": 2, "crashes": 2, "fences": 2, "moves": 2, "shrinks": 2, "proposals": 9, "skips": 2,
     "elected": "assigned", "fetches-park": True, "stale-requests": True},
    {"eligible.leader.replicas": True},
)  # fmt: skip


def test_what_a_loss_of_power_takes_is_what_the_disk_lacks_whatever_the_core_believes():
    node = BrokerNode(0)
    log = node.disk.open(AT)
    log.append(RecordBatch(1, 10, "x", 0, 0))
    assert node.copy().flushed == 0
    log.flushed_offset = 1  # as a bug of the core may have it
    assert node.copy().flushed == 0
    log.flush()
    assert node.copy().flushed == 1


class Direct:
    """The same cluster without digests: nodes that keep what they have, wires with messages."""

    def __init__(self, scope: Scope, space: Space) -> None:
        self.config = space.nodes._config
        self.wires: dict[WireName, deque[object]] = defaultdict(deque)
        state = PartitionState((0, 1, 2), (0, 1, 2), 0, 0, 0)
        brokers = {node: BrokerState(1, fenced=False) for node in range(3)}
        image = Image(1, brokers, {AT.topic: TopicState(space.nodes._topic, (state,))})
        self.controller = Controller(self.config, image=image, observe=False)
        self.controller.start(NOW_US)
        self.nodes = [BrokerNode(node) for node in range(3)]
        for node in self.nodes:
            process = node.start(self.config, 1)
            self.carry(node.node, process.on_message(NOW_US, CONTROLLER, MetadataUpdate(image)))
        for follower in (1, 2):  # Both have fetched once, and wait at the leader.
            self.act(Action("deliver", 0, follower, wire=WireName("request", follower, 0)))

    def carry(self, source: int, effects: list[Effect]) -> None:
        for delivery in sent(effects):
            if delivery.target == CONTROLLER or self.nodes[delivery.target].process is not None:
                self.wires[WireName(wire_kind(type(delivery.message)), source, delivery.target)].append(
                    delivery.message
                )

    def act(self, action: Action) -> None:
        """Do what the space has done."""
        message = None
        if action.wire is not None:
            message = self.wires[action.wire].popleft()
            if action.kind != "deliver":
                return
        if action.kind == "start":
            node = self.nodes[action.broker]
            effects = decide(
                self.controller, NodeEvent("register", action.broker, node.incarnation + 1), None, first=None
            )
            node.start(self.config, self.controller.image.brokers[action.broker].broker_epoch)
            self.carry(CONTROLLER, effects)
        elif action.kind == "crash":
            self.nodes[action.broker].crash(action.number, 0, wipes=False)
            for wire, content in self.wires.items():
                if wire.target == action.broker:
                    content.clear()
        elif action.broker == CONTROLLER or action.kind in {"fence", "unfence", "move", "unclean"}:
            peer = action.peer if action.wire is not None else action.broker
            self.carry(CONTROLLER, decide(self.controller, NodeEvent(action.kind, peer), message, None))  # type: ignore[arg-type]
        else:
            process = self.nodes[action.broker].process
            assert process is not None
            event = NodeEvent(action.kind, action.peer, action.number)
            waited_us = self.config.replica_fetch_wait_max_ms * 1000
            if event.kind == "expire":  # Its deadlines are times still.
                effects = process.on_timer(NOW_US + waited_us, DEADLINES)
            else:
                effects, idle = happen(process, event, message, WritingClient(-1))  # type: ignore[arg-type]
                assert not idle  # The space leaves such steps out.
            self.carry(action.broker, effects)


@pytest.mark.parametrize("seed", range(12))
def test_remembered_steps_equal_those_of_nodes_that_run_on(seed: int) -> None:
    space, choose = Separate(SCOPE), random.Random(seed)
    state, direct = space.begin(), Direct(SCOPE, space)
    for _ in range(80):
        steps = [step for step in map(space.judged, space.follow(state)) if step.broken is None]
        if not steps:
            break
        step = choose.choice(steps)
        state = step.state
        direct.act(step.action)
        assert controller_state_of(direct.controller) == space.nodes.controller_states[state[0]]
        assert [node.copy() for node in direct.nodes] == [space.nodes.copies[digest] for digest in state[1:4]]


def test_a_step_that_is_remembered_is_what_the_core_does_again() -> None:
    space = Space(SCOPE.varied({"elected": "any"}, {}))
    state, choose = space.begin(), random.Random(5)
    for _ in range(60):
        state = choose.choice([step for step in map(space.judged, space.follow(state)) if step.broken is None]).state
    for (digest, event), outcomes in list(space.nodes._steps.items()):
        assert space.nodes.perform(digest, event) == outcomes
