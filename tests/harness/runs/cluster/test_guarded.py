"""The files of a cluster that asks its clients for TLS, or a user and a password: each fits the others."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.plan import Existing, Security, read_plan, require_kind
from harness.runs.cluster.guarded import Doors, Guard
from harness.worlds.clients import require_credentials
from harness.worlds.hosts import Address

SERVERS = ("127.1.2.3:19095", "127.1.2.3:19096")
WAYS = {"SSL": (True, False), "SASL_PLAINTEXT": (False, True), "SASL_SSL": (True, True)}


def made(directory: Path, protocol: str) -> tuple[Guard, Doors, Security]:
    tls, sasl = WAYS[protocol]
    guard = Guard(directory / "access", tls=tls, sasl=sasl)
    doors = guard.doors(SERVERS)
    assert doors.plan is not None
    world = require_kind(read_plan(doors.plan).worlds[0].world, Existing)
    assert world.bootstrap == SERVERS
    return guard, doors, world.security


@pytest.mark.parametrize("protocol", WAYS)
def test_the_plan_of_a_guarded_cluster_has_its_way_in(tmp_path: Path, protocol: str) -> None:
    guard, _, security = made(tmp_path, protocol)
    assert security == guard.security
    assert (security.protocol, security.encrypts, security.authenticates) == (protocol, *WAYS[protocol])
    require_credentials(security)
    assert (tmp_path / "access").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("protocol", WAYS)
def test_the_properties_of_clients_and_brokers_have_the_same_password_and_authority(
    tmp_path: Path, protocol: str
) -> None:
    guard, doors, security = made(tmp_path, protocol)
    assert doors.properties is not None
    client = dict(line.split("=", 1) for line in doors.properties.read_text().splitlines())
    broker = guard.broker_properties(0, Address("127.1.2.3", 19095))
    assert client["security.protocol"] == protocol
    assert client.get("ssl.truststore.location", "") == security.ca
    assert ("ssl.keystore.location" in broker) == security.encrypts
    asked = broker.get("listener.name.clients.plain.sasl.jaas.config", "")
    assert ("sasl.jaas.config" in client) == bool(asked) == security.authenticates
    if asked:
        password = Path(security.password_file).read_text()
        assert f'username="{security.username}" password="{password}"' in client["sasl.jaas.config"]
        assert f'user_{security.username}="{password}"' in asked


def shaken(authority: Path, broker: Path, name: str) -> None:
    """A handshake of TLS without a network: each side gets what the other wrote."""
    client, server = ssl.create_default_context(cafile=authority), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(broker)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(3):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert sides[0].version() == "TLSv1.3"


def test_a_broker_has_a_certificate_for_its_address_and_for_no_other(tmp_path: Path) -> None:
    guard, _, security = made(tmp_path, "SSL")
    broker = Path(guard.broker_properties(1, Address("127.1.2.3", 19095))["ssl.keystore.location"])
    shaken(Path(security.ca), broker, "127.1.2.3")
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        shaken(Path(security.ca), broker, "127.1.2.4")
    _, _, other = made(tmp_path / "access", "SSL")
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        shaken(Path(other.ca), broker, "127.1.2.3")


@pytest.mark.parametrize("flag", ["--tls", "--sasl"])
def test_reference_brokers_have_no_guard(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(["cluster", "up", flag]) == 64
    assert "the reference broker speaks neither TLS nor SASL; add --world kafka" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
