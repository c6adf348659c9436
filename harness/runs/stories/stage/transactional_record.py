"""The records of a script's transactions."""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from harness.runs.stories.stage.trace import ACKNOWLEDGED, RecordEnd
from harness.runs.stories.stage.writes import ScriptedRecord
from workloads import SendOutcome
from workloads.driver import SteppedTransaction

#: The fate of a record whose transaction is open.
OPEN: Final = "in an open transaction"
#: The fate of a record, by the answer about its transaction; by any other it is unknown.
_FATES: Final = {"committed": ACKNOWLEDGED, "aborted": "aborted"}


class TransactionalRecord(ScriptedRecord):
    """A record of a transaction: it counts with that."""

    def __init__(self, value: int, transaction: SteppedTransaction) -> None:
        super().__init__(value)
        self._transaction = transaction

    @property
    @override
    def outcome(self) -> SendOutcome | None:
        return self._transaction.answers.get(self.value)

    @property
    @override
    def answered(self) -> bool:
        return self.outcome is not None

    @override
    def end(self) -> RecordEnd:
        """It is acknowledged with its transaction."""
        outcome = self.outcome
        asked = self._transaction.ending_us is not None
        word = _FATES.get(self._transaction.answered, "unknown") if asked else OPEN
        offset, error = (None, None) if outcome is None else (outcome.offset, outcome.error)
        return RecordEnd(value=self.value, outcome=word, offset=offset, error=error)
