"""A counterexample as a behaviour of a published TLA+ model of Kafka's replication, which the checker TLC replays.

The model is that of https://github.com/Vanlightly/kafka-tlaplus, read at commit 823615e8 (2025-01-24). It numbers
brokers, leader epochs and offsets from 1. It has no planned moves:
the written module adds that action, and nothing else. In one step of ours the model may have two actions (a request
is sent, and received), or none; then the module says so in a comment, and leaves out nothing silently.

What the model does in another way: a process that ends keeps all of its log or loses all of it, and is fenced at
once; no message is lost; a follower asks for one record at a time, and knows the last epoch of its log by its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.errors import PlanError
from harness.explore.any_scope import AnyScope
from harness.explore.brokers import BrokerCopy
from harness.explore.events import AT
from harness.explore.rules import record_name
from harness.explore.scope import Scope
from harness.explore.search import Result
from harness.explore.searched import Action
from harness.explore.space import Space
from harness.explore.steps import ShownStep
from harness.reference.core import messages

#: Constants that TLC takes for names, and nothing else.
_NAMES: Final = [
    "FENCED",
    "UNFENCED",
    "CONTROLLED_SHUTDOWN",
    "SHUTDOWN_NOW",
    "STARTING",
    "RUNNING",
    "OFFLINE_CLEAN",
    "OFFLINE_DIRTY",
    "Leader",
    "Follower",
    "RegisterBrokerRequest",
    "RegisterBrokerResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "FetchRequest",
    "FetchResponse",
    "PartitionChangeRecord",
    "Controller",
    "IneligibleReplica",
    "FencedLeaderEpoch",
    "UnknownLeaderEpoch",
    "NotLeaderOrFollower",
    "NoLeader",
    "Nil",
]
_INVARIANTS: Final = [
    "LeaderCompletenessProperty",
    "LeaderCandidateCompletenessProperty",
    "ReplicationQuorumSupersetProperty",
    "LogMatchingProperty",
    "MetadataLogMatchingProperty",
    "ConsistentReadProperty",
    "NoCommittedRecordLostGlobally",
]


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
    """A step of the counterexample, and the brokers before it."""

    action: Action
    before: Sequence[BrokerCopy]


class _Replayed(NamedTuple):
    """An action of the model with what it must have done, or no action and the reason."""

    action: str
    done: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        """The action's name."""
        return self.action.partition("(")[0]


def tla_files(scope: AnyScope, result: Result, steps: Sequence[ShownStep], file: Path, made_by: str) -> dict[Path, str]:
    """The module ``file`` that replays a counterexample, and its configuration for TLC beside it.

    Raises:
        PlanError: no model is published of the scope's kind: it has transactions, groups or keys.
    """
    check_model("--tla", scope, file)
    assert isinstance(scope, Scope)  # noqa: S101 - check_model has refused others
    replay = list(_Replay(scope, result).actions())
    model = MODELS[scope.chosen.eligible_leader_replicas]
    return {
        file: "\n".join(_module(model, file.stem, replay, steps, made_by)) + "\n",
        file.with_suffix(".cfg"): "\n".join(_configuration(scope, model, replay)) + "\n",
    }


def check_model(option: str, scope: AnyScope, file: Path) -> None:
    """Refuse a file that cannot be a module, and scopes without a published model.

    Raises:
        PlanError: see above.
    """
    if file.suffix != ".tla" or not (file.stem.isascii() and file.stem.isidentifier()):
        raise PlanError(f"{option} {file}: a module's file has its name, of letters, digits and _, as in missed.tla")
    if not isinstance(scope, Scope):
        raise PlanError(
            f"{option}: no model of transactions or groups is published; leave it out in scope {scope.name}"
        )
    if scope.constants.keys:
        raise PlanError(f"{option}: the published models have no compacted logs; leave it out in scope {scope.name}")


class _Replay:
    """The actions of the model that do what the counterexample does, with the number of our step for each."""

    def __init__(self, scope: Scope, result: Result) -> None:
        self._space = Space(scope)
        self._moments = list(self._walk(result))
        self._proposed: set[int] = set()
        first = self._space.begin()
        self._first_epoch = self._space.nodes.controller_states[first[0]].state.partition_epoch

    def _walk(self, result: Result) -> Iterator[_Moment]:
        state = self._space.begin()
        count = self._space.scope.constants.brokers
        for taken in result.trace:
            yield _Moment(taken.action, [self._space.nodes.copies[digest] for digest in state[1 : 1 + count]])
            state = next(same.state for same in self._space.follow(state) if same[:2] == taken[:2])

    def actions(self) -> Iterator[tuple[int, _Replayed]]:
        """In their order: a request is sent as late as its follower is as it was when it sent that."""
        placed: dict[int, list[tuple[int, _Replayed]]] = {}
        for index, moment in enumerate(self._moments):
            for each in self._of(moment):
                sent = self._sent(index) if each.name == "SendFetchRequest" else index
                placed.setdefault(sent, []).append((index + 1, each))
        for index in sorted(placed):
            yield from placed[index]

    def _sent(self, index: int) -> int:
        """The last step up to ``index`` before which the follower was as its request says."""
        action = self._moments[index].action
        message = self._space.nodes.messages[action.number]
        assert isinstance(message, messages.Fetch)  # noqa: S101 - what this action is made of
        wanted = message.partitions[0]
        alike = (
            number
            for number in range(index, -1, -1)
            for copy in self._moments[number].before[action.peer : action.peer + 1]
            if (copy.leader_epoch, len(copy.log)) == (wanted.current_leader_epoch, wanted.fetch_offset)
        )
        return next(alike, index)

    def _of(self, moment: _Moment) -> Iterator[_Replayed]:
        action, kind = moment.action, moment.action.kind
        broker = action.broker + 1
        if kind in ABSENT:
            yield _Replayed("", why=f"no action of the model: {ABSENT[kind]}")
        elif action.wire is not None:
            yield from self._message(moment)
        elif kind == "write":
            yield _Replayed(f"WriteRecordToLeader({broker})", f'"{record_name(action.number)}" \\in inv_sent\'')
        elif kind == "crash":
            yield self._stop(moment)
        elif kind == "fence" and not moment.before[action.broker].alive:
            yield _Replayed("", why="no action of the model: it fenced this broker as that stopped")
        elif kind == "silent":
            self._proposed.add(action.broker)
            yield _Replayed(f"SendAlterPartitionRequest({broker})")
        else:
            yield from (_Replayed(f"{name}({broker})") for name in _SIMPLE[kind])

    def _stop(self, moment: _Moment) -> _Replayed:
        model = MODELS[self._space.scope.chosen.eligible_leader_replicas]
        action, had = moment.action, len(moment.before[moment.action.broker].log)
        keeps = action.number == had
        why = "" if keeps or not action.number else "the model loses all of the log"
        return _Replayed(f"{model.keeps_log if keeps else model.loses_log}({action.broker + 1})", why=why)

    def _message(self, moment: _Moment) -> Iterator[_Replayed]:
        action = moment.action
        assert action.wire is not None  # noqa: S101 - it was asked before
        target, source = action.broker + 1, action.peer + 1
        kind = action.wire.kind
        if kind == "metadata":
            yield self._metadata(moment)
        elif kind == "request":
            yield _Replayed(f"SendFetchRequest({source})", f"Sent({target})")
            yield _Replayed(f"ReceiveFetchRequest({target})", f"Taken({source})")
        elif kind == "response":
            yield _Replayed(f"ReceiveFetchResponse({target})", f"Taken({source})")
        elif kind == "proposal":
            if action.peer not in self._proposed:
                yield _Replayed(f"SendAlterPartitionRequest({source})")
            self._proposed.discard(action.peer)
            yield _Replayed(f"ReceiveAlterPartitionRequest({source})")
        else:
            yield _Replayed(f"ReceiveAlterPartitionResponse({target})")

    def _metadata(self, moment: _Moment) -> _Replayed:
        """The broker learns all up to a record of the controller's log, and acts on that alone."""
        action, before = moment.action, moment.before[moment.action.broker]
        message = self._space.nodes.messages[action.number]
        assert isinstance(message, messages.MetadataUpdate)  # noqa: S101 - what travels on a wire of metadata
        if action.kind == "skip":
            return _Replayed("", why="the broker learns it together with the next, and acts on that alone")
        state = message.image.topics[AT.topic].partitions[AT.partition]
        if not before.leading and state.leader_epoch <= before.leader_epoch:
            return _Replayed("", why="no action of the model: a follower has nothing to do for it")
        broker, records = action.broker + 1, state.partition_epoch - self._first_epoch + 1
        return _Replayed(f"ReceiveMetadataUpdate({broker})", f"Len(broker_metadata_log'[{broker}]) = {records}")


_SIMPLE: Final[Mapping[str, tuple[str, ...]]] = {
    "move": (PLANNED_MOVE,),
    "fence": ("FenceBroker",),
    "unfence": ("UnfenceBroker",),
    "start": ("BrokerStart", "ReceiveBrokerRegRequest", "ReceiveBrokerRegResponse"),
}


def _module(
    model: PublishedModel, name: str, replay: Sequence[tuple[int, _Replayed]], steps: Sequence[ShownStep], made_by: str
) -> Iterator[str]:
    yield f"---- MODULE {name} ----"
    yield from (rf"\* {line}" for line in _heading(model, name, made_by))
    yield f"EXTENDS {model.module}"
    yield from ("", "VARIABLE step", "", r"Sent(to) == \E m \in messages' \ messages : m.dest = to")
    yield r"Taken(from) == \E m \in messages \ messages' : m.source = from"
    if any(each.name == PLANNED_MOVE for _, each in replay):
        yield from ("", *_planned_move(model))
    yield from (
        "",
        r"ReplayInit == Init /\ step = 0",
        "",
        "ReplayNext ==",
        r"    /\ step' = step + 1",
        r"    /\ \/ FALSE",
    )
    action, shown = 0, 0
    for number, each in replay:
        if number != shown:
            yield rf"       \* {number:2}  {steps[number - 1].text}"
            shown = number
        if each.why:
            yield rf"       \*       {each.why}"
        if each.action:
            yield rf"       \/ step = {action} /\ {each.action}" + (rf" /\ {each.done}" if each.done else "")
            action += 1
    yield "===="


def _heading(model: PublishedModel, name: str, made_by: str) -> Iterator[str]:
    yield f"Written by: {made_by}"
    yield f"Replay: put this file and {name}.cfg beside the files of {model.directory}"
    yield "of github.com/Vanlightly/kafka-tlaplus (commit 823615e8) and the modules FiniteSetsExt, SequencesExt,"
    yield f"Functions and Folds of TLA+'s community, and run: java -cp tla2tools.jar tlc2.TLC {name}"
    yield "TLC ends with a violated invariant. Broker n is n + 1 here. A comment has our step, its actions are below."


def _planned_move(model: PublishedModel) -> Iterator[str]:
    yield r"\* The action that the model lacks: an operator, or a balancer, makes another in-sync replica lead."
    yield f"{PLANNED_MOVE}(b) =="
    yield r"    /\ b \in con_partition_metadata.isr \intersect con_unfenced"
    yield r"    /\ b # con_partition_metadata.leader"
    yield r"    /\ LET md == con_partition_metadata"
    yield f"       IN ApplyPartitionChange(md.replicas, b, {model.kept_by_move}, md.leader_epoch + 1,"
    yield "                               md.partition_epoch + 1, md.adding, md.removing)"
    yield r"    /\ UNCHANGED << con_broker_vars, broker_vars, part_vars, NetworkVars, inv_vars, aux_vars >>"


def _configuration(scope: Scope, model: PublishedModel, replay: Sequence[tuple[int, _Replayed]]) -> Iterator[str]:
    chosen, names = scope.constants, [each.name for _, each in replay]
    yield "CONSTANTS"
    constants = {
        "BrokerCount": chosen.brokers,
        "InitReplicationFactor": chosen.brokers,
        "InitIsrSize": chosen.in_sync,
        "MinISR": scope.chosen.min_insync_replicas,
        "Values": "{" + ", ".join(f'"{record_name(number)}"' for number in range(chosen.records)) + "}",
        f"{model.keeps_log}Limit": names.count(model.keeps_log),
        f"{model.loses_log}Limit": names.count(model.loses_log),
        "FenceBrokerLimit": names.count("FenceBroker"),
        "LeaderShrinkIsrLimit": names.count("SendAlterPartitionRequest"),
        "ReassignmentLimit": 0,
    }
    yield from (f"    {name} = {value}" for name, value in constants.items())
    yield from (f"    {line}" for line in model.limits)
    yield from (f"    {name} = {name}" for name in _NAMES)
    yield from ("INIT ReplayInit", "NEXT ReplayNext", "INVARIANTS", *(f"    {name}" for name in _INVARIANTS))
