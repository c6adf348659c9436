"""Cells of transactions: ends that are not answered, refused records, fenced producers, refused offsets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec.wire import ApiKey
from harness.lab.client_table.breach import Breach
from harness.lab.client_table.cell import CellSeen, ClientCell
from harness.lab.client_table.cells.batches import Strikes, produce, unmet
from harness.lab.client_table.relay import Do, Strike
from harness.lab.client_table.stage import INPUT, OTHER, CellStage
from harness.lab.findings import NotObservedError
from workloads import (
    ClientCapability,
    Consumer,
    EventType,
    Fetched,
    IsolationLevel,
    Membership,
    SendOutcome,
    Transactions,
)

_KIP_98: Final = "KIP-98: of a transaction all counts or nothing, and what was said of its end is true"
_KIP_447: Final = "KIP-447: offsets of a member that was given up are refused, and so is their transaction"
_NEEDS: Final = (ClientCapability.TRANSACTIONS,)
_NEEDS_GROUP: Final = (*_NEEDS, ClientCapability.SUBSCRIPTION, ClientCapability.COMMITS)
#: Between the sends of a transaction and its end.
Middle = Callable[[CellStage, Transactions, str], None]
_RECORDS: Final = 3
_ALWAYS: Final = None
#: librdkafka demands that a record's time ends before its transaction's.
TRANSACTIONAL: Final = {"enable.idempotence": True, "transaction.timeout.ms": 60_000}


def transaction(
    stage: CellStage, strikes: Strikes, *, aborts: bool = False, middle: Middle = lambda *_: None
) -> CellSeen:
    """Send records in a transaction and end it; requests are struck. ``middle`` happens before the end."""
    stage.strike(*strikes())
    name = stage.name("id")
    producer = stage.producer(TRANSACTIONAL, name)
    calls = producer.transactions
    assert calls is not None  # noqa: S101 - the cell needs them
    for step in (calls.init, calls.begin):
        if (outcome := stage.ask(step.__name__, step)).type is not EventType.OK:
            raise NotObservedError(f"{step.__name__} ended with {outcome.error}")
    payloads = stage.send(producer, _RECORDS, OTHER)
    stage.relay.release()
    stage.reported(payloads)
    middle(stage, calls, name)
    end: SendOutcome = stage.ask("abort" if aborts else "commit", calls.abort if aborts else calls.commit)
    producer.close()
    _fence(stage, name)
    judged = list(_of_end(stage, payloads, end, aborts=aborts))
    return CellSeen([*judged, *stage.sent.judged(stage.log(OTHER), payloads)], unmet=unmet(stage))


def _fence(stage: CellStage, transactional_id: str) -> None:
    """Have the cluster's own client end what is open."""
    successor = stage.cluster.world.clients.producer(stage.cluster.next_process(), transactional_id)
    ends: list[SendOutcome] = []
    assert successor.transactions is not None  # noqa: S101 - the cluster's own client has transactions
    successor.transactions.init(ends.append)
    stage.wait("what was open is ended", lambda: bool(ends))
    stage.tell("a successor has taken charge")
    successor.close()


def _of_end(stage: CellStage, payloads: list[bytes], end: SendOutcome, *, aborts: bool) -> list[tuple[Breach, str]]:
    """Hold the end that was told against what counts."""
    counting = {record.payload for record in stage.log(OTHER, "read_committed")}
    count = sum(payload in counting for payload in payloads)
    delivered = [payload for payload in payloads if stage.sent.ends[payload].type is EventType.OK]
    counted = f"{count} of {len(payloads)} records of the transaction count"
    told = end.type is EventType.OK
    if aborts:
        return [(Breach.COUNTED, f"its abort was said to be done, and {counted}")] if told and count else []
    lost = told and any(payload not in counting for payload in delivered)
    untold = told and len(delivered) < len(payloads)
    if lost or untold:  # A record that failed may have come before or after others that did not.
        both = [(Breach.LOST, f"its commit was said to be done, and {counted}")] if lost else []
        without = (Breach.COUNTED, f"its commit was said to be done without a record that failed: {counted}")
        return [*both, without] if untold else both
    if 0 < count < len(payloads):
        return [(Breach.COUNTED, counted)]
    if end.type is EventType.FAIL and count:
        return [(Breach.DENIED, f"its commit was said to have failed for certain, and {counted}")]
    return []


def _overtaken(stage: CellStage, _calls: Transactions, name: str) -> None:
    _fence(stage, name)


def _offsets(stage: CellStage, calls: Transactions, name: str) -> None:
    """Hand over offsets of a member of a group."""
    member = stage.consumer(Membership(f"{name}-group"))
    stage.join(member)
    assert member.commits is not None  # noqa: S101 - the cell needs them
    token = stage.ask("membership", member.commits.ask_member)
    stage.ask("send offsets", partial(calls.send_offsets, {INPUT: 1}, token))
    member.close()


def _refused_offsets(stage: CellStage, strikes: Strikes) -> CellSeen:
    """A commit must not be said to be done whose offsets were refused."""
    seen = transaction(stage, strikes, middle=_offsets)
    done = any(event.startswith("commit: ok") for event in stage.history)
    told = [(Breach.UNTRUE_COMMIT, "the commit was said to be done, though its offsets were refused")] if done else []
    return seen._replace(breaches=[*seen.breaches, *told])


def aborted_read(stage: CellStage) -> CellSeen:
    """Abort a transaction between committed records, and read the log at both levels with the client under test."""
    first = stage.write(OTHER)
    seen = transaction(stage, lambda: (), aborts=True)
    last = stage.write(OTHER)
    aborted = set(stage.sent.order)
    breaches = list(seen.breaches)
    for isolation in _LEVELS:
        reader: Consumer = stage.consumer(isolation=isolation)
        reader.assign([OTHER], from_start=True)
        read = {record.payload for record in stage.read(reader, partial(_has, last))}
        reader.close()
        if first not in read or last not in read:
            breaches.append((Breach.SKIPPED, f"a reader with {isolation} was not given a record that counts"))
        if isolation == "read_committed" and read & aborted:
            breaches.append((Breach.COUNTED, f"a reader with {isolation} was given {len(read & aborted)} aborted ones"))
        if isolation == "read_uncommitted" and not aborted <= read:
            breaches.append((Breach.SKIPPED, f"a reader with {isolation} was not given what was aborted"))
    return CellSeen(breaches)


_LEVELS: Final[tuple[IsolationLevel, ...]] = ("read_committed", "read_uncommitted")


def _has(payload: bytes, records: list[Fetched]) -> bool:
    return any(record.payload == payload for record in records)


def _cell(name: str, happens: str, about: Breach, strikes: Strikes, **more: Any) -> ClientCell:
    return ClientCell(name, happens, _KIP_98, partial(transaction, strikes=strikes, **more), about, needs=_NEEDS)


def _end(do: Do, error: ErrorCode = ErrorCode.NONE, times: int = 1) -> Strike:
    return Strike(ApiKey.END_TXN, do, error, times)


CELLS: Final = (
    ClientCell(
        "aborted-read",
        "a transaction is aborted, and the log is read at both isolation levels",
        "KIP-98: a reader with read_committed is given committed records only, and each of them",
        aborted_read,
        Breach.SKIPPED,
        needs=_NEEDS,
    ),
    _cell(
        "commit-unanswered",
        "a commit is carried out, and its connection closed before the answer",
        Breach.DENIED,
        lambda: [_end(Do.CUT)],
    ),
    _cell(
        "abort-unanswered",
        "an abort is carried out, and its connection closed before the answer",
        Breach.COUNTED,
        lambda: [_end(Do.CUT)],
        aborts=True,
    ),
    _cell(
        "commit-lost",
        "a commit is lost with its connection",
        Breach.LOST,
        lambda: [_end(Do.LOSE)],
    ),
    _cell(
        "commit-unknown",
        "a commit is carried out and answered with UNKNOWN_SERVER_ERROR",
        Breach.DENIED,
        lambda: [_end(Do.ANSWER, ErrorCode.UNKNOWN_SERVER_ERROR)],
    ),
    _cell(
        "commit-coordinator-moves",
        "a commit is answered with NOT_COORDINATOR twice",
        Breach.LOST,
        lambda: [_end(Do.REFUSE, ErrorCode.NOT_COORDINATOR, 2)],
    ),
    _cell(
        "partition-concurrent",
        "the first log partition of a transaction is refused with CONCURRENT_TRANSACTIONS twice",
        Breach.LOST,
        lambda: [Strike(ApiKey.ADD_PARTITIONS_TO_TXN, Do.REFUSE, ErrorCode.CONCURRENT_TRANSACTIONS, 2)],
    ),
    _cell(
        "closed-in-transaction",
        "a batch of a transaction is appended, and its connection closed before the answer",
        Breach.DOUBLED,
        lambda: [produce(Do.CUT)],
    ),
    _cell(
        "too-large-in-transaction",
        "a batch of a transaction is refused with MESSAGE_TOO_LARGE",
        Breach.COUNTED,
        lambda: [produce(Do.REFUSE, ErrorCode.MESSAGE_TOO_LARGE)],
    ),
    _cell(
        "fenced-batch",
        "a batch of a transaction is refused with INVALID_PRODUCER_EPOCH",
        Breach.LOST,
        lambda: [produce(Do.REFUSE, ErrorCode.INVALID_PRODUCER_EPOCH)],
    ),
    _cell(
        "fenced-producer",
        "another producer with the same transactional.id takes over before the commit",
        Breach.LOST,
        lambda: (),
        middle=_overtaken,
    ),
    ClientCell(
        "offsets-illegal-generation",
        "the offsets of a transaction are refused with ILLEGAL_GENERATION",
        _KIP_447,
        partial(
            _refused_offsets,
            strikes=lambda: [Strike(ApiKey.TXN_OFFSET_COMMIT, Do.REFUSE, ErrorCode.ILLEGAL_GENERATION, _ALWAYS)],
        ),
        Breach.UNTRUE_COMMIT,
        needs=_NEEDS_GROUP,
    ),
)
