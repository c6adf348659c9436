"""The client's side of the wire, for tests of the codec."""

from __future__ import annotations

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


def asked(key, version, ids, /, **values):
    """What the broker understands when a client sends this."""
    frame = request_frame(APIS[key].request, values, version, 42, "someone")
    header, request = decode_request(memoryview(frame)[4:], ids)
    assert header == Header(key, version, 42, "someone")
    return request


def answered(key, version, ids, response):
    """What a client reads when the broker answers this."""
    frame = encode_response(Header(key, version, 42, None), response, ids)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == 42
    message = APIS[key].response
    tagged = key != 18 and message.flexible_version_q(version)
    assert frame[8:9] == b"\0" or not tagged
    return decode(message, memoryview(frame)[9 if tagged else 8 :], version)
