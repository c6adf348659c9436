"""A counterexample in words: each step, and every broker's log after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness.broker.core import messages
from harness.broker.core.types import CONTROLLER, NONE, ErrorCode, Image, PartitionState
from harness.lab.explore.any_scope import AnyScope
from harness.lab.explore.brokers import BrokerCopy, members
from harness.lab.explore.events import AT, WRITE_EVENTS
from harness.lab.explore.groups.space import GroupSpace
from harness.lab.explore.groups.steps import group_columns_of, group_text_of
from harness.lab.explore.keys import is_tombstone, key_of, numbers_of
from harness.lab.explore.kinds import space_of
from harness.lab.explore.rules import record_name
from harness.lab.explore.search import Result
from harness.lab.explore.searched import Action, SearchedSpace, State
from harness.lab.explore.space import Space
from harness.lab.explore.transactions.space import TransactionSpace
from harness.lab.explore.transactions.steps import columns_of, text_of


class ShownStep(msgspec.Struct, frozen=True):
    """One step of a counterexample: what happens, and the brokers afterwards, in order.

    In scopes of transactions and of groups these are the coordinator, the log partitions and the clients.
    """

    text: str
    brokers: tuple[str, ...]


def steps_of(scope: AnyScope, result: Result) -> tuple[ShownStep, ...]:
    """The counterexample that a search of ``scope`` has found, from the first state on; empty without one."""
    space = space_of(scope)
    state, steps = space.begin(), []
    for taken in result.trace:
        # A new space knows no message before a node has sent it.
        state = next(same.state for same in space.follow(state) if same[:2] == taken[:2])
        steps.append(_shown(space, taken.action, state))
    return tuple(steps)


def _shown(space: SearchedSpace[Any, Any], action: Action, state: State) -> ShownStep:
    if isinstance(space, TransactionSpace):
        return ShownStep(text_of(space, action), columns_of(space, state))
    if isinstance(space, GroupSpace):
        return ShownStep(group_text_of(space, action), group_columns_of(space, state))
    assert isinstance(space, Space)  # noqa: S101 - there are three kinds
    return ShownStep(_text(space, action), _brokers(space, state))


def step_lines(steps: Sequence[ShownStep]) -> Iterator[str]:
    """Steps as numbered lines, with the brokers in columns."""
    width = max((len(step.text) for step in steps), default=0)
    columns = [max(map(len, column)) for column in zip(*(step.brokers for step in steps), strict=True)]
    for number, step in enumerate(steps, 1):
        cells = "  ".join(cell.ljust(room) for cell, room in zip(step.brokers, columns, strict=True))
        yield f"{number:3}  {step.text.ljust(width)}  {cells}".rstrip()


def _brokers(space: Space, state: State) -> tuple[str, ...]:
    count = space.scope.constants.brokers
    return tuple(_broker(space.nodes.copies[digest]) for digest in state[1 : 1 + count])


def _broker(copy: BrokerCopy) -> str:
    """``0 leads 1: ab|c``: the bar stands at the high watermark."""
    names = ["." if kept is None else record_name(kept[1]) for kept in copy.log]
    if not copy.alive:
        return f"{copy.number} dead: {''.join(names)}"
    names.insert(copy.high_watermark, "|")
    return f"{copy.number} {'leads' if copy.leading else 'in'} {copy.leader_epoch}: {''.join(names)}"


def _text(space: Space, action: Action) -> str:
    kind, broker, peer = action.kind, action.broker, action.peer
    if action.wire is not None:
        message = described(space.nodes.messages[action.number])
        way = {"deliver": "arrives", "skip": "is skipped", "lose": "is lost"}[kind]
        return f"{_end(peer)} > {_end(broker)}: {message} {way}"
    if kind in WRITE_EVENTS:
        again = " again" * (kind == "write-again")
        return f"a client writes {record_name(action.number)}{_key(space, action.number)} to {broker}{again}"
    if kind == "crash":
        return f"{broker} dies; {action.number} of its records are left"
    return {
        "start": f"{broker} is started and registers",
        "fence": f"the session of {broker} expires",
        "unfence": f"{broker} is unfenced",
        "move": f"a planned move makes {broker} the leader",
        "unclean": "the controller looks again for a leader",
        "silent": f"{broker} finds {' and '.join(map(str, members(action.number)))} silent",
        "retry": f"{broker} asks {peer} again, after its backoff",
        "again": f"{broker} asks {peer} again, since no answer came",
        "repeat": f"{broker} repeats its proposal",
        "expire": f"{broker} answers fetches that have waited long enough",
        "checkpoint": f"{broker} writes down its high watermark",
        "clean": f"{broker} cleans its log",
        "clean-late": f"{broker} cleans its log, when the time limits of tombstones are over",
    }[kind]


def _key(space: Space, record: int) -> str:
    keys = space.scope.constants.keys
    letter = key_of(keys, record)
    if not letter:
        return ""
    return f", which deletes key {letter.lower()}," if is_tombstone(keys, record) else f" for key {letter}"


def _end(node: int) -> str:
    return "controller" if node == CONTROLLER else str(node)


def described(message: messages.Message) -> str:
    """A message in a few words."""
    match message:
        case messages.Fetch():
            wanted = message.partitions[0]
            words = f"fetch from {wanted.fetch_offset} in epoch {wanted.current_leader_epoch}"
        case messages.FetchResponse():
            words = _answer(message.partitions[0])
        case messages.MetadataUpdate():
            words = _decision(message.image)
        case messages.AlterPartition():
            members = " ".join(str(member.broker) for member in message.isr)
            words = f"proposal of the ISR {members} in epoch {message.leader_epoch}"
        case messages.AlterPartitionResponse(state=None):
            words = f"refusal {ErrorCode(message.error).name}"
        case messages.AlterPartitionResponse():
            words = "acceptance"
        case _:
            words = type(message).__name__
    return words


def _answer(answer: messages.FetchedPartition) -> str:
    if answer.error:
        return f"error {ErrorCode(answer.error).name}"
    if answer.diverging is not None:
        return f"truncate to the end of epoch {answer.diverging.leader_epoch} at {answer.diverging.end_offset}"
    records = "".join(record_name(number) for batch in answer.batches for number in numbers_of(batch))
    return f"records {records or 'none'}, high watermark {answer.high_watermark}"


def _decision(image: Image) -> str:
    return f"decision {image.version} {decided_words(image.topics[AT.topic].partitions[AT.partition])}"


def decided_words(state: PartitionState) -> str:
    """``(leader 1, epoch 2, ISR 0 1)``: the controller's word about the log partition."""
    leader = "none" if state.leader == NONE else str(state.leader)
    isr = " ".join(map(str, sorted(state.isr)))
    elr = f", ELR {' '.join(map(str, sorted(state.elr)))}" if state.elr else ""
    return f"(leader {leader}, epoch {state.leader_epoch}, ISR {isr}{elr})"
