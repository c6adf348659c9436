"""The Java client without a JVM: methods, properties, releases, and the errors of the table."""

from __future__ import annotations

import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import pytest

from harness.ground.errors import HostError, PlanError
from harness.plan import Existing, Kafka, Processes, Security, read_plan
from harness.worlds.clients import JAVA, compiler_jars, java_process
from harness.worlds.clients.java import configuration
from harness.worlds.clients.programs.configuration import PASSWORD, producer_configuration
from harness.worlds.clients.programs.messages import Method, ProgramCall
from harness.worlds.kafka import client_release, client_version
from harness.worlds.kafka.releases import DEFAULT_VERSION
from tests.harness.worlds.clients.test_credentials import SCRAM
from workloads import Settings
from workloads.errors import JAVA_NAMES, Refusal, classify, refusal, refuses_for_good
from workloads.operations import EventType

SOURCES = resources.files("harness.worlds.clients.java")
NOBODY = ("127.1.2.3:1",)


def test_the_java_files_know_every_method() -> None:
    cases = {case for file in SOURCES.iterdir() for case in re.findall(r'(?:case |equals\()"(\w+)"', _java(file))}
    assert cases == {*Method}


def _java(file: Traversable) -> str:
    return file.read_text() if file.name.endswith(".java") else ""


def test_every_setting_of_a_producer_is_written_out() -> None:
    chosen = Settings(acks=1, linger_ms=7, request_timeout_ms=900)
    properties = producer_configuration(chosen, NOBODY, 3)
    assert properties["client.id"] == "ackproof-client-3"
    assert (properties["acks"], properties["max.block.ms"], properties["linger.ms"]) == (1, 900, 7)
    assert {*Settings.scoped("client")} <= properties.keys()


def test_a_password_goes_into_the_login_module_and_its_quotes_stay() -> None:
    properties = configuration.security_properties(SCRAM)
    made = configuration.for_java(properties | {PASSWORD: 'a"b\\c'})
    assert made["sasl.jaas.config"] == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="a\\"b\\\\c";'
    )
    assert not {configuration.USERNAME, PASSWORD} & made.keys()


def test_a_certificate_and_its_key_are_given_as_text(tmp_path: Path) -> None:
    for name in ("certificate", "key"):
        (tmp_path / name).write_text(f"the {name}")
    files = Security(protocol="SSL", certificate=str(tmp_path / "certificate"), key=str(tmp_path / "key"))
    made = configuration.for_java(configuration.security_properties(files))
    assert made["ssl.keystore.certificate.chain"] == "the certificate"
    assert made["ssl.keystore.key"] == "the key"
    assert made["ssl.endpoint.identification.algorithm"] == "https"


def test_the_compiler_is_in_pyspark() -> None:
    assert [jar.name.rpartition("-")[0] for jar in compiler_jars()] == ["janino", "commons-compiler"]


def test_a_jvm_that_does_not_start_says_why() -> None:
    silent = java_process("4.3.1", ("/bin/sh", "-c", "echo 'no class' >&2"))
    with pytest.raises(HostError, match=r"the Java client 4.3.1 does not start: no class"):
        silent.start()
    with pytest.raises(BrokenPipeError):
        silent.call(ProgramCall(method=Method.CLOSE, client=0), 1.0)
    with pytest.raises(HostError, match=r"the Java client 4.3.1 does not start: .*No such file"):
        java_process("4.3.1", ("/bin/there-is-no-such-java",)).start()


@pytest.mark.parametrize(
    ("world", "version"),
    [
        (Processes(client=JAVA), DEFAULT_VERSION),
        (Kafka(client=JAVA, version="3.9.1"), "3.9.1"),
        (Kafka(client=JAVA, version="3.9.1", client_version="3.1.2"), "3.1.2"),
        (Existing(client=JAVA, bootstrap=NOBODY), DEFAULT_VERSION),
    ],
)
def test_the_client_is_of_the_brokers_release_unless_the_plan_says_otherwise(
    world: Processes | Kafka | Existing, version: str
) -> None:
    assert client_version(world) == version


def test_a_client_that_is_too_old_is_refused() -> None:
    with pytest.raises(PlanError, match=r"client 2\.4\.1 is too old .* client_version to 2\.5\.0 or later"):
        client_release(Processes(client=JAVA, client_version="2.4.1"))


@pytest.mark.parametrize(
    ("release", "idempotent"),
    [
        ("", True),
        ("2.8.2", False),
        ("3.0.0", False),
        ("3.0.1", True),
        ("3.1.0", False),
        ("3.1.1", True),
        ("4.3.1", True),
    ],
)
def test_producers_are_idempotent_by_default_where_the_release_has_it_right(release: str, idempotent: bool) -> None:
    assert Processes(client=JAVA, client_version=release).idempotent_by_default is idempotent
    assert Kafka(client=JAVA, version=release).idempotent_by_default is idempotent


def test_a_plan_names_the_client_and_its_release(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[worlds.processes]\nclient = "java"\nclient_version = "3.1.2"\n')
    assert read_plan(plan).worlds[0].world == Processes(client="java", client_version="3.1.2")
    plan.write_text('[worlds.processes]\nclient_version = "3.1.2"\n')
    with pytest.raises(PlanError, match=r'client_version: it is for client = "java"'):
        read_plan(plan)


def test_what_javas_exceptions_prove() -> None:
    certain = {name for name in JAVA_NAMES if classify(name) is EventType.FAIL}
    assert certain == {
        "RecordTooLargeException",
        "RecordBatchTooLargeException",
        "InvalidTopicException",
        "InvalidRequiredAcksException",
        "InvalidRecordException",
    }
    assert refusal("NotEnoughReplicasException: words") is Refusal.BEFORE_APPEND
    assert not refuses_for_good("NeverSent: TimeoutException: Topic t not present in metadata after 100 ms.")
    assert refuses_for_good("NeverSent: KafkaException: Cannot perform send; caused by ClusterAuthorizationException")
