"""One client's requests: taken in order, answered in order, bounded in number and in bytes."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from harness.broker.core.types import ErrorCode, NodeId
from harness.broker.server import codec
from harness.broker.server.codec.wire import ApiKey, Fields, Header
from harness.broker.server.handlers.data import FETCH_BYTES
from harness.broker.server.handlers.gateway import Call
from harness.broker.server.links import (
    BROKER_CLIENT_ID,
    HARNESS_CLIENT_ID,
    BadFrameError,
    FramedConnection,
    NodeLinks,
)
from harness.broker.server.runtime import NodeFailure
from nemesis.cluster import CLIENTS

log = logging.getLogger(__name__)

#: Requests of one connection that may wait for their answers; Kafka's clients keep 5 under way. Then it is not read.
UNDER_WAY: Final = 64
#: Bytes that their answers may take together; one fetch is under way at a time with Kafka's clients, two may be here.
PROMISED_BYTES: Final = 2 * FETCH_BYTES


def peer_of(client_id: str | None, links: NodeLinks) -> NodeId:
    """The peer that announces itself as ``client_id``: a broker, a harness client (1001 + process), or one unknown."""
    name = client_id or ""
    for prefix, first in ((BROKER_CLIENT_ID, 0), (HARNESS_CLIENT_ID, CLIENTS + 1)):
        number = name.removeprefix(prefix)
        if number != name and number.isascii() and number.isdigit() and len(number) <= 5:
            return NodeId(first + int(number))
    return links.next_anonymous()


class _Slot:
    """The place of an answer in the order of the requests; ``promised_bytes`` is what it may take while it waits."""

    __slots__ = ("frame", "promised_bytes")

    def __init__(self, promised_bytes: int) -> None:
        self.frame: bytes | None = None
        self.promised_bytes = promised_bytes


class RequestSession:
    """Requests of one connection. ``handle`` gets each as a call that it answers, now or later, once."""

    def __init__(self, links: NodeLinks, handle: Callable[[Call], None]) -> None:
        self._handle = handle
        self._slots: deque[_Slot] = deque()
        self._promised_bytes = 0
        self.connection = FramedConnection(
            links, self._on_frame, identify=lambda frame: peer_of(codec.client_of(frame), links)
        )

    def _on_frame(self, connection: FramedConnection, frame: memoryview) -> None:
        header, request = codec.decode_request(frame)
        peer = connection.peer
        if peer is None:
            raise BadFrameError("a request without a sender")
        host = connection.host
        if header.api_key == ApiKey.PRODUCE and request.acks == 0:
            self._call(Call(peer, header, host, request, self._close_if_refused))
            return
        # Only the answer to a fetch is large enough to be worth counting.
        slot = _Slot(min(request.max_bytes, FETCH_BYTES) if header.api_key == ApiKey.FETCH else 0)
        self._slots.append(slot)
        self._promised_bytes += slot.promised_bytes

        def reply(fields: Fields) -> None:
            slot.frame = self._encoded(header, fields)
            self._flush()

        self._call(Call(peer, header, host, request, reply))
        if self._has_enough():
            connection.set_busy(True)

    def _close_if_refused(self, produced: Fields) -> None:
        """With acks=0 no client waits for an answer; a broken connection makes the client look for the leader."""
        parts: list[Any] = [part for topic in produced["responses"] for part in topic["partition_responses"]]
        errors = sorted({ErrorCode(part["error_code"]).name for part in parts if part["error_code"]})
        if errors:
            self.connection.close(f"a write with acks=0 was refused: {', '.join(errors)}")

    def _has_enough(self) -> bool:
        return len(self._slots) >= UNDER_WAY or self._promised_bytes >= PROMISED_BYTES

    def _call(self, call: Call) -> None:
        try:
            self._handle(call)
        except NodeFailure:
            raise
        except Exception as error:  # The error of a strange request concerns its connection only.
            log.exception("a request could not be handled")
            name = codec.APIS[call.header.api_key].request.__name__
            raise BadFrameError(f"{name} could not be handled: {type(error).__name__}") from error

    def _encoded(self, header: Header, fields: Fields) -> bytes:
        try:
            return codec.encode_response(header, fields)
        except Exception:  # The answer may come from another client's request.
            log.exception("the answer to API %d version %d could not be encoded", header.api_key, header.version)
            self.connection.close("its answer could not be encoded")
            return b""

    def _flush(self) -> None:
        slots, connection = self._slots, self.connection
        while slots and (frame := slots[0].frame) is not None:
            self._promised_bytes -= slots.popleft().promised_bytes
            connection.send(frame)
        if not self._has_enough():
            connection.set_busy(False)
