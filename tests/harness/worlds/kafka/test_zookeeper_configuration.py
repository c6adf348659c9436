"""Kafka with ZooKeeper: what stands in the files, and which plans are refused."""

from pathlib import Path

import pytest

from harness.ground.errors import PlanError
from harness.worlds.hosts import Address
from harness.worlds.kafka.properties import NodePlace
from harness.worlds.kafka.releases import Version
from harness.worlds.kafka.zookeeper import broker_properties, possible_with_zookeeper, zookeeper_properties
from nemesis.cluster import CONTROLLER
from workloads.settings import Settings

RELEASE = Version(3, 5, 2)
KEEPER = Address("10.77.0.101", 9092)
BROKER = NodePlace(node=1, data=Path("1"), address=Address("10.77.0.2", 9092), controllers={CONTROLLER: KEEPER})
BEFORE_2_0 = {"fetch_fencing": False, "isr_join_epoch_rule": False}
OLD = {"broker.epochs": False, "strict.min.isr": False}


def settings(**others: object) -> Settings:
    return Settings.from_mapping(OLD | {name.replace("_", "."): value for name, value in others.items()})


def test_a_broker_knows_zookeeper_and_nothing_of_a_quorum() -> None:
    written = broker_properties(BROKER, settings(), 3, RELEASE)
    assert written["zookeeper.connect"] == "10.77.0.101:9092"
    assert written["broker.id"] == "1"
    assert written["listeners"] == written["advertised.listeners"] == "PLAINTEXT://10.77.0.2:9092"
    assert not [name for name in written if "quorum" in name or name in {"process.roles", "node.id"}]


@pytest.mark.parametrize(("truncation", "spoken"), [("high-watermark", "0.10.2"), ("kip-101", "0.11.0")])
def test_truncation_chooses_the_protocol_and_the_messages_of_its_era(truncation: str, spoken: str) -> None:
    written = broker_properties(BROKER, settings(truncation=truncation), 3, RELEASE)
    assert written["inter.broker.protocol.version"] == written["log.message.format.version"] == spoken


def test_truncation_on_fetch_is_the_releases_own() -> None:
    assert not [name for name in broker_properties(BROKER, settings(), 3, RELEASE) if name.endswith("version")]


@pytest.mark.parametrize(
    ("version", "truncation"),
    [((0, 10, 2, 2), "high-watermark"), ((0, 11, 0, 3), "kip-101"), ((2, 0, 1), "kip-279"), ((2, 7, 2), "kip-320")],
)
def test_a_release_speaks_its_own_protocol_where_it_truncates_as_asked(version, truncation) -> None:
    written = broker_properties(BROKER, settings(truncation=truncation), 3, Version(*version))
    assert not [name for name in written if name.endswith("version")]


def test_an_old_release_can_be_told_to_speak_as_an_older_one() -> None:
    written = broker_properties(BROKER, settings(truncation="high-watermark"), 3, Version(0, 11, 0, 3))
    assert written["inter.broker.protocol.version"] == "0.10.2"


def test_a_session_ends_as_soon_as_the_settings_say() -> None:
    written = zookeeper_properties(KEEPER, "100", Settings(broker_session_timeout_ms=2_000))
    assert (written["minSessionTimeout"], written["clientPort"], written["dataDir"]) == ("2000", "9092", "100")
    assert int(written["tickTime"]) * 4 <= 2_000


@pytest.mark.parametrize(
    ("chosen", "version", "says"),
    [
        (settings(), Version(4, 1, 1), "has no ZooKeeper; choose version"),
        (Settings(strict_min_isr=False), RELEASE, "write broker.epochs=false"),
        (settings(strict_min_isr=True), RELEASE, "write strict.min.isr=false"),
        (settings(isr_join_epoch_rule=False), RELEASE, "write isr.join.epoch.rule=true"),
        (
            settings(truncation="high-watermark", enable_idempotence=True),
            RELEASE,
            "no sequence numbers; write enable.idempotence=false",
        ),
        (settings(), Version(0, 8, 2, 2), r"makes no topic .* choose 0\.10\.1\.0 or later"),
        (settings(), Version(2, 4, 1), "truncation=on-fetch is younger .*; write truncation=kip-320"),
        (settings(), Version(2, 0, 1), "write fetch.fencing=false"),
        (settings(fetch_fencing=False), Version(1, 1, 1), "write isr.join.epoch.rule=false"),
        (
            settings(truncation="kip-279", **BEFORE_2_0),
            Version(0, 11, 0, 3),
            "truncation=kip-279 is younger .*; write truncation=kip-101",
        ),
    ],
)
def test_what_cannot_be_with_zookeeper_is_refused(chosen: Settings, version: Version, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        possible_with_zookeeper(chosen, version)


def test_the_eras_can_be_chosen() -> None:
    for truncation in ("high-watermark", "kip-101", "on-fetch"):
        possible_with_zookeeper(settings(truncation=truncation), RELEASE)
