"""Groups and their offsets are deleted, from a client's bytes through the core into files, and back."""

import pytest
from client_side import Asked, versions
from lone_broker import LoneBroker

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec import subscribed_topics
from harness.broker.server.handlers.coordinators import partition_of


@pytest.fixture
def alone(tmp_path):
    return LoneBroker(tmp_path)


def asks_to_join(*topics, group="g", kind="consumer", member=""):
    """The content of a JoinGroup of a consumer of these topics."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    metadata = b"\0\1" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff\0\0\0\0"
    values = {"group_id": group, "session_timeout_ms": 500, "rebalance_timeout_ms": 500, "protocol_type": kind}
    return values | {"protocols": [{"name": "range", "metadata": metadata}], "member_id": member}


def join(alone, *topics, group="g", kind="consumer"):
    """Make a group of one member that is stable and reads these; its name."""
    name = alone.ask(alone.groups.join, 11, 3, **asks_to_join(*topics, group=group, kind=kind)).member_id
    rows = [{"member_id": name, "assignment": b"1"}]
    alone.ask(alone.groups.sync, 14, 3, group_id=group, generation_id=1, member_id=name, assignments=rows)
    return name


def leave(alone, member):
    return alone.ask(alone.groups.leave, 13, 0, group_id="g", member_id=member).error_code


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


def test_a_group_with_members_is_not_deleted(alone):
    member = join(alone, "t")
    assert alone.delete("g") == {"g": ErrorCode.NON_EMPTY_GROUP}
    assert leave(alone, member) == ErrorCode.NONE
    assert alone.listed() == ["g"]
    assert alone.delete("g") == {"g": ErrorCode.NONE}
    assert alone.listed() == []


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_that_a_transaction_was_to_commit_are_deleted_with_their_group(alone, tmp_path, commit):
    identity = alone.init()
    alone.add_offsets(identity, "g")
    assert alone.commit_offset(identity, "g", 5) == ErrorCode.NONE
    assert alone.delete("g") == {"g": ErrorCode.NONE}
    again = LoneBroker(tmp_path, 2)
    for broker in (alone, again):
        assert broker.offset_of("g") == (ErrorCode.NONE, -1)
    assert again.end(identity, commit=commit) == ErrorCode.NONE
    assert again.offset_of("g") == LoneBroker(tmp_path, 3).offset_of("g") == (ErrorCode.NONE, -1)


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


@pytest.mark.parametrize(("read", "error"), [("t", ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC), ("other", ErrorCode.NONE)])
def test_offsets_of_a_topic_that_a_member_reads_stay(alone, read, error):
    alone.commit_plainly("g", 5)
    join(alone, read)
    assert delete_offset(alone, "t") == (ErrorCode.NONE, {"t": error})
    assert alone.offset_of("g") == (ErrorCode.NONE, 5 if error else -1)


def test_where_no_offset_is_there_nothing_is_written(alone):
    join(alone, "other")
    written = alone.logs[partition_of("g")].end_offset
    assert delete_offset(alone, "t") == (ErrorCode.NONE, {"t": ErrorCode.NONE})
    assert alone.logs[partition_of("g")].end_offset == written


def test_what_members_read_is_known_from_generation_to_generation(alone):
    """A newcomer's topics count when all have joined."""
    first = join(alone, "other")
    newcomer = asks_to_join("t")
    asked = Asked(alone.groups.join, 11, 3, **newcomer)
    assert delete_offset(alone, "t") == (ErrorCode.NONE, {"t": ErrorCode.NONE})
    Asked(alone.groups.join, 11, 3, **asks_to_join("other", member=first))
    assert asked.answer.error_code == ErrorCode.NONE
    assert delete_offset(alone, "t") == (ErrorCode.NONE, {"t": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC})


def test_of_a_member_whose_topics_cannot_be_read_any_topic_stays(alone):
    alone.commit_plainly("g", 5)
    odd = {"protocols": [{"name": "range", "metadata": b"odd"}]}
    alone.ask(alone.groups.join, 11, 3, **asks_to_join("t") | odd)
    assert delete_offset(alone, "t") == (ErrorCode.NONE, {"t": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC})


def test_offsets_of_a_group_that_is_not_of_consumers_stay_while_it_has_members(alone):
    alone.commit_plainly("g", 5)
    join(alone, "t", kind="connect")
    assert delete_offset(alone, "t") == (ErrorCode.NON_EMPTY_GROUP, {})
    assert alone.offset_of("g") == (ErrorCode.NONE, 5)


@pytest.mark.parametrize("metadata", [b"", b"\0\1\0\0\0\1", b"\0\1\0\0\0\1\0\2\xff\xff"])
def test_what_is_no_subscription_has_no_topics(metadata):
    assert subscribed_topics(metadata) is None
