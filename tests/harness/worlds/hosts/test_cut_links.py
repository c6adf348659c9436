"""The enforcers of cuts, and the text of their rules."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.worlds.hosts.cut_links import DroppedLinks, HeldLinks, dropped_packets, ends, links_at, ruleset
from nemesis.cluster import CLIENTS, CONTROLLER, Link

NODES = (0, 1, 2, CONTROLLER)
ADDRESSES = {0: "10.77.5.1", 1: "10.77.5.2", 2: "10.77.5.3", CONTROLLER: "10.77.5.101", CLIENTS: "10.77.5.254"}


def test_a_link_between_nodes_is_told_to_both_ends() -> None:
    assert ends([Link(0, 1), Link(2, CONTROLLER)], NODES) == [0, 1, 2, CONTROLLER]


def test_a_client_link_is_told_to_its_node_only() -> None:
    assert ends([Link(CLIENTS, 1), Link(2, 1003)], NODES) == [1, 2]


def test_a_node_is_told_its_own_links_in_a_fixed_order() -> None:
    assert links_at({Link(2, 1), Link(0, 1), Link(0, 2)}, 1) == [Link(0, 1), Link(2, 1)]


def test_a_cut_that_nobody_confirms_has_no_evidence_but_stands(tmp_path: Path) -> None:
    links = HeldLinks({0: str(tmp_path / "0"), 1: str(tmp_path / "1")})
    assert links.cut([Link(0, 1)], alive=[0]) == {}
    assert links.enforced_by(1) == [Link(0, 1)]


def test_silent_nodes_are_named_in_the_evidence(tmp_path: Path) -> None:
    links = HeldLinks({0: str(tmp_path / "0"), 1: str(tmp_path / "1")})
    with answering(tmp_path / "1", b'{"ok": true, "links": {"0>1": {"frames": 0}}}\n'):
        evidence = links.cut([Link(0, 1)], alive=[0, 1])
    assert evidence == {"held": {"1": {"0>1": {"frames": 0}}}, "silent": [0]}


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """A control socket that gives one answer."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(60)
        thread = threading.Thread(target=_answer_once, args=(listener, answer))
        thread.start()
        yield
        thread.join(60)


def _answer_once(listener: socket.socket, answer: bytes) -> None:
    client, _ = listener.accept()
    with client:
        client.recv(1_000)
        client.sendall(answer)


def test_a_healed_link_is_no_longer_enforced_at_a_restart(tmp_path: Path) -> None:
    links = HeldLinks({0: str(tmp_path / "0"), 1: str(tmp_path / "1")})
    links.cut([Link(0, 1), Link(1, 0)], alive=[])
    links.heal([Link(0, 1)], alive=[])
    assert links.enforced_by(0) == [Link(1, 0)]


def test_a_node_with_nothing_cut_or_healed_needs_no_word(tmp_path: Path) -> None:
    assert HeldLinks({0: str(tmp_path / "0")}).update(0)()


def test_a_node_that_does_not_listen_has_not_been_told(tmp_path: Path) -> None:
    links = HeldLinks({0: str(tmp_path / "0")})
    links.cut([Link(0, 1)], alive=[])
    assert not links.update(0)()


def test_a_link_is_cut_where_it_enters_a_node_and_else_where_it_leaves_one() -> None:
    for link in (Link(0, 1), Link(CLIENTS, 1), Link(1, CLIENTS)):
        ruled: list[int] = []
        links = DroppedLinks(NODES, lambda _: ADDRESSES, lambda node, *_, to=ruled: to.append(node))
        assert links.cut([link], alive=[]) == {"dropped": {f"{link.source}>{link.target}": 0}}
        assert ruled == [1]


def test_the_rules_of_a_node_replace_the_ones_before_in_one_step() -> None:
    text = ruleset(1, [Link(1, CLIENTS), Link(0, 1)], ADDRESSES)
    assert text == (
        "table ip ackproof\n"
        "delete table ip ackproof\n"
        "table ip ackproof {\n"
        "  chain input {\n"
        "    type filter hook input priority filter; policy accept;\n"
        '    ip saddr 10.77.5.1 counter drop comment "0>1"\n'
        "  }\n"
        "  chain output {\n"
        "    type filter hook output priority filter; policy accept;\n"
        '    ip daddr 10.77.5.254 counter drop comment "1>1000"\n'
        "  }\n"
        "}\n"
    )


def test_a_node_without_cuts_drops_nothing() -> None:
    assert "drop" not in ruleset(1, [], ADDRESSES)


def test_counters_are_read_by_link() -> None:
    listing = """{"nftables": [{"metainfo": {}}, {"table": {"name": "ackproof"}}, {"rule": {"comment": "0>1", "expr": [
        {"match": {}}, {"counter": {"packets": 7, "bytes": 420}}, {"drop": null}]}}]}"""
    assert dropped_packets(listing) == {Link(0, 1): 7}


def test_a_share_of_packets_is_dropped_by_chance() -> None:
    rules = ruleset(1, [Link(0, 1)], ADDRESSES, lost_pct=25)
    assert 'ip saddr 10.77.5.1 numgen random mod 100 < 25 counter drop comment "0>1"' in rules
