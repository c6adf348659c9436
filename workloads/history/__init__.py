"""Histories: recorded as rows, stored as Parquet, exchanged as JSON lines.

``HistoryWriter`` is for runs in virtual time (one file, written at the end), ``LiveHistoryWriter`` for runs in real
time (on disk within a second). Both have the same methods. Checkers read rows by column:
:mod:`workloads.history.schema` has the layout and its codes.
"""

from workloads.history.clustering import ROWS_A_GROUP, Flags, Subjects, cluster, joined, subjects
from workloads.history.exporting import export_jsonl
from workloads.history.files import (
    CLUSTERED,
    LIVE_PATTERN,
    HistoryError,
    check_metadata,
    completed,
    live_files,
    open_file,
    open_writer,
)
from workloads.history.foreign import KINDS, HistoryKind, import_history, recognised
from workloads.history.importing import DecodeAll, Decoded, Split, decode, decode_here, import_jsonl
from workloads.history.origin import ORIGIN_FILE, REPLICA_LINES, Origin, shown_key
from workloads.history.reader import Needed, read_events, read_rows
from workloads.history.rows import Columns, HistoryInMemory, Names, Rows, to_table
from workloads.history.schema import (
    COMMITTED,
    DEFECTS,
    FAIL,
    FUNCTION_CODE,
    GROUPED,
    INFO,
    INVOKE,
    ISOLATIONS,
    MARKS,
    META_COMPLETE,
    META_EVENTS,
    META_JOINED,
    META_RUN,
    META_SPREAD,
    META_SUBJECTS,
    META_TRANSACTIONS,
    NONE,
    OK,
    SCHEMA,
    UNCOMMITTED,
    Kind,
    or_none,
)
from workloads.history.sealing import seal
from workloads.history.writer import HistoryWriter, LiveHistoryWriter

__all__ = [
    "CLUSTERED", "COMMITTED", "DEFECTS", "FAIL", "FUNCTION_CODE", "GROUPED", "INFO", "INVOKE", "ISOLATIONS", "KINDS",
    "LIVE_PATTERN", "MARKS", "META_COMPLETE", "META_EVENTS", "META_JOINED", "META_RUN", "META_SPREAD", "META_SUBJECTS",
    "META_TRANSACTIONS", "NONE", "OK", "ORIGIN_FILE", "REPLICA_LINES", "ROWS_A_GROUP", "SCHEMA", "UNCOMMITTED",
    "Columns", "DecodeAll", "Decoded", "Flags", "HistoryError", "HistoryInMemory", "HistoryKind", "HistoryWriter",
    "Kind", "LiveHistoryWriter", "Names", "Needed", "Origin", "Rows", "Split", "Subjects",
    "check_metadata", "cluster", "completed", "decode", "decode_here", "export_jsonl", "import_history", "import_jsonl",
    "joined", "live_files", "open_file", "open_writer", "or_none", "read_events", "read_rows", "recognised", "seal",
    "shown_key", "subjects", "to_table",
]  # fmt: skip
