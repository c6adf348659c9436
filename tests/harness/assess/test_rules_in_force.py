"""Rules of a cluster go by release, KRaft or ZooKeeper, protocol, format and features; what is not known is said."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from harness.assess import Assessment, Client, Cluster, Performer, Question, Release, Topic, assess
from harness.assess.cluster_files import ClusterFiles
from harness.assess.defects import defects_of, needs_met
from harness.assess.feature_levels import levels_in
from harness.assess.grouping import groups_of
from harness.assess.reckoning import settings_of
from harness.assess.requirements import judged
from harness.assess.rules_in_force import assumptions, era_of, keeper_of
from harness.ground.errors import PlanError
from harness.ground.progress import Progress
from harness.worlds.kafka.releases import Version, parse_version
from workloads import PRESETS, Settings

PRODUCER: Final = Client(name="p", library="java", version="4.1.0", settings={"acks": "all"})
TRANSACTIONAL: Final = Client(name="p", library="java", version="4.1.0", settings={"transactional.id": "t"})
KRAFT: Final = {"process.roles": "broker,controller"}
ZOOKEEPER: Final = {"zookeeper.connect": "zk.example:2181"}
UNCLEAN: Final = {"unclean.leader.election.enable": "true"}
#: As a cluster of 4.1 that was formatted so prints them, in numbers.
RAISED: Final = {"metadata.version": 27, "eligible.leader.replicas.version": 1, "transaction.version": 2}


def cluster(
    release: str = "",
    settings: Mapping[str, str] | None = None,
    features: Mapping[str, int] | None = None,
    differing: Mapping[str, tuple[str, ...]] | None = None,
    topic: Mapping[str, str] | None = None,
) -> Cluster:
    own = {"min.insync.replicas": "2", **(topic or {})}
    return Cluster(
        source="a test",
        topics=(Topic(name="t", partitions=1, replicas=3, racks=3, settings=own),),
        settings=settings or {},
        features=features or {},
        differing=differing or {},
        release=Release(parse_version(release)) if release else None,
    )


def rules(read: Cluster, producer: Client = PRODUCER) -> Settings:
    (group,) = groups_of(read)
    return Settings.from_mapping(settings_of(group, producer, read))


def said(read: Cluster, producer: Client = PRODUCER) -> str:
    return " ".join(assumptions(read, [producer]))


# --- KRaft or ZooKeeper --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "settings", "keeper"),
    [
        ("4.0.0", {}, "kraft"),
        ("4.1.0", ZOOKEEPER, "kraft"),
        ("2.7.2", {}, "zookeeper"),
        ("2.7.2", KRAFT, "zookeeper"),
        ("2.8.0", {}, None),
        ("3.9.1", {}, None),
        ("3.9.1", {"process.roles": "null", "zookeeper.connect": ""}, None),
        ("3.9.1", KRAFT, "kraft"),
        ("3.9.1", {"process.roles": "controller"}, "kraft"),
        ("3.9.1", ZOOKEEPER, "zookeeper"),
        ("3.9.1", {"process.roles": "", **ZOOKEEPER}, "zookeeper"),
        ("3.9.1", {**KRAFT, **ZOOKEEPER}, None),
        ("", {}, None),
        ("", ZOOKEEPER, "zookeeper"),
    ],
)
def test_the_keeper_of_metadata_is_that_of_the_release_or_of_the_files(
    release: str, settings: Mapping[str, str], keeper: str | None
) -> None:
    assert keeper_of(cluster(release, settings)) == keeper


def test_levels_of_features_that_a_cluster_tells_show_that_it_is_krafts() -> None:
    assert keeper_of(cluster("3.7.0", features={"metadata.version": 19})) == "kraft"


@pytest.mark.parametrize(
    ("release", "settings", "unclean"),
    [
        ("3.3.2", KRAFT, False),
        ("3.7.0", KRAFT, False),
        ("3.8.1", KRAFT, False),
        ("3.9.0", KRAFT, True),
        ("3.9.1", KRAFT, True),
        ("4.1.0", {}, True),
        ("3.3.2", ZOOKEEPER, True),
        ("3.8.1", ZOOKEEPER, True),
        ("3.9.1", ZOOKEEPER, True),
        ("2.3.1", {}, True),
        ("3.7.0", {}, True),
        ("3.7.0", {**KRAFT, **ZOOKEEPER}, True),
        ("", KRAFT, True),
    ],
)
def test_an_unclean_election_is_held_where_the_controller_asks_the_setting(
    release: str, settings: Mapping[str, str], unclean: bool
) -> None:
    """KAFKA-12670: KRaft before 3.9 does not ask it; where the keeper is not known it may be asked."""
    assert rules(cluster(release, settings, topic=UNCLEAN)).elects_uncleanly is unclean


def test_a_keeper_that_is_not_known_is_said_and_one_that_is_known_is_not() -> None:
    assert "not known whether KRaft or ZooKeeper" in said(cluster("3.7.0"))
    assert "as in a migration" in said(cluster("3.7.0", {**KRAFT, **ZOOKEEPER}))
    for clear in (cluster("3.7.0", KRAFT), cluster("3.7.0", ZOOKEEPER), cluster("2.7.2"), cluster("4.1.0"), cluster()):
        assert "ZooKeeper keeps" not in said(clear)


@pytest.mark.parametrize("era", [era for era in PRESETS if era[0].isdigit()])
def test_a_release_of_the_name_of_an_era_has_its_rules_with_its_keeper(era: str) -> None:
    """From 3.5 on eras are KRaft's with every feature raised; before, ZooKeeper's."""
    numbers = [int(part) for part in era.split(".")]
    version = Version(*[*numbers, 0, 0][:3])
    read = cluster(str(version), features=RAISED if era >= "3.5" and version >= Version(3, 5, 0) else {})
    own, preset = rules(read).to_mapping(), Settings.from_mapping({"era": era}).to_mapping()
    assert era_of(version) == era
    names = ("truncation", "fetch.fencing", "broker.epochs", "strict.min.isr", "isr.join.epoch.rule",
             "unclean.elections", "eligible.leader.replicas")  # fmt: skip
    assert {name: own[name] for name in names} == {name: preset[name] for name in names}


# --- protocol and format -------------------------------------------------------------------------------------------


def spoken(protocol: str, written: str = "") -> dict[str, str]:
    format_set = {"log.message.format.version": written} if written else {}
    return {**ZOOKEEPER, "inter.broker.protocol.version": protocol, **format_set}


@pytest.mark.parametrize(
    ("release", "settings", "truncation", "fencing"),
    [
        ("2.3.1", spoken("0.10.2", "0.10.2"), "high-watermark", False),
        ("2.3.1", spoken("0.10.2"), "high-watermark", False),
        ("2.3.1", spoken("0.11.0-IV2", "0.11.0-IV2"), "kip-101", False),
        ("2.3.1", spoken("1.1"), "kip-101", False),
        ("2.3.1", spoken("2.0-IV1"), "kip-279", False),
        ("2.3.1", spoken("2.1"), "kip-320", True),
        ("2.3.1", spoken("2.3-IV1"), "kip-320", True),
        ("3.7.2", spoken("2.7"), "kip-320", True),
        ("3.7.2", spoken("3.7-IV4"), "on-fetch", True),
        ("3.7.2", spoken("2.8", "0.10.2"), "high-watermark", False),
        ("3.7.2", spoken("3.0", "0.10.2"), "on-fetch", True),
        ("2.3.1", spoken("2.3", "1.0"), "kip-320", True),
        ("2.3.1", {**KRAFT, **ZOOKEEPER, "inter.broker.protocol.version": "0.10.2.0"}, "high-watermark", False),
        ("3.9.1", {**KRAFT, "inter.broker.protocol.version": "0.10.2"}, "on-fetch", True),
        ("2.3.1", {}, "kip-320", True),
        ("", spoken("1.0"), "kip-101", False),
    ],
)
def test_truncation_goes_by_the_protocol_and_the_format_that_brokers_were_left_with(
    release: str, settings: Mapping[str, str], truncation: str, fencing: bool
) -> None:
    """KIP-101, KIP-279, KIP-320; KRaft knows no protocol, and from 3.0 on it brings its format (KIP-724)."""
    chosen = rules(cluster(release, settings))
    assert (chosen.truncation, chosen.fetch_fencing) == (truncation, fencing)


def test_truncation_is_as_a_slow_reading_of_the_three_proposals_has_it() -> None:
    """The twin reads the words: a way to truncate needs code and protocol of its release, and epochs in messages."""
    needs = {"kip-101": (0, 11, 0), "kip-279": (2, 0, 0), "kip-320": (2, 1, 0), "on-fetch": (2, 8, 0)}
    releases = ("0.11.0.3", "1.1.1", "2.0.1", "2.2.2", "2.7.2", "3.2.3", "3.9.1")
    versions = ("0.10.2", "0.11.0", "1.1", "2.0", "2.2", "2.7", "2.8", "3.2")
    seen = set()
    for release, protocol, written in itertools.product(releases, versions, versions):
        code, speaks, stored = (tuple(map(int, [*text.split("."), "0"][:3])) for text in (release, protocol, written))
        if speaks > code or stored > speaks:
            continue  # such a broker does not start
        ways = [way for way, since in needs.items() if code >= since and speaks >= since]
        kept_old = stored < (0, 11, 0) and speaks < (3, 0, 0)
        expected = "high-watermark" if kept_old or not ways else ways[-1]
        assert rules(cluster(release, spoken(protocol, written))).truncation == expected, (release, protocol, written)
        seen.add(expected)
    assert seen == {"high-watermark", *needs}


def test_the_oldest_protocol_of_brokers_that_differ_decides() -> None:
    name = "inter.broker.protocol.version"
    assert rules(cluster("2.3.1", spoken("2.3"), differing={name: ("2.3", "0.10.2")})).truncation == "high-watermark"


def test_the_format_of_a_topic_decides_for_that_topic() -> None:
    read = cluster("2.3.1", spoken("2.3"), topic={"message.format.version": "0.10.2"})
    assert rules(read).truncation == "high-watermark"
    assert not rules(read, Client(name="p", library="java", settings={"enable.idempotence": "true"})).enable_idempotence


def test_a_protocol_that_no_file_has_is_said() -> None:
    assert "inter.broker.protocol.version" in said(cluster("2.3.1"))
    assert "inter.broker.protocol.version" in said(cluster("2.3.1", {"min.insync.replicas": "2"}))
    for clear in (
        cluster("2.3.1", ZOOKEEPER),
        cluster("2.3.1", spoken("2.0")),
        cluster("3.7.0", KRAFT),
        cluster("4.1.0"),
    ):
        assert "inter.broker.protocol.version" not in said(clear)


@pytest.mark.parametrize(
    ("release", "settings", "has"),
    [
        ("2.1.1", spoken("2.0"), True),
        ("2.1.1", spoken("0.10.2"), True),
        ("2.1.1", spoken("2.1"), False),
        ("2.1.1", ZOOKEEPER, False),
        ("2.1.1", {}, True),
        ("2.2.0", spoken("2.0"), False),
    ],
)
def test_committed_offsets_expire_when_loaded_where_the_protocol_is_before_2_1(
    release: str, settings: Mapping[str, str], has: bool
) -> None:
    """KAFKA-8069; where nothing tells the protocol it is named."""
    read = cluster(release, settings)
    member = Client(name="c", library="java", settings={"group.id": "g"})
    (group,) = groups_of(read)
    met = needs_met(group, read, PRODUCER, [member])
    assert ("KAFKA-8069" in {each.defect.name for each in defects_of(read, [PRODUCER, member], met)}) is has


@pytest.mark.parametrize(
    ("settings", "has", "has_not"),
    [
        (spoken("0.10.2", "0.10.2"), {"KIP-101", "KIP-320"}, {"KAFKA-6361", "KAFKA-7128"}),
        (spoken("2.3", "0.10.2"), {"KIP-101", "KIP-320"}, {"KAFKA-6361"}),
        (spoken("1.1"), {"KAFKA-6361", "KIP-320"}, {"KIP-101"}),
        (spoken("2.0"), {"KIP-320"}, {"KIP-101", "KAFKA-6361"}),
        (spoken("2.3-IV1"), set(), {"KIP-101", "KAFKA-6361", "KIP-320"}),
        (ZOOKEEPER, set(), {"KIP-101", "KAFKA-6361", "KIP-320"}),
    ],
)
def test_defects_that_a_protocol_mends_are_there_while_an_older_one_is_spoken(
    settings: Mapping[str, str], has: set[str], has_not: set[str]
) -> None:
    """Brokers are of 2.3.1: a defect that its code mended, such as KAFKA-7128, does not return."""
    read = cluster("2.3.1", settings)
    (group,) = groups_of(read)
    defects = {each.defect.name for each in defects_of(read, [PRODUCER], needs_met(group, read, PRODUCER, []))}
    assert has <= defects
    assert not has_not & defects


# --- features ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "features", "eligible", "epochs"),
    [
        ("4.1.0", {}, False, False),
        ("4.0.0", {}, False, False),
        ("4.1.0", RAISED, True, True),
        ("4.0.0", RAISED, True, True),
        ("4.1.0", {"eligible.leader.replicas.version": 1}, True, True),
        ("4.1.0", {"metadata.version": 27, "eligible.leader.replicas.version": 0}, False, True),
        ("4.1.0", {"metadata.version": 27}, False, True),
        ("4.1.0", {"metadata.version": 9}, False, False),
        ("3.7.0", {"metadata.version": 10}, False, True),
        ("3.7.0", {"metadata.version": 8}, False, False),
        ("3.4.1", {"metadata.version": 8}, False, False),
        ("", {"metadata.version": 27}, False, True),
    ],
)
def test_a_rule_that_waits_for_a_feature_is_in_force_where_its_level_is_known(
    release: str, features: Mapping[str, int], eligible: bool, epochs: bool
) -> None:
    """KIP-966 (KAFKA-18979: an upgrade leaves it at 0), and KIP-903 with metadata.version 3.5-IV1."""
    chosen = rules(cluster(release, {} if features else KRAFT, features))
    assert (chosen.eligible_leader_replicas, chosen.broker_epochs) == (eligible, epochs)


def test_levels_that_are_not_known_are_said_by_name() -> None:
    nothing = said(cluster("4.1.0"), TRANSACTIONAL)
    assert "eligible.leader.replicas.version and of metadata.version and of transaction.version is not known" in nothing
    assert "transaction.version" not in said(cluster("4.1.0"))
    assert "eligible" not in said(cluster("3.7.0", KRAFT))
    assert "metadata.version is not known" in said(cluster("3.7.0", KRAFT))
    assert "level" not in said(cluster("4.1.0", features=RAISED), TRANSACTIONAL)
    assert "level" not in said(cluster("3.3.2", KRAFT))
    assert "level" not in said(cluster("3.7.0", ZOOKEEPER))


@pytest.mark.parametrize(
    ("features", "version"), [({}, 1), ({"metadata.version": 27}, 1), (RAISED, 2), ({"transaction.version": 1}, 1)]
)
def test_transactions_have_the_second_version_where_its_level_is_known(
    features: Mapping[str, int], version: int
) -> None:
    """KIP-890; a release since 4.0 alone does not raise it."""
    read = cluster("4.1.0", features=features)
    assert rules(read, TRANSACTIONAL).transaction_version == version
    (group,) = groups_of(read)
    met = needs_met(group, read, TRANSACTIONAL, [])
    assert ("old-transactions" in met) is (version == 1)


def read_text(tmp_path: Path, *texts: str) -> Cluster:
    files = ClusterFiles()
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.txt"
        path.write_text(text)
        files.add(path)
    return files.cluster()


ROW: Final = "\tTopic: t\tPartition: {}\tLeader: 1\tReplicas: 1,2,3\tIsr: 1\tElr: {}\tLastKnownElr: {}\n"


@pytest.mark.parametrize(
    ("rows", "on"),
    [
        ([("2,3", "")], True),
        ([("", ""), ("3", "")], True),
        ([("", "")], False),
        ([("", "2")], False),
        ([("N/A", "N/A")], False),
    ],
)
def test_a_listing_with_eligible_replicas_shows_that_the_feature_is_on(
    rows: Sequence[tuple[str, str]], on: bool, tmp_path: Path
) -> None:
    listing = "Topic: t\tTopicId: a\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
    read = read_text(tmp_path, listing + "".join(ROW.format(number, *row) for number, row in enumerate(rows)))
    read_on = Cluster(source="s", topics=read.topics, features=read.features, release=Release(Version(4, 1, 0)))
    assert rules(read_on).eligible_leader_replicas is on
    assert ("eligible" in said(read_on)) is not on


FEATURES: Final = (
    "Feature: eligible.leader.replicas.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 1\t"
    "FinalizedVersionLevel: {}\tEpoch: 31\n"
    "Feature: metadata.version\tSupportedMinVersion: 3.3-IV3\tSupportedMaxVersion: 4.1-IV1\t"
    "FinalizedVersionLevel: {}\tEpoch: 31\n"
)


@pytest.mark.parametrize(
    ("metadata", "level"), [("3.3-IV3", 7), ("3.5-IV0", 9), ("3.5-IV1", 10), ("4.1-IV1", 27), ("9.0-IV0", 31)]
)
def test_what_kafka_features_describes_is_read(metadata: str, level: int, tmp_path: Path) -> None:
    listing = "Topic: t\tConfigs:\n\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
    read = read_text(tmp_path, listing, FEATURES.format(0, metadata))
    assert read.features == {"eligible.leader.replicas.version": 0, "metadata.version": level}


def test_a_level_that_is_no_level_is_refused(tmp_path: Path) -> None:
    for wrong in (FEATURES.format("one", "4.1-IV1"), FEATURES.format(1, "3.5"), FEATURES.format(1, "3.5-IV9")):
        with pytest.raises(PlanError, match=r"has the level \S+, which is no number and no name of one"):
            read_text(tmp_path, wrong)
    assert levels_in("Feature flags of our cluster: none") == {}


# --- whole assessments ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stage() -> Iterator[Performer]:
    with Performer(only=("S06", "S08", "S09", "S14", "S19", "S53")) as opened:
        yield opened


def assessed(stage: Performer, read: Cluster, producer: Client = PRODUCER) -> Assessment:
    return assess(Question(read, [producer]), stage, Progress())


@pytest.mark.parametrize(
    ("release", "settings", "met"),
    [
        ("3.7.0", KRAFT, True),
        ("3.8.1", {"process.roles": "controller"}, True),
        ("3.3.2", KRAFT, True),
        ("3.7.0", ZOOKEEPER, False),
        ("3.9.1", KRAFT, False),
        ("3.9.1", ZOOKEEPER, False),
        ("3.7.0", {}, False),
        ("4.1.0", {}, False),
    ],
)
def test_an_unclean_election_is_held_against_a_topic_only_where_one_is_held(
    stage: Performer, release: str, settings: Mapping[str, str], met: bool
) -> None:
    assessment = assessed(stage, cluster(release, settings, topic=UNCLEAN))
    assert judged("no loss by kill", assessment).met is met
    (group,) = assessment.groups
    (risk,) = [concern for concern in group.concerns if concern.name.startswith("unclean-election")]
    assert (risk.name == "unclean-election-later") is met
    assert ("no replica leads until one in sync is back" in risk.sentence) is met


@pytest.mark.parametrize(
    ("release", "settings", "met"),
    [
        ("2.3.1", spoken("0.10.2", "0.10.2"), False),
        ("3.5.2", spoken("0.10.2", "0.10.2"), False),
        ("2.3.1", spoken("1.1"), False),
        ("2.8.2", spoken("2.8", "0.10.2"), False),
        ("0.10.2.2", ZOOKEEPER, False),
        ("2.3.1", ZOOKEEPER, True),
        ("2.3.1", spoken("2.3"), True),
    ],
)
def test_an_upgrade_that_was_not_finished_loses_as_the_older_release_does(
    stage: Performer, release: str, settings: Mapping[str, str], met: bool
) -> None:
    safe = {"unclean.leader.election.enable": "false"}
    assessment = assessed(stage, cluster(release, settings, topic=safe))
    assert judged("no loss by kill, restart, pause", assessment).met is met


def test_the_change_against_a_protocol_left_behind_is_to_raise_it(stage: Performer) -> None:
    (group,) = assessed(stage, cluster("2.3.1", spoken("0.10.2", "0.10.2"))).groups
    (left,) = [concern for concern in group.left if "S14" in {shown.story for shown in concern.shown}]
    assert "`inter.broker.protocol.version` and `log.message.format.version` of the release itself" in left.change


def test_stories_that_eligible_replicas_prevent_are_shown_where_their_level_is_not_known(stage: Performer) -> None:
    def shown(read: Cluster) -> set[str]:
        (group,) = assessed(stage, read).groups
        return {story.story for concern in (*group.concerns, *group.left) for story in concern.shown}

    assert {"S08", "S09", "S19"} <= shown(cluster("4.1.0"))
    assert not {"S08", "S09", "S19"} & shown(cluster("4.1.0", features=RAISED))
    assert {"S08", "S09"} <= shown(cluster("4.1.0", features={"metadata.version": 27}))
    assert "S19" not in shown(cluster("4.1.0", features={"metadata.version": 27}))
    assert any("eligible.leader.replicas.version" in limit for limit in assessed(stage, cluster("4.1.0")).limits)


def test_a_newer_release_is_advised_where_its_rules_prevent_a_story_whoever_keeps_the_metadata(
    stage: Performer,
) -> None:
    """The advice is a formatted cluster of it, with every feature raised, and not only its number."""
    for settings in (KRAFT, ZOOKEEPER):
        (group,) = assessed(stage, cluster("3.9.1", settings)).groups
        left = {shown.story: concern.name for concern in group.left for shown in concern.shown}
        assert left["S08"] == "left-to-newer-release"
        assert left["S19"] == "left-to-newer-release"
