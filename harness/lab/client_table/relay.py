"""A network between a client under test and the brokers that refuses, answers, loses or keeps back single requests.

It reads every request of Kafka's protocol and names its own addresses in answers, so that clients stay behind it. What
it does is data: each :class:`Strike` names an API, an action, and the requests that it meets.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from harness.broker.core.types import ErrorCode
from harness.broker.server import codec
from harness.broker.server.codec.wire import ApiKey, Fields, Header, decode
from harness.broker.server.links import BadFrameError
from harness.lab.findings import HOST, SentBatch, batches_in, break_off, frames, relayed, send_frame
from harness.worlds.hosts import Ports

#: The APIs whose answers name brokers' addresses.
_NAMES_BROKERS: Final = frozenset({ApiKey.METADATA, ApiKey.FIND_COORDINATOR})
#: The fields that have an error in answers, and what those of results have then.
_ERRORS: Final = ("error_code", "partition_error_code")
_NO_RESULT: Final = {"base_offset": -1, "records": b"", "high_watermark": -1, "committed_offset": -1}


class Do(StrEnum):
    """The ways in which a request is struck."""

    REFUSE = "refused with"
    """It never reaches the broker, and is answered with an error."""
    ANSWER = "carried out, and answered with"
    """The broker does it, and the client is told an error."""
    CUT = "carried out, and its connection broken before the answer"
    """Answers that are kept back before it are lost too."""
    LOSE = "lost with its connection"
    KEEP = "carried out, and its answer kept back"
    """Answers behind it on its connection wait too, until the strike is released."""
    DELAY = "kept back"
    """It reaches the broker when the strike is released; what comes behind it on its connection waits."""
    ALTER = "carried out, and answered otherwise"
    """The broker does it, and ``alter`` changes the answer."""


class SeenRequest(NamedTuple):
    """A request of the client: its API, its number among those of this API, its batches, and itself."""

    api: ApiKey
    number: int
    broker: int
    batches: Sequence[SentBatch]
    body: Any


@dataclass(eq=False)
class Strike:
    """Strike requests of ``api``, the first ``times`` of those that ``when`` is true of; None: all of them.

    What is ``late`` waits for :meth:`Relay.release` before it is struck, and so does all behind it.
    """

    api: ApiKey
    do: Do
    error: ErrorCode = ErrorCode.NONE
    times: int | None = 1
    when: Callable[[SeenRequest], bool] = lambda _: True
    alter: Callable[[Fields], None] = lambda _: None
    late: bool = False
    struck: int = 0
    released: threading.Event = field(default_factory=threading.Event)

    def meets(self, request: SeenRequest) -> bool:
        """True of a request that is to be struck."""
        left = self.times is None or self.struck < self.times
        return left and request.api == self.api and self.when(request)

    @property
    def words(self) -> str:
        """The action, in words."""
        return f"{self.do} {self.error.name}" if self.do in {Do.REFUSE, Do.ANSWER} else str(self.do)


class Relay:
    """Listens for each broker of ``addresses``; ``tell`` is told of each strike.

    ``requests`` are all that clients sent, in the order in which they came.
    """

    def __init__(
        self, addresses: Mapping[int, tuple[str, int]], strikes: Sequence[Strike], tell: Callable[[str], None]
    ) -> None:
        self.requests: list[SeenRequest] = []
        self.strikes = list(strikes)
        self._tell = tell
        self._addresses = dict(addresses)
        self._lock = threading.Lock()
        self._held = Ports()
        own = {broker: self._held.take(HOST) for broker in addresses}
        self._listeners = {broker: socket.create_server(address) for broker, address in own.items()}
        self._ports = {broker: address.port for broker, address in own.items()}
        self._sockets: list[socket.socket] = list(self._listeners.values())
        self.servers = [f"{HOST}:{port}" for port in self._ports.values()]
        for broker in addresses:
            threading.Thread(target=self._accept, args=(broker,), daemon=True).start()

    def of(self, api: ApiKey) -> list[SeenRequest]:
        """The requests of one API so far."""
        return [each for each in self.requests if each.api == api]

    def release(self) -> None:
        """Let everything go on that is kept back."""
        for strike in self.strikes:
            strike.released.set()

    def cut(self) -> None:
        """Break all connections; what is kept back is lost. New ones work."""
        for connection in self._sockets[len(self._listeners) :]:
            break_off(connection)

    def close(self) -> None:
        """Break all connections."""
        self.strikes, held = [], self.strikes
        for strike in held:
            strike.released.set()
        for connection in self._sockets:
            break_off(connection)
            connection.close()
        self._held.close()

    def _accept(self, broker: int) -> None:
        for client, server in relayed(self._listeners[broker], self._addresses[broker]):
            self._sockets += [client, server]
            carried = _Connection(self, broker, client, server)
            for work in (carried.read, carried.carry, carried.answer):
                threading.Thread(target=work, daemon=True).start()

    def see(self, broker: int, header: Header, body: Any) -> Strike | None:
        """Write a request down, and say what strikes it."""
        with self._lock:
            api = ApiKey(header.api_key)
            batches = list(batches_in(body)) if api is ApiKey.PRODUCE else []
            request = SeenRequest(api, len(self.of(api)), broker, batches, body)
            self.requests.append(request)
            strike = next((each for each in self.strikes if each.meets(request)), None)
            if strike is not None:
                strike.struck += 1
        if strike is not None:
            self._tell(f"{_name(request)} is {strike.words}")
        return strike

    def behind(self, fields: Fields) -> None:
        """Put the addresses of this network into an answer."""
        for each in (fields, *fields.get("brokers", ()), *fields.get("coordinators", ())):
            if each.get("node_id") in self._ports and "port" in each:
                each["host"], each["port"] = HOST, self._ports[each["node_id"]]


class _Waiting(NamedTuple):
    """A request that the broker has not done yet: as it came, as it was read, and what strikes it."""

    frame: bytes
    header: Header
    body: Any
    strike: Strike | None


class _Connection:
    """One connection: requests are read ahead, carried out one after the other, and answered in their order."""

    def __init__(self, relay: Relay, broker: int, client: socket.socket, server: socket.socket) -> None:
        self._relay, self._broker, self._client, self._server = relay, broker, client, server
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[bytes, Strike | None] | None] = queue.SimpleQueue()

    def read(self) -> None:
        """Take requests, as fast as the client sends them."""
        for frame in frames(self._client, self._server):
            try:
                header, body = codec.decode_request(memoryview(frame))
                strike = self._relay.see(self._broker, header, body)
            except BadFrameError:
                header, body, strike = Header(-1, 0, 0, None), None, None
            self._waiting.put(_Waiting(frame, header, body, strike))
        self._waiting.put(None)

    def carry(self) -> None:
        """Have the broker do what is not struck before."""
        answers = frames(self._server, self._client)
        while (item := self._waiting.get()) is not None:
            frame, header, body, strike = item
            do = None if strike is None else strike.do
            if strike is not None and (strike.late or do is Do.DELAY):
                strike.released.wait()
            if do is Do.LOSE:
                break
            if strike is not None and do is Do.REFUSE:
                self._answers.put((refusal(header, body, strike.error), None))
                continue
            send_frame(self._server, frame)
            if header.api_key == ApiKey.PRODUCE and body.acks == 0:  # which is not answered
                continue
            if (answer := next(answers, None)) is None or do is Do.CUT:
                break_off(self._client)
                break
            self._answers.put((self._altered(answer, header, strike), strike if do is Do.KEEP else None))
        self._answers.put(None)

    def answer(self) -> None:
        """Give answers back in their order."""
        while (item := self._answers.get()) is not None:
            frame, strike = item
            if strike is not None:
                strike.released.wait()
            send_frame(self._client, frame)
        break_off(self._client)
        break_off(self._server)

    def _altered(self, frame: bytes, header: Header, strike: Strike | None) -> bytes:
        changes = strike is not None and strike.do in {Do.ANSWER, Do.ALTER}
        if not changes and header.api_key not in _NAMES_BROKERS:
            return frame
        fields = _fields(frame, header)
        if header.api_key in _NAMES_BROKERS:
            self._relay.behind(fields)
        if strike is not None and changes:
            if strike.do is Do.ANSWER:
                with_error(fields, strike.error)
            strike.alter(fields)
        return codec.encode_response(header, fields)[4:]


def _fields(frame: bytes, header: Header) -> Fields:
    response = codec.APIS[header.api_key].response
    begin = 5 if response.flexible_version_q(header.version) else 4
    decoded = decode(response, memoryview(frame)[begin:], header.version)
    fields: Fields = decoded.to_dict(json=False)
    return fields


def with_error(fields: Fields, error: ErrorCode) -> bool:
    """Put an error into the innermost parts of an answer that have one, without results; True if there were any."""
    inner = [each for value in fields.values() if isinstance(value, list) for each in value if isinstance(each, dict)]
    told = [with_error(each, error) for each in inner]
    if any(told):
        return True
    named = [name for name in _ERRORS if name in fields]
    fields |= dict.fromkeys(named, int(error)) | {name: none for name, none in _NO_RESULT.items() if name in fields}
    return bool(named)


def refusal(header: Header, request: Any, error: ErrorCode) -> bytes:
    """The answer that refuses a request, with its error for each log partition that it names."""
    fields = _REFUSALS.get(ApiKey(header.api_key), _whole)(request, int(error))
    return codec.encode_response(header, fields)[4:]


def _whole(_request: Any, code: int) -> Fields:
    return {"error_code": code}


def _produce(request: Any, code: int) -> Fields:
    parts = {
        topic.name: [{"index": part.index, "error_code": code, "base_offset": -1} for part in topic.partition_data]
        for topic in request.topic_data
    }
    return {"responses": [{"name": name, "partition_responses": each} for name, each in parts.items()]}


def _commit(request: Any, code: int) -> Fields:
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": part.partition_index, "error_code": code} for part in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


def _add_partitions(request: Any, code: int) -> Fields:
    return {
        "results_by_topic_v3_and_below": [
            {
                "name": topic.name,
                "results_by_partition": [
                    {"partition_index": index, "partition_error_code": code} for index in topic.partitions
                ],
            }
            for topic in request.v3_and_below_topics
        ]
    }


_REFUSALS: Final[Mapping[ApiKey, Callable[[Any, int], Fields]]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.OFFSET_COMMIT: _commit,
    ApiKey.TXN_OFFSET_COMMIT: _commit,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
}


def _name(request: SeenRequest) -> str:
    sequences = ", ".join(str(batch.sequence) for batch in request.batches if batch.producer_id >= 0)
    of = f" (sequence {sequences})" if sequences else ""
    return f"{request.api.name.title().replace('_', '')} {request.number} to broker {request.broker}{of}"
