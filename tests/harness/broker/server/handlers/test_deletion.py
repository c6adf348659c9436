"""Groups and their offsets are deleted, from a client's bytes through the core into files, and back."""

import pytest
from client_side import versions
from lone_broker import LoneBroker

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec import subscribed_topics


def join(alone, *topics, kind):
    """Let a member that reads these topics make group g."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    metadata = b"\0\1" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff\0\0\0\0"
    values = {"group_id": "g", "session_timeout_ms": 500, "rebalance_timeout_ms": 500, "protocol_type": kind}
    alone.ask(alone.groups.join, 11, 3, protocols=[{"name": "range", "metadata": metadata}], member_id="", **values)


@pytest.mark.parametrize(("key", "version"), versions(42))
def test_a_deleted_group_is_gone_also_for_a_coordinator_that_reads_its_log(alone, tmp_path, key, version):
    for group in ("g", "h"):
        assert alone.commit_plainly(group, 5) == ErrorCode.NONE
    answer = alone.ask(alone.groups.delete_groups, key, version, groups_names=["g", "unknown", ""])
    errors = [(row.group_id, row.error_code) for row in answer.results]
    assert errors == [
        ("g", ErrorCode.NONE),
        ("unknown", ErrorCode.GROUP_ID_NOT_FOUND),
        ("", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    for broker in (alone, LoneBroker(tmp_path, 2)):
        assert broker.listed() == ["h"]
        assert (broker.offset_of("g"), broker.offset_of("h")) == ((ErrorCode.NONE, -1), (ErrorCode.NONE, 5))
        assert broker.delete("g") == {"g": ErrorCode.GROUP_ID_NOT_FOUND}
    assert alone.commit_plainly("g", 7) == ErrorCode.NONE
    assert LoneBroker(tmp_path, 3).offset_of("g") == (ErrorCode.NONE, 7)


# --- some of a group's offsets ---------------------------------------------------------------------------------------


def delete_offset(alone, *topics, group="g", key=47, version=0):
    """The error of the whole, and that of the first log partition of each topic."""
    rows = [{"name": topic, "partitions": [{"partition_index": 0}]} for topic in topics]
    answer = alone.ask(alone.groups.offset_delete, key, version, group_id=group, topics=rows)
    return answer.error_code, {topic.name: topic.partitions[0].error_code for topic in answer.topics}


@pytest.mark.parametrize(("key", "version"), versions(47))
def test_a_deleted_offset_is_gone_and_unknown_ones_are_named(alone, tmp_path, key, version):
    assert delete_offset(alone, "t") == (ErrorCode.GROUP_ID_NOT_FOUND, {})
    assert delete_offset(alone, "t", group="") == (ErrorCode.INVALID_GROUP_ID, {})
    alone.commit_plainly("g", 5)
    errors = {"t": ErrorCode.NONE, "gone": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert delete_offset(alone, "t", "gone", key=key, version=version) == (ErrorCode.NONE, errors)
    for broker in (alone, LoneBroker(tmp_path, 2)):
        assert broker.offset_of("g") == (ErrorCode.NONE, -1)
        assert broker.listed() == []


@pytest.mark.parametrize(
    ("kind", "read", "answer"),
    [
        ("consumer", "t", (ErrorCode.NONE, {"t": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC})),
        ("consumer", "other", (ErrorCode.NONE, {"t": ErrorCode.NONE})),
        ("connect", "other", (ErrorCode.NON_EMPTY_GROUP, {})),
    ],
)
def test_offsets_of_a_topic_that_a_member_reads_stay(alone, kind, read, answer):
    alone.commit_plainly("g", 5)
    join(alone, read, kind=kind)
    assert delete_offset(alone, "t") == answer
    assert alone.delete("g") == {"g": ErrorCode.NON_EMPTY_GROUP}


@pytest.mark.parametrize("metadata", [b"", b"\0\1\0\0\0\1", b"\0\1\0\0\0\1\0\2\xff\xff"])
def test_what_is_no_subscription_has_no_topics(metadata):
    assert subscribed_topics(metadata) is None
