"""Risks, which lose data and no story shows: each has a reason, a change and a price, and is told where it is."""

# ruff: noqa: S108 - directories below /tmp are what these tests are about

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from harness.assess import Client, Cluster, ClusterFiles, Concern, Performer, Question, Release, Topic, assess
from harness.assess.broker_risks import of_brokers
from harness.assess.configuration import Now
from harness.assess.grouping import groups_of
from harness.assess.internal_topics import of_internal, of_own_settings, of_unmakeable
from harness.assess.limits import limits_of
from harness.assess.present_state import broken_now
from harness.assess.risks import risks_of
from harness.ground.progress import Progress
from harness.worlds.kafka.releases import parse_version

PRODUCER = Client(name="p", library="java", version="4.1.0")
MEMBER = Client(
    name="c", library="java",
    settings={
        "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": "false",
        "isolation.level": "read_committed",
    },
)  # fmt: skip


def a_cluster(
    settings: Mapping[str, str] | None = None,
    *,
    own: Mapping[str, str] | None = None,
    name: str = "t",
    replicas: int = 3,
    racks: int | None = None,
    now: Now | None = None,
    release: str = "4.1.0",
    brokers: int | None = 3,
) -> Cluster:
    """A cluster of one topic; ``settings`` are those of brokers, ``own`` the topic's."""
    mine = {"min.insync.replicas": "2"} if own is None else own
    return Cluster(
        source="a test",
        topics=(Topic(name=name, partitions=1, replicas=replicas, racks=racks, settings=mine, now=now or Now()),),
        brokers=brokers,
        settings=settings or {},
        release=Release(parse_version(release)),
    )


def risks(cluster: Cluster, *consumers: Client, producer: Client = PRODUCER) -> dict[str, Concern]:
    (group,) = groups_of(cluster)
    concerns = {each.name: each for each in risks_of(group, cluster, producer, consumers)}
    assert all(each.kind == "risk" and each.sentence and each.change and each.price for each in concerns.values())
    return concerns


def test_a_usual_cluster_has_no_risk() -> None:
    settings = {
        "log.dirs": "/var/lib/kafka/data", "log.dir": "/tmp/kafka-logs", "offsets.retention.minutes": "10080",
        "offsets.topic.replication.factor": "3", "transaction.state.log.min.isr": "2", "min.insync.replicas": "2",
        "default.replication.factor": "3", "auto.create.topics.enable": "true", "offsets.commit.required.acks": "-1",
        "controlled.shutdown.enable": "true", "producer.id.expiration.ms": "86400000",
        "controller.quorum.voters": "1@a:1,2@b:1,3@c:1", "log.retention.bytes": "-1",
    }  # fmt: skip
    assert risks(a_cluster(settings, racks=3), MEMBER) == {}


@pytest.mark.parametrize(
    ("settings", "name", "said"),
    [
        ({"log.dirs": "/tmp/kraft-combined-logs"}, "temporary-log.dirs", "log.dirs has /tmp/kraft-combined-logs:"),
        ({"log.dirs": "/data/a, /var/tmp/b"}, "temporary-log.dirs", "log.dirs has /var/tmp/b:"),
        ({"log.dirs": "/dev/shm/kafka"}, "temporary-log.dirs", "/dev/shm/kafka"),
        ({"log.dirs": "/mnt/tmpfs/kafka"}, "temporary-log.dirs", "/mnt/tmpfs"),
        ({"log.dirs": "/mnt/ramdisk"}, "temporary-log.dirs", "/mnt/ramdisk"),
        ({"log.dirs": "C:\\tmp\\kafka-logs"}, "temporary-log.dirs", "C:\\tmp"),
        ({"log.dirs": "", "log.dir": "/tmp/kafka-logs"}, "temporary-log.dirs", "/tmp/kafka-logs"),
        ({"log.dir": "/tmp/kafka-logs"}, "temporary-log.dirs", "/tmp/kafka-logs"),
        ({"log.dirs": "/d", "metadata.log.dir": "/run/kafka"}, "temporary-metadata.log.dir", "the cluster's metadata"),
        ({"offsets.retention.minutes": "60"}, "offsets-retention", "offsets.retention.minutes=60 is shorter"),
        ({"offsets.retention.minutes": "1440"}, "offsets-retention", "weekend"),
        ({"offsets.commit.required.acks": "1"}, "commit-acks", "offsets.commit.required.acks=1"),
        ({"controlled.shutdown.enable": "false"}, "uncontrolled-shutdown", "as a crash"),
        ({"producer.id.expiration.ms": "60000"}, "forgotten-producers", "written twice"),
        ({"default.replication.factor": "1"}, "automatic-topics", "1 copy"),
        ({"auto.create.topics.enable": "true"}, "automatic-topics", "default.replication.factor=1"),
        ({"controller.quorum.voters": "1@a:9093"}, "few-controllers", "1 controller: its disk"),
        ({"controller.quorum.voters": "1@a:9093,2@b:9093"}, "few-controllers", "both must run"),
        ({"log.retention.minutes": "10"}, "retention", "retention.ms=600000"),
        ({"log.retention.bytes": "1048576"}, "retention-bytes", "retention.bytes=1048576 is less than a segment"),
        ({"log.flush.interval.ms": "1000"}, "flush-ms", "flush.ms=1000 makes no write wait"),
    ],
)  # fmt: skip
def test_a_setting_of_brokers_that_loses_data_is_a_risk(settings: Mapping[str, str], name: str, said: str) -> None:
    named = risks(a_cluster(settings))
    assert named.keys() == {name}
    assert said in named[name].sentence


@pytest.mark.parametrize("path", ["/data/tmp-free", "/var/lib/kafka", "/tmpdata", "/mnt/disk1,/mnt/disk2", "D:\\kafka"])
def test_a_directory_with_such_a_word_in_its_name_is_none(path: str) -> None:
    assert risks(a_cluster({"log.dirs": path})) == {}


def test_the_directory_of_one_broker_of_three_is_looked_at(tmp_path: Path) -> None:
    files = ClusterFiles()
    (tmp_path / "topics.txt").write_text(
        "Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
    )
    files.add(tmp_path / "topics.txt")
    for node, path in enumerate(("/data", "/data", "/tmp/logs"), 1):
        (tmp_path / f"{node}.properties").write_text(f"node.id={node}\nprocess.roles=broker\nlog.dirs={path}\n")
        files.add(tmp_path / f"{node}.properties")
    assert risks(files.cluster()).keys() == {"temporary-log.dirs"}


def test_a_file_of_a_broker_without_a_directory_is_told_as_a_limit() -> None:
    def limits(settings: Mapping[str, str]) -> list[str]:
        return [each for each in limits_of(a_cluster(settings), [PRODUCER], []) if "/tmp/kafka-logs" in each]

    assert len(limits({"process.roles": "broker"})) == 1
    assert len(limits({"zookeeper.connect": "z:2181"})) == 1
    assert limits({"process.roles": "broker", "log.dirs": "/data"}) == []
    assert limits({}) == []


def test_commits_of_old_releases_go_after_a_day_unless_that_is_set() -> None:
    assert "offsets-retention" in risks(a_cluster(release="1.1.1"), MEMBER)
    assert "offsets-retention" not in risks(a_cluster(release="2.0.0"), MEMBER)
    assert "offsets-retention" not in risks(a_cluster(release="1.1.1"))


def test_the_topic_of_groups_cannot_have_more_replicas_than_there_are_brokers() -> None:
    few = a_cluster({"offsets.topic.replication.factor": "3"}, brokers=2, replicas=2)
    concern = risks(few)["unmakeable-__consumer_offsets"]
    assert "offsets.topic.replication.factor=3 is more than the 2 brokers known" in concern.sentence
    assert "after 1 broker more: 2 are known" in concern.change
    (other,) = of_unmakeable(a_cluster({"transaction.state.log.replication.factor": "3"}, brokers=1))
    assert other.sentence.endswith("__transaction_state cannot be made, so no transaction can begin")
    assert not list(of_unmakeable(a_cluster({"offsets.topic.replication.factor": "3"})))
    assert not list(of_unmakeable(a_cluster({"offsets.topic.replication.factor": "2"}, brokers=2)))
    assert not list(of_unmakeable(a_cluster(brokers=2))), "of another tool's files nothing is known"
    made = a_cluster({"offsets.topic.replication.factor": "3"}, brokers=2, name="__consumer_offsets")
    assert not list(of_unmakeable(made))


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"offsets.topic.replication.factor": "1"}, "internal-offsets.topic.replication.factor"),
        ({"min.insync.replicas": "1"}, "internal-min.insync.replicas"),
        ({"unclean.leader.election.enable": "true"}, "internal-unclean.leader.election.enable"),
    ],
)
def test_the_topic_of_groups_that_is_yet_to_be_made_is_judged_by_the_brokers(
    settings: Mapping[str, str], name: str
) -> None:
    topic = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
    assert risks(a_cluster(settings, own=topic), MEMBER).keys() == {name}
    assert name in {each.name for each in of_internal(a_cluster(settings), [PRODUCER], [], used=False)}
    assert not list(of_internal(a_cluster(settings, name="__consumer_offsets"), [PRODUCER], [MEMBER]))


def test_advice_about_copies_of_own_topics_says_the_brokers_that_it_needs() -> None:
    (concern,) = of_internal(a_cluster({"offsets.topic.replication.factor": "1"}, brokers=1), [PRODUCER], [MEMBER])
    assert "after 2 brokers more: 1 is known" in concern.change


def test_share_groups_have_a_topic_of_their_own() -> None:
    few = {"share.coordinator.state.topic.replication.factor": "1", "share.coordinator.state.topic.min.isr": "1"}
    sharing = Client(name="s", library="java", settings={**MEMBER.settings, "group.protocol": "share"})
    assert {f"internal-{name}" for name in few} <= risks(a_cluster(few), sharing).keys()
    assert risks(a_cluster(few), MEMBER) == {}


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_an_own_topic_that_deletes_by_age_is_a_risk(policy: str) -> None:
    (group,) = groups_of(a_cluster(name="__consumer_offsets", own={"cleanup.policy": policy}))
    (concern,) = of_own_settings(group)
    assert concern.name == "internal-cleanup"
    (ordinary,) = groups_of(a_cluster(own={"cleanup.policy": policy}))
    assert not list(of_own_settings(ordinary))


@pytest.mark.parametrize(
    ("replicas", "racks", "said"),
    [
        (3, 1, "3 replicas are in 1 rack: a rack that fails takes every copy"),
        (2, 1, "2 replicas are in 1 rack: a rack that fails takes every copy"),
        (3, 2, "one rack that fails takes two copies or more"),
        (4, 2, "one rack that fails takes two copies or more"),
    ],
)
def test_replicas_in_few_racks_are_a_risk(replicas: int, racks: int, said: str) -> None:
    assert said in risks(a_cluster(replicas=replicas, racks=racks))["racks"].sentence


@pytest.mark.parametrize(("replicas", "racks"), [(1, 1), (2, 2), (3, 3), (4, 3), (3, None)])
def test_replicas_in_as_many_racks_as_can_be_are_none(replicas: int, racks: int | None) -> None:
    assert "racks" not in risks(a_cluster(replicas=replicas, racks=racks))


def test_a_reader_of_uncommitted_records_is_a_risk_where_a_producer_has_transactions() -> None:
    reader = Client(name="c", library="java", settings={**MEMBER.settings, "isolation.level": "read_uncommitted"})
    transactional = Client(name="p", library="java", settings={"transactional.id": "x"})
    assert "aborted-reads" in risks(a_cluster(), reader, producer=transactional)
    assert "aborted-reads" not in risks(a_cluster(), reader)
    assert "aborted-reads" not in risks(a_cluster(), MEMBER, producer=transactional)


def test_the_brokers_that_may_lead_and_lose_nothing_are_named_to_be_started() -> None:
    def change(now: Now) -> str:
        (group,) = groups_of(a_cluster(now=now))
        return next(each.change for each in broken_now(group) if each.name == "no-leader")

    assert change(Now(leaderless=1, behind=1, in_sync=0, eligible=(2, 0))).startswith(
        "start one of these brokers, whose replicas may lead and lose nothing (Elr): 0, 2; only if no such broker"
    )
    assert change(Now(leaderless=1, behind=1, in_sync=0)).startswith("start a broker that has a replica in sync;")


@pytest.fixture(scope="module")
def stage() -> Iterator[Performer]:
    with Performer(only=("S01",)) as opened:
        yield opened


def test_risks_of_brokers_are_part_of_an_assessment(stage: Performer) -> None:
    cluster = a_cluster({"log.dirs": "/tmp/logs"})
    (group,) = assess(Question(cluster, [PRODUCER]), stage, Progress()).groups
    assert "temporary-log.dirs" in {each.name for each in group.concerns}
    assert [each.name for each in of_brokers(cluster, [])] == ["temporary-log.dirs"]


@pytest.mark.parametrize(
    ("retention_ms", "said"),
    [(1, "1 millisecond"), (1_000, "1 second"), (90_000, "1.5 minutes"), (7_200_000, "2 hours"), (86_400_000, "1 day")],
)
def test_times_are_told_in_units_of_people(retention_ms: int, said: str) -> None:
    cluster = a_cluster(own={"retention.ms": str(retention_ms)})
    (grouped,) = groups_of(cluster)
    (short,) = (each for each in risks_of(grouped, cluster, PRODUCER, ()) if each.name == "retention")
    assert f"retention.ms={retention_ms} ({said}) is shorter" in short.sentence
