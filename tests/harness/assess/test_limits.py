"""Limits of an assessment: the state of the cluster, slips of names, releases, and producers that do not begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pytest

from harness.assess import Assessment, Client, Cluster, Performer, Question, Release, Topic, assess
from harness.assess.configuration import Now
from harness.assess.requirements import judged
from harness.assess.sentences import BROKEN_NOW, heading, worst_first, worst_of
from harness.ground.errors import PlanError
from harness.ground.known_defects import Library
from harness.ground.progress import Progress
from harness.worlds.kafka.releases import parse_version

SAFE = {"min.insync.replicas": "2"}
DEFAULTS = Client(name="defaults", library="java")


@pytest.fixture(scope="module")
def stage() -> Iterator[Performer]:
    with Performer(only=("S02", "S07")) as opened:
        yield opened


def topic(name: str, settings: Mapping[str, str]) -> Topic:
    return Topic(name=name, partitions=1, replicas=3, racks=3, settings=settings)


def assessed(
    stage: Performer,
    *topics: Topic,
    producer: Client = DEFAULTS,
    consumers: tuple[Client, ...] = (),
    release: str = "4.3.1",
    settings: Mapping[str, str] | None = None,
) -> Assessment:
    read = Cluster(source="a test", topics=topics, release=Release(parse_version(release)), settings=settings or {})
    return assess(Question(read, [producer], consumers), stage, Progress())


def named(assessment: Assessment) -> dict[str, set[str]]:
    """The weaknesses and risks of each topic."""
    return {
        name: {concern.name for concern in group.concerns if concern.kind != "defect"}
        for group in assessment.groups
        for name in group.topics
    }


def test_settings_of_a_file_that_no_client_is_known_to_have_are_a_limit(stage: Performer) -> None:
    producer = Client(name="p.properties", library="java", strange=("ack", "schema.registry.url"))
    limits = assessed(stage, topic("t", SAFE), producer=producer).limits
    assert any(
        "p.properties has settings that no producer" in each and "ack (acks?), schema" in each for each in limits
    )


def test_what_is_broken_at_this_moment_is_a_concern_of_its_own_and_comes_first(stage: Performer) -> None:
    broken = msgspec.structs.replace(topic("t", SAFE), now=Now(leaderless=1, behind=1, in_sync=0, absent=(3,)))
    whole = msgspec.structs.replace(topic("whole", SAFE), now=Now(in_sync=3))
    assessment = assessed(stage, broken, whole)
    assert named(assessment) == {"t": {"no-leader", "refused-writes", "out-of-sync", "missing-broker"}, "whole": set()}
    first, *_ = worst_first(assessment).groups
    assert (first.topics, worst_of(first)) == (("t",), BROKEN_NOW)
    sentences = [concern.sentence for concern in first.concerns if concern.kind == "now"]
    assert sentences[0] == "1 of 1 log partition has no leader: no write or read succeeds there"
    assert sentences[1].startswith("0 replicas in sync where min.insync.replicas=2")
    assert "2 topics with 2 answers, Apache Kafka 4.3.1: 1 broken at this moment, 0 with" in heading(assessment)
    unmet = judged("nothing broken now", assessment)
    assert not unmet.met
    assert all(reason.startswith("t: ") for reason in unmet.reasons)
    assert judged("nothing broken now", assessed(stage, whole)).met


def test_a_demand_beyond_all_replicas_is_no_matter_of_the_moment(stage: Performer) -> None:
    demanding = topic("t", {"min.insync.replicas": "4"})
    whole = msgspec.structs.replace(demanding, now=Now(in_sync=3))
    assert named(assessed(stage, whole, release="3.6.2"))["t"] == {"unwritable"}


def test_settings_of_files_that_no_broker_or_topic_has_are_told(stage: Performer) -> None:
    given = {"broker": ("min.insync.replica", "zookeeper.connect", "listener.name.x.ssl.keystore.type", "node.id")}
    read = Cluster(source="a test", topics=(topic("t", SAFE),), release=Release(parse_version("4.3.1")), given=given)
    limits = assess(Question(read, [DEFAULTS], ()), stage, Progress()).limits
    assert any("No broker is known to have these settings" in each for each in limits)
    assert any(each.endswith(": min.insync.replica (min.insync.replicas?).") for each in limits)
    assert any(
        "Apache Kafka 4.3.1 does not have these settings" in each and "zookeeper.connect." in each for each in limits
    )
    assert not any("node.id" in each or "listener.name" in each for each in limits)


@pytest.mark.parametrize(
    ("library", "version", "told"),
    [
        ("java", "4.3.1", ""),
        ("java", "4.4.0", "is judged as the newest"),
        ("java", "0.8.2", "may have others"),
        ("librdkafka", "2.16.0", ""),
        ("librdkafka", "99.0.0", "is judged as the newest"),
        ("kafka-python", "99.0.0", "is judged as the newest"),
        ("kafka-python", "1.0.0", "may have others"),
    ],
)
def test_releases_of_clients_that_are_not_known_are_told(
    library: Library, version: str, told: str, stage: Performer
) -> None:
    producer = Client(name="p", library=library, version=version)
    limits = [each for each in assessed(stage, topic("t", SAFE), producer=producer).limits if "are known here" in each]
    assert len(limits) == bool(told)
    assert all(told in each and f": {version} " in each for each in limits)


@pytest.mark.parametrize(
    ("release", "library", "version", "outside"),
    [
        ("4.3.1", "java", "4.3.1", []),
        ("4.3.2", "java", "4.3.1", ["Apache Kafka 4.3.2"]),
        ("4.4.0", "java", "4.4.0", ["Kafka's own client 4.4.0", "Apache Kafka 4.4.0"]),
        ("0.8.2.2", "librdkafka", "0.11.6", ["librdkafka 0.11.6"]),
        ("3.9.2", "kafka-python", "1.0.0", ["kafka-python 1.0.0"]),
    ],
)
def test_the_releases_for_which_defects_were_looked_for_are_told_and_those_outside(
    release: str, library: Library, version: str, outside: list[str], stage: Performer
) -> None:
    producer = Client(name="p", library=library, version=version)
    limits = assessed(stage, topic("t", SAFE), producer=producer, release=release).limits
    assert any(each.startswith("Known defects were looked for in Apache Kafka 0.8.0 to 4.3.1, ") for each in limits)
    said = [each.partition(" is not one of them:")[0] for each in limits if "is not one of them: that few" in each]
    assert said == outside


ONE_COPY = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


def test_few_copies_of_kafkas_own_topics_are_a_risk_to_whoever_uses_them(stage: Performer) -> None:
    producer = Client(name="p", library="java", settings={"transactional.id": "t"})
    careful = {"auto.offset.reset": "earliest", "enable.auto.commit": "false", "isolation.level": "read_committed"}
    consumer = Client(name="c", library="java", settings=careful)
    used = assessed(stage, topic("t", SAFE), producer=producer, consumers=(consumer,), settings=ONE_COPY)
    assert named(used)["t"] == {f"internal-{name}" for name in ONE_COPY}
    assert not any("is made with it" in limit for limit in used.limits)
    unused = assessed(stage, topic("t", SAFE), settings=ONE_COPY)
    assert named(unused)["t"] == set()
    assert [name for name in ONE_COPY if any(f"{name}=1 on the brokers" in limit for limit in unused.limits)] == [
        *ONE_COPY
    ]


def test_kafkas_own_topics_that_are_there_are_judged_by_their_own_settings(stage: Performer) -> None:
    own = topic("__consumer_offsets", SAFE | {"cleanup.policy": "compact"})
    limits = assessed(stage, topic("t", SAFE), own, settings=ONE_COPY).limits
    assert not any("offsets.topic" in limit for limit in limits)
    assert any("transaction.state.log.min.isr=1" in limit for limit in limits)


@pytest.mark.parametrize(
    ("settings", "denied"),
    [
        (
            {"acks": "1", "transactional.id": "t", "enable.idempotence": "false"},
            "transactional.id and enable.idempotence=false and acks=1",
        ),
        ({"acks": "0", "transactional.id": "t"}, "transactional.id and acks=0"),
        (
            {"enable.idempotence": "true", "max.in.flight.requests.per.connection": "10"},
            "enable.idempotence=true and max.in.flight.requests.per.connection=10",
        ),
        ({"enable.idempotence": "true", "retries": "0"}, "enable.idempotence=true and retries=0"),
    ],
)
def test_a_producer_that_does_not_begin_is_told_once_and_without_a_contradiction(
    settings: dict[str, str], denied: str, stage: Performer
) -> None:
    assessment = assessed(stage, topic("t", SAFE), producer=Client(name="p", library="java", settings=settings))
    assert named(assessment)["t"] == {"refused-idempotence"}
    (group,) = assessment.groups
    assert any(f"the client refuses to start with {denied};" in each.sentence for each in group.concerns)
    shown = {name: group.settings[name] for name in ("acks", "enable.idempotence")}
    assert shown == {"acks": "all", "enable.idempotence": "true"}
    assert group.settings["max.in.flight.requests.per.connection"] == "5"


def test_of_a_release_that_is_newer_than_any_known_one_that_is_said(stage: Performer) -> None:
    newer = "is newer than all that is known here"
    assert any(newer in limit for limit in assessed(stage, topic("t", SAFE), release="9.9.9").limits)
    assert any(newer in limit for limit in assessed(stage, topic("t", SAFE), release="4.3.2").limits)
    assert not any(newer in limit for limit in assessed(stage, topic("t", SAFE), release="4.3.1").limits)


def test_a_release_of_which_nothing_is_known_is_refused(stage: Performer) -> None:
    with pytest.raises(PlanError, match="the oldest release with rules and defects is"):
        assessed(stage, topic("t", SAFE), release="0.7.0")


@pytest.mark.parametrize(("version", "told"), [("3.9.1", True), ("2.8.2", False)])
def test_idempotence_is_not_said_to_be_off_in_silence_where_it_was_never_on(
    version: str, told: bool, stage: Performer
) -> None:
    producer = Client(name="p", library="java", version=version, settings={"acks": "1"})
    assert ("silent-idempotence" in named(assessed(stage, topic("t", SAFE), producer=producer))["t"]) is told
