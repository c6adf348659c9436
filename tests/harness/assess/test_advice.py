"""Advice can be followed: applied all at once it removes what it is against, and no change undoes another's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import Final

import msgspec
import pytest

from harness.assess import Assessment, Client, Cluster, Concern, Performer, Question, Release, Topic, assess
from harness.assess.configuration import OF_TOPICS
from harness.assess.performing import PerformedStory
from harness.assess.requirements import judged
from harness.ground.known_defects import Library
from harness.ground.progress import Progress
from harness.worlds.kafka.releases import parse_version

#: A setting in the words of a change.
_SET: Final = re.compile(r"`([a-z.]+)=([^`]+)`")
_MORE: Final = re.compile(r"after (\d) brokers? more")
_REPLICAS: Final = re.compile(r"^three replicas")
_NEWER: Final = re.compile(r"\b(java|librdkafka|kafka-python|Apache Kafka) (\d[\d.]*) or later")
#: Releases on both sides of each change of rules that an advice depends on.
RELEASES: Final = ("0.8.1.1", "0.10.2.2", "2.8.2", "3.6.2", "3.7.2", "4.3.1")
IN_FLIGHT: Final = "max.in.flight.requests.per.connection"


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """A small configuration: one topic, its brokers and its producer."""

    replicas: int
    brokers: int
    topic: Mapping[str, str]
    producer: Mapping[str, str]
    release: str
    library: Library = "java"
    version: str = ""


class WithoutStories(Performer):
    """Advice does not depend on stories: a change that none shows the need of is given, too, as a risk."""

    def perform(
        self, settings: Mapping[str, object], numbers: Iterable[str] = (), *, transactional: bool = True
    ) -> dict[str, PerformedStory]:
        return {}


def assessed(setup: Setup, stage: Performer) -> Assessment:
    topic = Topic(name="t", partitions=1, replicas=setup.replicas, settings=setup.topic)
    cluster = Cluster(
        source="a test", topics=(topic,), brokers=setup.brokers, release=Release(parse_version(setup.release))
    )
    producer = Client(name="p", library=setup.library, version=setup.version, settings=setup.producer)
    return assess(Question(cluster, [producer]), stage, Progress())


def advice(assessment: Assessment) -> list[Concern]:
    """The concerns but defects, for which most changes are upgrades."""
    return [each for group in assessment.groups for each in group.concerns if each.kind != "defect"]


def followed(setup: Setup, changes: Iterable[str]) -> Setup:
    """The configuration after its operator did what is written."""
    topic, producer = dict(setup.topic), dict(setup.producer)
    replicas, brokers, release, version = setup.replicas, setup.brokers, setup.release, setup.version
    for change in changes:
        for name, value in _SET.findall(change):
            (topic if name in OF_TOPICS else producer)[name] = value
        if "with acks=all, retries, and at most five requests in flight" in change:
            producer |= {"acks": "all", IN_FLIGHT: "5"}
            producer.pop("retries", None)
        if _REPLICAS.search(change):
            assert sum(map(int, _MORE.findall(change))) == max(0, 3 - setup.brokers)
            replicas, brokers = 3, max(3, brokers)
        for what, since in _NEWER.findall(change):
            release, version = (since, version) if what == "Apache Kafka" else (release, since)
    return msgspec.structs.replace(
        setup, topic=topic, producer=producer, replicas=replicas, brokers=brokers, release=release, version=version
    )


def every_setup() -> Iterator[Setup]:
    for replicas, brokers in ((few, many) for few in range(1, 5) for many in range(few, 5)):
        for min_isr, unclean, acks, release in product("1234", ("true", "false"), ("0", "1", "all"), RELEASES):
            settings = {"min.insync.replicas": min_isr, "unclean.leader.election.enable": unclean}
            yield Setup(replicas=replicas, brokers=brokers, topic=settings, producer={"acks": acks}, release=release)


def contradictions(concerns: Iterable[Concern]) -> dict[str, set[str]]:
    """The settings that changes give several values."""
    values: dict[str, set[str]] = {}
    for concern in concerns:
        for name, value in _SET.findall(concern.change):
            values.setdefault(name, set()).add(value)
    return {name: several for name, several in values.items() if len(several) > 1}


def test_all_advice_together_leaves_nothing_that_it_is_against() -> None:
    stage, looked_at = WithoutStories(), 0
    # Every fifth: each value of a setting stands beside each of another.
    for setup in islice(every_setup(), 0, None, 5):
        before = advice(assessed(setup, stage))
        assert not contradictions(before), setup
        after = followed(setup, [each.change for each in before])
        assert [each.name for each in advice(assessed(after, stage))] == [], (setup, after)
        looked_at += bool(before)
    assert looked_at > 200


@pytest.mark.parametrize(
    ("library", "version"),
    [("java", "0.10.2.2"), ("librdkafka", "0.11.6"), ("kafka-python", "2.0.2"), ("java", "2.8.2")],
)
@pytest.mark.parametrize("settings", [{"acks": "1"}, {"retries": "0"}, {"acks": "all", IN_FLIGHT: "10"}])
def test_advice_to_a_producer_names_the_release_of_its_library_that_has_the_setting(
    library: Library, version: str, settings: Mapping[str, str]
) -> None:
    stage = WithoutStories()
    topic = {"min.insync.replicas": "2"}
    setup = Setup(
        replicas=3, brokers=3, topic=topic, producer=settings, release="4.3.1", library=library, version=version
    )
    before = advice(assessed(setup, stage))
    assert "idempotence" in {each.name for each in before}
    after = followed(setup, [each.change for each in before])
    assert [each.name for each in advice(assessed(after, stage))] == []
    assert (after.version == version) is (version == "2.8.2")


def test_stories_show_that_weaknesses_are_gone_after_the_changes() -> None:
    telling = ("S01", "S02", "S07", "S14", "S22", "S32", "S52")
    setups = [each for number, each in enumerate(every_setup()) if number % 311 == 0]
    assert len(setups) > 3
    with Performer(only=telling) as stage:
        for setup in setups:
            before = advice(assessed(setup, stage))
            after = assessed(followed(setup, [each.change for each in before]), stage)
            assert [each.name for each in advice(after)] == [], setup


@pytest.mark.parametrize("min_isr", ["1", "2"])
def test_no_setting_is_advised_for_two_replicas_but_a_third_replica(min_isr: str) -> None:
    setup = Setup(
        replicas=2, brokers=2, topic={"min.insync.replicas": min_isr}, producer={"acks": "all"}, release="4.1.0"
    )
    (concern,) = advice(assessed(setup, WithoutStories()))
    assert concern.name == "replicas"
    assert "fewer than three replicas cannot avoid both" in concern.sentence
    assert "kafka-reassign-partitions.sh" in concern.change
    assert "after 1 broker more: 2 are known" in concern.change
    assert ("`min.insync.replicas=2` on the topic, not before" in concern.change) is (min_isr == "1")


@pytest.mark.parametrize(
    ("release", "acks", "named", "promised"),
    [
        ("3.6.2", "all", "unwritable", False),
        ("3.6.2", "1", "unmet-demand", True),
        ("3.7.0", "all", "unmet-demand", True),
        ("4.1.0", "1", "unmet-demand", True),
        ("4.1.0", "all", "unmet-demand", True),
    ],
)
def test_a_demand_beyond_the_one_replica_does_not_end_the_answer(
    release: str, acks: str, named: str, *, promised: bool
) -> None:
    setup = Setup(replicas=1, brokers=3, topic={"min.insync.replicas": "2"}, producer={"acks": acks}, release=release)
    assessment = assessed(setup, WithoutStories())
    names = {each.name for each in advice(assessment)}
    assert named in names
    assert ("acks" in names) is (acks == "1")
    assert ("replicas" in names) is promised, "else the same change is said with the demand"
    assert bool(assessment.groups[0].promised) is promised
    wiped = judged("no loss by wipe", assessment)
    assert not wiped.met
    assert wiped.decided


def test_a_topic_that_takes_no_write_is_judged_for_what_is_left() -> None:
    settings = {"min.insync.replicas": "4", "unclean.leader.election.enable": "true", "retention.ms": "60000"}
    setup = Setup(
        replicas=3, brokers=3, topic=settings, producer={"enable.idempotence": "false", "acks": "all"}, release="2.8.2"
    )
    assessment = assessed(setup, WithoutStories())
    concerns = {each.name: each for each in advice(assessment)}
    assert {"unwritable", "unclean-election", "idempotence", "retention"} <= concerns.keys()
    assert "`min.insync.replicas=2` on the topic" in concerns["unwritable"].change
    assert {each.kind for each in assessment.groups[0].concerns} >= {"weakness", "risk", "defect"}


def test_acks_all_is_advised_only_after_a_demand_that_can_be_met() -> None:
    setup = Setup(replicas=3, brokers=3, topic={"min.insync.replicas": "4"}, producer={"acks": "1"}, release="2.8.2")
    (acks,) = (each for each in advice(assessed(setup, WithoutStories())) if each.name == "acks")
    assert acks.change == (
        "`acks=all` in the producer, after `min.insync.replicas=2`: until then min.insync.replicas=4 refuses each of "
        "these writes"
    )


def test_a_longer_time_for_a_write_is_one_that_the_client_takes() -> None:
    setup = Setup(
        replicas=3, brokers=3, topic={"min.insync.replicas": "2"}, producer={"delivery.timeout.ms": "5000"},
        release="4.1.0",
    )  # fmt: skip
    (limit,) = (each for each in advice(assessed(setup, WithoutStories())) if each.name == "delivery-timeout")
    assert limit.change == "delivery.timeout.ms of 30005 or more"
