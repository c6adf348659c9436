"""Members of a cluster: what is asked of brokers, what counts as their answer, and what is observed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from harness.worlds.hosts import Address, NodeState
from harness.worlds.kafka import members as module
from harness.worlds.kafka.administration import UnansweredError
from harness.worlds.kafka.members import ClusterMembers, answered
from nemesis.cluster import PartitionView

DIRECTORY = UUID(int=5)


class Cluster:
    """A cluster whose voters, replicas and brokers change as they are asked to."""

    def __init__(self) -> None:
        self.votes = {100: UUID(int=1), 101: UUID(int=2), 102: UUID(int=3)}
        self.fetches: set[tuple[int, UUID]] = {(0, UUID(int=9))}
        self.brokers = [0, 1, 2]
        self.replicas = {"t-0": (0, 1, 2), "t-1": (1, 2, 0), "u-0": (1, 2)}
        self.stale_answers = 2
        self.silent: set[int] = set()
        self.refuses = ""

    def voters(self) -> dict[int, UUID]:
        return dict(self.votes)

    def observers(self) -> frozenset[tuple[int, UUID]]:
        return frozenset(self.fetches)

    def registered(self) -> list[int]:
        self.stale_answers -= 1
        return [0, 1, 2] if self.stale_answers > 0 else self.brokers

    def topics(self) -> dict[str, None]:
        return {"t": None, "u": None}

    def topic(self, name: str) -> Any:
        named = {key: replicas for key, replicas in self.replicas.items() if key.startswith(f"{name}-")}
        return SimpleNamespace(
            partitions={key: PartitionView(replicas[0], 1, replicas, replicas) for key, replicas in named.items()}
        )

    def reassign(self, name: str, replicas: tuple[int, ...]) -> str:
        self.replicas[name] = replicas
        return self.refuses

    def _heard(self, broker: Address) -> None:
        if broker.port in self.silent:
            raise ConnectionRefusedError("nobody listens")

    def add(self, broker: Address, node: int, directory: UUID, address: Address, limit_s: float) -> str:
        self._heard(broker)
        assert (address.port, limit_s) == (node, module.REQUEST_LIMIT_S)
        self.votes[node] = directory
        return self.refuses

    def remove(self, broker: Address, node: int, directory: UUID, limit_s: float) -> str:
        self._heard(broker)
        assert directory == self.votes.pop(node)
        return self.refuses

    def unregister(self, broker: Address, node: int, limit_s: float) -> str:
        self._heard(broker)
        self.brokers.remove(node)
        return self.refuses


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(module, "add_voter", made.add)
    monkeypatch.setattr(module, "remove_voter", made.remove)
    monkeypatch.setattr(module, "unregister_broker", made.unregister)
    monkeypatch.setattr(module, "ACT_LIMIT_S", 0.3)
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.01)
    return made


@pytest.fixture
def make(cluster: Cluster, tmp_path: Path) -> Callable[..., ClusterMembers]:
    def members(running: tuple[int, ...] = (0, 1, 2), *, dynamic: bool = True) -> ClusterMembers:
        dead = SimpleNamespace(state=lambda: NodeState.DEAD)
        host = SimpleNamespace(address=lambda node: Address("h", node))
        nodes: Any = SimpleNamespace(host=host, data=lambda node: tmp_path / str(node), process=lambda _: dead)
        administration: Any = cluster
        return ClusterMembers(nodes, administration, lambda: running, dynamic=dynamic)

    return members


def formatted(data: Path) -> UUID:
    """The id of the directory that ``data`` becomes."""
    (data / "__cluster_metadata-0").mkdir(parents=True)
    text = base64.urlsafe_b64encode(DIRECTORY.bytes).decode().rstrip("=")
    (data / "meta.properties").write_text(f"version=1\nnode.id={data.name}\ndirectory.id={text}\n")
    return DIRECTORY


def test_a_controller_that_began_afresh_joins_with_its_new_directory_though_the_quorum_remembers_the_old_one(
    cluster: Cluster, make: Callable[..., ClusterMembers], tmp_path: Path
) -> None:
    members = make()
    old = cluster.votes[101]
    assert members.leave(101) == {"voters": [100, 102]}
    new = formatted(tmp_path / "101")
    cluster.fetches |= {(101, new), (101, old)}
    assert members.join(101) == {"voters": [100, 101, 102]}
    assert cluster.votes[101] == new
    cluster.fetches.remove((101, new))
    assert members.join(101) == {"voters": [100, 101, 102]}, "it has joined already"


def test_a_controller_that_does_not_fetch_yet_is_waited_for_but_not_for_ever(
    cluster: Cluster, make: Callable[..., ClusterMembers], tmp_path: Path
) -> None:
    members = make()
    cluster.fetches.add((101, cluster.votes[101]))
    members.leave(101)
    formatted(tmp_path / "101")
    assert answered(lambda: members.join(101)) == {
        "unconfirmed": "no broker answered within 0 s: controller 101 does not fetch the metadata yet"
    }
    assert 101 not in cluster.votes


def test_another_broker_is_asked_where_one_does_not_answer(
    cluster: Cluster, make: Callable[..., ClusterMembers]
) -> None:
    cluster.silent = {0, 1}
    assert make().leave(100) == {"voters": [101, 102]}
    cluster.silent = {0, 1, 2}
    unconfirmed = answered(lambda: make().leave(102))
    assert unconfirmed == {"unconfirmed": "no broker answered within 0 s: nobody listens"}
    assert make().leave(100) == {"voters": [101, 102]}, "it has left already"


def test_what_is_refused_is_said(cluster: Cluster, make: Callable[..., ClusterMembers]) -> None:
    cluster.refuses = "InvalidRequestError: no"
    assert make().leave(100) == {"refused": "InvalidRequestError: no"}
    assert make().leave(0) == {"refused": "t-0: InvalidRequestError: no; t-1: InvalidRequestError: no"}


def test_replicas_of_a_broker_go_to_one_that_has_none_or_away_and_come_back(
    cluster: Cluster, make: Callable[..., ClusterMembers]
) -> None:
    members = make((0, 1, 2))
    before = dict(cluster.replicas)
    assert members.leave(0) == {"assigned": {"t-0": [1, 2], "t-1": [1, 2]}}
    assert members.join(0) == {"assigned": {"t-0": [0, 1, 2], "t-1": [1, 2, 0]}}
    assert cluster.replicas == before
    assert make((0, 1, 2, 3)).leave(0) == {"assigned": {"t-0": [3, 1, 2], "t-1": [1, 2, 3]}}


def test_a_broker_that_has_ended_is_forgotten_and_its_disk_is_empty(
    cluster: Cluster, make: Callable[..., ClusterMembers], tmp_path: Path
) -> None:
    (tmp_path / "1" / "t-0").mkdir(parents=True)
    (tmp_path / "1" / "meta.properties").write_text("x")
    members = make((0, 2))
    members.renew(1)
    assert [*(tmp_path / "1").iterdir()] == []
    seen = members.describe(1)
    assert seen["registered"] == [0, 2]
    assert seen["wiped"]["files"] == 1
    assert members.describe(1) == {}, "it is told once"


def test_what_was_done_to_a_controller_that_began_afresh_is_told_though_nobody_says_who_votes(
    cluster: Cluster, make: Callable[..., ClusterMembers], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def deaf() -> None:
        raise UnansweredError("nobody answered")

    monkeypatch.setattr(cluster, "voters", deaf)
    (tmp_path / "100").mkdir()
    (tmp_path / "100" / "meta.properties").write_text("x")
    members = make()
    members.renew(100)
    seen = members.describe(100)
    assert (seen["wiped"]["files"], seen["unconfirmed"]) == (1, "nobody answered")


def test_a_change_that_brokers_do_not_see_is_not_confirmed(
    cluster: Cluster, make: Callable[..., ClusterMembers], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REQUEST_LIMIT_S", 0.1)
    monkeypatch.setattr(cluster, "remove", lambda *_: "")
    monkeypatch.setattr(module, "remove_voter", cluster.remove)
    assert answered(lambda: make().leave(100)) == {
        "unconfirmed": "after 0.1 s the cluster still names the nodes 100, 101, 102"
    }


@pytest.mark.parametrize(("dynamic", "seen"), [(True, {"voters": [100, 101, 102]}), (False, {})])
def test_voters_are_described_where_they_can_change(
    make: Callable[..., ClusterMembers], seen: dict[str, object], *, dynamic: bool
) -> None:
    assert make(dynamic=dynamic).describe(100) == seen
    assert make(dynamic=dynamic).describe(0) == {}
