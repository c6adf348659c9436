"""A client without metadata: one request to the broker that the caller names, over a connection of its own.

The protocol's classes are kafka-python's own (a pinned release). Produce is sent in version 3, which brokers from
0.11 on take, and DeleteGroups in version 0, from 1.1 on.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from kafka.errors import KafkaError, for_code
from kafka.protocol.admin import DeleteGroupsRequest, DeleteGroupsResponse
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.producer.produce import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from harness.worlds.clients.client_thread import Pending, ThreadedClock
from workloads import (
    CLIENT_CLOSED,
    NEVER_SENT,
    PAYLOAD_HEADER,
    TIME_LIMIT,
    EventType,
    LogPartition,
    SendOutcome,
    classify,
)

_VERSION: Final = 3
_MAGIC: Final = 2
_BATCH_BYTES: Final = 1 << 20
_READ_BYTES: Final = 1 << 16
#: No connection is made to a broker behind a cut; one that is in reach takes milliseconds.
CONNECT_LIMIT_S: Final = 2.0
#: The time that an answer may take beyond the broker's own limit for it.
GRACE_MS: Final = 1_000
#: The error of a connection that ended; the request may have been carried out.
LOST: Final = "KafkaConnectionError"


class BatchSequence(NamedTuple):
    """The numbers that make a batch idempotent: its producer's id and epoch, and its own sequence number."""

    producer_id: int = -1
    producer_epoch: int = -1
    base: int = -1


NOT_IDEMPOTENT: Final = BatchSequence()


class RealDirectClient:
    """Sends single requests to chosen brokers. ``address`` gives "host" and "port" of one; answers come on ``clock``.

    A request ends OK with the broker's offset. After an error of the broker it ends as :func:`workloads.classify` says;
    FAIL if nothing was sent; INFO if the connection ended without an answer, or none came within ``timeout_ms``, which
    is also the broker's limit for its replicas. With acks=0 it ends OK without an offset once it was sent.
    """

    def __init__(self, clock: ThreadedClock, address: Callable[[int], tuple[str, int]]) -> None:
        self._address = address
        self._pending: Pending[SendOutcome] = Pending(clock)
        self._connections: set[socket.socket] = set()
        self._closed = False

    def produce(
        self,
        broker: int,
        partition: str,
        key: bytes,
        payload: bytes,
        *,
        acks: int,
        timeout_ms: int,
        done: Callable[[SendOutcome], None],
        sequence: BatchSequence = NOT_IDEMPOTENT,
        tombstone: bool = False,
    ) -> None:
        """Ask ``broker`` to append one record to ``partition`` ("topic-number"); ``done`` is called once.

        The payload of a ``tombstone``, which has no value, is in its header.
        """
        batch = _batch(key, payload, sequence, tombstone=tombstone)
        self._begin(broker, _request(partition, batch, acks, timeout_ms), timeout_ms, done)

    def delete_group(self, broker: int, group: str, *, timeout_ms: int, done: Callable[[SendOutcome], None]) -> None:
        """Ask ``broker`` to forget a group; ``done`` is called once."""
        self._begin(broker, DeleteGroupsRequest[0](groups_names=[group]), timeout_ms, done)

    def _begin(self, broker: int, request: Any, timeout_ms: int, done: Callable[[SendOutcome], None]) -> None:
        too_late = SendOutcome(EventType.INFO, error=TIME_LIMIT, node=broker)
        ticket = self._pending.begin(done, timeout_ms + GRACE_MS, too_late)
        until = time.monotonic() + (timeout_ms + GRACE_MS) / 1_000
        protocol = KafkaProtocol(client_id="ackproof-direct")
        protocol.send_request(request)
        ask = partial(self._ask, ticket, broker, protocol, until)
        threading.Thread(target=ask, name=f"direct-{broker}", daemon=True).start()

    def close(self) -> None:
        """Close all connections; requests without an answer end INFO. Idempotent."""
        self._closed = True
        self._pending.answer_all(SendOutcome(EventType.INFO, error=CLIENT_CLOSED))
        for connection in tuple(self._connections):
            _hang_up(connection)

    def _ask(self, ticket: int, broker: int, protocol: Any, until: float) -> None:
        try:
            connection = socket.create_connection(self._address(broker), CONNECT_LIMIT_S)
        except OSError as error:
            words = f"{NEVER_SENT}: no connection to broker {broker} ({error})"
            self._pending.answer(ticket, SendOutcome(classify(NEVER_SENT), error=words, node=broker))
            return
        self._connections.add(connection)
        with connection:
            outcome = _converse(connection, broker, protocol, until)
        self._connections.discard(connection)
        if not self._closed:
            self._pending.answer(ticket, outcome)


def _converse(connection: socket.socket, broker: int, protocol: Any, until: float) -> SendOutcome:
    try:
        connection.sendall(protocol.send_bytes())
        if not protocol.in_flight_requests:  # acks=0
            return SendOutcome(EventType.OK, node=broker)
        while data := _read(connection, until):
            for _, response in protocol.receive_bytes(data):
                return _outcome(response, broker)
    except (OSError, KafkaError) as error:
        return SendOutcome(EventType.INFO, error=f"{LOST}: {error}", node=broker)
    return SendOutcome(EventType.INFO, error=f"{LOST}: the broker closed the connection", node=broker)


def _read(connection: socket.socket, until: float) -> bytes:
    connection.settimeout(max(until - time.monotonic(), 0.001))
    return connection.recv(_READ_BYTES)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it ended by itself meanwhile


def _outcome(response: Any, broker: int) -> SendOutcome:
    deletes = isinstance(response, DeleteGroupsResponse)
    (answer,) = response.results if deletes else response.responses[0].partition_responses
    if answer.error_code == 0:
        return SendOutcome(EventType.OK, offset=None if deletes else answer.base_offset, node=broker)
    name = for_code(answer.error_code).__name__
    return SendOutcome(classify(name), error=name, node=broker)


def _request(partition: str, records: bytes, acks: int, timeout_ms: int) -> Any:
    topic, index = LogPartition.named(partition)
    batch = ProduceRequest.TopicProduceData.PartitionProduceData(version=_VERSION, index=index, records=records)
    data = ProduceRequest.TopicProduceData(version=_VERSION, name=topic, partition_data=[batch])
    return ProduceRequest[_VERSION](transactional_id=None, acks=acks, timeout_ms=timeout_ms, topic_data=[data])


def _batch(key: bytes, payload: bytes, sequence: BatchSequence, *, tombstone: bool) -> bytes:
    builder: Any = DefaultRecordBatchBuilder(
        magic=_MAGIC,
        compression_type=0,
        is_transactional=False,
        producer_id=sequence.producer_id,
        producer_epoch=sequence.producer_epoch,
        base_sequence=sequence.base,
        batch_size=_BATCH_BYTES,
    )
    headers = [(PAYLOAD_HEADER, payload)] if tombstone else []
    value = None if tombstone else payload
    builder.append(offset=0, timestamp=time.time_ns() // 1_000_000, key=key, value=value, headers=headers)
    return bytes(builder.build())
