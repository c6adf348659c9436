"""Over generated configurations: what is read is what was written, or it is not understood; never another value."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.assess.configuration import OF_BROKERS, OF_TOPICS, Cluster, Topic
from tests.harness.assess.cluster_files.generated import INHERITED, Drawn, drawn
from tests.harness.assess.cluster_files.reading import read, unclear

SEEDS = range(240)


def plain(configuration: Drawn) -> Cluster:
    """The cluster of the plain settings."""
    topic = Topic(name="orders", partitions=2, replicas=3, settings=configuration.of_topic)
    return Cluster(source="plain", topics=(topic,), settings=configuration.of_brokers)


def topic_names(names: frozenset[str]) -> set[str]:
    return {INHERITED[name][0] for name in names if name in INHERITED}


@pytest.mark.parametrize("first", SEEDS[::24])
def test_a_file_says_what_the_plain_settings_say_or_is_not_understood(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 24):
        configuration = drawn(seed)
        expected, cluster = plain(configuration), read(tmp_path, configuration.files)
        said = unclear(cluster)
        spoilt = topic_names(configuration.spoilt)
        for name in OF_TOPICS:
            if name in spoilt and name not in configuration.of_topic:
                assert said & {broker for broker in configuration.spoilt if INHERITED.get(broker, ("",))[0] == name}, (
                    seed
                )
            else:
                values = [each.setting_of(each.topics[0], name) for each in (expected, cluster)]
                assert values[0] == values[1], f"seed {seed}: {name}, {values}"
        for name in OF_BROKERS:
            if name in configuration.spoilt:
                assert name in said, f"seed {seed}: {name}"
            else:
                values = [each.broker_setting(name) for each in (expected, cluster)]
                assert values[0] == values[1], f"seed {seed}: {name}, {values}"
        assert said <= configuration.spoilt, f"seed {seed}: {said}"


def test_most_configurations_are_whole_and_many_are_spoilt() -> None:
    spoilt = [bool(drawn(seed).spoilt) for seed in SEEDS]
    assert 30 < sum(spoilt) < len(spoilt) / 2
    kinds = {name.partition("-")[0].partition(".")[0] for seed in SEEDS for name in drawn(seed).files}
    assert kinds == {"by", "compose", "configs", "kafka", "server", "topics"}
