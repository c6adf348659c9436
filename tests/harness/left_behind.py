"""A journal of an effect that was or was not undone, for tests of what is said of it."""

from __future__ import annotations

from pathlib import Path

from harness.records.journal import FILE_NAME, Journal


def announce_namespace(directory: Path, *, undone: bool) -> None:
    """Write the journal of a namespace of another start of the machine, so that healing has nothing to do."""
    journal = Journal(directory / FILE_NAME)
    entry = journal.intend("namespace", {"name": "ackp-none-0", "boot_id": "another"})
    if undone:
        journal.done(entry)
    journal.close()
