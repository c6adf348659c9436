"""A cluster that is up for people: started as for a run, broken by hand over a socket, healed, and ended in order."""

from harness.runs.cluster.by_hand import BREAKS, NODES, VERBS, ByHand, ClusterRequest
from harness.runs.cluster.cluster_socket import ClusterAnswer, ask, running_cluster, served
from harness.runs.cluster.guarded import Doors
from harness.runs.cluster.started import ClusterByHand, planned

__all__ = [
    "BREAKS",
    "NODES",
    "VERBS",
    "ByHand",
    "ClusterAnswer",
    "ClusterByHand",
    "ClusterRequest",
    "Doors",
    "ask",
    "planned",
    "running_cluster",
    "served",
]
