"""What a history proves: the door of the checkers, and all of them that the harness uses.

Each name is loaded when it is first asked for. The door stands in the way of everybody who imports any module below it,
the workers of a Spark cluster among them, who have neither the package of faults nor what only the driver needs; and
of the command line, which would wait for libraries that most commands never use. See docs/decisions.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from checkers.anomalies import ANOMALIES, Finding
    from checkers.anomalies.divergent_replicas import DivergentReplicas
    from checkers.anomalies.duplicate import Duplicate
    from checkers.anomalies.inconsistent_offsets import InconsistentOffset
    from checkers.anomalies.lost_write import LostWrite
    from checkers.anomalies.unseen import Unseen
    from checkers.anomalies.wedged_client import WedgedClient, wedged_clients
    from checkers.columns.replica_file import (
        REPLICAS_FILE,
        REPLICAS_META,
        REPLICAS_SCHEMA,
        Ends,
        PartitionEnd,
        read_replicas,
    )
    from checkers.errors import CheckError, JavaMissingError
    from checkers.histories import HISTORY, RUN_FILE, VERDICTS_FILE
    from checkers.histories.discovery import NO_HISTORY, FoundHistory, SourceKind, find_histories
    from checkers.histories.scratch import remove_abandoned
    from checkers.histories.stores import Place, fetch, files_at, place_of, read_bytes
    from checkers.local import check_one, check_rows
    from checkers.measures.availability import Availability
    from checkers.measures.exercise import Exercise
    from checkers.measures.latency import Latency, WritesOverTime, end_us, quantile_us
    from checkers.measures.recovery import Recovery
    from checkers.spark.pipeline import check
    from checkers.spark.session import end_session, prepare, spark_context
    from checkers.verdicts.cells import PROMISED_BY, Cell, Witness
    from checkers.verdicts.copies import fate_of_copies
    from checkers.verdicts.coverage import SITUATIONS
    from checkers.verdicts.judgement import VERDICTS_VERSION, Judgement, RunFacts, VerdictLine, judge
    from checkers.verdicts.matrix import (
        MATRIX_VERSION,
        STRONGEST_FIRST,
        Matrix,
        Summary,
        build_matrix,
        matrix_of,
        settings_words,
    )
    from checkers.verdicts.outcome import Outcome, exit_code_of
    from checkers.verdicts.partial_verdict import SHOWN
    from checkers.verdicts.promises import NEVER, promise_under
    from checkers.verdicts.proportions import Proportion, proportion
    from checkers.verdicts.receipts import Copy, FaultSeen, faults_possible, read_receipts
    from checkers.verdicts.verdict import Verdict
    from checkers.verdicts.worlds_compared import Comparison, compare
    from checkers.words import counted

#: Every name of the door by where it comes from: the imports above, for the program.
_HOMES = {
    "checkers.anomalies": "ANOMALIES Finding",
    "checkers.anomalies.divergent_replicas": "DivergentReplicas",
    "checkers.anomalies.duplicate": "Duplicate",
    "checkers.anomalies.inconsistent_offsets": "InconsistentOffset",
    "checkers.anomalies.lost_write": "LostWrite",
    "checkers.anomalies.unseen": "Unseen",
    "checkers.anomalies.wedged_client": "WedgedClient wedged_clients",
    "checkers.columns.replica_file": "REPLICAS_FILE REPLICAS_META REPLICAS_SCHEMA Ends PartitionEnd read_replicas",
    "checkers.errors": "CheckError JavaMissingError",
    "checkers.histories": "HISTORY RUN_FILE VERDICTS_FILE",
    "checkers.histories.discovery": "NO_HISTORY FoundHistory SourceKind find_histories",
    "checkers.histories.scratch": "remove_abandoned",
    "checkers.histories.stores": "Place fetch files_at place_of read_bytes",
    "checkers.local": "check_one check_rows",
    "checkers.measures.availability": "Availability",
    "checkers.measures.exercise": "Exercise",
    "checkers.measures.latency": "Latency WritesOverTime end_us quantile_us",
    "checkers.measures.recovery": "Recovery",
    "checkers.spark.pipeline": "check",
    "checkers.spark.session": "end_session prepare spark_context",
    "checkers.verdicts.cells": "PROMISED_BY Cell Witness",
    "checkers.verdicts.worlds_compared": "Comparison compare",
    "checkers.verdicts.copies": "fate_of_copies",
    "checkers.verdicts.coverage": "SITUATIONS",
    "checkers.verdicts.judgement": "VERDICTS_VERSION Judgement RunFacts VerdictLine judge",
    "checkers.verdicts.matrix": ("MATRIX_VERSION STRONGEST_FIRST Matrix Summary build_matrix matrix_of settings_words"),
    "checkers.verdicts.outcome": "Outcome exit_code_of",
    "checkers.verdicts.partial_verdict": "SHOWN",
    "checkers.verdicts.promises": "NEVER promise_under",
    "checkers.verdicts.proportions": "Proportion proportion",
    "checkers.verdicts.receipts": "Copy FaultSeen faults_possible read_receipts",
    "checkers.verdicts.verdict": "Verdict",
    "checkers.words": "counted",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a name when it is first asked for."""
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value
