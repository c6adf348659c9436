"""Trusted host keys, decided without a network."""

import paramiko
import pytest
from paramiko.ssh_exception import BadHostKeyException, SSHException

from harness.ground.errors import HostError
from harness.plan import Machine
from harness.worlds.hosts.ssh.connection import _Pinned, _refusal


@pytest.fixture(scope="module")
def keys() -> tuple[paramiko.PKey, paramiko.PKey]:
    return paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()


def machine(fingerprint: str = "") -> Machine:
    return Machine(node=0, address="10.0.0.1", user="kafka", fingerprint=fingerprint)


def offered(to: Machine, key: paramiko.PKey) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    _Pinned(to).missing_host_key(client, to.address, key)
    return client


def test_a_key_that_nobody_knows_is_refused_with_its_fingerprint(keys) -> None:
    with pytest.raises(HostError, match=r"not in ~/.ssh/known_hosts .*add it there, or write fingerprint") as error:
        offered(machine(), keys[0])
    assert keys[0].fingerprint in str(error.value)


def test_the_pinned_key_is_let_through_and_nothing_is_remembered(keys) -> None:
    client = offered(machine(keys[0].fingerprint), keys[0])
    assert len(client.get_host_keys()) == 0


def test_another_key_than_the_pinned_one_is_refused_with_both_fingerprints(keys) -> None:
    with pytest.raises(HostError, match="nothing was sent") as error:
        offered(machine(keys[1].fingerprint), keys[0])
    assert keys[0].fingerprint in str(error.value)
    assert keys[1].fingerprint in str(error.value)


def test_a_changed_key_is_told_as_one(keys) -> None:
    error = _refusal(machine(), BadHostKeyException("10.0.0.1", keys[0], keys[1]))
    assert "has changed" in str(error)
    assert keys[0].fingerprint in str(error)


@pytest.mark.parametrize(
    ("cause", "sentence"),
    [
        (TimeoutError("timed out"), "cannot be reached over SSH (timed out); check that sshd runs there"),
        (EOFError(), "cannot be reached over SSH (EOFError)"),
        (SSHException("no matching key exchange"), "could not begin an SSH session"),
        (SSHException("No authentication methods available"), "does not accept the user"),
    ],
)
def test_every_failure_names_the_machine_in_one_sentence(cause: Exception, sentence: str) -> None:
    reported = str(_refusal(machine(), cause))
    assert reported.startswith("kafka@10.0.0.1 ")
    assert sentence in reported
    assert "\n" not in reported
