"""Eras: one setting presets the rules of a release."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from harness.ground.errors import PlanError
from harness.plan import AnyWorld, Kafka, Simulated
from harness.plan.reading import parse_plan
from harness.worlds.kafka.properties import elections_possible, possible
from harness.worlds.kafka.releases import Version
from harness.worlds.reference_settings import broker_config, refuse_what_it_lacks, topic_config
from workloads.eras import NO_ERA, PRESETS
from workloads.settings import Settings, SettingsError

UNCLEAN = {"unclean.leader.election.enable": True}
ERAS = [era for era in PRESETS if era != NO_ERA]


def of(era: str, **more: Any) -> Settings:
    return Settings.from_mapping({"era": era, **more})


def test_no_era_presets_nothing() -> None:
    assert of(NO_ERA) == Settings()
    assert Settings().era == NO_ERA


def test_the_eras_are_those_of_the_releases_that_changed_a_rule() -> None:
    assert ERAS[:-3] == ["4.1", "3.9", "3.7", "3.5", "2.8", "2.1", "2.0", "0.11", "0.10.2", "0.8.2"]


def test_what_was_only_proposed_is_there_too() -> None:
    """KIP-250 as written, and corrected, and a majority as in Raft: who commits, and who is elected."""
    assert ERAS[-3:] == ["kip250", "kip250-fixed", "raft"]
    rules = [(of(era).quorum_required_acks, of(era).commit_rule, of(era).leader_election) for era in ERAS[-3:]]
    newest = "largest-epoch-and-log-end"
    assert rules == [(2, "isr", "largest-log-end"), (2, "isr", newest), (-1, "majority", newest)]


@pytest.mark.parametrize(("newer", "older"), list(pairwise(ERAS)))
def test_no_two_eras_are_the_same(newer: str, older: str) -> None:
    assert of(newer).to_mapping() | {"era": older} != of(older).to_mapping()


def test_the_oldest_era_has_all_of_the_old_rules() -> None:
    core, topic = broker_config(of("0.8.2")), topic_config(of("0.8.2"))
    assert (core.truncation, core.replica_lag_max_messages) == ("high-watermark", 4_000)
    assert topic.unclean_leader_election_enable
    later = (core.strict_min_isr, core.isr_join_epoch_rule, core.fetch_fencing, core.broker_epochs)
    assert not any(later)
    assert not topic_config(of("0.11")).unclean_leader_election_enable


@pytest.mark.parametrize("era", ERAS)
def test_the_reference_broker_can_follow_every_era(era: str) -> None:
    refuse_what_it_lacks(of(era))


@pytest.mark.parametrize(
    ("era", "release"), [("4.1", (4, 1, 1)), ("3.9", (3, 9, 0)), ("3.7", (3, 7, 0)), ("3.5", (3, 5, 0))]
)
def test_an_era_is_what_the_release_of_that_name_is_said_to_do(era: str, release: tuple[int, int, int]) -> None:
    version = Version(*release)
    possible(of(era), version)
    elections_possible(of(era, **UNCLEAN), Kafka(version=str(version)), version)


@pytest.mark.parametrize(
    ("era", "release"), [("2.8", (2, 8, 0)), ("2.1", (2, 1, 0)), ("2.0", (2, 0, 0)), ("0.11", (0, 11, 0))]
)
def test_an_era_is_what_a_release_with_zookeeper_is_said_to_do(era: str, release: tuple[int, int, int]) -> None:
    version = Version(*release)
    possible(of(era), version, free=("truncation",))
    elections_possible(of(era, **UNCLEAN), Kafka(version=str(version), mode="zookeeper"), version)


@pytest.mark.parametrize(
    ("world", "asked"),
    [
        (Kafka(version="3.3.2"), False),
        (Kafka(version="3.8.1"), False),
        (Kafka(version="3.8.1", mode="zookeeper"), True),
        (Kafka(version="3.9.0"), True),
        (Kafka(version="3.8.1", upgrade_to="3.9.0"), True),
        (Kafka(), True),
        (Simulated(), True),
    ],
    ids=str,
)
def test_a_world_says_whether_its_controllers_ask_for_unclean_elections(world: AnyWorld, asked: bool) -> None:
    """KAFKA-12670: ZooKeeper's do, KRaft's do since 3.9.0; a plan that names neither rule nor era follows its world."""
    (choice,) = parse_plan("[settings]\nunclean.leader.election.enable = true\n[worlds.simulated]\n", "p.toml").choices
    settings = Settings.from_mapping(choice.settings_in(world))
    assert (world.unclean_elections, settings.unclean_elections, settings.elects_uncleanly) == (asked,) * 3


def test_a_plan_that_names_the_rule_or_an_era_keeps_it_and_is_refused_where_the_release_works_otherwise() -> None:
    world = Kafka(version="3.9.1")
    for named in ("unclean.elections = false", 'era = "3.7"'):
        text = f"[settings]\nunclean.leader.election.enable = true\n{named}\n[worlds.simulated]\n"
        (choice,) = parse_plan(text, "p.toml").choices
        settings = Settings.from_mapping(choice.settings_in(world))
        assert not settings.elects_uncleanly
        with pytest.raises(PlanError, match=r"Apache Kafka 3\.9\.1 with KRaft works; .* write unclean\.elections=true"):
            elections_possible(settings, world, Version(3, 9, 1))


def test_a_setting_that_is_named_wins_over_its_era() -> None:
    chosen = of("0.10.2", **{"unclean.leader.election.enable": False, "truncation": "kip-101"})
    assert not chosen.unclean_leader_election_enable
    assert chosen.truncation == "kip-101"
    assert not chosen.strict_min_isr


@pytest.mark.parametrize("era", ["0.9", 4.2, "", ["2.0"]])
def test_an_unknown_era_is_refused_with_the_choices(era: Any) -> None:
    with pytest.raises(
        SettingsError,
        match=r"era=.* is not possible; choose one of \"none\", \"4\.1\", \"3\.9\", \"3\.7\", .*\"0\.8\.2\"",
    ):
        of(era)


def test_an_era_may_be_written_as_a_number() -> None:
    assert of(4.1) == of("4.1")


@pytest.mark.parametrize("era", ERAS)
def test_an_era_survives_the_way_through_kafkas_names(era: str) -> None:
    assert Settings.from_mapping(of(era).to_mapping()) == of(era)


PLAN = '[matrix]\nera = ["0.8.2", "2.0", "4.1"]\n[settings]\nacks = 1\n[worlds.simulated]\n'


def test_a_plan_has_one_cell_for_each_era_that_it_names() -> None:
    choices = parse_plan(PLAN, "p.toml").choices
    assert [choice.settings["truncation"] for choice in choices] == ["high-watermark", "kip-279", "on-fetch"]
    assert len({choice.label for choice in choices}) == 3


def test_an_exclusion_knows_what_an_era_presets() -> None:
    text = PLAN + '[[matrix.exclude]]\ntruncation = "kip-279"\n[[matrix.exclude]]\nera = "4.1"\n'
    assert [choice.settings["era"] for choice in parse_plan(text, "p.toml").choices] == ["0.8.2"]
