"""Cells of producers: batches that are refused, answered wrongly, lost, or late."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec.wire import ApiKey
from harness.lab.client_table.breach import Breach
from harness.lab.client_table.cell import CellSeen, ClientCell
from harness.lab.client_table.relay import Do, SeenRequest, Strike
from harness.lab.client_table.stage import PLAIN, CellStage

IDEMPOTENT: Final = {"enable.idempotence": True}
PLAIN_PRODUCER: Final = {"enable.idempotence": False}
ONE_IN_FLIGHT: Final = {"enable.idempotence": False, "max.in.flight.requests.per.connection": 1}
#: A delivery time that passes within a cell.
SHORT: Final = {"enable.idempotence": True, "request.timeout.ms": 4_000, "delivery.timeout.ms": 8_000}
RECORDS: Final = 4
KIP_98: Final = "KIP-98: with idempotence nothing that was acknowledged is lost, written twice or reordered"
_ORDER: Final = "Kafka's producer configuration: with one request in flight retries do not change the order"
_PLAIN: Final = "Kafka's documentation of acks=all: what was acknowledged is in the log"
_MAY_DOUBLE: Final = {Breach.DOUBLED: "without idempotence a batch that is sent again may be written twice"}
_MAY_REORDER: Final = {
    **_MAY_DOUBLE,
    Breach.REORDERED: "without idempotence several requests in flight may change their order",
}

#: Makes the strikes of a cell; each play has new ones.
Strikes = Callable[[], Sequence[Strike]]


def produce(do: Do, error: ErrorCode = ErrorCode.NONE, *numbers: int, late: bool = False) -> Strike:
    """A strike on the Produce requests with these numbers, by default the first."""
    chosen = numbers or (0,)
    return Strike(ApiKey.PRODUCE, do, error, len(chosen), lambda request: request.number in chosen, late=late)


def again(do: Do, error: ErrorCode, first: int, *sequences: int, late: bool = False) -> Strike:
    """A strike on batches with these sequences that are sent again: in requests from the number ``first`` on."""

    def when(request: SeenRequest) -> bool:
        return request.number >= first and any(batch.sequence in sequences for batch in request.batches)

    return Strike(ApiKey.PRODUCE, do, error, len(sequences), when, late=late)


def unmet(stage: CellStage) -> str:
    """The first strike that met no request, in words; "" where each met one."""
    return next((f"no request was {each.words}" for each in stage.relay.strikes if not each.struck), "")


def sends(
    stage: CellStage,
    settings: Mapping[str, Any],
    strikes: Strikes,
    *,
    before: int = 0,
    together: int = 1,
    apart: bool = True,
) -> CellSeen:
    """Send records to a leader whose answers are struck; ``before`` of them were acknowledged.

    ``together`` batches must be under way before the first is answered; what is kept back is released then.
    Records that are not sent ``apart`` may be one batch.
    """
    stage.strike(*strikes())
    producer = stage.producer(settings)
    stage.reported(stage.send(producer, before) if before else ())
    payloads = stage.send(producer, 1) + stage.send(producer, RECORDS - 1, apart=apart)
    few = _too_few(stage, together, before)
    stage.relay.release()
    stage.reported(payloads)
    return CellSeen(stage.sent.judged(stage.log()), unmet=few or unmet(stage))


def _too_few(stage: CellStage, together: int, before: int = 0) -> str:
    """The different batches that the client has sent after the ``before`` first requests, in words if they are less."""
    sent = {batch.sequence for each in stage.relay.of(ApiKey.PRODUCE)[before:] for batch in each.batches}
    return f"the client had {len(sent)} of {together} batches under way" if len(sent) < together else ""


def expires(stage: CellStage) -> CellSeen:
    """Keep all answers back until the delivery time of the first record is over, and that of the others is not."""
    stage.strike(Strike(ApiKey.PRODUCE, Do.KEEP, times=None))
    producer = stage.producer(SHORT)
    (first,) = stage.send(producer)
    stage.cluster.let_pass(SHORT["delivery.timeout.ms"] * 500)
    others = stage.send(producer, RECORDS - 1)
    stage.reported([first])
    few = _too_few(stage, RECORDS)
    stage.relay.release()
    stage.reported(others)
    return CellSeen(stage.sent.judged(stage.log()), unmet=few or unmet(stage))


def moves(stage: CellStage) -> CellSeen:
    """Append batches without an answer, move the leader, and break the connection to the former one."""
    stage.strike(produce(Do.KEEP, ErrorCode.NONE, *range(RECORDS)))
    producer = stage.producer(IDEMPOTENT)
    payloads = stage.send(producer, RECORDS)
    few = _too_few(stage, RECORDS)
    stage.move(PLAIN)
    stage.relay.cut()
    stage.relay.release()
    stage.reported(payloads)
    return CellSeen(stage.sent.judged(stage.log()), unmet=few)


def _cell(
    name: str, happens: str, expects: str, about: Breach, *, settings: Mapping[str, Any], strikes: Strikes, **more: Any
) -> ClientCell:
    cell = {key: more.pop(key) for key in ("permits", "finding") if key in more}
    return ClientCell(name, happens, expects, partial(sends, settings=settings, strikes=strikes, **more), about, **cell)


_NOT_ENOUGH: Final = ErrorCode.NOT_ENOUGH_REPLICAS
_AFTER_APPEND: Final = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
_UNKNOWN_ORDER: Final = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
_FORGOTTEN: Final = {Breach.DOUBLED: "the leader's own word is that it does not know the batch (finding 005)"}

CELLS: Final = (
    _cell(
        "refused-before-taken",
        "a new producer's first three batches are refused with NOT_ENOUGH_REPLICAS, and the fourth is taken",
        KIP_98,
        Breach.LOST,
        settings=SHORT,
        strikes=lambda: [produce(Do.REFUSE, _NOT_ENOUGH, late=True), produce(Do.REFUSE, _NOT_ENOUGH, 1, 2)],
        together=RECORDS,
        finding="001",
    ),
    _cell(
        "answer-lost-then-refused",
        "the first batch is appended and its answer lost; it and the next two are refused before the fourth is taken",
        KIP_98,
        Breach.DOUBLED,
        settings=SHORT,
        strikes=lambda: [produce(Do.CUT), again(Do.REFUSE, _NOT_ENOUGH, 1, 0, 1, 2, late=True)],
        together=RECORDS,
        finding="003",
    ),
    ClientCell(
        "expired-in-flight",
        "four batches are appended and not answered until the delivery time of the first is over",
        KIP_98,
        expires,
        Breach.DOUBLED,
        finding="003",
    ),
    _cell(
        "forgotten-batches",
        "four batches are appended and their answers lost; the leader then knows only the last of them",
        KIP_98,
        Breach.LOST,
        settings=IDEMPOTENT,
        strikes=lambda: [
            produce(Do.KEEP, ErrorCode.NONE, 0, 1, 2),
            produce(Do.CUT, ErrorCode.NONE, 3),
            again(Do.REFUSE, _UNKNOWN_ORDER, 4, 0, 1, 2),
        ],
        together=RECORDS,
        permits=_FORGOTTEN,
        finding="005",
    ),
    _cell(
        "refused-one-in-flight",
        "the first batch is refused with NOT_ENOUGH_REPLICAS; one request in flight, no idempotence",
        _ORDER,
        Breach.REORDERED,
        settings=ONE_IN_FLIGHT,
        strikes=lambda: [produce(Do.REFUSE, _NOT_ENOUGH, late=True)],
        apart=False,
        finding="013",
    ),
    _cell(
        "refused-first-batch",
        "a new producer's first batch is refused with NOT_ENOUGH_REPLICAS, alone",
        KIP_98,
        Breach.LOST,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.REFUSE, _NOT_ENOUGH)],
    ),
    _cell(
        "refused-in-flight",
        "the first of four batches in flight is refused with NOT_ENOUGH_REPLICAS, by a leader that knows the producer",
        KIP_98,
        Breach.REORDERED,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.REFUSE, _NOT_ENOUGH, 1, late=True)],
        before=1,
        together=RECORDS,
    ),
    _cell(
        "after-append",
        "a batch is appended and answered with NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        KIP_98,
        Breach.DOUBLED,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.ANSWER, _AFTER_APPEND)],
    ),
    _cell(
        "after-append-not-idempotent",
        "a batch is appended and answered with NOT_ENOUGH_REPLICAS_AFTER_APPEND, without idempotence",
        _PLAIN,
        Breach.LOST,
        settings=PLAIN_PRODUCER,
        strikes=lambda: [produce(Do.ANSWER, _AFTER_APPEND)],
        permits=_MAY_REORDER,
    ),
    _cell(
        "closed-after-append",
        "a batch is appended, and its connection closed before the answer",
        KIP_98,
        Breach.DOUBLED,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.CUT)],
    ),
    _cell(
        "closed-in-flight",
        "four batches are appended, and their connection closed before any answer",
        KIP_98,
        Breach.DOUBLED,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.KEEP, ErrorCode.NONE, 0, 1, 2), produce(Do.CUT, ErrorCode.NONE, 3)],
        together=RECORDS,
    ),
    _cell(
        "duplicate-sequence",
        "the answer to a batch is lost, and it is answered with DUPLICATE_SEQUENCE_NUMBER when it is sent again",
        "KIP-98: a duplicate is in the log, so it did not fail",
        Breach.DENIED,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.CUT), again(Do.ANSWER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, 1, 0)],
    ),
    _cell(
        "timed-out-after-append",
        "a batch is appended and answered with REQUEST_TIMED_OUT",
        KIP_98,
        Breach.DOUBLED,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.ANSWER, ErrorCode.REQUEST_TIMED_OUT)],
    ),
    _cell(
        "unknown-after-append",
        "a batch is appended and answered with UNKNOWN_SERVER_ERROR",
        "Kafka's protocol: the error says nothing of the record",
        Breach.DENIED,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.ANSWER, ErrorCode.UNKNOWN_SERVER_ERROR)],
    ),
    _cell(
        "lost-before-append",
        "a batch is lost with its connection",
        KIP_98,
        Breach.LOST,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.LOSE)],
    ),
    _cell(
        "not-leader",
        "the first of four batches in flight is refused with NOT_LEADER_OR_FOLLOWER",
        KIP_98,
        Breach.REORDERED,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.REFUSE, ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, late=True)],
        before=1,
        together=RECORDS,
    ),
    _cell(
        "too-large-in-flight",
        "one of four batches in flight is refused with MESSAGE_TOO_LARGE",
        KIP_98,
        Breach.LOST,
        settings=SHORT,
        strikes=lambda: [produce(Do.REFUSE, ErrorCode.MESSAGE_TOO_LARGE, 1, late=True)],
        before=1,
        together=RECORDS,
    ),
    ClientCell(
        "leader-moves-in-flight",
        "four batches are appended and not answered, and the leader moves",
        KIP_98,
        moves,
        Breach.DOUBLED,
    ),
)
