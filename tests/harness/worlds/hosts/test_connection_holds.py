"""Connections that are held: late, not lost, and new ones work."""

import socket
from pathlib import Path

import pytest

from harness.worlds.hosts.connection_holds import callers, ruleset
from harness.worlds.hosts.namespaces import NamespaceHost
from nemesis.cluster import CLIENTS, Link
from tests.harness.needs import needs_root
from tests.harness.worlds.hosts.listeners import LIMIT_S, start_listener, wait_for

on_namespaces = needs_root("ip", "nft", "ss")
CLIENTS_TO_0 = Link(CLIENTS, 0)
#: Writes a line for each connection and each message, as a broker's log would.
LISTENER = """
import socket, sys, threading
def serve(connection):
    while data := connection.recv(100):
        print(data.decode(), flush=True)
        connection.sendall(b"done")
    print("closed", flush=True)
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listening", flush=True)
while True:
    threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()
"""


def say(connection: socket.socket, words: bytes) -> None:
    connection.sendall(words)
    assert connection.recv(10) == b"done"


@on_namespaces
@pytest.mark.root
@pytest.mark.system
def test_what_is_sent_on_a_held_connection_arrives_after_it_was_closed_and_repeated(
    host: NamespaceHost, tmp_path: Path
) -> None:
    log, holds = start_listener(host, tmp_path, LISTENER), host.connection_holds()
    held = socket.create_connection(host.address(0), LIMIT_S)
    say(held, b"before")
    caller = "{}:{}".format(*held.getsockname())
    assert holds.hold([CLIENTS_TO_0]) == {"connections": {"1000>0": [caller]}}
    held.sendall(b"late")
    held.close()
    with socket.create_connection(host.address(0), LIMIT_S) as other:
        say(other, b"repeated")
    wait_for(log, "repeated")
    assert "late" not in log.read_text().splitlines()
    dropped = holds.deliver([CLIENTS_TO_0])["dropped"]
    assert isinstance(dropped, dict)
    assert dropped["1000>0"] > 0
    wait_for(log, "late")
    order = [line for line in log.read_text().splitlines() if line in {"before", "late", "repeated"}]
    assert order == ["before", "repeated", "late"]


@on_namespaces
@pytest.mark.root
@pytest.mark.system
def test_where_no_connection_is_open_nothing_is_held(host: NamespaceHost, tmp_path: Path) -> None:
    start_listener(host, tmp_path, LISTENER)
    holds = host.connection_holds()
    with socket.create_connection(host.address(0), LIMIT_S):
        assert holds.hold([Link(0, CLIENTS), Link(1, 0), Link(0, 1)]) == {}
    assert holds.deliver([CLIENTS_TO_0]) == {}


@on_namespaces
@pytest.mark.root
@pytest.mark.system
def test_a_second_hold_of_a_link_adds_the_connections_that_were_opened_since(
    host: NamespaceHost, tmp_path: Path
) -> None:
    log, holds = start_listener(host, tmp_path, LISTENER), host.connection_holds()
    with socket.create_connection(host.address(0), LIMIT_S) as first:
        holds.hold([CLIENTS_TO_0])
        first.sendall(b"first")
        with socket.create_connection(host.address(0), LIMIT_S) as second:
            holds.hold([CLIENTS_TO_0])
            second.sendall(b"second")
            dropped = holds.deliver([CLIENTS_TO_0])["dropped"]
            assert isinstance(dropped, dict)
            assert dropped["1000>0"] >= 2, "the count goes on when the rules are replaced"
            wait_for(log, "first")
            wait_for(log, "second")


def test_callers_are_the_far_ends_of_connections_to_the_own_port() -> None:
    listing = (
        "0      0      [::ffff:10.77.5.1]:9092  [::ffff:10.77.5.254]:40001\n"
        "0      0      [::ffff:10.77.5.1]:51234 [::ffff:10.77.5.2]:9092\n"
        "0      12               10.77.5.1:9092            10.77.5.3:40002 \n"
    )
    assert callers(listing, 9092) == [("10.77.5.254", 40001), ("10.77.5.3", 40002)]
    assert callers("", 9092) == []


def test_each_connection_has_a_rule_with_a_counter_of_its_own() -> None:
    rules = ruleset({Link(1, 0): [("10.77.5.2", 7)], CLIENTS_TO_0: [("10.77.5.254", 9), ("10.77.5.254", 8)]}, 9092)
    assert [line.strip() for line in rules.splitlines() if "drop" in line] == [
        'ip saddr 10.77.5.2 tcp sport 7 tcp dport 9092 counter drop comment "1>0"',
        'ip saddr 10.77.5.254 tcp sport 8 tcp dport 9092 counter drop comment "1000>0"',
        'ip saddr 10.77.5.254 tcp sport 9 tcp dport 9092 counter drop comment "1000>0"',
    ]
