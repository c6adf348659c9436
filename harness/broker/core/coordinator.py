"""The common part of the coordinators, of transactions and of groups: each is the leader of one log partition.

All that a coordinator decides is a record there, and counts once that record is committed. Another leader reads the log
to its end, and answers nothing before all that it has read is committed (rules 40 and 45).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from harness.broker.core import messages
from harness.broker.core.effects import Context, Timer
from harness.broker.core.log import Log
from harness.broker.core.messages import RecordBatch
from harness.broker.core.replica import Replica
from harness.broker.core.types import (
    ACKS_ALL,
    NO_ERROR,
    OFFSETS_TOPIC,
    ErrorCode,
    Outside,
    TopicConfig,
    TopicPartition,
)

#: Pause between two looks at what is to be repeated, or has lasted for too long.
LOOK_EVERY_MS: Final = 100
#: min.insync.replicas of the log of transactions, as in Kafka (transaction.state.log.min.isr).
TRANSACTIONS_MIN_ISR: Final = 2
#: The name of what reminds coordinators.
LOOK: Final = "coordinate"
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
    _resumed: bool

    def __init__(self, context: Context, write: Callable[[messages.Produce], None], log: TopicPartition) -> None:
        self._context = context
        self._write = write
        self._log = log
        self.resign()

    def resign(self) -> None:
        """Another broker is the coordinator, or none: forget everything."""
        self._replica = None
        self._loaded_end = 0
        self._resumed = False

    def lead(self, replica: Replica) -> None:
        """This broker is the coordinator from now on."""
        self.resign()
        self._replica = replica

    def _read(self, replica: Replica) -> Sequence[RecordBatch]:
        """The batches of the log, all of them: what is not committed yet may become so."""
        self._loaded_end = replica.log.end_offset
        return self._batches_of(replica.log, _EVERYTHING)

    @property
    def log(self) -> TopicPartition:
        """The log partition that has its records."""
        return self._log

    def ready(self) -> Replica | None:
        """The replica that it leads and has read to its end, None while it does not coordinate. This has no effect."""
        return None if self._unable() else self._replica

    def loaded(self) -> Sequence[RecordBatch]:
        """The batches that it has read at its election, or what a cleaner has left of them."""
        log = None if self._replica is None else self._replica.log
        return [] if log is None else self._batches_of(log, self._loaded_end)

    def committed(self, last: int = _EVERYTHING) -> Sequence[RecordBatch]:
        """The batches of its log that are committed, or the ``last`` offsets of them."""
        replica = self._replica
        if replica is None:
            return []
        return self._batches_of(replica.log, replica.high_watermark, replica.high_watermark - last)

    def _batches_of(self, log: Log, end: int, begin: int = 0) -> Sequence[RecordBatch]:
        return [log.as_written(batch) for batch in log.read(max(begin, log.start_offset), end, _EVERYTHING)]

    def _loaded(self, replica: Replica) -> bool:
        """All that was read at the election is committed: only then it counts."""
        return replica.high_watermark >= self._loaded_end

    def _unable(self) -> ErrorCode:
        """The error of every request while this broker does not coordinate."""
        replica = self._replica
        if replica is None or not replica.leading:
            return ErrorCode.NOT_COORDINATOR
        return NO_ERROR if self._loaded(replica) else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def _unavailable(self) -> ErrorCode:
        """The same; without an error this broker goes on from where the coordinator before it was."""
        error = self._unable()
        if not error and not self._resumed:
            self._resumed = True
            self._resume()
        return error

    def _resume(self) -> None:
        """Go on from where the coordinator before was, once what it knew is loaded."""
        raise NotImplementedError

    def on_timer(self, leader_epoch: int) -> None:
        """Do what is due while this broker coordinates in this leader epoch."""
        replica = self._replica
        if replica is None or leader_epoch != replica.leader_epoch:
            return
        self._look_again(replica)
        if not self._unavailable():
            self._look()

    def _look(self) -> None:
        """Do what is due."""
        raise NotImplementedError

    def _append(self, correlation: int, *records: tuple[bytes, bytes], producer: tuple[int, int] | None = None) -> None:
        """Have records written, as one batch, with the transaction of a ``producer`` (its id and epoch) or without.

        The answer has this ``correlation``. A record may be a :class:`Deletion`.
        """
        batch = RecordBatch(len(records), sum(len(value) for _, value in records), records)
        if producer is not None:
            batch = replace(batch, producer_id=producer[0], producer_epoch=producer[1], transactional=True)
        self._write(messages.Produce(correlation, self._log, ACKS_ALL, FOR_EVER_MS, batch))

    def _look_again(self, replica: Replica) -> None:
        self._context.remind(LOOK_EVERY_MS, look_of(self._log, replica.leader_epoch))


def look_of(log: TopicPartition, leader_epoch: int) -> Timer:
    """The reminder of the coordinator on this log to look at what is due in this leader epoch."""
    return Timer(LOOK, (log, leader_epoch))


def log_config(topic: str, defaults: TopicConfig, replicas: int) -> TopicConfig:
    """The settings of a coordinator's log, the topic of this name with this number of ``replicas``.

    Both have the brokers' own ``defaults`` of topics, as in Kafka; that of transactions has a min ISR of its own, and
    no unclean elections. Where topics are compacted they are, too, which Kafka's always are.
    """
    of_groups = topic == OFFSETS_TOPIC
    return TopicConfig(
        min_insync_replicas=min(defaults.min_insync_replicas if of_groups else TRANSACTIONS_MIN_ISR, replicas),
        unclean_leader_election_enable=of_groups and defaults.unclean_leader_election_enable,
        cleanup_policy=defaults.cleanup_policy,
        segment_ms=defaults.segment_ms,
        min_cleanable_dirty_ratio=defaults.min_cleanable_dirty_ratio,
        delete_retention_ms=defaults.delete_retention_ms,
        min_compaction_lag_ms=defaults.min_compaction_lag_ms,
    )


def refusal_of(error: ErrorCode) -> ErrorCode:
    """The error that a client gets whose record the log refused: it is to come back, unless its producer is fenced."""
    if error is ErrorCode.INVALID_PRODUCER_EPOCH:
        return error
    lost = error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NOT_COORDINATOR if lost else ErrorCode.COORDINATOR_NOT_AVAILABLE
