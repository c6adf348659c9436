"""The run's topic is made by asking until the brokers know of each other, and never for long."""

import pytest
from kafka.errors import (
    InvalidReplicationFactorError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownBrokerIdError,
)

from harness.ground.errors import StartError
from harness.worlds.real import topic
from workloads.settings import Settings


@pytest.fixture
def asked(monkeypatch):
    """Answers of a cluster, in their order: an error that is raised, or None for a topic that is made."""
    answers = []

    class Cluster:
        def __init__(self, **_):
            pass

        def create_topics(self, wanted, *, timeout_ms):
            assert (list(wanted), timeout_ms > 0) == (["t"], True)
            if (error := answers.pop(0)) is not None:
                raise error

        def close(self):
            pass

    monkeypatch.setattr(topic, "KafkaAdminClient", Cluster)
    monkeypatch.setattr(topic, "_PAUSE_S", 0)
    return answers


@pytest.mark.parametrize("error", [UnknownBrokerIdError, InvalidReplicationFactorError])
def test_brokers_that_are_not_counted_yet_are_asked_again(asked, error):
    asked += [error(), error(), None]
    topic.create_topic(["127.0.0.1:1"], "t", 1, Settings())
    assert asked == []


def test_a_cluster_that_stays_too_small_is_given_up(asked):
    asked += [InvalidReplicationFactorError()] * (topic.TURNS + 1)
    with pytest.raises(StartError, match='did not create topic "t": InvalidReplicationFactorError'):
        topic.create_topic(["127.0.0.1:1"], "t", 1, Settings())
    assert len(asked) == 1


def test_a_refusal_is_not_asked_again(asked):
    asked += [TopicAuthorizationFailedError(), None]
    with pytest.raises(StartError, match="TopicAuthorizationFailedError"):
        topic.create_topic(["127.0.0.1:1"], "t", 1, Settings())
    assert len(asked) == 1


def test_a_topic_that_an_attempt_made_whose_answer_got_lost_is_the_topic(asked):
    asked += [TopicAlreadyExistsError(), None]
    topic.create_topic(["127.0.0.1:1"], "t", 1, Settings())
    assert len(asked) == 1
