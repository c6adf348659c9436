"""Histories: recorded as rows, stored as Parquet, exchanged as JSON lines.

``HistoryWriter`` is for runs in virtual time (one file, written at the end), ``LiveHistoryWriter`` for runs in real
time (on disk within a second). Both have the same methods.
"""

from workloads.history.files import HistoryError
from workloads.history.jsonl import export_jsonl, import_jsonl
from workloads.history.reader import read_events
from workloads.history.writer import HistoryWriter, LiveHistoryWriter, seal

__all__ = ["HistoryError", "HistoryWriter", "LiveHistoryWriter", "export_jsonl", "import_jsonl", "read_events", "seal"]
