"""Defaults of clients are those of their library and release: what the packages say, and what is not known is said."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import confluent_kafka
import pytest
from kafka import KafkaProducer
from kafka import __version__ as kafka_python_version

from harness.assess import assumed_client, clients_named
from harness.assess.client_defaults import defaults_of, numbers_of, releases_of
from harness.assess.client_settings import effective
from harness.assess.near_names import DECISIVE_OF
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.releases import Version
from tests.scripts_loaded import script

ROOT = Path(__file__).parents[3]
DEFAULTS = "bootstrap.servers=b:1\n"


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    """The script that writes the table."""
    return script("client-defaults")


def of(library: str, tmp_path: Path, text: str = DEFAULTS) -> tuple[dict[str, str], set[str]]:
    """The effective settings of a producer, and the names of what was not understood."""
    file = tmp_path / "producer.properties"
    file.write_text(text)
    (client,) = clients_named([str(file)], "--producer", library)
    return effective(client), {each.name for each in client.not_understood}


@pytest.mark.parametrize(
    ("library", "acks", "idempotent", "retries"),
    [
        ("java:0.11.0.3", "1", "false", "0"),
        ("java:2.0.1", "1", "false", "0"),
        ("java:2.1.0", "1", "false", "2147483647"),
        ("java:2.8.2", "1", "false", "2147483647"),
        ("java:3.0.0", "all", "false", "2147483647"),
        ("java:3.0.1", "all", "true", "2147483647"),
        ("java:3.0.2", "all", "true", "2147483647"),
        ("java:3.1.0", "all", "false", "2147483647"),
        ("java:3.1.1", "all", "true", "2147483647"),
        ("java:3.1.2", "all", "true", "2147483647"),
        ("java:3.2.0", "all", "true", "2147483647"),
        ("java:4.4.0", "all", "true", "2147483647"),
        ("librdkafka:0.11.6", "1", "false", "2"),
        ("librdkafka:1.0.0", "all", "false", "2"),
        ("librdkafka:1.6.0", "all", "false", "2147483647"),
        ("librdkafka:2.16.0", "all", "false", "2147483647"),
        ("kafka-python:1.4.7", "1", "false", "0"),
        ("kafka-python:2.1.6", "1", "false", "0"),
        ("kafka-python:2.2.0", "1", "false", "2147483647"),
        ("kafka-python:2.3.3", "1", "false", "2147483647"),
        ("kafka-python:3.0.0", "all", "true", "2147483647"),
    ],
)
def test_defaults_are_those_of_the_release_on_either_side_of_each_change(
    library: str, acks: str, idempotent: str, retries: str, tmp_path: Path
) -> None:
    values, unclear = of(library, tmp_path)
    assert (values["acks"], values["enable.idempotence"], values["retries"]) == (acks, idempotent, retries)
    assert not unclear


@pytest.mark.parametrize("version", ["3.0.0", "3.1.0", "2.3.1"])
def test_idempotence_that_is_asked_for_is_on_in_every_release(version: str, tmp_path: Path) -> None:
    values, _ = of(f"java:{version}", tmp_path, "enable.idempotence=true\n")
    assert (values["enable.idempotence"], values["acks"]) == ("true", "all")


@pytest.mark.parametrize(
    ("library", "names"),
    [
        ("kafka-python:2.3.4", {"acks", "enable.idempotence"}),
        ("java:3.1", {"enable.idempotence"}),
        ("java:3.0", {"enable.idempotence"}),
        ("java:0.9.0.1", {"acks", "retries"}),
        ("librdkafka:0.9.5", {"acks", "retries"}),
    ],
)
def test_a_default_that_changed_around_a_release_that_was_not_looked_at_is_not_known(
    library: str, names: set[str], tmp_path: Path
) -> None:
    _, unclear = of(library, tmp_path)
    assert names <= unclear
    _, unclear = of(library, tmp_path, "acks=all\nenable.idempotence=false\nretries=5\n")
    assert not names & unclear, "what is written out needs no default"


def test_the_client_that_is_assumed_has_the_same_doubts() -> None:
    assert {each.name for each in assumed_client("java:3.1").not_understood} == {"enable.idempotence"}
    assert not assumed_client("java:3.1.0").not_understood


def test_a_setting_that_a_release_lacks_is_said(tmp_path: Path) -> None:
    _, unclear = of("librdkafka:0.11.6", tmp_path, "enable.idempotence=true\n")
    assert unclear == {"enable.idempotence"}, "librdkafka refuses to start with a name that it does not know"
    values, unclear = of("java:2.0.1", tmp_path, "delivery.timeout.ms=5\n")
    assert (values["delivery.timeout.ms"], unclear) == ("120000", set()), "Kafka's own client passes over it"


def test_every_release_has_a_default_of_what_decides() -> None:
    without = {"transactional.id", "group.id", "enable.partition.eof"}
    for library in ("java", "librdkafka", "kafka-python"):
        releases = releases_of(library)
        assert len(releases) > 10
        for version in releases:
            names = {name for own in DECISIVE_OF.values() for name in own} - without - {"transaction.timeout.ms"}
            assert names <= defaults_of(library, version).keys(), (library, version)


def test_the_table_has_what_the_installed_kafka_python_says() -> None:
    installed = KafkaProducer.DEFAULT_CONFIG
    table = defaults_of("kafka-python", numbers_of(kafka_python_version))
    for name in ("acks", "retries", "linger_ms", "max_in_flight_requests_per_connection", "enable_idempotence"):
        said = str(installed[name]).lower()
        assert table[name.replace("_", ".")] == {"-1": "all", "inf": "2147483647"}.get(said, said)


@pytest.mark.system
def test_the_table_has_what_the_installed_librdkafka_says(writer: ModuleType) -> None:
    release, printed = writer.defaults_of_libraries(Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs")
    assert printed
    assert printed.items() <= defaults_of("librdkafka", numbers_of(release)).items()


@pytest.mark.system
def test_the_table_has_what_the_installed_kafka_does(writer: ModuleType, real_kafka: Installation) -> None:
    printed = writer.defaults_printed(":".join(map(str, real_kafka.jars)))
    assert printed
    assert printed.items() <= defaults_of("java", real_kafka.version).items()


def test_a_version_has_up_to_four_numbers() -> None:
    assert numbers_of("0.11.0.3") == Version(0, 11, 0, 3)
    assert numbers_of("2.16") == Version(2, 16, 0)
    assert numbers_of("new") is None


@pytest.mark.parametrize(
    ("version", "idempotent"),
    [("2.8.2", "false"), ("3.0.0", "false"), ("3.0.1", "true"), ("3.0.2", "false"), ("3.1.1", "false"), ("", "false")],
)
def test_workers_of_connect_have_idempotent_producers_in_one_release(
    version: str, idempotent: str, tmp_path: Path
) -> None:
    values, _ = of(f"java:{version}" if version else "", tmp_path, "plugin.path=/p\n")
    assert (values["acks"], values["enable.idempotence"]) == ("all", idempotent)
