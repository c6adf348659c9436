"""The project's findings about Kafka and its clients, each as a script that plays it and says whether it shows.

docs/findings has a page for each number, and ``harness/ground/known_defects.toml`` an entry.
"""

from harness.lab.findings.compiling import CURES, make_patch
from harness.lab.findings.playable import InUse, PlayableFinding, Played, PlayVerdict, Way, expects_nothing
from harness.lab.findings.playing import AsDocumented, PlayRequest, asked_for, compared, held_against_page, plays
from harness.lab.findings.register import FINDINGS
from harness.lab.findings.stage import PARTITIONS, OpenCluster

__all__ = [
    "CURES",
    "FINDINGS",
    "PARTITIONS",
    "AsDocumented",
    "InUse",
    "OpenCluster",
    "PlayRequest",
    "PlayVerdict",
    "PlayableFinding",
    "Played",
    "Way",
    "asked_for",
    "compared",
    "expects_nothing",
    "held_against_page",
    "make_patch",
    "plays",
]
