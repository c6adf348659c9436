"""Campaigns and nights beside each other: their cells, the anomalies of each cell, and when one night is worse."""

from harness.campaigns.comparison.acceptance import (
    accept_commands,
    accepted_sentences,
    accepting_sentences,
    each_accept_command,
    red_sentences,
)
from harness.campaigns.comparison.cell_anomalies import CellAnomaly, CellFinding, FindingStatus, cell_anomalies_of
from harness.campaigns.comparison.changes import DEFECTS, SAYING, CellChange, Change, Compared, compare_results
from harness.campaigns.comparison.expectations import expected_sentences, unexpected
from harness.campaigns.comparison.finding_sentences import cells_by_status, finding_sentences
from harness.campaigns.comparison.findings import (
    ComparedFinding,
    Example,
    Results,
    read_results,
    results_of,
    shown_by,
)
from harness.campaigns.comparison.product_findings import Ran, fits, offered_sentences, ran_by
from harness.campaigns.comparison.sentences import figures_of, made_with, sentences, side_by_side
from harness.campaigns.comparison.settings import Differing, differing

__all__ = [
    "DEFECTS",
    "SAYING",
    "CellAnomaly",
    "CellChange",
    "CellFinding",
    "Change",
    "Compared",
    "ComparedFinding",
    "Differing",
    "Example",
    "FindingStatus",
    "Ran",
    "Results",
    "accept_commands",
    "accepted_sentences",
    "accepting_sentences",
    "cell_anomalies_of",
    "cells_by_status",
    "compare_results",
    "differing",
    "each_accept_command",
    "expected_sentences",
    "figures_of",
    "finding_sentences",
    "fits",
    "made_with",
    "offered_sentences",
    "ran_by",
    "read_results",
    "red_sentences",
    "results_of",
    "sentences",
    "shown_by",
    "side_by_side",
    "unexpected",
]
