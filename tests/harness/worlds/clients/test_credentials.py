"""Passwords: where they are, what is written of them, files that do not serve, and what each library is given."""

import logging
import os
import socket
import threading
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer
from cryptography.hazmat.primitives.asymmetric import ec
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from harness.ground.errors import HostError
from harness.plan import Existing, RunSpec, Security
from harness.records.journal import FILE_NAME, Journal
from harness.records.run_record import Ended, write_record
from harness.runs.cluster.authority import Authority, in_pem
from harness.runs.run.healing import heal
from harness.worlds.clients import CLIENTS, CONFLUENT, KAFKA_PYTHON, kafka_python
from harness.worlds.clients.credentials import at_home, password_of, require_credentials
from harness.worlds.real.clock import RealClock
from harness.worlds.real.world import logs_diverted
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

SECRET = "correct-horse-4711"  # noqa: S105
WAY_IN = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "alice", "password_env": "AK_TEST_PASSWORD"}
SCRAM = Security(**WAY_IN)


@pytest.fixture(autouse=True)
def variable(monkeypatch):
    monkeypatch.setenv("AK_TEST_PASSWORD", SECRET)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


def test_a_password_is_read_from_the_variable_or_the_file_as_it_is_now(tmp_path, monkeypatch):
    file = tmp_path / "password"
    file.write_text(f"{SECRET} \n")
    from_file = msgspec.structs.replace(SCRAM, password_env="", password_file=str(file))
    assert (password_of(SCRAM), password_of(from_file)) == (SECRET, f"{SECRET} ")
    file.write_text("\n")
    with pytest.raises(HostError, match="password is empty"):
        require_credentials(from_file)
    file.unlink()
    with pytest.raises(HostError, match="cannot be read"):
        require_credentials(from_file)
    monkeypatch.delenv("AK_TEST_PASSWORD")
    with pytest.raises(HostError, match="the environment variable AK_TEST_PASSWORD is not set"):
        require_credentials(SCRAM)


@pytest.mark.parametrize("strange", [b"a\0b", b"a\xff"])
def test_what_no_user_can_type_is_no_password_and_not_repeated(tmp_path, monkeypatch, strange):
    file = tmp_path / "password"
    file.write_bytes(strange)
    with pytest.raises(HostError, match="is not text in UTF-8"):
        require_credentials(msgspec.structs.replace(SCRAM, password_env="", password_file=str(file)))
    monkeypatch.setenv("AK_TEST_PASSWORD", "a\udcffb")
    with pytest.raises(HostError, match="AK_TEST_PASSWORD is not text in UTF-8"):
        require_credentials(SCRAM)


def test_home_is_the_users(monkeypatch):
    monkeypatch.setenv("HOME", "/home/alice")
    security = at_home(Security(protocol="SSL", ca="~/ca.pem", certificate="/k/me.pem"))
    assert (security.ca, security.certificate, security.key) == ("/home/alice/ca.pem", "/k/me.pem", "")


def test_a_user_without_a_home_is_told_so(monkeypatch):
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(HostError, match="the home of this user"):
        require_credentials(Security(protocol="SSL", ca="~/ca.pem"))


def test_certificates_that_fit_are_taken(authority):
    client = str(authority.sign("client"))
    require_credentials(Security(protocol="SSL"))
    require_credentials(Security(protocol="SSL", ca=str(authority.file), certificate=client))
    require_credentials(Security(protocol="SSL", certificate=client, key=client))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"ca": "missing"}, "ca = .*missing cannot be read"),
        ({"ca": "text"}, "ca = .*text has no certificate in PEM"),
        ({"ca": "bytes"}, "ca = .*bytes is not text"),
        ({"ca": "pipe"}, "ca = .*pipe is not a regular file"),
        ({"ca": "."}, "ca = .* is not a regular file"),
        ({"certificate": "missing"}, "certificate = .*missing cannot be read"),
        ({"certificate": "good", "key": "missing"}, "key = .*missing cannot be read"),
        ({"certificate": "good", "key": "other"}, "are not a certificate and its private key in PEM .*MISMATCH"),
        ({"certificate": "good", "key": "text"}, "are not a certificate and its private key in PEM"),
        ({"certificate": "good", "key": "locked"}, "the client's private key has a passphrase"),
    ],
)
def test_files_that_do_not_serve_are_named(authority, tmp_path, wrong, sentence):
    (tmp_path / "text").write_text("no certificate")
    (tmp_path / "bytes").write_bytes(b"\x30\x82\xff")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "good").write_bytes(authority.sign("good").read_bytes())
    (tmp_path / "other").write_bytes(in_pem(ec.generate_private_key(ec.SECP256R1())))
    (tmp_path / "locked").write_bytes(in_pem(ec.generate_private_key(ec.SECP256R1()), SECRET))
    files = {key: str(tmp_path / name) for key, name in wrong.items()}
    with pytest.raises(HostError, match=sentence):
        require_credentials(Security(protocol="SSL", **files))


@pytest.mark.parametrize("library", CLIENTS)
def test_only_what_goes_to_the_library_has_the_password(library):
    settings = CLIENTS[library].login_settings(SCRAM)
    given = CLIENTS[library].login(SCRAM)
    assert SECRET not in str(settings)
    (secret,) = given.keys() - settings.keys()
    assert given == settings | {secret: SECRET}


def test_kafka_python_knows_every_argument_and_looks_at_host_names(authority):
    client = str(authority.sign("client"))
    mutual = Security(protocol="SSL", ca="/ca", certificate=client, key="/key")
    for security in (SCRAM, mutual, Security()):
        arguments = KAFKA_PYTHON.login(security)
        assert arguments.keys() <= KafkaProducer.DEFAULT_CONFIG.keys() & KafkaConsumer.DEFAULT_CONFIG.keys()
        assert arguments["security_protocol"] == security.protocol
        assert arguments.get("ssl_check_hostname", True) is True
    assert KAFKA_PYTHON.login(mutual) == {
        "security_protocol": "SSL",
        "ssl_check_hostname": True,
        "ssl_cafile": "/ca",
        "ssl_certfile": client,
        "ssl_keyfile": "/key",
    }
    assert KAFKA_PYTHON.login(Security()) == {"security_protocol": "PLAINTEXT"}


def test_librdkafka_takes_every_property_and_looks_at_host_names(authority):
    client = str(authority.sign("client"))
    mutual = Security(protocol="SSL", ca=str(authority.file), certificate=client)
    for security in (SCRAM, mutual, Security()):
        configuration = CONFLUENT.consumer_configuration(Settings(), ("127.1.2.3:1",), 0, None) | CONFLUENT.login(
            security
        )
        Consumer(configuration).close()
    assert CONFLUENT.login(mutual) == {
        "security.protocol": "SSL",
        "enable.ssl.certificate.verification": True,
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.ca.location": str(authority.file),
        "ssl.certificate.location": client,
        "ssl.key.location": client,
    }
    assert CONFLUENT.login(SCRAM)["sasl.mechanism"] == "SCRAM-SHA-512"


@pytest.mark.parametrize("library", sorted(CLIENTS))
def test_the_effective_configuration_tells_the_user_and_not_the_password(library):
    effective = CLIENTS[library].clients(RealClock(), Settings(), ("127.1.2.3:1",), SCRAM).effective_configuration()
    for role in ("producer", "consumer"):
        assert {"SASL_SSL", "SCRAM-SHA-512", "alice"} <= {str(value) for value in effective[role].values()}
    assert SECRET not in str(effective)
    assert "password" not in str(effective)


def test_neither_a_runs_record_nor_a_journal_has_the_password(tmp_path):
    plans = {"settings": Settings().to_mapping(), "workload": WorkloadPlan(), "faults": FaultPlan(), "seed": 1}
    spec = RunSpec(world=Existing(bootstrap=("127.1.2.3:1",), security=SCRAM), cell="c", family="move", **plans)
    write_record(tmp_path, spec, Ended(status="completed"))
    assert SECRET not in (tmp_path / "run.json").read_text()
    assert "AK_TEST_PASSWORD" in (tmp_path / "run.json").read_text()
    assert SECRET not in repr(spec)


def test_heal_says_which_variable_it_needs(tmp_path, monkeypatch):
    monkeypatch.delenv("AK_TEST_PASSWORD")
    journal = Journal(tmp_path / FILE_NAME)
    facts = {"name": "t-7", "bootstrap": ["127.1.2.3:1"], "security": WAY_IN}
    journal.intend("topic", facts)
    journal.close()
    with pytest.raises(HostError, match="the environment variable AK_TEST_PASSWORD is not set"):
        heal(tmp_path)


def test_heal_says_which_file_it_needs_and_heals_the_other_runs_too(tmp_path):
    gone = {"protocol": "SSL", "ca": str(tmp_path / "gone.pem")}
    for run in ("a", "b"):
        (tmp_path / run).mkdir()
        journal = Journal(tmp_path / run / FILE_NAME)
        journal.intend("topic", {"name": run, "bootstrap": ["127.1.2.3:1"], "security": gone})
        journal.close()
    with pytest.raises(HostError, match=r'topic .*"a".*gone.pem cannot be read.*topic .*"b".*gone.pem cannot be read'):
        heal(tmp_path)


def test_what_kafka_python_tells_in_detail_never_gets_to_a_file(tmp_path: Path):
    logger = logging.getLogger("kafka.net.connection")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        with logs_diverted(tmp_path / "clients.log"):
            logger.debug("SaslAuthenticateRequest(auth_bytes=%r)", SECRET)
            logger.info("Closed")
    finally:
        logger.setLevel(level)
    assert "Closed" in (tmp_path / "clients.log").read_text()
    assert SECRET not in (tmp_path / "clients.log").read_text()


@pytest.mark.parametrize("library", [KafkaAdminClient, KafkaProducer, KafkaConsumer])
@pytest.mark.parametrize("protocol", ["SSL", "PLAINTEXT"])
def test_a_port_that_takes_the_connection_and_says_nothing_is_not_waited_for_without_limit(library, protocol, ports):
    threads = set(threading.enumerate())
    host, port = ports.take("127.0.0.1")
    with socket.create_server((host, port)):
        servers = [f"{host}:{port}"]
        with pytest.raises(KafkaError):
            kafka_python.make(
                library, {"bootstrap_servers": servers, "bootstrap_timeout_ms": 300, "security_protocol": protocol}
            )
    for thread in set(threading.enumerate()) - threads:
        thread.join(5)
    assert set(threading.enumerate()) <= threads
