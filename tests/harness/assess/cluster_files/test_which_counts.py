"""A value counts by its layer and by who decides, and never by the order of files."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from harness.assess.configuration import Cluster
from harness.assess.limits import limits_of
from harness.ground.errors import PlanError
from tests.harness.assess.cluster_files.reading import (
    IN_SYNC,
    LISTING,
    UNCLEAN,
    decided,
    entry,
    read,
    unclear,
    with_listing,
)

BROKERS = {
    f"broker-{number}.properties": f"process.roles=broker\nnode.id={number}\nmin.insync.replicas=2\n"
    "unclean.leader.election.enable=false\nbroker.rack=r{number}\n"
    for number in (1, 2, 3)
}
CONTROLLERS = {
    f"controller-{number}.properties": f"process.roles=controller\nnode.id={number}\nbroker.rack=c\n"
    "min.insync.replicas=2\nunclean.leader.election.enable=true\n"
    for number in (11, 12)
}
SWAPPED = {
    name: text.replace("enable=false", "enable=x")
    .replace("enable=true", "enable=false")
    .replace("enable=x", "enable=true")
    for name, text in {**BROKERS, **CONTROLLERS}.items()
}


def test_the_controllers_decide_who_may_be_elected_and_are_no_brokers(tmp_path: Path) -> None:
    files = {"topics.txt": LISTING, **BROKERS, **CONTROLLERS}
    clusters = [
        read(tmp_path, {name: files[name] for name in order}, "4.1.0") for order in list(permutations(files))[::37]
    ]
    assert len(clusters) > 15
    for cluster in clusters:
        assert (cluster.brokers, cluster.topics[0].racks) == (3, 1)
        assert decided(cluster, UNCLEAN, IN_SYNC) == {UNCLEAN: "true", IN_SYNC: "2"}
        assert not unclear(cluster)
    swapped = read(tmp_path, {"topics.txt": LISTING, **SWAPPED}, "4.1.0")
    assert decided(swapped, UNCLEAN) == {UNCLEAN: "false"}
    assert not unclear(swapped)


def test_where_no_controllers_file_is_there_unclean_elections_of_brokers_files_are_not_known(tmp_path: Path) -> None:
    losing = {name: text.replace("enable=false", "enable=true") for name, text in BROKERS.items()}
    cluster = read(tmp_path, {"topics.txt": LISTING, **losing}, "4.0.0")
    (said,) = cluster.topics[0].not_understood
    assert (said.name, said.at_best, decided(cluster, UNCLEAN)) == (UNCLEAN, True, {UNCLEAN: "false"})
    assert not unclear(read(tmp_path, {"topics.txt": LISTING, **BROKERS}, "4.0.0"))
    # Before 3.9 KRaft asks no one.
    assert not unclear(read(tmp_path, {"topics.txt": LISTING, **losing}, "3.7.0"))
    of_all = "Default configs for brokers in the cluster are:\n  unclean.leader.election.enable=true\n"
    whole = read(tmp_path, {"topics.txt": LISTING, "all.txt": of_all, **losing}, "4.0.0")
    assert decided(whole, UNCLEAN) == {UNCLEAN: "true"}
    assert not unclear(whole)


def test_it_is_said_where_no_controllers_file_was_read(tmp_path: Path) -> None:
    def limits(files: dict[str, str]) -> list[str]:
        cluster = read(tmp_path, {"topics.txt": LISTING, **files}, "4.1.0")
        return [limit for limit in limits_of(cluster, [], []) if "of a controller" in limit]

    assert limits(BROKERS)
    assert not limits({**BROKERS, **CONTROLLERS})
    assert not limits({"s": "process.roles=broker,controller\nnode.id=1\n"})


def test_a_listing_shows_what_brokers_have_and_a_topics_own_value_counts_before_the_controllers(tmp_path: Path) -> None:
    inherited = LISTING.replace("segment.bytes=1073741824", "unclean.leader.election.enable=false")
    cluster = read(tmp_path, {"topics.txt": inherited, **BROKERS, **CONTROLLERS}, "4.1.0")
    assert unclear(cluster) == {UNCLEAN}
    own = "Dynamic configs for topic orders are:\n  unclean.leader.election.enable=false sensitive=false synonyms={}\n"
    cluster = read(tmp_path, {"topics.txt": inherited, "own.txt": own, **BROKERS, **CONTROLLERS}, "4.1.0")
    assert (decided(cluster, UNCLEAN), unclear(cluster)) == ({UNCLEAN: "false"}, set())
    other = "Dynamic configs for topic orders are:\n  segment.bytes=1 sensitive=false synonyms={}\n"
    cluster = read(tmp_path, {"topics.txt": inherited, "own.txt": other, **BROKERS, **CONTROLLERS}, "4.1.0")
    assert (decided(cluster, UNCLEAN), unclear(cluster)) == ({UNCLEAN: "true"}, set())
    differs = inherited.replace("enable=false", "enable=true")
    cluster = read(tmp_path, {"topics.txt": differs, **BROKERS, **CONTROLLERS}, "4.1.0")
    assert (decided(cluster, UNCLEAN), unclear(cluster)) == ({UNCLEAN: "true"}, set())


@pytest.mark.parametrize(
    ("release", "level", "is_known"),
    [("4.1.0", "", False), ("", "", False), ("4.0.0", "", True), ("3.9.1", "", True), ("4.1.0", "0", True),
     ("4.0.0", "1", False)],
)  # fmt: skip
def test_the_controllers_file_may_decide_how_many_must_be_in_sync(
    *, release: str, level: str, is_known: bool, tmp_path: Path
) -> None:
    """Kafka 4.3.1: brokers' files with 2 and a controller's without it made a cluster in which 1 counts."""
    silent = {name: text.replace("min.insync.replicas=2\n", "") for name, text in CONTROLLERS.items()}
    features = f"Feature: eligible.leader.replicas.version\tFinalizedVersionLevel: {level}\tEpoch: 1\n" if level else ""
    cluster = read(tmp_path, {"topics.txt": LISTING + features, **BROKERS, **silent}, release)
    assert decided(cluster, IN_SYNC) == {IN_SYNC: "2"}
    assert (unclear(cluster) == set()) is is_known
    shown = LISTING.replace("segment.bytes=1073741824", "min.insync.replicas=1") + features
    listed = read(tmp_path, {"topics.txt": shown, **BROKERS, **silent}, release)
    assert (decided(listed, IN_SYNC), unclear(listed)) == ({IN_SYNC: "1"}, set())


def test_brokers_that_are_controllers_too_are_asked_themselves(tmp_path: Path) -> None:
    files = {
        f"s{number}": f"process.roles=controller,broker\nnode.id={number}\n{UNCLEAN}=true\n" for number in (1, 2, 3)
    }
    cluster = read(tmp_path, {"topics.txt": LISTING, **files}, "4.1.0")
    assert (cluster.brokers, decided(cluster, UNCLEAN), unclear(cluster)) == (3, {UNCLEAN: "true"}, set())


DYNAMIC = "Dynamic configs for broker {} are:\n  {}={} sensitive=false synonyms={{}}\n"
DEFAULT = "Default configs for brokers in the cluster are:\n  {}={} sensitive=false synonyms={{}}\n"
OWN = "Dynamic configs for topic orders are:\n  {}={} sensitive=false synonyms={{}}\n"


def test_own_counts_before_dynamic_before_the_clusters_before_the_file_before_the_default(tmp_path: Path) -> None:
    def value(*files: str) -> str:
        texts = {f"f{number}": text for number, text in enumerate(files)}
        clusters = [read(tmp_path, {"topics.txt": LISTING, **dict(order)}) for order in permutations(texts.items())]
        (values,) = ({cluster.setting_of(cluster.topics[0], IN_SYNC) for cluster in clusters},)
        (only,) = values
        return only

    file = "min.insync.replicas=2\n"
    dynamic = "".join(DYNAMIC.format(number, IN_SYNC, 4) for number in (1, 2, 3))
    assert value() == "1"
    assert value(file) == "2"
    assert value(file, DEFAULT.format(IN_SYNC, 3)) == "3"
    assert value(file, DEFAULT.format(IN_SYNC, 3), dynamic) == "4"
    assert value(file, DEFAULT.format(IN_SYNC, 3), dynamic, OWN.format(IN_SYNC, 5)) == "5"


def test_every_brokers_own_value_wins_over_that_of_the_cluster(tmp_path: Path) -> None:
    text = "".join(DYNAMIC.format(number, UNCLEAN, "true") for number in (1, 2, 3)) + DEFAULT.format(UNCLEAN, "false")
    cluster = with_listing(tmp_path, "brokers.txt", text)
    assert (decided(cluster, UNCLEAN), cluster.differing) == ({UNCLEAN: "true"}, {})
    of_one = DYNAMIC.format(1, UNCLEAN, "true") + DEFAULT.format(UNCLEAN, "false")
    cluster = with_listing(tmp_path, "brokers.txt", of_one)
    assert (decided(cluster, UNCLEAN), cluster.differing) == ({UNCLEAN: "true"}, {UNCLEAN: ("true", "false")})


@pytest.mark.parametrize(
    ("lines", "setting", "effective", "differing"),
    [
        (("min.insync.replicas=2", "min.insync.replicas=1"), IN_SYNC, "1", ("1", "2")),
        (("min.insync.replicas=2", "num.io.threads=8"), IN_SYNC, "1", ("1 (default)", "2")),
        ((f"{UNCLEAN}=false", f"{UNCLEAN}=true"), UNCLEAN, "true", ("true", "false")),
        (("log.retention.hours=1", "log.retention.minutes=30"), "retention.ms", "1800000", ("1800000", "3600000")),
        (("log.retention.ms=-1", "log.retention.hours=1"), "retention.ms", "3600000", ("3600000", "-1")),
        (("log.message.format.version=2.8", "log.message.format.version=0.10.2"), "message.format.version", "0.10.2",
         ("0.10.2", "2.8")),
    ],
)  # fmt: skip
def test_of_brokers_that_differ_the_worst_counts_in_every_order(
    lines: tuple[str, str], setting: str, effective: str, differing: tuple[str, ...], tmp_path: Path
) -> None:
    files = {"topics.txt": LISTING} | {
        f"s{number}": f"broker.id={number}\n{line}\n" for number, line in enumerate(lines, 1)
    }
    clusters: list[Cluster] = [read(tmp_path, dict(order)) for order in permutations(files.items())]
    assert {tuple(decided(cluster, setting).values()) for cluster in clusters} == {(effective,)}
    assert {tuple(cluster.differing[setting]) for cluster in clusters} == {differing}


def test_brokers_that_differ_where_none_is_worse_are_not_understood(tmp_path: Path) -> None:
    files = {
        f"s{number}": f"broker.id={number}\nlog.cleanup.policy={policy}\n"
        for number, policy in ((1, "delete"), (2, "compact"))
    }
    assert unclear(read(tmp_path, {"topics.txt": LISTING, **files})) == {"cleanup.policy"}


def test_a_running_brokers_word_counts_before_its_file(tmp_path: Path) -> None:
    running = "All configs for broker 1 are:\n" + entry(IN_SYNC, "2", "STATIC_BROKER")
    files = {"a": LISTING, "b": running, "c": "node.id=1\nmin.insync.replicas=3\n"}
    for order in permutations(files.items()):
        assert decided(read(tmp_path, dict(order)), IN_SYNC) == {IN_SYNC: "2"}


def test_two_files_of_one_broker_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    files = {"a": "node.id=1\nmin.insync.replicas=1\n", "b": "broker.id=1\nmin.insync.replicas=2\n"}
    with pytest.raises(PlanError, match=r"node 1 has min.insync.replicas=1 in .*a, and min.insync.replicas=2 in .*b"):
        read(tmp_path, {"topics.txt": LISTING, **files})


def test_two_listings_of_different_moments_are_refused(tmp_path: Path) -> None:
    later = LISTING.replace("Isr: 1,2,3", "Isr: 1,3")
    for files in ({"a": LISTING, "b": later}, {"b": later, "a": LISTING}):
        with pytest.raises(PlanError, match="in sync"):
            read(tmp_path, files)


WANTED = "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaTopic\nmetadata: {name: orders}\nspec:\n"


@pytest.mark.parametrize(("has", "doubts"), [("1", {(IN_SYNC, True)}), ("2", set()), ("3", {(IN_SYNC, False)})])
def test_it_is_not_known_what_a_topic_has_where_a_running_cluster_lacks_what_a_resource_wants(
    has: str, doubts: set[tuple[str, bool]], tmp_path: Path
) -> None:
    """The resource may be newer than the listing, or be wanted in vain."""
    shown = LISTING.replace("segment.bytes=1073741824", f"min.insync.replicas={has}")
    wanted = f'{WANTED}  config: {{min.insync.replicas: "2"}}\n'
    for order in permutations({"a.txt": shown, "b.yaml": wanted}.items()):
        cluster = read(tmp_path, dict(order))
        assert decided(cluster, IN_SYNC) == {IN_SYNC: "2"}
        assert {(each.name, each.at_best) for each in cluster.topics[0].not_understood} == doubts


def test_two_resources_that_want_one_topic_otherwise_are_refused(tmp_path: Path) -> None:
    files = {f"{replicas}.yaml": f"{WANTED}  replicas: {replicas}\n" for replicas in (2, 3)}
    for order in permutations(files.items()):
        with pytest.raises(PlanError, match=r"orders has replicas=[23] in .*yaml.*, and replicas=[23] in .*yaml"):
            read(tmp_path, dict(order))


def test_directories_in_tmp_and_several_directories_are_both_seen(tmp_path: Path) -> None:
    files = {"s1": "node.id=1\nlog.dirs=/data/a,/data/b\n", "s2": "node.id=2\nlog.dirs=/tmp/kafka-logs\n"}
    cluster = read(tmp_path, {"topics.txt": LISTING, **files})
    assert cluster.settings["log.dirs"] == "/tmp/kafka-logs,/data/a,/data/b"  # noqa: S108 - a value of Kafka's
    controller = {"c": "node.id=9\nprocess.roles=controller\nlog.dirs=/tmp/metadata\n"}
    cluster = read(tmp_path, {"topics.txt": LISTING, **controller})
    assert cluster.controllers["log.dirs"] == "/tmp/metadata"  # noqa: S108 - a value of Kafka's
