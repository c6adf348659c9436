import pytest
from client_side import answered, topic_ids

from harness.broker.core.types import ErrorCode, TopicConfig, TopicState
from harness.broker.server.codec import ADVERTISED, APIS, decode_request, encode_response
from harness.broker.server.codec.wire import Header, request_frame
from harness.broker.server.links import BadFrameError


def test_a_topic_made_again_has_another_id():
    ids = topic_ids()
    before = ids.identity("t")
    ids.learn({"t": TopicState(TopicConfig(), (), 99)})
    assert ids.identity("t") != before
    assert ids.name(before) != "t"


def test_an_api_versions_from_the_future_is_answered_in_version_0_with_error_35():
    header, request = decode_request(memoryview(b"\0\x12\0\x63\0\0\0\x2a\0\x01x\0whatever"))
    assert request is None
    rows = [{"api_key": key, "min_version": 0, "max_version": 1} for key in ADVERTISED]
    frame = encode_response(header, {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": rows})
    assert frame[4:10] == b"\0\0\0\x2a\0\x23"
    assert len(frame) == 4 + 4 + 2 + 4 + 6 * len(ADVERTISED)


def test_a_metadata_request_of_librdkafka_with_three_bytes_too_many_asks_for_all_topics():
    header = b"\0\x03\0\x0d\0\0\0\x01\0\x01x\0"
    _, request = decode_request(memoryview(header + b"\0\0\0\0\1\0\0"))
    assert request.topics is None
    with pytest.raises(BadFrameError, match="takes 8 bytes and has 9"):
        decode_request(memoryview(b"\0\x0c\0\0\0\0\0\x01\0\x01x" + b"\0" * 9))


@pytest.mark.parametrize(
    ("key", "version", "values", "name"),
    [
        (12, 3, {"group_id": None}, "group_id"),
        (11, 5, {"protocols": [{"name": None, "metadata": b""}]}, "name"),
        (2, 3, {"topics": [{"name": "t", "partitions": None}]}, "partitions"),
        (0, 7, {"topic_data": [{"name": None, "partition_data": []}]}, "name"),
    ],
)
def test_a_null_where_kafkas_schema_allows_none_is_refused(key, version, values, name):
    frame = request_frame(APIS[key].request, values, version, 1, "c")
    with pytest.raises(BadFrameError, match=f"version {version} lacks {name}"):
        decode_request(memoryview(frame)[4:])


def test_a_null_where_kafkas_schema_allows_one_is_read():
    for key, version, values in [
        (3, 1, {"topics": None}),
        (9, 2, {"group_id": "g", "topics": None}),
        (0, 7, {"transactional_id": None, "topic_data": [{"name": "t", "partition_data": [{"records": None}]}]}),
    ]:
        decode_request(memoryview(request_frame(APIS[key].request, values, version, 1, "c"))[4:])


@pytest.mark.parametrize("key", sorted(set(APIS) - {18}))
def test_an_answer_without_fields_has_the_defaults_of_kafkas_schema(key):
    low, high = APIS[key].versions
    for version in range(low, high + 1):
        answered(Header(key, version, 7, None), {})
