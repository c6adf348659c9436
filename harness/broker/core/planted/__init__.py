"""Planted bugs: rules of the core in a wrong form, one at a time, to find out whether the checkers would notice.

This is the only place where a rule can be broken on purpose. A bug is a subclass of the part that has the rule, with
the method that does it wrong; :func:`with_bug` gives that class instead of the right one to the node that starts.
So the rules themselves know nothing of it, and nothing is asked on their way. The switch is the setting ``planted.bug``
of the reference broker; Apache Kafka's worlds refuse it like every rule that their release does not have.

A new one is a class in a module of this package, a line in ``WRONG`` and a word in
:data:`workloads.planted_bugs.PlantedBug`; docs/guides/hunt.md says what finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from harness.broker.core.cleaner import Cleaner
from harness.broker.core.controller import Controller
from harness.broker.core.fetcher import Fetcher
from harness.broker.core.groups.coordinator import GroupCoordinator
from harness.broker.core.log import MemoryLog
from harness.broker.core.planted import (
    answering,
    cleaning,
    controlling,
    following,
    generations,
    grouping,
    in_sync,
    leading,
    piping,
    storing,
    transacting,
)
from harness.broker.core.replica import Replica
from harness.broker.core.request_handler import RequestHandler
from harness.broker.core.transaction_coordinator import TransactionCoordinator

Part = TypeVar("Part")

#: By the name of the bug and the right part.
WRONG: Final[Mapping[tuple[str, type], type]] = {
    ("acknowledge-after-append", RequestHandler): answering.AcknowledgesAfterAppend,
    ("append-below-min-isr", Replica): leading.AppendsBelowMinIsr,
    ("refuse-after-append", Replica): leading.RefusesAfterAppend,
    ("shrink-before-acceptance", Replica): in_sync.ShrinksBeforeAcceptance,
    ("commit-largest-log-end", Replica): leading.CommitsLargestLogEnd,
    ("join-by-high-watermark", Replica): in_sync.JoinsByHighWatermark,
    ("forget-epoch-start", Replica): leading.ForgetsEpochStart,
    ("compare-with-new-leader-only", Fetcher): following.ComparesWithNewLeaderOnly,
    ("truncate-to-high-watermark", Replica): following.TruncatesToHighWatermark,
    ("fetch-from-any-epoch", RequestHandler): answering.AcceptsFetchesOfAnyEpoch,
    ("ignore-broker-epoch", Replica): in_sync.IgnoresBrokerEpochs,
    ("keep-fenced-in-isr", Controller): controlling.KeepsFencedInIsr,
    ("eligible-after-unclean-stop", Controller): controlling.KeepsEligibleAfterUncleanStop,
    ("remember-one-batch", Replica): leading.RemembersOneBatch,
    ("forget-producers-on-election", Replica): leading.ForgetsProducersOnElection,
    ("flush-on-leader-only", Replica): following.FlushesOnLeaderOnly,
    ("skip-bad-batch", MemoryLog): storing.SkipsBadBatches,
    ("count-diverging-fetch", RequestHandler): answering.CountsDivergingFetches,
    ("high-watermark-before-truncation", Fetcher): following.TakesHighWatermarkBeforeTruncation,
    ("commit-offsets-after-append", RequestHandler): answering.CommitsOffsetsAfterAppend,
    ("accept-deposed-proposal", Controller): controlling.AcceptsProposalsOfDeposedLeaders,
    ("accept-refused-proposal", Controller): controlling.AcceptsRefusedProposals,
    ("keep-follower-progress", Replica): leading.KeepsFollowerProgress,
    ("join-anywhere", Replica): in_sync.JoinsAnywhere,
    ("commit-with-two", Replica): leading.CommitsWithTwo,
    ("truncate-one-too-many", Replica): following.TruncatesOneTooMany,
    ("checkpoint-log-end", MemoryLog): storing.CheckpointsLogEnd,
    ("keep-elr-after-unclean-election", Controller): controlling.KeepsElrAfterUncleanElection,
    ("forget-producer-ids", Controller): controlling.ForgetsProducerIds,
    ("elect-last-leader-over-eligible", Controller): controlling.ElectsLastLeaderOverEligible,
    ("unclean-over-eligible", Controller): controlling.ElectsUncleanlyOverEligible,
    ("accept-fenced-member", Controller): controlling.AcceptsFencedMembers,
    ("accept-fenced-member", Replica): in_sync.JoinsWhileFenced,
    ("keep-fenced-out", Replica): in_sync.KeepsFencedOut,
    ("propose-again", Replica): in_sync.ProposesAgain,
    ("retry-without-epoch", Fetcher): following.RetriesWithoutEpoch,
    ("keep-torn-batch", MemoryLog): storing.KeepsTornBatches,
    ("stay-closed", MemoryLog): storing.StaysClosed,
    ("remove-tombstone-early", Cleaner): cleaning.RemovesTombstonesOnePassEarly,
    ("clean-above-high-watermark", Cleaner): cleaning.CleansAboveHighWatermark,
    ("keep-first-value", Cleaner): cleaning.KeepsFirstValues,
    ("ignore-compaction-lag", Cleaner): cleaning.IgnoresCompactionLag,
    ("marker-of-any-epoch", Replica): transacting.TakesAnyMarker,
    ("forget-abort-on-follower", Replica): transacting.ForgetsAborts,
    ("pass-hanging-transaction", Replica): transacting.PassesHangingTransactions,
    ("answer-before-decision", TransactionCoordinator): transacting.AnswersBeforeDecision,
    ("markers-uncommitted", TransactionCoordinator): transacting.SendsMarkersUncommitted,
    ("commit-of-any-member", GroupCoordinator): grouping.TakesAnyCommit,
    ("assign-unrevoked", GroupCoordinator): grouping.AssignsUnrevoked,
    ("load-first-commits", GroupCoordinator): grouping.LoadsFirstCommits,
    ("load-no-members", GroupCoordinator): grouping.LoadsNoMembers,
    ("keep-generation", GroupCoordinator): generations.KeepsGeneration,
    ("assignment-of-before", GroupCoordinator): generations.HandsOutOldAssignments,
    ("commit-of-before", GroupCoordinator): generations.TakesOldCommits,
    ("count-pending-offsets", GroupCoordinator): piping.CountsPendingOffsets,
    ("count-aborted-offsets", GroupCoordinator): piping.CountsAbortedOffsets,
    ("keep-pending-offsets", GroupCoordinator): piping.KeepsPendingOffsets,
    ("offsets-of-any-member", GroupCoordinator): piping.TakesOffsetsOfAnyMember,
    ("answer-unstable-offsets", GroupCoordinator): piping.AnswersUnstableOffsets,
    ("offsets-of-any-epoch", Replica): piping.TakesOffsetsOfAnyEpoch,
}


def with_bug(part: type[Part], bug: str) -> type[Part]:
    """The class that takes the place of ``part`` while ``bug`` is planted: ``part`` itself if it is not about it."""
    return WRONG.get((bug, part), part)
