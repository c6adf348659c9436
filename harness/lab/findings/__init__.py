"""The project's findings about Kafka and its clients, each as a script that plays it and says whether it shows.

docs/findings has a page for each number, and ``harness/ground/known_defects.toml`` an entry.
"""

from harness.lab.findings.compiling import CURES, make_patch
from harness.lab.findings.connections import HOST, break_off, frames, relayed, send_frame
from harness.lab.findings.playable import InUse, PlayableFinding, Played, PlayVerdict, Way, expects_nothing
from harness.lab.findings.playing import AsDocumented, PlayRequest, asked_for, compared, held_against_page, plays
from harness.lab.findings.register import FINDINGS
from harness.lab.findings.slow_network import SentBatch, batches_in
from harness.lab.findings.stage import PARTITIONS, NotObservedError, OpenCluster

__all__ = [
    "CURES",
    "FINDINGS",
    "HOST",
    "PARTITIONS",
    "AsDocumented",
    "InUse",
    "NotObservedError",
    "OpenCluster",
    "PlayRequest",
    "PlayVerdict",
    "PlayableFinding",
    "Played",
    "SentBatch",
    "Way",
    "asked_for",
    "batches_in",
    "break_off",
    "compared",
    "expects_nothing",
    "frames",
    "held_against_page",
    "make_patch",
    "plays",
    "relayed",
    "send_frame",
]
