"""Limits that a plan is told of are what its worlds' targets lack, and what this machine lacks."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.plan import AnyWorld, Existing, Kafka, Machine, Namespaces, Processes, RunSpec, Simulated, Ssh, parse_plan
from harness.worlds import limits
from nemesis.plan import FaultPlan
from nemesis.scenarios import FAMILIES

SSH = Ssh(machines=(Machine(node=0, address="10.0.0.1", user="kafka"),))
ALL = set(FAMILIES)
#: Families that need a network namespace of each node.
OF_NAMESPACES = "slow-link lossy-link connection"


def spec(world: AnyWorld, family: str) -> RunSpec:
    run, *_ = parse_plan("[worlds.simulated]\n", "p.toml").runs()
    return msgspec.structs.replace(run, world=world, family=family, faults=FaultPlan(families=(family,)))


OF_INSTANCES = ("instance-kill", "instance-stop", "instance-freeze", "instance-scale", "instance-cut")


def nothing_left(world: AnyWorld) -> set[str]:
    """Families of which a world can do nothing."""
    return {name for name in ALL if any(limit.nothing_left for limit in limits.limits_of(spec(world, name)))}


@pytest.mark.parametrize(
    ("world", "impossible"),
    [
        (Simulated(), f"clock connection lossy-link full-disk slow-disk reassign upgrade {' '.join(OF_INSTANCES)}"),
        (Processes(), f"reassign log-directory upgrade {OF_NAMESPACES}"),
        (Processes(host=Namespaces()), "reassign log-directory upgrade"),
        (Kafka(), f"partition outage log-directory {OF_NAMESPACES}"),
        (Kafka(host=Namespaces()), "log-directory"),
        (
            Kafka(host=SSH),
            "power wipe away-wiped corrupt lying-disk full-disk slow-disk clock log-directory upgrade " + OF_NAMESPACES,
        ),
    ],
    ids=["simulated", "processes", "processes in namespaces", "kafka", "kafka in namespaces", "kafka over SSH"],
)
def test_which_families_a_world_can_never_do_on_its_host(world: AnyWorld, impossible: str) -> None:
    assert nothing_left(world) == set(impossible.split())


def test_of_a_cluster_that_exists_only_its_administration_and_the_clients_are_within_reach() -> None:
    assert nothing_left(Existing(bootstrap=("b:9092",))) == ALL - {
        "move", "reassign", "client-crash", "storm", *OF_INSTANCES,
    }  # fmt: skip


def test_links_of_kafka_are_cut_in_namespaces_and_those_of_the_reference_broker_anywhere() -> None:
    (limit,) = limits.limits_of(spec(Kafka(), "partition"))
    assert 'host = "namespaces"' in limit.why
    assert limits.possible_in_namespaces(spec(Kafka(), "partition"), "partition")
    assert limits.limits_of(spec(Processes(), "partition")) == []
    assert not limits.possible_in_namespaces(spec(Kafka(), "log-directory"), "log-directory")


@pytest.mark.parametrize(
    ("family", "without", "why"),
    [
        ("power", "harness.worlds.hosts.disks.os.geteuid", "faults on disks need root"),
        ("slow-disk", "harness.worlds.hosts.disks.os.geteuid", "faults on disks need root"),
        ("clock", "harness.worlds.hosts.clocks.LIBRARIES", "install the package faketime"),
    ],
)
def test_what_only_this_machine_lacks(monkeypatch: pytest.MonkeyPatch, family: str, without: str, why: str) -> None:
    monkeypatch.setattr(without, () if without.endswith("LIBRARIES") else lambda: 1000)
    run_spec = spec(Processes(), family)
    assert limits.limits_of(run_spec) == []
    (limit,) = limits.limits_here(run_spec)
    assert limit.nothing_left
    assert why in limit.why


def test_other_machines_are_not_judged_by_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.worlds.hosts.disks.os.geteuid", lambda: 1000)
    assert limits.limits_here(spec(Kafka(host=SSH), "power")) == []
    assert limits.limits_here(spec(Simulated(), "power")) == []


def test_a_machine_without_nftables_carries_no_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.worlds.hosts.namespaces.os.geteuid", lambda: 0)
    monkeypatch.setattr("harness.worlds.hosts.namespaces.shutil.which", lambda tool: None if tool == "nft" else tool)
    assert "install the package nftables" in limits.host_lacks(Kafka(host=Namespaces()))
    assert limits.host_lacks(Kafka()) == ""


def test_a_release_that_is_not_here_is_a_lack_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    why = limits.release_lacks(spec(Kafka(version="4.1.1"), "kill"))
    assert why.startswith("Apache Kafka 4.1.1 is not in ")
    assert why.endswith("get it with: ackproof kafka install 4.1.1")
