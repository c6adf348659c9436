"""A counterexample as a behaviour of a published TLA+ model of Kafka's replication, which the checker TLC replays.

The model is that of https://github.com/Vanlightly/kafka-tlaplus, read at commit 823615e8 (2025-01-24). It numbers
brokers, leader epochs and offsets from 1. It has no planned moves: the written module adds that action, and nothing
else. In one step of ours the model may have several actions (a request is sent, and received), or none; then the module
says so in a comment, and leaves out nothing silently. After the actions of a step TLC compares the leader epochs and
the logs of all brokers with ours, and stops where they differ.

What the model does in another way: a process that ends keeps all of its log or loses all of it, and is fenced at
once, one that registers is unfenced at once; no message is lost; a follower asks for one record at a time, knows the
last epoch of its log by its records, does not ask while it has all, and waits for an answer even where it follows
another leader meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from model_actions import (
    LOSES_ALL,
    MODELS,
    PLANNED_MOVE,
    ModelAction,
    PublishedModel,
    Replay,
    ReplayedStep,
)

from harness.ground.errors import PlanError
from harness.lab.explore.any_scope import AnyScope
from harness.lab.explore.rules import record_name
from harness.lab.explore.scope import Scope
from harness.lab.explore.search import Result
from harness.lab.explore.steps import ShownStep, decided_words

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


def tla_files(scope: AnyScope, result: Result, steps: Sequence[ShownStep], file: Path, made_by: str) -> dict[Path, str]:
    """The module ``file`` that replays a counterexample, and its configuration for TLC beside it.

    Raises:
        PlanError: no model is published of the scope's kind: it has transactions, groups or keys.
    """
    check_model(scope, file)
    assert isinstance(scope, Scope)  # noqa: S101 - check_model has refused others
    replay = list(Replay(scope, result).steps())
    model = MODELS[scope.chosen.eligible_leader_replicas]
    return {
        file: "\n".join(_module(scope, file.stem, replay, steps, made_by)) + "\n",
        file.with_suffix(".cfg"): "\n".join(_configuration(scope, model, replay)) + "\n",
    }


def check_model(scope: AnyScope, file: Path) -> None:
    """Refuse a file that cannot be a module, and scopes without a published model.

    Raises:
        PlanError: see above.
    """
    if file.suffix != ".tla" or not (file.stem.isascii() and file.stem.isidentifier()):
        raise PlanError(f"{file}: a module's file has its name, of letters, digits and _, as in missed.tla")
    if not isinstance(scope, Scope):
        raise PlanError(f"no model of transactions or groups is published, so scope {scope.name} has none")
    if scope.constants.keys:
        raise PlanError(f"the published models have no compacted logs, so scope {scope.name} has none")


def _module(
    scope: Scope, name: str, replay: Sequence[ReplayedStep], steps: Sequence[ShownStep], made_by: str
) -> Iterator[str]:
    model = MODELS[scope.chosen.eligible_leader_replicas]
    yield f"---- MODULE {name} ----"
    yield from (rf"\* {line}" for line in _heading(model, name, made_by))
    yield f"EXTENDS {model.module}"
    yield from ("", "VARIABLE step", "", *_PREDICATES)
    if PLANNED_MOVE in _names(replay):
        yield from ("", *_planned_move(model))
    yield from (
        "",
        r"ReplayInit == Init /\ step = 0",
        "",
        "ReplayNext ==",
        r"    /\ step' = step + 1",
        r"    /\ \/ FALSE",
    )
    outsiders = range(scope.constants.in_sync + 1, scope.constants.brokers + 1)
    if outsiders:
        yield r"       \*  0  the model begins with brokers fenced that are not in the ISR"
    yield from (rf"       \/ step = {number} /\ UnfenceBroker({broker})" for number, broker in enumerate(outsiders))
    yield from _actions(replay, steps, len(outsiders))
    yield "===="


def _actions(replay: Sequence[ReplayedStep], steps: Sequence[ShownStep], count: int) -> Iterator[str]:
    """Each step as a comment, its actions, and the state that they lead to, which TLC compares."""
    alike = True
    for number, (replayed, shown) in enumerate(zip(replay, steps, strict=True), 1):
        yield rf"       \* {number:2}  {shown.text}"
        alike = alike and all(each.why != LOSES_ALL for each in replayed.actions)
        taken = [each for each in replayed.actions if each.action]
        for each in replayed.actions:
            if each.why:
                yield rf"       \*       {each.why}"
            if each.action:
                compared = _shows(replayed) if alike and each is taken[-1] else ""
                yield rf"       \/ step = {count} /\ {_text(each, compared)}"
                count += 1
        yield rf"       \*       now {decided_words(replayed.decided)} {'; '.join(shown.brokers)}"


def _text(each: ModelAction, compared: str) -> str:
    taken = r" /\ ".join(part for part in (each.action, each.done) if part)
    if each.rest:
        taken = rf"(({taken}) \/ ({each.rest} /\ UNCHANGED vars))"
    return taken + (rf" /\ {compared}" if compared else "")


def _shows(replayed: ReplayedStep) -> str:
    """The comparison by TLC: leader epochs of living brokers, which the model counts from 1, and logs."""
    epochs = ", ".join(str(copy.leader_epoch + 1 if copy.alive else 0) for copy in replayed.copies)
    logs = (", ".join(f'"{record_name(kept[1])}"' for kept in copy.log if kept) for copy in replayed.copies)
    return f"Shows(<<{epochs}>>, <<{', '.join(f'<<{log}>>' for log in logs)}>>)"


def _names(replay: Sequence[ReplayedStep]) -> list[str]:
    return [each.name for step in replay for each in step.actions]


#: The effects that an action must have: a message is sent to a broker, a request or an answer is taken, an ISR is
#: proposed; and the state that is compared with ours.
_PREDICATES: Final = (
    r"Sent(to) == \E m \in messages' \ messages : m.dest = to",
    r"Taken(from) == \E m \in messages \ messages' : m.source = from",
    r"UnderWay(kind, from, to) == \E m \in messages : m.type = kind /\ m.source = from /\ m.dest = to",
    r"Proposed(isr) == \E m \in messages' \ messages : m.isr = isr",
    r"Shows(epochs, logs) == \A b \in Brokers :",
    r"    /\ epochs[b] \in {0, partition_metadata'[b].leader_epoch}",
    r"    /\ LET log == partition_data'[b].log IN [offset \in DOMAIN log |-> log[offset].value] = logs[b]",
)


def _heading(model: PublishedModel, name: str, made_by: str) -> Iterator[str]:
    yield f"Written by: {made_by}"
    yield f"Replay: put this file and {name}.cfg beside the files of {model.directory}"
    yield "of github.com/Vanlightly/kafka-tlaplus (commit 823615e8) and the modules FiniteSetsExt, SequencesExt,"
    yield f"Functions and Folds of TLA+'s community, and run: java -cp tla2tools.jar tlc2.TLC {name}"
    yield "TLC ends with a violated invariant; where it says deadlock, the model has not done what ours does."
    yield "Broker n is n + 1 here, and so are epochs and offsets. A comment has our step, its actions are below, then"
    yield "the state in our numbers (decided by the controller; brokers with their logs, a bar at the high watermark)."


def _planned_move(model: PublishedModel) -> Iterator[str]:
    yield r"\* The action that the model lacks: an operator, or a balancer, makes another in-sync replica lead."
    yield f"{PLANNED_MOVE}(b) =="
    yield r"    /\ b \in con_partition_metadata.isr \intersect con_unfenced"
    yield r"    /\ b # con_partition_metadata.leader"
    yield r"    /\ LET md == con_partition_metadata"
    yield f"       IN ApplyPartitionChange(md.replicas, b, {model.kept_by_move}, md.leader_epoch + 1,"
    yield "                               md.partition_epoch + 1, md.adding, md.removing)"
    yield r"    /\ UNCHANGED << con_broker_vars, broker_vars, part_vars, NetworkVars, inv_vars, aux_vars >>"


def _configuration(scope: Scope, model: PublishedModel, replay: Sequence[ReplayedStep]) -> Iterator[str]:
    chosen, names = scope.constants, _names(replay)
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
