"""Names of settings: the file has what the owners say, and a name that they do not say is not passed over."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from harness.assess import clients_named
from harness.assess.client_settings import ALIASES
from harness.assess.configuration import OF_BROKERS, OF_CLIENTS, OF_TOPICS
from harness.assess.setting_names import (
    OF_WRAPPERS,
    is_known,
    names_of_client,
    names_of_kafka,
    strange_to_kafka,
    with_dots,
)
from harness.ground.errors import PlanError
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.releases import DEFAULT_VERSION, parse_version
from tests.scripts_loaded import script

ROOT = Path(__file__).parents[3]
NEWEST = parse_version(DEFAULT_VERSION)


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    """The script that writes the file."""
    return script("setting-names")


def test_the_file_has_the_names_that_the_installed_librdkafka_prints(writer: ModuleType) -> None:
    printed = writer.names_of_librdkafka()
    assert len(printed["both"]) > 100
    for kind in ("producer", "consumer"):
        theirs = {with_dots(name) for name in (*printed["both"], *printed[kind])}
        assert theirs == names_of_client(kind, "librdkafka") - OF_WRAPPERS


@pytest.mark.system
def test_the_file_has_the_names_that_an_installed_release_prints(writer: ModuleType, real_kafka: Installation) -> None:
    printed = writer.names_of_kafka(real_kafka)
    for kind in ("producer", "consumer", "topic", "broker"):
        assert names_of_kafka(kind, real_kafka.version) == {name for of, name in printed if of == kind}


def test_every_setting_that_decides_here_exists() -> None:
    assert OF_TOPICS.keys() - names_of_kafka("topic", NEWEST) == {"message.format.version"}
    old = {"zookeeper.connect", "inter.broker.protocol.version", "offsets.commit.required.acks"}
    assert OF_BROKERS.keys() - names_of_kafka("broker", NEWEST) == old
    assert OF_BROKERS.keys() <= names_of_kafka("broker")
    assert OF_TOPICS.keys() <= names_of_kafka("topic")
    clients = names_of_client("producer", "java") | names_of_client("consumer", "java")
    assert OF_CLIENTS - clients == {"enable.partition.eof"}
    assert ALIASES.keys() <= names_of_client("producer", "librdkafka")


def test_releases_differ_in_their_names() -> None:
    assert "message.format.version" in names_of_kafka("topic", parse_version("3.9.2"))
    assert "message.format.version" not in names_of_kafka("topic", NEWEST)
    assert "delivery.timeout.ms" not in names_of_kafka("producer", parse_version("2.0.1"))
    assert "delivery.timeout.ms" in names_of_kafka("producer", parse_version("2.3.0")), "between two that were asked"
    assert "log.retention.ms" not in names_of_kafka("topic"), "which is the brokers' name"


def test_a_setting_of_another_library_is_refused_where_the_library_is_named() -> None:
    with pytest.raises(PlanError, match=r"no producer of java has a setting message\.timeout"):
        clients_named(["message.timeout.ms=1000"], "--producer", "java")
    with pytest.raises(PlanError, match=r"no consumer of kafka-python has a setting enable\.partition"):
        clients_named(["enable.partition.eof=true"], "--consumer", "kafka-python")
    (client,) = clients_named(["message.timeout.ms=1000", "acks=all"], "--producer")
    assert (client.library, client.settings["delivery.timeout.ms"]) == ("librdkafka", "1000")


def test_a_setting_of_a_file_that_its_client_ignores_decides_nothing(tmp_path: Path) -> None:
    file = tmp_path / "p.properties"
    file.write_text("bootstrap.servers=b:1\nmessage.timeout.ms=1\nacks=all\n")
    (client,) = clients_named([str(file)], "--producer", "java:4.3.1")
    assert (client.settings, client.strange) == ({"acks": "all"}, ("message.timeout.ms",))


@pytest.mark.parametrize(
    "name",
    ["config.providers.file.class", "sasl.oauthbearer.jwks.endpoint.url", "log.level", "metadata.recovery.strategy"],
)
def test_real_settings_are_known(name: str) -> None:
    assert is_known(name, "producer")


@pytest.mark.parametrize(
    ("name", "strange"),
    [("listener.name.internal.ssl.keystore.type", False), ("super.users", False), ("min.insync.replica", True)],
)
def test_names_behind_which_there_is_one_of_the_operators_own_are_no_slips(name: str, strange: bool) -> None:
    assert strange_to_kafka(name, "broker") is strange
