"""The places of histories, and their discovery: files and stores, the discovery of histories, scratch directories."""

from typing import Final

#: A directory with this file is a run; its history is in the directory below.
RUN_FILE: Final = "run.json"
HISTORY: Final = "history"
#: JSON lines that ackproof wrote and that are no history.
VERDICTS_FILE: Final = "verdicts.jsonl"
