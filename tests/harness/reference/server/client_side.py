"""The client's side of the wire, for tests of the codec."""

from __future__ import annotations

import importlib

from harness.reference.core.types import PartitionState, TopicConfig, TopicPartition, TopicState
from harness.reference.server.codec import APIS, decode_request, encode_response
from harness.reference.server.codec.wire import TopicIds, decode, request_frame
from harness.reference.server.requests import Header

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
STATE = TopicState(TopicConfig(), (PartitionState((0, 1), (0,), 0, 3, 4), PartitionState((1, 0), (1,), -1, 2, 2)), 11)


def topic_ids() -> TopicIds:
    made = TopicIds()
    made.learn({"t": STATE, "u": TopicState(TopicConfig(), (), 12)})
    return made


def fields(message, version, **values):
    """A request of the client library with ``values``; nested ones are dictionaries and lists of them."""
    return _filled(message, version, values)


def _filled(kind, version, values):
    made = {}
    for name, value in values.items():
        field = kind.fields[name]
        if isinstance(value, list) and value and isinstance(value[0], dict):
            made[name] = [_filled(field.data_class, version, each) for each in value]
        elif isinstance(value, dict):
            made[name] = _filled(field.data_class, version, value)
        else:
            made[name] = value
    return kind(version=version, **made)


def asked(key, version, ids, /, **values):
    """What the broker understands when a client sends this."""
    frame = request_frame(fields(APIS[key].request, version, **values), 42, "someone")
    header, request = decode_request(memoryview(frame)[4:], ids)
    assert header == Header(key, version, 42, "someone")
    return request


def answered(key, version, ids, response):
    """What a client reads when the broker answers this."""
    frame = encode_response(Header(key, version, 42, None), response, ids)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == 42
    request = APIS[key].request
    message = getattr(importlib.import_module(request.__module__), request.__name__.replace("Request", "Response"))
    tagged = key != 18 and message.flexible_version_q(version)
    assert frame[8:9] == b"\0" or not tagged
    return decode(message, memoryview(frame)[9 if tagged else 8 :], version)
