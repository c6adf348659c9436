"""The places of histories, and their discovery: files and stores, the discovery of histories, scratch directories."""

from typing import Final

#: What makes a directory a run, and where it keeps its history.
RUN_FILE: Final = "run.json"
HISTORY: Final = "history"
#: JSON lines that we wrote and that are no history.
VERDICTS_FILE: Final = "verdicts.jsonl"
