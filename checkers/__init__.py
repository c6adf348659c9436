"""The door of the checkers, which say what a history proves: every name of theirs that the harness uses."""

from checkers.anomalies import ANOMALIES, Finding
from checkers.anomalies.duplicate import Duplicate
from checkers.anomalies.group_skip import SkippedRecord
from checkers.anomalies.inconsistent_offsets import InconsistentOffset
from checkers.anomalies.lost_write import LostWrite
from checkers.anomalies.out_of_sync import ReplicaOutOfSync
from checkers.anomalies.transactions import (
    TornTransaction,
    TransactionRead,
)
from checkers.anomalies.unseen import Unseen
from checkers.anomalies.view import CommitsView, CopiesView, TransactionMoment, TransactionsView, WriteView
from checkers.anomalies.wedged_client import WedgedClient, wedged_clients
from checkers.columns.log_rows import EventPlace
from checkers.columns.replica_file import (
    OF_TRANSACTIONS_AND_KEYS,
    REPLICAS_FILE,
    REPLICAS_META,
    REPLICAS_SCHEMA,
    Ends,
    PartitionEnd,
    TransactionPart,
    read_replicas,
)
from checkers.columns.replica_lines import replica_lines
from checkers.columns.transactions import decoded
from checkers.errors import CheckError, JavaMissingError, SilentMasterError, WrongMasterError
from checkers.histories import HISTORY, RUN_FILE, VERDICTS_FILE
from checkers.histories.discovery import NO_HISTORY, FoundHistory, SourceKind, find_histories
from checkers.histories.scratch import Scratch, ScratchKind, remove_abandoned
from checkers.histories.stores import Place, fetch, files_at, place_of, read_bytes
from checkers.local import check_one, check_rows, lost_in
from checkers.measures.application_counts import ApplicationCounts
from checkers.measures.availability import Availability
from checkers.measures.history_counts import Exercise
from checkers.measures.lag import ConsumerLag
from checkers.measures.latency import Latency, WritesOverTime, end_us, quantile_us
from checkers.measures.recovery import Recovery
from checkers.spark.pipeline import check
from checkers.spark.session import cause_of, end_session, prepare, ship, spark_context
from checkers.verdicts.acceptance import (
    Acceptance,
    AcceptanceStatus,
    DatedCell,
    Earlier,
    acceptance_words,
    accepting,
    more_often,
    runs_showing,
    still_back,
)
from checkers.verdicts.cells import PROMISED_BY, AcceptedFinding, Cell
from checkers.verdicts.copies import fate_of_copies
from checkers.verdicts.coverage import SITUATIONS
from checkers.verdicts.exercised import FamilyExercised, RunsExercised
from checkers.verdicts.figures import FIGURES
from checkers.verdicts.identity import mattering
from checkers.verdicts.judgement import VERDICTS_VERSION, Judgement, VerdictLine, judge
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
from checkers.verdicts.receipts import FaultSeen, TakenCopy, faults_possible, latest_receipts
from checkers.verdicts.run_in_file import RUN
from checkers.verdicts.verdict import RunFacts, Verdict
from checkers.verdicts.witness import Witness
from checkers.verdicts.worlds_compared import WorldsCompared, compare
from checkers.words import counted, held_record, percent, producer_name, seconds, write_name
