"""The common part of the coordinators, of transactions and of groups: each is the leader of one log partition.

All that a coordinator decides is a record there, and counts once that record is committed. Another leader reads the log
to its end, and answers nothing before all that it has read is committed (rules 40 and 45).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from harness.reference.core import messages
from harness.reference.core.effects import Context, Timer
from harness.reference.core.messages import RecordBatch
from harness.reference.core.replica import Replica
from harness.reference.core.types import ACKS_ALL, NO_ERROR, ErrorCode, Outside, TopicPartition

#: Pause between two looks at what is to be repeated, or has lasted for too long.
LOOK_EVERY_MS: Final = 100
#: No write waits for so long: its answer comes when it is committed, or when another broker leads.
FOR_EVER_MS: Final = 10**9
_EVERYTHING: Final = 2**62


class Coordinator:
    """The coordinator's part of one broker. It does something only while that leads ``log``.

    Args:
        context: the broker's.
        write: appends to a log of this broker, and has it answer to itself.
        log: the log partition that has the coordinator's records.
    """

    _context: Context
    _write: Outside[Callable[[messages.Produce], None]]
    _log: Outside[TopicPartition]
    _replica: Replica | None
    _loaded_end: int

    def __init__(self, context: Context, write: Callable[[messages.Produce], None], log: TopicPartition) -> None:
        self._context = context
        self._write = write
        self._log = log
        self.resign()

    def resign(self) -> None:
        """Another broker is the coordinator, or none: forget everything."""
        self._replica = None
        self._loaded_end = 0

    def lead(self, replica: Replica) -> None:
        """This broker is the coordinator from now on."""
        self.resign()
        self._replica = replica

    def _read(self, replica: Replica) -> Iterator[Any]:
        """The records of the log, all of them: what is not committed yet may become so."""
        log = replica.log
        self._loaded_end = log.end_offset
        for batch in log.read(log.start_offset, _EVERYTHING, _EVERYTHING):
            yield from batch.records

    def _loaded(self, replica: Replica) -> bool:
        """All that was read at the election is committed: only then it counts."""
        return replica.high_watermark >= self._loaded_end

    def _serves(self, replica: Replica) -> bool:
        return replica.leading and self._loaded(replica)

    def _unavailable(self) -> ErrorCode:
        """The error of every request while this broker does not coordinate."""
        replica = self._replica
        if replica is None or not replica.leading:
            return ErrorCode.NOT_COORDINATOR
        return NO_ERROR if self._loaded(replica) else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def _append(self, correlation: int, *records: tuple[bytes, bytes]) -> None:
        """Have records written, as one batch; the answer has this ``correlation``."""
        batch = RecordBatch(len(records), sum(len(value) for _, value in records), records)
        self._write(messages.Produce(correlation, self._log, ACKS_ALL, FOR_EVER_MS, batch))

    def _look_again(self, replica: Replica, look: Timer) -> None:
        self._context.remind(LOOK_EVERY_MS, Timer(look.name, replica.leader_epoch))


def refusal_of(error: ErrorCode) -> ErrorCode:
    """The error that a client gets whose record the log refused: it is to come back."""
    lost = error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NOT_COORDINATOR if lost else ErrorCode.COORDINATOR_NOT_AVAILABLE
