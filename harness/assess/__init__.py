"""Assesses the configuration of a cluster that exists: what it promises, and what is known to go wrong under it.

It reads and changes nothing. Files (:mod:`cluster_files`, :mod:`client_files`) or a live cluster become data
(:mod:`configuration`), topics of the same answer a group (:mod:`grouping`), group and producer the settings of the
simulation (:mod:`reckoning`). Then stories are performed (:mod:`performing`, :mod:`causes`), and defects and risks
looked up (:mod:`defects`, :mod:`risks`). Words (:mod:`sentences`) become lines (:mod:`lines`) and pages (:mod:`pages`).
"""

from harness.assess.assessing import assess
from harness.assess.baseline import compared, read_baseline
from harness.assess.client_files import assumed_client, clients_named
from harness.assess.cluster_files import ClusterFiles
from harness.assess.configuration import Client, Cluster, NotUnderstood, Question, Release, Topic
from harness.assess.lines import lines_of
from harness.assess.live import read_live
from harness.assess.pages import as_markdown, as_page
from harness.assess.performing import Performer
from harness.assess.requirements import exit_code_of, families_required, judged
from harness.records.assessment_file import (
    ASSESSMENT_VERSION,
    Assessed,
    Assessment,
    Concern,
    Promised,
    Requirement,
    ShownStory,
)

__all__ = [
    "ASSESSMENT_VERSION",
    "Assessed",
    "Assessment",
    "Client",
    "Cluster",
    "ClusterFiles",
    "Concern",
    "NotUnderstood",
    "Performer",
    "Promised",
    "Question",
    "Release",
    "Requirement",
    "ShownStory",
    "Topic",
    "as_markdown",
    "as_page",
    "assess",
    "assumed_client",
    "clients_named",
    "compared",
    "exit_code_of",
    "families_required",
    "judged",
    "lines_of",
    "read_baseline",
    "read_live",
]
