"""The administration of a cluster whose brokers answer, refuse, or do not answer at all."""

from types import SimpleNamespace
from uuid import UUID

import pytest
from kafka import TopicPartition
from kafka.errors import (
    ElectionNotNeededError,
    IncompatibleBrokerVersion,
    InvalidReplicationAssignmentError,
    KafkaConnectionError,
    NodeNotReadyError,
    PreferredLeaderNotAvailableError,
    TopicAuthorizationFailedError,
    UnknownBrokerIdError,
    UnknownTopicIdError,
)

from harness.ground.errors import AccessError
from harness.plan import OPEN
from harness.worlds.kafka.administration import Administration, UnansweredError
from nemesis.cluster import PartitionView

AT = TopicPartition("t-x", 2)
ID = UUID(int=7)


class Brokers:
    """The answers that a client of them hears, by call, one after the other, the last for ever."""

    def __init__(self, **answers):
        self.answers = {name: list(given) for name, given in answers.items()}
        self.calls, self.connections, self.closed = [], [], 0

    def connect(self, **configuration):
        self.connections.append(configuration["bootstrap_servers"])
        self._answer("connect")
        client = SimpleNamespace(close=self._close)
        for name in ("list_partition_reassignments", "alter_partition_reassignments", "elect_leaders", "delete_topics"):
            setattr(client, name, self._method(name))
        for name in (
            "describe_topics",
            "describe_topic_partitions",
            "describe_cluster",
            "describe_configs",
            "get_broker_version_data",
        ):
            setattr(client, name, self._method(name))
        return client

    def _close(self):
        self.closed += 1

    def _method(self, name):
        def call(*arguments, **_):
            self.calls.append((name, *arguments))
            return self._answer(name)

        return call

    def _answer(self, name):
        given = self.answers.get(name, [{}])
        answer = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def administration(limit_s=5.0, **answers):
    brokers = Brokers(**answers)
    return Administration(lambda: ["a:1", "b:2"], limit_s=limit_s, connect=brokers.connect), brokers


def test_a_leader_is_moved_by_preferring_it_and_electing_the_preferred():
    admin, brokers = administration()
    assert admin.move_leader("t-x-2", 1, (0, 1, 2)) == ""
    assert [call for call in brokers.calls if call[0] != "list_partition_reassignments"] == [
        ("alter_partition_reassignments", {AT: [1, 0, 2]}),
        ("elect_leaders", 0, {"t-x": [2]}),
    ]
    assert brokers.connections == [["a:1", "b:2"]]


def test_a_move_that_is_not_needed_is_granted():
    admin, _ = administration(elect_leaders=[ElectionNotNeededError("x")])
    assert admin.move_leader("t-x-2", 0, (0, 1, 2)) == ""


def test_a_refusal_is_told_by_its_name_and_not_asked_again():
    admin, brokers = administration(elect_leaders=[PreferredLeaderNotAvailableError("long words")])
    assert admin.move_leader("t-x-2", 0, (0, 1, 2)) == "PreferredLeaderNotAvailableError"
    assert [call[0] for call in brokers.calls].count("elect_leaders") == 1


def test_whoever_is_not_elected_is_not_preferred_later_either():
    admin, brokers = administration(elect_leaders=[PreferredLeaderNotAvailableError("long words")])
    assert admin.move_leader("t-x-2", 1, (0, 1, 2)) == "PreferredLeaderNotAvailableError"
    altered = [call[1] for call in brokers.calls if call[0] == "alter_partition_reassignments"]
    assert altered == [{AT: [1, 0, 2]}, {AT: [0, 1, 2]}]


def test_leaders_are_not_moved_while_replicas_come_and_go():
    admin, brokers = administration(list_partition_reassignments=[{AT: {"adding_replicas": [3]}}])
    assert admin.move_leader("t-x-2", 0, (0, 1, 2)) == "its replicas are being reassigned"
    assert [call[0] for call in brokers.calls] == ["list_partition_reassignments"]


def test_a_reassignment_calls_off_the_one_under_way():
    admin, brokers = administration(list_partition_reassignments=[{AT: {"adding_replicas": [3]}}])
    assert admin.reassign("t-x-2", (0, 1, 2)) == ""
    altered = [call[1] for call in brokers.calls if call[0] == "alter_partition_reassignments"]
    assert altered == [{AT: None}, {AT: [0, 1, 2]}]


def test_a_refused_reassignment_says_why():
    admin, _ = administration(alter_partition_reassignments=[{AT: InvalidReplicationAssignmentError}])
    assert admin.reassign("t-x-2", (0, 99)) == "InvalidReplicationAssignmentError"


def test_a_broker_that_is_gone_is_no_answer_and_another_is_asked():
    admin, brokers = administration(
        connect=[None, KafkaConnectionError("refused"), None], elect_leaders=[NodeNotReadyError(1), {}]
    )
    assert admin.move_leader("t-x-2", 1, (0, 1, 2)) == ""
    assert len(brokers.connections) == 3
    assert brokers.closed == 1


def test_a_broker_of_which_the_library_has_not_heard_is_asked_for_again():
    """It has started just now, or it is mistyped: then the limit ends it."""
    entry = {"broker": {"1": {"num.io.threads": {"value": "3", "config_source": "STATIC_BROKER_CONFIG"}}}}
    admin, _ = administration(describe_configs=[UnknownBrokerIdError(1), entry])
    assert admin.configurations("broker", ["1"], ["num.io.threads"]) == {"1": {"num.io.threads": "3"}}


def test_nobody_answers_and_the_sentence_names_who_was_asked():
    admin, _ = administration(limit_s=0.1, connect=[KafkaConnectionError("refused")])
    with pytest.raises(
        UnansweredError, match=r"no broker answered within 0 s \(KafkaConnectionError: refused\); tried a:1, b:2"
    ):
        admin.reassign("t-x-2", (0, 1))


def test_why_somebody_elses_cluster_lets_nobody_in_is_asked_until_it_has_done_so_once(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "harness.worlds.kafka.administration.refusal", lambda brokers, security, limit_s: asked.append(brokers) or "no"
    )
    away = KafkaConnectionError("away")
    admin, _ = administration(limit_s=0.1, connect=[away])
    with pytest.raises(UnansweredError):
        admin.running()
    assert asked == [], "the harness's own"
    brokers = Brokers(connect=[away, None, away], describe_cluster=[{"brokers": []}, away])
    theirs = Administration(lambda: ["a:1"], limit_s=0.1, security=OPEN, connect=brokers.connect)
    with pytest.raises(AccessError, match="no"):
        theirs.running()
    theirs.running()
    with pytest.raises(UnansweredError):
        theirs.running()
    assert asked == [["a:1"]]


def test_without_a_running_broker_nobody_is_asked():
    brokers = Brokers()
    admin = Administration(list, limit_s=0.1, connect=brokers.connect)
    with pytest.raises(UnansweredError, match="tried none"):
        admin.running()
    assert brokers.connections == []


def test_a_topic_is_read_with_leaders_epochs_and_replicas():
    first = {"partition_index": 0, "leader_id": 2, "leader_epoch": 4, "isr_nodes": [2, 1], "replica_nodes": [2, 1, 0]}
    second = {"partition_index": 10, "leader_id": -1, "leader_epoch": 5, "isr_nodes": [], "replica_nodes": [1]}
    shown = {"error_code": 0, "name": "t-x", "topic_id": str(ID), "partitions": [second, first]}
    pages = [{"topics": [topic], "next_cursor": None} for topic in (shown, {"error_code": 3})]
    admin, _ = administration(describe_topic_partitions=pages)
    image = admin.topic("t-x")
    assert image.topic_id == ID
    assert list(image.partitions) == ["t-x-0", "t-x-10"]
    assert image.partitions["t-x-0"] == PartitionView(2, 4, (2, 1), (2, 1, 0))
    assert image.partitions["t-x-10"].leader is None
    assert admin.topic("t-x") is None


def test_eligible_replicas_are_told_page_by_page():
    def page(number, elr, cursor):
        state = {"leader_id": 1, "leader_epoch": 4, "isr_nodes": [1], "replica_nodes": [1, 0]}
        partition = {"partition_index": number, "eligible_leader_replicas": elr, **state}
        topic = {"error_code": 0, "name": "t-x", "topic_id": str(ID), "partitions": [partition]}
        return {"topics": [topic], "next_cursor": cursor}

    after = {"topic_name": "t-x", "partition_index": 1}
    admin, _ = administration(describe_topic_partitions=[page(0, [0], after), page(1, None, None)])
    assert {name: partition.elr for name, partition in admin.topic("t-x").partitions.items()} == {
        "t-x-0": (0,),
        "t-x-1": (),
    }


def test_older_brokers_are_asked_in_the_old_way():
    partition = {"partition_index": 0, "leader_id": 1, "leader_epoch": 4, "isr_nodes": [1], "replica_nodes": [1]}
    shown = {"error_code": 0, "name": "t-x", "topic_id": str(ID), "partitions": [partition]}
    admin, brokers = administration(
        describe_topic_partitions=[IncompatibleBrokerVersion("too old")], describe_topics=[[shown]]
    )
    assert admin.topic("t-x").partitions == {"t-x-0": PartitionView(1, 4, (1,), (1,))}
    assert len(brokers.connections) == 1


def test_a_topic_that_the_cluster_does_not_show_is_not_taken_for_none():
    admin, _ = administration(describe_topic_partitions=[{"topics": [{"error_code": 29}], "next_cursor": None}])
    with pytest.raises(TopicAuthorizationFailedError):
        admin.topic("t-x")


def test_fenced_brokers_do_not_run():
    brokers = [{"broker_id": 2, "is_fenced": False}, {"broker_id": 1, "is_fenced": True}, {"broker_id": 0}]
    admin, _ = administration(describe_cluster=[{"brokers": brokers}])
    assert admin.running() == (0, 2)


def test_a_release_is_told_by_the_protocol():
    admin, _ = administration(get_broker_version_data=[SimpleNamespace(broker_version=(4, 1))])
    assert str(admin.release(0)) == "4.1.0"


def test_a_configuration_holds_what_is_set_and_what_matters_and_no_secret():
    def entry(value, source="DEFAULT_CONFIG", secret=False):
        return {"value": value, "config_source": source, "is_sensitive": secret}

    entries = {
        "min.insync.replicas": entry("1"),
        "log.segment.bytes": entry("5", "STATIC_BROKER_CONFIG"),
        "num.io.threads": entry("8"),
        "ssl.keystore.password": entry("x", "STATIC_BROKER_CONFIG", secret=True),
    }
    admin, _ = administration(describe_configs=[{"broker": {"0": entries}}])
    assert admin.configuration("broker", "0") == {"log.segment.bytes": "5", "min.insync.replicas": "1"}


def test_a_broker_that_does_not_know_a_topic_yet_is_asked_for_its_configuration_again():
    entries = {"min.insync.replicas": {"value": "2", "config_source": "DEFAULT_CONFIG", "is_sensitive": False}}
    admin, _ = administration(describe_configs=[{"topic": {"t": {}}}, {"topic": {"t": entries}}])
    assert admin.configuration("topic", "t") == {"min.insync.replicas": "2"}


def test_a_configuration_that_our_user_may_not_know_is_empty():
    admin, _ = administration(limit_s=0.1, describe_configs=[{"topic": {"t": {}}, "broker": {"0": {}}}])
    assert admin.configuration("topic", "t") == {}
    assert admin.configuration("broker", "0") == {}


def test_a_topic_is_deleted_by_its_id_and_may_be_gone():
    admin, brokers = administration(delete_topics=[{}, UnknownTopicIdError("gone")])
    assert admin.delete_topic(ID) is True
    assert admin.delete_topic(ID) is False
    assert brokers.calls[0] == ("delete_topics", [ID])
