"""An assessment from its configuration: weaknesses, defects and risks are named, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pytest

from harness.assess import Assessment, Client, Cluster, Question, Release, Stage, Topic, assess
from harness.assess.configuration import Now
from harness.errors import PlanError
from harness.progress import Progress
from harness.worlds.kafka.releases import parse_version

#: Stories that tell the recommended settings apart, and one whose harm no setting prevents.
TELLING = ("S01", "S02", "S07", "S11", "S14", "S22", "S25", "S32", "S40", "S52")
SAFE = {"min.insync.replicas": "2"}
DEFAULTS = Client(name="defaults", library="java")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage(only=TELLING) as opened:
        yield opened


def topic(name: str, settings: Mapping[str, str], replicas: int = 3, racks: int | None = 3) -> Topic:
    return Topic(name=name, partitions=1, replicas=replicas, racks=racks, settings=settings)


def assessed(
    stage: Stage,
    *topics: Topic,
    producer: Client = DEFAULTS,
    consumers: tuple[Client, ...] = (),
    release: str = "4.3.1",
    **cluster: Mapping[str, str],
) -> Assessment:
    read = Cluster(source="a test", topics=topics, release=Release(parse_version(release)), **cluster)
    return assess(Question(read, [producer], consumers), stage, Progress())


def named(assessment: Assessment, kinds: tuple[str, ...] = ("weakness", "risk")) -> dict[str, set[str]]:
    return {
        name: {concern.name for concern in group.concerns if concern.kind in kinds}
        for group in assessment.groups
        for name in group.topics
    }


def test_each_weakness_of_a_topic_is_named_and_no_other(stage: Stage) -> None:
    topics = (
        topic("clean", SAFE),
        topic("unclean", SAFE | {"unclean.leader.election.enable": "true"}),
        topic("one-in-sync", {"min.insync.replicas": "1"}),
        topic("all-in-sync", {"min.insync.replicas": "3"}),
        topic("two-copies", SAFE, replicas=2, racks=2),
        topic("two-racks", SAFE, racks=2),
        topic("short", SAFE | {"retention.ms": "3600000"}),
        topic("unwritable", {"min.insync.replicas": "4"}),
    )
    assert named(assessed(stage, *topics)) == {
        "clean": set(),
        "unclean": {"unclean-election"},
        "one-in-sync": {"too-few-in-sync"},
        "all-in-sync": {"all-must-be-in-sync"},
        "two-copies": {"replicas", "all-must-be-in-sync"},
        "two-racks": {"racks"},
        "short": {"retention"},
        "unwritable": {"unwritable"},
    }


def test_a_missing_setting_is_named_although_old_rules_lose_everywhere(stage: Stage) -> None:
    topics = (topic("safe", SAFE), topic("unclean", SAFE | {"unclean.leader.election.enable": "true"}))
    assessment = assessed(stage, *topics, release="2.0.1")
    assert named(assessment) == {"safe": set(), "unclean": {"unclean-election"}}
    assert not any(group.clean for group in assessment.groups)
    left = {shown.story: concern.name for concern in assessment.groups[0].left for shown in concern.shown}
    assert left["S11"] == "left-to-flush"


def test_seven_weaknesses_of_one_topic_are_named_together(stage: Stage) -> None:
    weak = topic("weak", {"unclean.leader.election.enable": "true", "retention.ms": "60000"}, racks=2)
    producer = Client(name="p", library="java", settings={"acks": "1", "delivery.timeout.ms": "5000"})
    assert named(assessed(stage, weak, producer=producer))["weak"] == {
        "acks", "idempotence", "silent-idempotence", "unclean-election", "too-few-in-sync", "racks", "retention",
        "delivery-timeout",
    }  # fmt: skip


def test_every_weakness_has_a_story_that_shows_it_and_the_command_that_repeats_it(stage: Stage) -> None:
    (group,) = assessed(stage, topic("t", {"unclean.leader.election.enable": "true"})).groups
    for concern in group.concerns:
        if concern.kind == "weakness":
            assert concern.shown
            assert concern.command.startswith(f"ackproof stories {concern.shown[0].story} --settings era=4.1,acks=all,")
            assert concern.change
            assert concern.price


def test_a_clean_topic_has_promises_and_what_is_left(stage: Stage) -> None:
    (group,) = assessed(stage, topic("clean", SAFE)).groups
    assert group.clean
    assert group.performed == len(TELLING)
    kept = {family: promised.kept for promised in group.promised for family in promised.families}
    assert kept["kill"]
    assert kept["partition"]
    assert not kept["power"]
    left = {shown.story: concern.name for concern in group.left for shown in concern.shown}
    assert left == {"S11": "left-to-flush", "S25": "left-to-chance"}


def test_a_defect_that_the_reference_broker_has_too_comes_with_its_story(stage: Stage) -> None:
    (group,) = assessed(stage, topic("clean", SAFE)).groups
    (defect,) = [concern for concern in group.concerns if concern.name == "finding-002"]
    assert [shown.story for shown in defect.shown] == ["S40"]


def test_a_story_of_a_defect_that_the_release_is_not_known_to_have_is_left(stage: Stage) -> None:
    (group,) = assessed(stage, topic("clean", SAFE), release="3.2.3").groups
    assert "finding-002" not in {concern.name for concern in group.concerns}
    assert "S40" in {shown.story for concern in group.left for shown in concern.shown}


def test_topics_with_the_same_answer_are_one_group(stage: Stage) -> None:
    topics = [topic(f"t{number}", SAFE | {"retention.ms": str(10**9 + number)}) for number in range(20)]
    assessment = assessed(stage, *topics, topic("other", SAFE, replicas=2, racks=2))
    assert [len(group.topics) for group in assessment.groups] == [20, 1]


def test_kafkas_own_topics_are_judged_by_the_brokers_as_producers(stage: Stage) -> None:
    producer = Client(name="p", library="java", settings={"acks": "1"})
    assessment = assessed(stage, topic("__consumer_offsets", SAFE | {"cleanup.policy": "compact"}), producer=producer)
    assert named(assessment) == {"__consumer_offsets": set()}


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
