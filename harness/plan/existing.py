"""A cluster that exists already, as a plan names it: ``host = "existing"`` and its bootstrap servers."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from harness.plan.machines import PORT_MAX
from harness.plan.values import Place, Table, list_at, shown
from workloads.plan import WorkloadPlan

EXISTING: Final = "existing"
#: What the cluster brings itself.
_ITS_OWN: Final = ("version", "controllers", "mode")
_SERVER: Final = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>\d{1,5})")
#: Kafka's limit for a topic's name is 249; a run adds a hyphen and its seed.
TOPIC_MAX: Final = 200


def bootstrap_at(table: Table, host: str, workload: WorkloadPlan, place: Place) -> tuple[str, ...]:
    """The servers under ``bootstrap`` in a world's table; none where ``host`` is not "existing".

    Raises:
        PlanError: they are missing, or no "host:port"; or something beside them is the cluster's own.
    """
    if host != EXISTING:
        if "bootstrap" in table:
            raise (place / "bootstrap").wrong(
                'bootstrap servers are for host = "existing"; write that, or leave them out'
            )
        return ()
    if "bootstrap" not in table:
        raise place.wrong(
            'host = "existing" needs bootstrap = ["host:port", ...]: servers of the cluster to start from'
        )
    for key in _ITS_OWN:
        if key in table:
            raise (place / key).wrong("a cluster that exists already brings its own; leave it out")
    if len(workload.topic) > TOPIC_MAX:
        raise (place / "workload").wrong(
            f"topic={shown(workload.topic)} is too long for a run to add its seed; the most is {TOPIC_MAX} letters"
        )
    servers = list_at(table, "bootstrap", [], place)
    return tuple(_server(server, place / "bootstrap") for server in servers)


def own_topic(workload: WorkloadPlan, host: str, seed: int) -> WorkloadPlan:
    """The workload with a topic that only the run with this seed has, where others use the cluster too."""
    if host != EXISTING:
        return workload
    return msgspec.structs.replace(workload, topic=f"{workload.topic}-{seed}")


def _server(server: object, place: Place) -> str:
    found = _SERVER.fullmatch(server) if isinstance(server, str) else None
    if found is None:
        raise place.wrong(f'{shown(server)} is no server; write "host:port", for example "kafka-1.example:9092"')
    if not 0 < int(found["port"]) <= PORT_MAX:
        raise place.wrong(f"port {found['port']} of {shown(server)} is none; ports go from 1 to {PORT_MAX}")
    return found[0]
