"""The client's side of the wire and a core of canned answers, for tests of the codec and of the handlers."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from harness.broker.core.types import PartitionState, TopicConfig, TopicPartition, TopicState
from harness.broker.server.codec import APIS, decode_request, encode_response
from harness.broker.server.codec.wire import Header, TopicIds, decode, request_frame
from harness.broker.server.handlers.gateway import Call, Gateway

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
STATE = TopicState(TopicConfig(), (PartitionState((0, 1), (0,), 0, 3, 4), PartitionState((1, 0), (1,), -1, 2, 2)), 11)


def topic_ids() -> TopicIds:
    made = TopicIds()
    made.learn({"t": STATE, "u": TopicState(TopicConfig(), (), 12)})
    return made


def versions(*keys):
    return [(key, v) for key in keys for v in range(APIS[key].versions[0], APIS[key].versions[1] + 1)]


class CannedCore:
    """Remembers what it was asked; answers when asked to."""

    def __init__(self):
        self.asked = []
        self.gateway = Gateway(lambda sender, message: self.asked.append((sender, message)))

    @property
    def questions(self):
        return [replace(question, correlation=0) for _, question in self.asked]

    def answer(self, number, response):
        """Answer question ``number`` with ``response``, which gets its correlation."""
        self.gateway.answered(replace(response, correlation=self.asked[number][1].correlation))


class Asked:
    """One request: sent by a client in ``version`` (None: the newest that is served), read by the broker, answered."""

    def __init__(self, handle, key, version=None, /, **values):
        api = APIS[key]
        version = api.versions[1] if version is None else version
        frame = request_frame(api.request, values, version, 42, "someone")
        header, request = decode_request(memoryview(frame)[4:])
        assert header == Header(key, version, 42, "someone")
        self.call = Call(1001, header, "/10.0.0.9", request, self._reply)
        self.fields = None
        handle(self.call)

    def _reply(self, fields):
        assert self.fields is None, "answered twice"
        self.fields = fields

    @property
    def answer(self):
        """The answer as the client reads it."""
        assert self.fields is not None, "not answered yet"
        return answered(self.call.header, self.fields)


def asked_in_a_loop(*arguments, **values):
    """A request whose handler sets itself a limit of time."""

    async def ask():
        return Asked(*arguments, **values)

    return asyncio.run(ask())


def answered(header, fields):
    """The answer that a client reads when the broker answers ``header`` with ``fields``."""
    frame = encode_response(header, fields)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == header.correlation
    message = APIS[header.api_key].response
    tagged = header.api_key != 18 and message.flexible_version_q(header.version)
    assert frame[8:9] == b"\0" or not tagged
    return decode(message, memoryview(frame)[9 if tagged else 8 :], header.version)
