"""Limits of an assessment: the state of the cluster, slips of names, releases, and producers that do not begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pytest

from harness.assess import Assessment, Client, Cluster, Question, Release, Stage, Topic, assess
from harness.assess.configuration import Now
from harness.errors import PlanError
from harness.progress import Progress
from harness.worlds.kafka.releases import parse_version

SAFE = {"min.insync.replicas": "2"}
DEFAULTS = Client(name="defaults", library="java")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage(only=("S02", "S07")) as opened:
        yield opened


def topic(name: str, settings: Mapping[str, str]) -> Topic:
    return Topic(name=name, partitions=1, replicas=3, racks=3, settings=settings)


def assessed(
    stage: Stage,
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


def test_settings_of_a_file_that_no_client_is_known_to_have_are_a_limit(stage: Stage) -> None:
    producer = Client(name="p.properties", library="java", strange=("ack", "schema.registry.url"))
    limits = assessed(stage, topic("t", SAFE), producer=producer).limits
    assert any(
        "p.properties has settings that no producer" in each and "ack (acks?), schema" in each for each in limits
    )


def test_a_cluster_that_is_not_whole_is_told_first(stage: Stage) -> None:
    broken = msgspec.structs.replace(topic("t", SAFE), now=Now(leaderless=1, behind=2, in_sync=1))
    first, *_ = assessed(stage, broken).limits
    assert "not whole when this was read: 1 log partition without a leader (t), " in first
    assert ", 2 log partitions with fewer replicas in sync than there are (t), " in first
    assert ", 1 topic with fewer in sync than min.insync.replicas (t). " in first
    whole = msgspec.structs.replace(topic("t", SAFE), now=Now(in_sync=3))
    assert not any("not whole" in limit for limit in assessed(stage, whole).limits)


ONE_COPY = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


def test_few_copies_of_kafkas_own_topics_are_a_risk_to_whoever_uses_them(stage: Stage) -> None:
    producer = Client(name="p", library="java", settings={"transactional.id": "t"})
    consumer = Client(
        name="c", library="java", settings={"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    )
    used = assessed(stage, topic("t", SAFE), producer=producer, consumers=(consumer,), settings=ONE_COPY)
    assert named(used)["t"] == {f"internal-{name}" for name in ONE_COPY}
    assert not any("is made with it" in limit for limit in used.limits)
    unused = assessed(stage, topic("t", SAFE), settings=ONE_COPY)
    assert named(unused)["t"] == set()
    assert [name for name in ONE_COPY if any(f"{name}=1 on the brokers" in limit for limit in unused.limits)] == [
        *ONE_COPY
    ]


def test_kafkas_own_topics_that_are_there_are_judged_by_their_own_settings(stage: Stage) -> None:
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
    settings: dict[str, str], denied: str, stage: Stage
) -> None:
    assessment = assessed(stage, topic("t", SAFE), producer=Client(name="p", library="java", settings=settings))
    assert named(assessment)["t"] == {"refused-idempotence"}
    (group,) = assessment.groups
    assert any(f"refused by the client: it does not begin with {denied};" in each.sentence for each in group.concerns)
    shown = {name: group.settings[name] for name in ("acks", "enable.idempotence")}
    assert shown == {"acks": "all", "enable.idempotence": "true"}
    assert group.settings["max.in.flight.requests.per.connection"] == "5"


def test_of_a_release_that_is_newer_than_any_known_one_that_is_said(stage: Stage) -> None:
    newer = "Nothing newer than Apache Kafka 4.3.1 is known here"
    assert any(newer in limit for limit in assessed(stage, topic("t", SAFE), release="9.9.9").limits)
    assert any(newer in limit for limit in assessed(stage, topic("t", SAFE), release="4.3.2").limits)
    assert not any(newer in limit for limit in assessed(stage, topic("t", SAFE), release="4.3.1").limits)


def test_a_release_of_which_nothing_is_known_is_refused(stage: Stage) -> None:
    with pytest.raises(PlanError, match="the oldest release with rules and defects is"):
        assessed(stage, topic("t", SAFE), release="0.7.0")


@pytest.mark.parametrize(("version", "told"), [("3.9.1", True), ("2.8.2", False)])
def test_idempotence_is_not_said_to_be_off_in_silence_where_it_was_never_on(
    version: str, told: bool, stage: Stage
) -> None:
    producer = Client(name="p", library="java", version=version, settings={"acks": "1"})
    assert ("silent-idempotence" in named(assessed(stage, topic("t", SAFE), producer=producer))["t"]) is told
