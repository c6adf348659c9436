"""What campaigns and nights found, one beside the other: findings by identity, cells by name, and when one is worse."""

from harness.comparison.changes import DEFECTS, SAYING, CellChange, Change, Compared, compare_results
from harness.comparison.findings import (
    Example,
    Fate,
    Finding,
    Results,
    Traced,
    key_of,
    read_results,
    results_of,
    shown_by,
    trace,
)
from harness.comparison.sentences import figures_of, finding_sentences, made_with, sentences, side_by_side

__all__ = [
    "DEFECTS",
    "SAYING",
    "CellChange",
    "Change",
    "Compared",
    "Example",
    "Fate",
    "Finding",
    "Results",
    "Traced",
    "compare_results",
    "figures_of",
    "finding_sentences",
    "key_of",
    "made_with",
    "read_results",
    "results_of",
    "sentences",
    "shown_by",
    "side_by_side",
    "trace",
]
