"""Going on with a campaign or a soak that ended early: a run that ended stays, one that did not is performed again.

Both read the run's own record: it is written last, so it says that the run's files are whole.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.ground.errors import ResultsError
from harness.records.files import files_of
from harness.records.run_record import RunRecord, read_record
from harness.runs.run import heal


def record_of_ended(directory: Path) -> RunRecord | None:
    """The record of the run that ended in ``directory``; None where it did not, or its record cannot be read."""
    try:
        record = read_record(directory)
    except ResultsError:
        return None
    return record if record.ended.status in {"completed", "harness-failed"} else None


def undo_and_delete(directory: Path) -> list[str]:
    """Undo what a run left and delete its files: it is performed again. The answer names what was undone.

    Raises:
        HostError: something of it is still there.
        ResultsError: its files cannot be deleted.
    """
    if not directory.exists():
        return []
    undone = heal(directory)
    with files_of(directory):
        shutil.rmtree(directory)
    return undone
