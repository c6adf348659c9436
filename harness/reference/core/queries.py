"""What a leader's log says to a question, without changing anything: refusals, divergence, offsets, ends of epochs."""

from __future__ import annotations

from harness.reference.core.context import Context
from harness.reference.core.epochs import end_of_epoch
from harness.reference.core.messages import (
    EARLIEST,
    LATEST,
    FetchPartition,
    ListOffsets,
    ListOffsetsResponse,
    OffsetForLeaderEpoch,
    OffsetForLeaderEpochResponse,
)
from harness.reference.core.partition import Replica
from harness.reference.core.types import NONE, EpochEnd, ErrorCode, TopicPartition


def unhosted(context: Context, at: TopicPartition) -> ErrorCode:
    """Why a broker without this replica does not answer."""
    if context.image.partition(at) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def refusal(context: Context, replica: Replica, current_leader_epoch: int) -> ErrorCode:
    """Why a request under ``current_leader_epoch`` is not answered; NONE if it is (rules 6 and 17)."""
    if not replica.leading:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if current_leader_epoch in (NONE, replica.leader_epoch) or not context.config.fetch_fencing:
        return ErrorCode.NONE
    if current_leader_epoch < replica.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def divergence(replica: Replica, wanted: FetchPartition) -> EpochEnd | ErrorCode | None:
    """Where the asker's log departs from the leader's (KIP-595), None if it does not, an error out of range."""
    offset, epoch = wanted.fetch_offset, wanted.last_fetched_epoch
    end = replica.log.end_offset
    if epoch == replica.leader_epoch != NONE:
        if offset > end:
            return EpochEnd(epoch, end)
    elif epoch != NONE:
        found = end_of_epoch(replica.log.epochs(), epoch, end)
        if found.leader_epoch == NONE or offset < replica.log.start_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if found.leader_epoch < epoch or found.end_offset < offset:
            return found
    return None if replica.log.start_offset <= offset <= end else ErrorCode.OFFSET_OUT_OF_RANGE


def list_offsets(context: Context, replica: Replica | None, message: ListOffsets) -> ListOffsetsResponse:
    """LATEST is the high watermark for a consumer, the log end offset for a follower; EARLIEST is the log start.

    A new leader's high watermark may lag behind what consumers saw, so LATEST waits for the epoch's start (KIP-207).
    """
    at, correlation = message.partition, message.correlation
    error = unhosted(context, at) if replica is None else refusal(context, replica, message.current_leader_epoch)
    if replica is None or error:
        return ListOffsetsResponse(correlation, at, error)
    if message.timestamp == EARLIEST:
        return ListOffsetsResponse(correlation, at, error, replica.log.start_offset, replica.leader_epoch)
    if message.timestamp != LATEST:  # Batches are opaque here: their times are not known.
        return ListOffsetsResponse(correlation, at, ErrorCode.INVALID_REQUEST)
    if message.replica_id >= 0:
        return ListOffsetsResponse(correlation, at, error, replica.log.end_offset, replica.leader_epoch)
    if replica.high_watermark < replica.epoch_start:
        return ListOffsetsResponse(correlation, at, ErrorCode.OFFSET_NOT_AVAILABLE)
    return ListOffsetsResponse(correlation, at, error, replica.high_watermark, replica.leader_epoch)


def epoch_end(context: Context, replica: Replica | None, message: OffsetForLeaderEpoch) -> OffsetForLeaderEpochResponse:
    """Where an epoch ends in the leader's log (rule 17)."""
    at, correlation = message.partition, message.correlation
    error = unhosted(context, at) if replica is None else refusal(context, replica, message.current_leader_epoch)
    if replica is None or error:
        return OffsetForLeaderEpochResponse(correlation, at, error)
    end = end_of_epoch(replica.log.epochs(), message.leader_epoch, replica.log.end_offset)
    return OffsetForLeaderEpochResponse(correlation, at, error, end)
