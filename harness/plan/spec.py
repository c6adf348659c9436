"""One run, as data, and the names that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, Literal

import msgspec

from harness.hosts.ssh.inventory import Machine
from harness.security import OPEN, Security
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

#: Libraries whose producers and consumers a real world can use; adapters stand in harness.clients.choice.
ClientName = Literal["kafka-python", "confluent-kafka"]
#: Where Kafka keeps its metadata.
ModeName = Literal["kraft", "zookeeper"]
WorldName = Literal["simulated", "processes", "kafka"]
#: Where real nodes live.
HostName = Literal["loopback", "namespaces", "ssh", "existing"]

#: The settings that every cell names, and how they are called in its name.
SHORT_NAMES: Final[Mapping[str, str]] = {
    "acks": "acks",
    "min.insync.replicas": "isr",
    "unclean.leader.election.enable": "unclean",
}


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run: a plan with one choice of settings, one fault family and one seed. Written as ``run.json``.

    ``cell`` names settings and family within the campaign (``acks=all,isr=2,unclean=false/kill``); ``settings`` is
    complete and under Kafka's names; ``host`` is where real nodes live; ``version`` is the release of Apache
    Kafka in the kafka world, empty for the default one; ``client`` is what real worlds read and write with;
    ``machines`` are those of host "ssh", ``bootstrap`` the servers of a cluster that exists already, ``security``
    what they demand; ``controllers`` and ``mode`` are Kafka's, the reference has one controller.
    """

    world: WorldName
    cell: str
    family: str
    settings: dict[str, Any]
    workload: WorkloadPlan
    faults: FaultPlan
    seed: int
    brokers: int = 3
    controllers: int = 1
    mode: ModeName = "kraft"
    host: HostName = "loopback"
    version: str = ""
    client: ClientName = "kafka-python"
    machines: tuple[Machine, ...] = ()
    bootstrap: tuple[str, ...] = ()
    security: Security = OPEN

    def chosen(self) -> Settings:
        """The settings as an object."""
        return Settings.from_mapping(self.settings)

    def directory(self) -> PurePosixPath:
        """Where the run leaves its files, relative to its campaign; unique within the campaign."""
        return PurePosixPath("runs", self.world, self.cell, str(self.seed))


def settings_label(settings: Mapping[str, object], axes: Iterable[str] = ()) -> str:
    """``acks=all,isr=2,unclean=false``, then every other axis of the matrix under its full name."""
    shown = dict.fromkeys([*SHORT_NAMES, *axes])
    return ",".join(f"{SHORT_NAMES.get(name, name)}={_shown(settings[name])}" for name in shown)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
