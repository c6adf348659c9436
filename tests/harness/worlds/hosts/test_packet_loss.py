"""Packets that are lost by chance: some of them, on the named links only, and TCP brings everything all the same."""

import socket
from pathlib import Path

import pytest

from harness.worlds.hosts.namespaces import NamespaceHost
from harness.worlds.hosts.packet_loss import LOST_PCT
from nemesis.cluster import CLIENTS, CONTROLLER, Link
from tests.harness.needs import needs_root
from tests.harness.worlds.hosts.listeners import LIMIT_S, start_listener

pytestmark = [needs_root("ip", "nft", "nsenter"), pytest.mark.root, pytest.mark.system]
TO_0, FROM_0 = Link(CLIENTS, 0), Link(0, CLIENTS)
#: So many packets of one byte: that none of them is lost has a chance of 0.75 ** 60, below one in ten millions.
PACKETS = 60
#: TCP doubles its wait from 0.2 s with each loss: eight in a row take 51 s, ten 205 s. The latter is one in a million.
ANSWER_LIMIT_S = 240.0
ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while word := connection.recv(1):
        connection.sendall(word)
"""


def connect(host: NamespaceHost, directory: Path) -> socket.socket:
    start_listener(host, directory, ECHO)
    connection = socket.create_connection(host.address(0), LIMIT_S)
    connection.settimeout(ANSWER_LIMIT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def say_all(connection: socket.socket) -> None:
    """Send every byte in a packet of its own; each comes back."""
    for number in range(PACKETS):
        connection.sendall(bytes([number]))
        assert connection.recv(1) == bytes([number])


def test_some_packets_of_the_links_are_lost_and_all_bytes_arrive(host: NamespaceHost, tmp_path: Path) -> None:
    loss = host.packet_loss()
    with connect(host, tmp_path) as connection:
        assert loss.lose([TO_0]) == {"lost_pct": LOST_PCT, "dropped": {"1000>0": 0}}
        say_all(connection)
        dropped = loss.spare([TO_0])["dropped"]
        assert isinstance(dropped, dict)
        assert 0 < dropped["1000>0"] < PACKETS * 2
        say_all(connection)
        assert loss.spare([TO_0]) == {"dropped": dropped}, "nothing is lost after the end"


def test_cut_links_and_lossy_links_do_not_know_of_each_other(host: NamespaceHost, tmp_path: Path) -> None:
    loss = host.packet_loss()
    with connect(host, tmp_path) as connection:
        loss.lose([TO_0, FROM_0])
        host.links.cut([Link(1, 0)], [0, 1])
        host.links.heal([Link(1, 0)], [0, 1])
        say_all(connection)
        dropped = loss.spare([TO_0, FROM_0])["dropped"]
        assert isinstance(dropped, dict)
        assert min(dropped.values()) > 0, "healing another link leaves these lossy"


def test_links_without_addresses_lose_nothing(host: NamespaceHost) -> None:
    assert host.packet_loss().lose([Link(CLIENTS + 1, 0), Link(CONTROLLER, 0)]) == {}
