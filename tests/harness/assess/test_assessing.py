"""An assessment from its configuration: weaknesses, defects and risks are named, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pytest

from harness.assess import Assessment, Client, Cluster, Performer, Question, Release, Topic, assess
from harness.assess.causes import Blamed, causes_of
from harness.assess.performing import Harm, PerformedStory, stories
from harness.assess.reckoning import of_members
from harness.assess.repeating import command_that_shows
from harness.cli.terminal import assigned
from harness.ground.progress import Progress
from harness.runs.stories import Column, Story, StoryCell, perform_cell
from harness.worlds.kafka.releases import parse_version

#: Stories that tell the recommended settings apart, and one whose harm no setting prevents.
TELLING = ("S01", "S02", "S07", "S11", "S14", "S22", "S25", "S32", "S40", "S52")
SAFE = {"min.insync.replicas": "2"}
DEFAULTS = Client(name="defaults", library="java")


@pytest.fixture(scope="module")
def stage() -> Iterator[Performer]:
    with Performer(only=TELLING) as opened:
        yield opened


def topic(name: str, settings: Mapping[str, str], replicas: int = 3, racks: int | None = 3) -> Topic:
    return Topic(name=name, partitions=1, replicas=replicas, racks=racks, settings=settings)


def assessed(
    stage: Performer,
    *topics: Topic,
    producer: Client = DEFAULTS,
    consumers: tuple[Client, ...] = (),
    release: str = "4.3.1",
    **cluster: Mapping[str, str] | Mapping[str, int],
) -> Assessment:
    read = Cluster(source="a test", topics=topics, release=Release(parse_version(release)), **cluster)
    return assess(Question(read, [producer], consumers), stage, Progress())


def named(assessment: Assessment, kinds: tuple[str, ...] = ("weakness", "risk")) -> dict[str, set[str]]:
    return {
        name: {concern.name for concern in group.concerns if concern.kind in kinds}
        for group in assessment.groups
        for name in group.topics
    }


def test_each_weakness_of_a_topic_is_named_and_no_other(stage: Performer) -> None:
    topics = (
        topic("clean", SAFE),
        topic("unclean", SAFE | {"unclean.leader.election.enable": "true"}),
        topic("one-in-sync", {"min.insync.replicas": "1"}),
        topic("all-in-sync", {"min.insync.replicas": "3"}),
        topic("two-copies", SAFE, replicas=2, racks=2),
        topic("two-racks", SAFE, racks=2),
        topic("short", SAFE | {"retention.ms": "3600000"}),
        topic("beyond", {"min.insync.replicas": "4"}),
    )
    assert named(assessed(stage, *topics)) == {
        "clean": set(),
        "unclean": {"unclean-election"},
        "one-in-sync": {"too-few-in-sync"},
        "all-in-sync": {"all-must-be-in-sync"},
        "two-copies": {"replicas"},
        "two-racks": {"racks"},
        "short": {"retention"},
        "beyond": {"all-must-be-in-sync", "unmet-demand"},
    }


def test_a_missing_setting_is_named_although_old_rules_lose_everywhere(stage: Performer) -> None:
    topics = (topic("safe", SAFE), topic("unclean", SAFE | {"unclean.leader.election.enable": "true"}))
    assessment = assessed(stage, *topics, release="2.0.1")
    assert named(assessment) == {"safe": set(), "unclean": {"unclean-election"}}
    assert not any(group.clean for group in assessment.groups)
    left = {shown.story: concern.name for concern in assessment.groups[0].left for shown in concern.shown}
    assert left["S11"] == "left-to-flush"


def test_seven_weaknesses_of_one_topic_are_named_together(stage: Performer) -> None:
    weak = topic("weak", {"unclean.leader.election.enable": "true", "retention.ms": "60000"}, racks=2)
    producer = Client(name="p", library="java", settings={"acks": "1", "delivery.timeout.ms": "5000"})
    assert named(assessed(stage, weak, producer=producer))["weak"] == {
        "acks", "idempotence", "silent-idempotence", "unclean-election", "too-few-in-sync", "racks", "retention",
        "delivery-timeout",
    }  # fmt: skip


def test_every_weakness_has_a_story_that_shows_it_and_the_command_that_repeats_it(stage: Performer) -> None:
    raised = {"metadata.version": 29, "eligible.leader.replicas.version": 1}
    weak = topic("t", {"unclean.leader.election.enable": "true"})
    (group,) = assessed(stage, weak, features=raised).groups
    for concern in group.concerns:
        if concern.kind == "weakness":
            assert concern.shown
            assert concern.command.startswith(f"ackproof stories {concern.shown[0].story} --settings era=4.1,acks=all,")
            assert concern.change
            assert concern.price


def test_a_clean_topic_has_promises_and_what_is_left(stage: Performer) -> None:
    (group,) = assessed(stage, topic("clean", SAFE)).groups
    assert group.clean
    assert group.performed == len(TELLING)
    kept = {family: promised.kept for promised in group.promised for family in promised.families}
    assert kept["kill"]
    assert kept["partition"]
    assert not kept["power"]
    left = {shown.story: concern.name for concern in group.left for shown in concern.shown}
    assert left == {"S11": "left-to-flush", "S25": "left-to-chance"}


def test_stories_of_groups_are_performed_for_their_log_with_the_settings_of_members() -> None:
    log = topic("__consumer_offsets", {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
    members = (
        Client(name="c", library="java", settings={"group.id": "g", "auto.offset.reset": "latest"}),
        Client(name="d", library="java", settings={"group.id": "h", "auto.offset.reset": "earliest"}),
        Client(name="alone", library="java", settings={}),
    )
    with Performer(only=("G07", "S01")) as opened:
        assessment = assessed(opened, log, topic("t", SAFE), consumers=members)
    performed = {(group.topics[0], group.producer.partition(", ")[2]): group.performed for group in assessment.groups}
    assert performed == {
        ("__consumer_offsets", "members as c"): 2,
        ("__consumer_offsets", "members as d"): 2,
        ("t", ""): 1,
    }
    (latest,) = [group for group in assessment.groups if group.producer.endswith("as c")]
    (weakness,) = [each for each in latest.concerns if each.name == "offset-reset"]
    assert weakness.kind == "weakness"
    assert [(shown.story, shown.records) for shown in weakness.shown] == [("G07", ("b",))]
    assert "commit.mode=auto,auto.offset.reset=latest" in weakness.command
    assert not any("no story of groups" in limit for limit in assessment.limits)
    with Performer(only=("G07",)) as opened:
        assert any(
            "no story of groups" in limit for limit in assessed(opened, topic("t", SAFE), consumers=members).limits
        )


def test_a_commit_that_is_lost_shows_under_the_times_of_an_operator() -> None:
    log = topic("__consumer_offsets", {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
    member = Client(name="c", library="java", settings={"group.id": "g", "auto.offset.reset": "earliest"})
    with Performer(only=("G12",)) as opened:
        (group,) = assessed(opened, log, consumers=(member,), settings={"replica.lag.time.max.ms": "45000"}).groups
    shown = [(concern.name, each.harm) for concern in group.concerns for each in concern.shown]
    harm = "committed by the group, and then not"
    assert sorted(shown) == [("too-few-in-sync", harm), ("unclean-election", harm)]


def test_stories_of_compaction_are_performed_for_compacted_topics_only() -> None:
    compacted = SAFE | {"cleanup.policy": "compact,delete"}
    with Performer(only=("S80", "S01")) as opened:
        assessment = assessed(opened, topic("deleted", SAFE), topic("compacted", compacted))
        groups = {group.topics[0]: group for group in assessment.groups}
        assert {name: group.performed for name, group in groups.items()} == {"deleted": 1, "compacted": 2}
        assert not any(group.unknown or group.left for group in groups.values())
        (defect,) = [each for each in groups["compacted"].concerns if each.name == "finding-006"]
        assert [(shown.story, shown.harm) for shown in defect.shown] == [("S80", "deleted, and back")]
        assert "finding-006" not in {each.name for each in groups["deleted"].concerns}
        again = dict(word.split("=", 1) for word in defect.command.split(" ")[-1].split(","))
        assert (again["cleanup.policy"], again["delete.retention.ms"]) == ("compact", "1000")
        performed = opened.perform(assigned([defect.command.split(" ")[-1]]), ["S80"])["S80"]
        assert performed.shows(Harm.RETURNED)


def test_a_defect_that_the_reference_broker_has_too_comes_with_its_story(stage: Performer) -> None:
    (group,) = assessed(stage, topic("clean", SAFE)).groups
    (defect,) = [concern for concern in group.concerns if concern.name == "finding-002"]
    assert [shown.story for shown in defect.shown] == ["S40"]


def test_a_story_of_a_defect_that_the_release_is_not_known_to_have_is_left(stage: Performer) -> None:
    (group,) = assessed(stage, topic("clean", SAFE), release="3.2.3").groups
    assert "finding-002" not in {concern.name for concern in group.concerns}
    assert "S40" in {shown.story for concern in group.left for shown in concern.shown}


def test_topics_with_the_same_answer_are_one_group(stage: Performer) -> None:
    topics = [topic(f"t{number}", SAFE | {"retention.ms": str(10**9 + number)}) for number in range(20)]
    assessment = assessed(stage, *topics, topic("other", SAFE, replicas=2, racks=2))
    assert [len(group.topics) for group in assessment.groups] == [20, 1]


def test_kafkas_own_topics_are_judged_by_the_brokers_as_producers(stage: Performer) -> None:
    producer = Client(name="p", library="java", settings={"acks": "1"})
    assessment = assessed(stage, topic("__consumer_offsets", SAFE | {"cleanup.policy": "compact"}), producer=producer)
    assert named(assessment) == {"__consumer_offsets": set()}


def test_the_command_is_short_and_shows_what_the_concern_says(stage: Performer) -> None:
    producer = Client(name="p", library="java", settings={"acks": "1"})
    (group,) = assessed(stage, topic("t", {"unclean.leader.election.enable": "true"}), producer=producer).groups
    commands = [(concern.shown[0], concern.command) for concern in (*group.concerns, *group.left) if concern.command]
    assert len(commands) > 3
    for shown, command in commands:
        *words, settings = command.split()
        assert words == ["ackproof", "stories", shown.story, "--settings"]
        assert ".ms=" not in settings
        performed = stage.perform(assigned([settings]), [shown.story])[shown.story]
        assert performed.shows(Harm(shown.harm))


def test_times_stay_in_a_command_that_shows_something_else_without_them(
    stage: Performer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PerformedStory, "shows", lambda _, __: False)
    blamed = Blamed(story="S01", harm=Harm.LOST, records=("x",))
    settings = {"era": "4.1", "acks": 1, "min.insync.replicas": 2, "linger.ms": 5, "retries": 2**31 - 1}
    assert command_that_shows(blamed, settings, stage) == (
        "ackproof stories S01 --settings era=4.1,acks=1,min.insync.replicas=2,linger.ms=5"
    )


@pytest.mark.parametrize(("settings", "asked"), [({}, ["S01"]), ({"transactional.id": "t"}, ["S01", "T01", "T16"])])
def test_stories_of_transactions_are_asked_of_a_transactional_producer_only(
    settings: dict[str, str], asked: list[str]
) -> None:
    with Performer(only=("S01", "T01", "T16")) as opened:
        performed = opened._performed_so_far
        assessed(opened, topic("t", SAFE), producer=Client(name="p", library="java", settings=settings))
        assert sorted({number for number, _ in performed}) == asked


def test_a_story_that_gives_no_answer_shows_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "the log was not read to its end, so its losses are not known"

    def perform(story: Story, column: Column) -> StoryCell:
        return msgspec.structs.replace(perform_cell(story, column), disagreements=(why,))

    weak = {"acks": 1}
    with Performer(only=("S01",)) as opened:
        assert opened.perform(weak)["S01"].loses
    monkeypatch.setattr("harness.assess.performing.perform_cell", perform)
    with Performer(only=("S01",)) as opened:
        causes = causes_of(weak, opened, transactional=False)
    assert (causes.weak, causes.left, [each.wrong for each in causes.unknown]) == ((), (), [why])


def test_every_story_that_fits_can_be_performed_under_any_settings() -> None:
    performed = Performer().perform({"acks": 1})
    assert {number: story.wrong for number, story in performed.items() if story.wrong} == {}
    assert {number[0] for number in performed} == {"C", "S", "T"}


def test_every_story_of_groups_can_be_performed_under_the_settings_of_members() -> None:
    member = Client(name="c", library="java", settings={"group.id": "g"})
    grouped = [number for number in stories() if number.startswith("G")]
    performed = Performer(only=grouped).perform({"acks": "all", "min.insync.replicas": 2} | of_members(member))
    assert {number: story.wrong for number, story in performed.items()} == dict.fromkeys(grouped, "")
