"""A network between one producer and a cluster that delivers one batch late, keeps answers back, or loses them.

It writes down every batch and answer. It answers nothing itself, and changes nothing but the addresses in Metadata, so
that clients stay behind it.
"""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from kafka.errors import for_code
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from harness.broker.server.codec.wire import decode, made, parse_header
from harness.lab.findings.connections import HOST, break_off, frames, relayed, send_frame
from harness.worlds.hosts import Ports

_FLEXIBLE: Final = {each.API_KEY: each._flexible_versions[0] for each in (ProduceRequest, MetadataRequest)}  # noqa: SLF001
#: Producer id, producer epoch, base sequence and number of records, in a record batch of format 2.
_PRODUCER: Final = struct.Struct(">qhii")
_PRODUCER_AT: Final = 43


class SentBatch(NamedTuple):
    """The identity of a batch of an idempotent producer."""

    producer_id: int
    producer_epoch: int
    sequence: int
    records: int


class BatchAnswer(NamedTuple):
    """The broker's answer to a batch."""

    batch: SentBatch
    error: str
    offset: int


class SlowNetwork:
    """Listens for each broker of ``addresses``; a batch that is ``late`` waits until :meth:`deliver`.

    What comes after it on its connection waits too. ``sent`` are batches in the order in which the client sent them,
    ``answers`` those of the brokers in the order in which the client gets them.
    """

    def __init__(self, addresses: Mapping[int, tuple[str, int]], late: Callable[[SentBatch], bool]) -> None:
        self.sent: list[SentBatch] = []
        self.answers: list[BatchAnswer] = []
        self._late = late
        self._delivered = threading.Event()
        self._answering = {broker: threading.Event() for broker in addresses}
        self.answer()
        self._addresses = dict(addresses)
        self._held = Ports()
        own = {broker: self._held.take(HOST) for broker in addresses}
        self._listeners = {broker: socket.create_server(address) for broker, address in own.items()}
        self._ports = {broker: address.port for broker, address in own.items()}
        self._sockets: dict[int | None, list[socket.socket]] = defaultdict(list)
        self._sockets[None] = list(self._listeners.values())
        for broker in addresses:
            threading.Thread(target=self._accept, args=(broker,), daemon=True).start()

    def address(self, broker: int) -> str:
        """The "host:port" at which clients reach ``broker`` over this network."""
        return f"{HOST}:{self._ports[broker]}"

    def deliver(self) -> None:
        """Let the late batch arrive."""
        self._delivered.set()

    def withhold(self, *brokers: int) -> None:
        """Keep the answers of these ``brokers`` to batches back, of all if none is named, until :meth:`answer`."""
        for broker in brokers or self._answering:
            self._answering[broker].clear()

    def answer(self) -> None:
        """Let all answers arrive that were kept back, and those that follow."""
        for answering in self._answering.values():
            answering.set()

    def cut(self, broker: int) -> None:
        """Break every connection to ``broker``; what it answered is lost. A new connection works."""
        for connection in self._sockets.pop(broker, []):
            break_off(connection)

    def close(self) -> None:
        """Let everything arrive, and break all connections."""
        self.deliver()
        self.answer()
        for connection in itertools.chain(*self._sockets.values()):
            break_off(connection)
            connection.close()
        self._held.close()

    def _accept(self, broker: int) -> None:
        for client, server in relayed(self._listeners[broker], self._addresses[broker]):
            self._sockets[broker] += [client, server]
            asked: dict[int, tuple[int, int, list[SentBatch]]] = {}
            for way in (self._requests, partial(self._responses, self._answering[broker])):
                threading.Thread(target=way, args=(client, server, asked), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, asked: dict[int, Any]) -> None:
        for frame in frames(client, server):
            header, body = parse_header(memoryview(frame), _FLEXIBLE)
            batches: list[SentBatch] = []
            if header.api_key == ProduceRequest.API_KEY:
                batches = list(batches_in(decode(ProduceRequest, body, header.version)))
                self.sent += batches
            if header.api_key in _FLEXIBLE:
                asked[header.correlation] = header.api_key, header.version, batches
            if any(map(self._late, batches)):
                self._delivered.wait()
            send_frame(server, frame)

    def _responses(
        self, answering: threading.Event, client: socket.socket, server: socket.socket, asked: dict[int, Any]
    ) -> None:
        for frame in frames(server, client):
            key, version, batches = asked.pop(int.from_bytes(frame[:4], "big"), (-1, 0, []))
            if key == ProduceRequest.API_KEY:
                answer = decode(ProduceResponse, memoryview(frame)[_start(ProduceResponse, version) :], version)
                parts = [part for topic in answer.responses for part in topic.partition_responses]
                for batch, part in zip(batches, parts, strict=True):
                    error = for_code(part.error_code).__name__
                    self.answers.append(BatchAnswer(batch, error, part.base_offset))
                answering.wait()
            send_frame(client, self._behind(frame, version) if key == MetadataRequest.API_KEY else frame)

    def _behind(self, frame: bytes, version: int) -> bytes:
        """The Metadata with the addresses of this network."""
        start = _start(MetadataResponse, version)
        answer = decode(MetadataResponse, memoryview(frame)[start:], version)
        fields = answer.to_dict(json=False)
        for broker in fields["brokers"]:
            broker["host"], broker["port"] = HOST, self._ports[broker["node_id"]]
        body: bytes = made(MetadataResponse, version, fields).encode(version=version)
        return frame[:start] + body


def _start(response: Any, version: int) -> int:
    """The begin of a response's body: after the correlation, and in flexible versions after its tags."""
    return 5 if response.flexible_version_q(version) else 4


def batches_in(request: Any) -> Iterator[SentBatch]:
    """The batches of a Produce request."""
    for topic in request.topic_data:
        for part in topic.partition_data:
            yield SentBatch(*_PRODUCER.unpack_from(part.records, _PRODUCER_AT))
