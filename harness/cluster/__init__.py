"""A cluster that is up for people: started as for a run, broken by hand over a socket, healed, and ended in order."""

from harness.cluster.by_hand import BREAKS, NODES, VERBS, ByHand, Request
from harness.cluster.cluster_socket import Answer, ask, found, served
from harness.cluster.started import ClusterByHand, planned

__all__ = [
    "BREAKS",
    "NODES",
    "VERBS",
    "Answer",
    "ByHand",
    "ClusterByHand",
    "Request",
    "ask",
    "found",
    "planned",
    "served",
]
