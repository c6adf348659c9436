"""The one topic that a run makes on somebody's cluster: no other is touched, and it never stays."""

from uuid import UUID

import pytest
from kafka.errors import PolicyViolationError, TopicAlreadyExistsError

from harness.ground.errors import HostError, PlanError
from harness.plan import Existing
from harness.records.journal import FILE_NAME, Journal, not_undone
from harness.runs.run.healing import heal
from harness.worlds.existing import ExistingCluster
from harness.worlds.kafka import own_topic
from harness.worlds.kafka.administration import TopicImage, UnansweredError
from harness.worlds.kafka.own_topic import OwnTopic, require_ids
from harness.worlds.kafka.releases import Version
from nemesis.cluster import PartitionView
from tests.harness.worlds.processes.conftest import spec

WHOLE = PartitionView(leader=0, leader_epoch=0, isr=(0, 1), replicas=(0, 1))


class Cluster:
    """An administration of topics in memory."""

    def __init__(self):
        self.topics: dict[str, UUID] = {}
        self.made, self.closed, self.refuses, self.silent = 0, 0, None, False

    def _answer(self):
        if self.silent:
            raise UnansweredError("no broker answered")

    def topic(self, name):
        self._answer()
        topic_id = self.topics.get(name)
        return None if topic_id is None else TopicImage(topic_id, {f"{name}-0": WHOLE})

    def create_topic(self, name, partitions, replication_factor, configs):
        if self.refuses is not None:
            raise self.refuses
        self.made += 1
        self.topics[name] = UUID(int=self.made)

    def delete_topic(self, topic_id):
        self._answer()
        names = [name for name, stored_id in self.topics.items() if stored_id == topic_id]
        for name in names:
            del self.topics[name]
        return bool(names)

    def close(self):
        self.closed += 1


@pytest.fixture
def cluster(monkeypatch):
    made = Cluster()
    monkeypatch.setattr(own_topic, "Administration", lambda brokers, *, limit_s, security: made)
    return made


@pytest.fixture
def journal(tmp_path):
    opened = Journal(tmp_path / FILE_NAME)
    yield opened
    opened.close()


def own(cluster, journal):
    return OwnTopic(cluster, journal, "t-7", ("a:1",))


def test_a_topic_is_made_and_deleted_and_the_journal_knows_it_in_between(cluster, journal):
    topic = own(cluster, journal)
    topic.create(1, 2, {})
    (action,) = not_undone(journal.path)
    assert (action.kind, action.facts) == (
        "topic",
        {"name": "t-7", "bootstrap": ["a:1"], "security": {}, "topic_id": str(UUID(int=1))},
    )
    topic.delete()
    topic.delete()
    assert cluster.topics == {}
    assert not_undone(journal.path) == []


def test_a_topic_of_somebody_else_is_refused_and_stays(cluster, journal):
    cluster.topics["t-7"] = UUID(int=99)
    topic = own(cluster, journal)
    with pytest.raises(HostError, match=r'a topic "t-7" that this run did not create, so it is left alone'):
        topic.create(1, 2, {})
    topic.delete()
    assert cluster.topics == {"t-7": UUID(int=99)}
    assert not_undone(journal.path) == []


def test_what_the_cluster_refused_to_create_is_not_deleted_later(cluster, journal):
    cluster.refuses = PolicyViolationError("no")
    with pytest.raises(HostError, match="PolicyViolationError"):
        own(cluster, journal).create(1, 2, {})
    assert not_undone(journal.path) == []


def test_heal_deletes_the_topic_of_a_dead_harness_once(cluster, journal, tmp_path):
    own(cluster, journal).create(1, 2, {})
    assert heal(tmp_path) == ["topic t-7"]
    assert cluster.topics == {}
    assert cluster.closed == 1
    assert heal(tmp_path) == []


def test_a_topic_that_took_the_name_since_is_not_the_runs(cluster, journal, tmp_path):
    own(cluster, journal).create(1, 2, {})
    cluster.topics = {"t-7": UUID(int=99)}
    assert heal(tmp_path) == []
    assert cluster.topics == {"t-7": UUID(int=99)}


def test_a_topic_whose_id_was_never_told_may_be_anybodys_and_stays(cluster, journal, tmp_path):
    journal.intend("topic", {"name": "t-7", "bootstrap": ["a:1"]})
    assert heal(tmp_path) == []
    journal.intend("topic", {"name": "t-7", "bootstrap": ["a:1"]})
    cluster.create_topic("t-7", 1, 2, {})
    for _ in range(2):
        with pytest.raises(HostError, match="may not have made, as its id is not known"):
            heal(tmp_path)
    assert cluster.topics
    cluster.topics.clear()
    assert heal(tmp_path) == []
    assert not_undone(journal.path) == []


def test_a_topic_that_an_unanswered_try_may_have_made_stays_in_the_journal(cluster, journal):
    cluster.refuses = TopicAlreadyExistsError("there is one")
    topic = own(cluster, journal)
    with pytest.raises(HostError, match="may not have made, as its id is not known"):
        topic.create(1, 2, {})
    cluster.topics["t-7"] = UUID(int=99)
    with pytest.raises(HostError, match="may not have made"):
        topic.delete()
    assert cluster.topics == {"t-7": UUID(int=99)}
    assert len(not_undone(journal.path)) == 1


def test_a_cluster_that_does_not_answer_keeps_the_deed_in_the_journal(cluster, journal, tmp_path):
    own(cluster, journal).create(1, 2, {})
    cluster.silent = True
    with pytest.raises(HostError, match=r'the topic "t-7" is still there'):
        heal(tmp_path)
    assert len(not_undone(journal.path)) == 1
    cluster.silent = False
    assert heal(tmp_path) == ["topic t-7"]


@pytest.mark.parametrize(
    "facts",
    [{"name": "t-8"}, {"name": "t-8", "bootstrap": 7}, {"name": "t-8", "bootstrap": ["a:1"], "topic_id": "no id"}],
)
def test_a_topic_that_no_harness_wrote_down_keeps_nothing_else_from_being_healed(cluster, journal, tmp_path, facts):
    own(cluster, journal).create(1, 2, {})
    journal.intend("topic", facts)
    later = tmp_path / "zz"
    (left := later / "ackproof-left").mkdir(parents=True)
    other = Journal(later / FILE_NAME)
    other.intend("directory", {"path": str(left)})
    other.close()
    with pytest.raises(HostError, match=r'topic \{"name" = "t-8".* is not an action that a harness writes'):
        heal(tmp_path)
    assert cluster.topics == {}
    assert not left.exists()
    assert [action.facts for action in not_undone(journal.path)] == [facts]


def test_a_cluster_without_ids_is_refused_before_anything_is_made():
    with pytest.raises(PlanError, match=r"from Kafka 2\.8 on"):
        require_ids(Version(2, 7, 0))
    require_ids(Version(2, 8, 0))


def test_racks_of_a_cluster_that_exists_are_its_own(tmp_path):
    planned = spec({"follower.fetching": True}, world=Existing(bootstrap=("127.1.2.3:1",)))
    with pytest.raises(PlanError, match="an existing cluster has its own; leave it out"):
        ExistingCluster(planned, tmp_path).open(None)
