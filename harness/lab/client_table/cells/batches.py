"""Cells of producers: batches that are refused, answered wrongly, lost, or late."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec.wire import ApiKey
from harness.lab.client_table.breach import Breach
from harness.lab.client_table.cell import Cell, Seen
from harness.lab.client_table.relay import Do, SeenRequest, Strike
from harness.lab.client_table.stage import CellStage

IDEMPOTENT: Final = {"enable.idempotence": True}
PLAIN_PRODUCER: Final = {"enable.idempotence": False}
ONE_IN_FLIGHT: Final = {"enable.idempotence": False, "max.in.flight.requests.per.connection": 1}
#: A delivery time that passes within a cell.
SHORT: Final = {"enable.idempotence": True, "request.timeout.ms": 4_000, "delivery.timeout.ms": 8_000}
RECORDS: Final = 4
_TWICE: Final = {Breach.DOUBLED: "without idempotence a batch that is sent again may be written twice"}
KIP_98: Final = "KIP-98: with idempotence nothing that was acknowledged is lost, written twice or reordered"
_ORDER: Final = "Kafka's producer configuration: with one request in flight retries do not change the order"

#: Makes the strikes of a cell; each play has new ones.
Strikes = Callable[[], Sequence[Strike]]


def tries(*numbers: int) -> Callable[[SeenRequest], bool]:
    """True of the requests with these numbers."""
    return lambda request: request.number in numbers


def batch(number: int) -> Callable[[SeenRequest], bool]:
    """True of every try of the batch with this sequence."""
    return lambda request: any(each.sequence == number for each in request.batches)


def produce(do: Do, error: ErrorCode = ErrorCode.NONE, *numbers: int, late: bool = False) -> Strike:
    """A strike on the Produce requests with these numbers, by default the first."""
    chosen = numbers or (0,)
    return Strike(ApiKey.PRODUCE, do, error, len(chosen), tries(*chosen), late=late)


def sends(
    stage: CellStage,
    settings: Mapping[str, Any],
    strikes: Strikes,
    *,
    before: int = 0,
    together: int = 1,
    apart: bool = True,
) -> Seen:
    """Send records to a leader whose answers are struck; ``before`` of them were acknowledged.

    ``together``: so many requests must be under way before the first is answered; what is kept back is released then.
    Records that are not sent ``apart`` may be one batch.
    """
    struck = strikes()
    stage.strike(*struck)
    producer = stage.producer(settings)
    stage.reported(stage.send(producer, before) if before else ())
    payloads = stage.send(producer, 1) + stage.send(producer, RECORDS - 1, apart=apart)
    under_way = len({batch.sequence for each in stage.relay.of(ApiKey.PRODUCE)[before:] for batch in each.batches})
    stage.relay.release()
    stage.reported(payloads)
    unmet = next((f"no request was {each.words}" for each in struck if not each.struck), "")
    if under_way < together:
        unmet = f"the client had {under_way} of {together} batches under way"
    return Seen(stage.sent.judged(stage.log()), unmet=unmet)


def _cell(
    name: str, happens: str, expects: str, about: Breach, *, settings: Mapping[str, Any], strikes: Strikes, **more: Any
) -> Cell:
    cell = {key: more.pop(key) for key in ("permits", "finding") if key in more}
    return Cell(name, happens, expects, partial(sends, settings=settings, strikes=strikes, **more), about, **cell)


_NOT_ENOUGH: Final = ErrorCode.NOT_ENOUGH_REPLICAS

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
        "after-append",
        "a batch is appended and answered with NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        KIP_98,
        Breach.DOUBLED,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.ANSWER, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)],
    ),
    _cell(
        "closed-after-append",
        "a batch is appended, and its connection closed before the answer",
        KIP_98,
        Breach.DOUBLED,
        settings=IDEMPOTENT,
        strikes=lambda: [produce(Do.CUT)],
    ),
)
