"""The steps of a counterexample as actions of a published model, or as the reasons for which that has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from harness.broker.core import messages
from harness.broker.core.types import NONE, PartitionState
from harness.lab.explore.brokers import BrokerCopy
from harness.lab.explore.events import AT, NodeEvent
from harness.lab.explore.rules import record_name
from harness.lab.explore.scope import Scope
from harness.lab.explore.search import Result
from harness.lab.explore.searched import Action, State
from harness.lab.explore.space import Space
from harness.lab.explore.wires import WireName


class PublishedModel(NamedTuple):
    """One of the two models: its directory and module, the names of its two ways to stop, and what a move keeps."""

    directory: str
    module: str
    keeps_log: str
    loses_log: str
    kept_by_move: str
    limits: tuple[str, ...] = ()


#: Without and with eligible leader replicas.
MODELS: Final[Mapping[bool, PublishedModel]] = {
    False: PublishedModel(
        "kafka_data_replication/kraft/v3.5",
        "kafka_replication_v3_5",
        "CleanShutdown",
        "UncleanShutdown",
        "md.isr",
        ("AvoidLastReplicaStanding = TRUE",),
    ),
    True: PublishedModel(
        "kafka_data_replication/kraft/kip-966",
        "kafka_replication_kip_966",
        "NoDataLossShutdown",
        "DataLossShutdown",
        "md.isr, md.elr",
    ),
}
#: The action that neither model has.
PLANNED_MOVE: Final = "PlannedMove"
#: The actions of both models that are written, beside those by which a broker stops.
ACTIONS: Final = frozenset(
    [
        "WriteRecordToLeader",
        "SendFetchRequest",
        "ReceiveFetchRequest",
        "ReceiveFetchResponse",
        "ReceiveMetadataUpdate",
        "SendAlterPartitionRequest",
        "ReceiveAlterPartitionRequest",
        "ReceiveAlterPartitionResponse",
        "FenceBroker",
        "UnfenceBroker",
        "BrokerStart",
        "ReceiveBrokerRegRequest",
        "ReceiveBrokerRegResponse",
    ]
)
#: Reasons for which the model has no action, by the kind of our step.
ABSENT: Final[Mapping[str, str]] = {
    "unclean": "it elects in-sync replicas only",
    "retry": "a follower asks again by itself",
    "again": "no message is lost, so none is asked for again",
    "repeat": "no message is lost, so no proposal is repeated",
    "expire": "no fetch waits for records",
    "checkpoint": "it has no checkpoints of high watermarks",
    "clean": "it has no cleaners",
    "clean-late": "it has no cleaners",
    "write-again": "a client writes each record once",
    "lose": "no message is lost",
}


class _Moment(NamedTuple):
    """A step of the counterexample: the states before and after it, and their brokers."""

    action: Action
    state: State
    reached: State
    before: Sequence[BrokerCopy]
    after: Sequence[BrokerCopy]


class ModelAction(NamedTuple):
    """An action of the model with what it must have done; without an action the reason, if there is one.

    ``rest`` is the condition under which the model does nothing instead.
    """

    action: str
    done: str = ""
    why: str = ""
    rest: str = ""

    @property
    def name(self) -> str:
        """The action's name."""
        return self.action.partition("(")[0]


class ReplayedStep(NamedTuple):
    """A step of the counterexample: the actions for it, and the state of the cluster that it leads to."""

    actions: tuple[ModelAction, ...]
    decided: PartitionState
    copies: Sequence[BrokerCopy]


class Replay:
    """The actions of the model that do what a counterexample does."""

    def __init__(self, scope: Scope, result: Result) -> None:
        self._space = Space(scope)
        self._model = MODELS[scope.chosen.eligible_leader_replicas]
        self._moments = list(self._walk(result))
        first = self._space.begin()
        self._first_epoch = self._space.nodes.controller_states[first[0]].state.partition_epoch
        #: Answers that the model does not give, on their way: leader, follower.
        self._not_given: set[tuple[int, int]] = set()
        #: Answers that the model gives, on their way, with the condition under which it has none.
        self._given: dict[tuple[int, int], str] = {}
        #: The number of records of the controller's log that each broker knows, 1 at the beginning.
        self._records_known: dict[int, int] = {}
        self._registered: set[int] = set()

    def _walk(self, result: Result) -> Iterator[_Moment]:
        state = self._space.begin()
        for taken in result.trace:
            before = state
            state = next(same.state for same in self._space.follow(state) if same[:2] == taken[:2])
            yield _Moment(taken.action, before, state, self._copies(before), self._copies(state))

    def _copies(self, state: State) -> list[BrokerCopy]:
        return [self._space.nodes.copies[digest] for digest in state[1 : 1 + self._space.scope.constants.brokers]]

    def _on_wire(self, state: State, wire: WireName) -> tuple[int, ...]:
        """The digests of the messages that are under way on a wire."""
        slot = 1 + self._space.scope.constants.brokers + self._space.wires.index(wire)
        return self._space.contents[state[slot]]

    def steps(self) -> Iterator[ReplayedStep]:
        """Step by step. A request is sent as late as its follower is as it was when it sent that."""
        placed: list[list[ModelAction]] = [[] for _ in self._moments]
        early: list[list[ModelAction]] = [[] for _ in self._moments]
        for index, moment in enumerate(self._moments):
            for each in self._of(moment):
                sent = self._sent(index) if each.name == "SendFetchRequest" else index
                if sent == index:
                    placed[index].append(each)
                else:
                    early[sent].append(each._replace(why=f"the request of step {index + 1} is sent before that"))
        for moment, sends, actions in zip(self._moments, early, placed, strict=True):
            decided = self._space.nodes.controller_states[moment.reached[0]].state
            yield ReplayedStep((*sends, *actions), decided, moment.after)

    def _sent(self, index: int) -> int:
        """The last step up to ``index`` before which the follower was as its request says."""
        action = self._moments[index].action
        wanted = self._wanted(action)
        alike = (
            number
            for number in range(index, -1, -1)
            for copy in self._moments[number].before[action.peer : action.peer + 1]
            if (copy.leader_epoch, len(copy.log)) == (wanted.current_leader_epoch, wanted.fetch_offset)
        )
        return next(alike, index)

    def _wanted(self, action: Action) -> messages.FetchPartition:
        message = self._space.nodes.messages[action.number]
        assert isinstance(message, messages.Fetch)  # noqa: S101 - what travels on a wire of requests
        return message.partitions[0]

    def _of(self, moment: _Moment) -> Iterator[ModelAction]:
        action, kind = moment.action, moment.action.kind
        broker = action.broker + 1
        if kind in ABSENT:
            yield ModelAction("", why=f"no action of the model: {ABSENT[kind]}")
        elif action.wire is not None:
            yield from self._message(moment)
        elif kind == "write" and moment.before[action.broker].log == moment.after[action.broker].log:
            yield ModelAction("", why="no action of the model: the write is refused")
        elif kind == "write":
            yield ModelAction(f"WriteRecordToLeader({broker})", f'"{record_name(action.number)}" \\in inv_sent\'')
        elif kind == "crash":
            yield self._stop(moment)
        elif kind == "fence" and not moment.before[action.broker].alive:
            yield ModelAction("", why="no action of the model: it fenced this broker as that stopped")
        elif kind == "fence":
            yield ModelAction(f"FenceBroker({broker})", self._leads(moment.reached))
        elif kind == "unfence" and action.broker in self._registered:
            self._registered.discard(action.broker)
            yield ModelAction("", why="no action of the model: it unfenced this broker as that registered")
        else:
            if kind == "start":
                self._registered.add(action.broker)
                self._records_known[action.broker] = 0
            yield from (ModelAction(f"{name}({broker})") for name in _SIMPLE[kind])
        if kind not in ABSENT:
            yield from self._proposals(moment)

    def _proposals(self, moment: _Moment) -> Iterator[ModelAction]:
        """The proposals of an ISR that leaders send in a step."""
        for wire in self._space.wires:
            if wire.kind == "proposal":
                before, after = (self._on_wire(state, wire) for state in (moment.state, moment.reached))
                arrived = moment.action.wire == wire
                for digest in after[len(before) - arrived :]:
                    message = self._space.nodes.messages[digest]
                    assert isinstance(message, messages.AlterPartition)  # noqa: S101 - what travels on such a wire
                    isr = ", ".join(str(member.broker + 1) for member in message.isr)
                    yield ModelAction(f"SendAlterPartitionRequest({wire.source + 1})", f"Proposed({{{isr}}})")

    def _leads(self, state: State) -> str:
        leader = self._space.nodes.controller_states[state[0]].state.leader
        return f"con_partition_metadata'.leader = {'NoLeader' if leader == NONE else leader + 1}"

    def _stop(self, moment: _Moment) -> ModelAction:
        """A process ends. The model fences the broker at once, so that it elects whom ours elects later."""
        action, had = moment.action, len(moment.before[moment.action.broker].log)
        self._given = {pair: rest for pair, rest in self._given.items() if action.broker not in pair}
        later = self._moments[self._moments.index(moment) + 1 :]
        fenced = (each.reached for each in later if each.action[:2] == ("fence", action.broker))
        done = next(map(self._leads, fenced), "")
        keeps = action.number == had
        why = "" if keeps or not action.number else LOSES_ALL
        stop = self._model.keeps_log if keeps else self._model.loses_log
        return ModelAction(f"{stop}({action.broker + 1})", done, why)

    def _message(self, moment: _Moment) -> Iterator[ModelAction]:
        action = moment.action
        assert action.wire is not None  # noqa: S101 - it was asked before
        target, source = action.broker + 1, action.peer + 1
        kind = action.wire.kind
        if kind == "metadata":
            yield self._metadata(moment)
        elif kind == "request":
            yield from self._request(moment)
        elif kind == "response" and (action.peer, action.broker) in self._not_given:
            self._not_given.discard((action.peer, action.broker))
            yield ModelAction("", why=_NOT_GIVEN)
        elif kind == "response":
            yield self._answer(action.peer, action.broker)
        elif kind == "proposal":
            yield ModelAction(f"ReceiveAlterPartitionRequest({source})")
        else:
            rest = f"~ENABLED ReceiveAlterPartitionResponse({target})"
            yield ModelAction(f"ReceiveAlterPartitionResponse({target})", rest=rest)

    def _request(self, moment: _Moment) -> Iterator[ModelAction]:
        """A fetch is sent, arrives, and its answer arrives in the same step if answers do not wait."""
        action = moment.action
        leader, follower = action.broker, action.peer
        wire = WireName("response", leader, follower)
        waits = len(self._on_wire(moment.reached, wire)) > len(self._on_wire(moment.state, wire))
        if self._only_shortens_epochs(moment):
            if waits:
                self._not_given.add((leader, follower))
            yield ModelAction("", why=_NOT_GIVEN)
            return
        if (leader, follower) in self._given:
            yield self._answer(leader, follower)._replace(why="an answer comes that the follower had given up")
        logs = [(moment.before[node].leader_epoch, moment.before[node].log) for node in (leader, follower)]
        idle = logs[0] == logs[1]
        asked = f"Converged({leader + 1}, {follower + 1})" if idle else ""
        arrived = f"~UnderWay(FetchRequest, {follower + 1}, {leader + 1})" if idle else ""
        yield ModelAction(f"SendFetchRequest({follower + 1})", f"Sent({leader + 1})", rest=asked)
        yield ModelAction(f"ReceiveFetchRequest({leader + 1})", f"Taken({follower + 1})", rest=arrived)
        self._given[leader, follower] = f"~UnderWay(FetchResponse, {leader + 1}, {follower + 1})" if idle else ""
        if not waits and moment.before[follower].alive:
            yield self._answer(leader, follower)

    def _answer(self, leader: int, follower: int) -> ModelAction:
        rest = self._given.pop((leader, follower), "")
        return ModelAction(f"ReceiveFetchResponse({follower + 1})", f"Taken({leader + 1})", rest=rest)

    def _only_shortens_epochs(self, moment: _Moment) -> bool:
        """True if the answer truncates no record: the follower's last epoch, in which it led, has none."""
        action = moment.action
        wanted = self._wanted(action)
        (outcome,) = self._space.nodes.step(
            moment.state[1 + action.broker], NodeEvent("message", action.peer, action.number)
        )
        sent = [self._space.nodes.messages[each.digest] for each in outcome.sends if each.target == action.peer]
        answers = [message.partitions[0] for message in sent if isinstance(message, messages.FetchResponse)]
        diverging = next((answer.diverging for answer in answers if answer.diverging is not None), None)
        kept = [each[0] for each in moment.before[action.peer].log[: wanted.fetch_offset] if each is not None]
        without_records = max(kept, default=NONE) < wanted.last_fetched_epoch
        return diverging is not None and without_records and diverging.end_offset >= wanted.fetch_offset

    def _metadata(self, moment: _Moment) -> ModelAction:
        """The broker learns all up to a record of the controller's log, and acts on that alone."""
        action, before = moment.action, moment.before[moment.action.broker]
        message = self._space.nodes.messages[action.number]
        assert isinstance(message, messages.MetadataUpdate)  # noqa: S101 - what travels on a wire of metadata
        if action.kind == "skip":
            return ModelAction("", why="the broker learns it together with the next, and acts on that alone")
        state = message.image.topics[AT.topic].partitions[AT.partition]
        if not before.leading and state.leader_epoch <= before.leader_epoch:
            return ModelAction("", why="no action of the model: a follower has nothing to do for it")
        broker, records = action.broker + 1, state.partition_epoch - self._first_epoch + 1
        if records <= self._records_known.get(action.broker, 1):
            return ModelAction("", why="no action of the model: nothing is new of the partition")
        self._records_known[action.broker] = records
        return ModelAction(f"ReceiveMetadataUpdate({broker})", f"Len(broker_metadata_log'[{broker}]) = {records}")


#: The remark on a broker that loses a part of its log; from there on the states are not the same.
LOSES_ALL: Final = "the model loses all of the log"
_NOT_GIVEN: Final = "no action of the model: without records of its last epoch the follower does not ask about it"
_SIMPLE: Final[Mapping[str, tuple[str, ...]]] = {
    "silent": (),
    "move": (PLANNED_MOVE,),
    "fence": ("FenceBroker",),
    "unfence": ("UnfenceBroker",),
    "start": ("BrokerStart", "ReceiveBrokerRegRequest", "ReceiveBrokerRegResponse"),
}
