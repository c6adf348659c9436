"""Assesses the configuration of a cluster that exists: what it promises, and what is known to go wrong under it.

It reads and changes nothing. Files (:mod:`cluster_files`, :mod:`client_files`) or a live cluster become data
(:mod:`configuration`), topics of the same answer a group (:mod:`grouping`), group and producer the settings of the
simulation (:mod:`reckoning`). Then stories are performed (:mod:`performing`, :mod:`causes`), and defects and risks
looked up (:mod:`defects`, :mod:`risks`).
"""

from harness.assess.assessing import assess
from harness.assess.assessment import ASSESSMENT_VERSION, Assessed, Assessment, Concern, Promised, Requirement, Shown
from harness.assess.client_files import assumed_client, clients_named
from harness.assess.cluster_files import ClusterFiles
from harness.assess.configuration import Client, Cluster, Release, Topic
from harness.assess.performing import Stage
from harness.assess.sentences import lines_of

__all__ = [
    "ASSESSMENT_VERSION",
    "Assessed",
    "Assessment",
    "Client",
    "Cluster",
    "ClusterFiles",
    "Concern",
    "Promised",
    "Release",
    "Requirement",
    "Shown",
    "Stage",
    "Topic",
    "assess",
    "assumed_client",
    "clients_named",
    "lines_of",
]
