"""The writes of workloads and their times, and the registry of workloads that a plan can name.

A workload is a generator of :class:`DueWrite` and what it is good for, as data; driver, producers and consumers are
written once against that. A generator is pure: it knows the plan, not the clock, not the log's answers.

To add one: a function here, and an entry in :data:`WORKLOADS`. One with an ending of its own has a file with both
(:mod:`workloads.closings`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice, tee
from typing import Final, Literal, NamedTuple

from workloads.application_closings import of_applications
from workloads.client import ClientCapability
from workloads.closings import (
    MakesClosings,
    nothing_more,
    of_groups,
    of_keyed_transactions,
    of_keys,
    of_pipelines,
    of_transactions,
)
from workloads.plan import LISTED, WorkloadPlan
from workloads.steady_writes import DueWrite, steady

#: Pause between begins of bursts. Longer than a follower's fetch and than most elections, so that the log is idle in
#: between.
BURST_EVERY_US: Final = 1_000_000
#: The rate of writes within a burst, as a multiple of the average: a tenth of the time is busy.
BURST_FACTOR: Final = 10


class WorkloadKind(NamedTuple):
    """One kind of workload.

    Attributes:
        writes: in the order of ``due_us``, without an end unless the plan lists them.
        checks: the anomalies and measures, by the names that verdicts give them, that this workload is made to show.
            All others are judged too.
        keyed: its records have keys over a compacted topic.
        writing: single sends, or sends in transactions.
        reading: assigned log partitions, or a consumer group's; the members of a `pipeline` write what they make of it
            to other topics, in transactions, and so may an `application`, which is a user's program.
        closings: what it does and asks in the end (:mod:`workloads.closings`), beside the final read.
        needs: the capabilities without which it makes no sense; a world whose brokers or clients lack one is refused.
    """

    writes: Callable[[WorkloadPlan], Iterator[DueWrite]]
    checks: tuple[str, ...]
    writing: Literal["single", "transactions"] = "single"
    reading: Literal["assigned", "group", "pipeline", "application"] = "assigned"
    needs: tuple[ClientCapability, ...] = ()
    keyed: bool = False
    closings: MakesClosings = nothing_more

    @property
    def grouped(self) -> bool:
        """True if the members of a consumer group of our own read."""
        return self.reading in {"group", "pipeline"}

    @property
    def applied(self) -> bool:
        """True if a user's program reads."""
        return self.reading == "application"

    @property
    def transactional(self) -> bool:
        """True if some of its producers have transactional ids."""
        return self.writes_in_transactions or self.reading == "pipeline"

    @property
    def writes_in_transactions(self) -> bool:
        """True if its producers write records of their own in transactions."""
        return self.writing == "transactions"

    @property
    def judged_by_age(self) -> bool:
        """True if its records may go when they are older than retention.ms: what is younger is judged as ever.

        A part of a transaction, and what a group has read, is not told from what was lost.
        """
        return not (self.keyed or self.grouped or self.applied or self.transactional)


def bursts(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """The writes of :func:`steady`, those of each second pressed into its first tenth: the same rate over all."""
    for write in steady(plan):
        since_us = write.due_us % BURST_EVERY_US
        yield write._replace(due_us=write.due_us - since_us + since_us // BURST_FACTOR)


def groups(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """The writes of :func:`steady`; a consumer group, whose members come, go, freeze and die, reads and commits."""
    yield from steady(plan)


def transactions(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """Writes in transactions, some aborted, some left half written to a successor.

    The writes of one transaction are due at once, and come one after the other; a producer's go through the log
    partitions in turn.
    """
    yield from _in_transactions(plan, steady(plan))


def _in_transactions(plan: WorkloadPlan, writes: Iterator[DueWrite]) -> Iterator[DueWrite]:
    interval_us = 1_000_000 * plan.sends_per_transaction / plan.writes_per_second
    of_producer = [
        islice(each, number, None, plan.producers) for number, each in enumerate(tee(writes, plan.producers))
    ]
    for number, mine in enumerate(cycle(of_producer)):
        for write in islice(mine, plan.sends_per_transaction):
            yield write._replace(due_us=int(number * interval_us))


def keyed_transactions(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """The writes of :func:`keyed`, values and tombstones, in transactions like those of :func:`transactions`."""
    yield from _in_transactions(plan, keyed(plan))


def pipeline(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """The writes of :func:`steady`; members of a group write one record for each, and commit it, in transactions.

    What they write goes to the log partition of the same number in another topic, `-out` after the first one's name.
    """
    yield from steady(plan)


def application(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """The writes of :func:`steady`, each with an id; your own program, [`[application]`](#application), reads them.

    What it writes to its output is read, and each input is held against its effects.
    """
    yield from steady(plan)


def keyed(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """Values and tombstones of keys that come and go, over a compacted topic; read under each leader in the end.

    In each log partition a key is written, written again, and at the end of its life deleted, or, each second key,
    written a last time. Then nothing is written to it any more. `keys` of them are alive at a time.
    """
    turns = [0] * len(plan.log_partitions)
    for write in steady(plan):
        step, part = divmod(turns[write.partition], 3)
        turns[write.partition] += 1
        number = step - (0, plan.keys // 2, plan.keys)[part]
        tombstone = part == 2 and number >= 0 and number % 2 == 0
        yield write._replace(key=f"key-{number if number >= 0 else step}".encode(), tombstone=tombstone)


#: By the name in a plan.
WORKLOADS: Final[dict[str, WorkloadKind]] = {
    "steady": WorkloadKind(steady, ("lost-write", "unseen", "duplicate", "availability")),
    "bursts": WorkloadKind(bursts, ("lost-write", "unseen", "worst_realtime_lag")),
    "groups": WorkloadKind(
        groups,
        ("group-skip", "group-went-back", "two-owners", "unfenced-instance", "stale-generation"),
        reading="group",
        closings=of_groups,
        needs=(ClientCapability.SUBSCRIPTION, ClientCapability.COMMITS),
    ),
    "keyed": WorkloadKind(
        keyed,
        ("lost-write", "returned-key", "divergent-state", "lost-tombstone", "cleaned-early", "dead-cleaner"),
        needs=(ClientCapability.TOMBSTONES,),
        keyed=True,
        closings=of_keys,
    ),
    "consume-transform-produce": WorkloadKind(
        pipeline,
        (
            "missing-effect",
            "doubled-effect",
            "aborted-commit",
            "unstable-offset",
            "two-owners",
            "unfenced-instance",
            "stale-generation",
            "aborted-read",
            "divergent-reads",
            "torn-transaction",
            "lost-write",
        ),
        reading="pipeline",
        closings=of_pipelines,
        needs=(ClientCapability.SUBSCRIPTION, ClientCapability.COMMITS, ClientCapability.TRANSACTIONS),
    ),
    "application": WorkloadKind(
        application,
        (
            "missing-effect",
            "doubled-effect",
            "reordered-effect",
            "wrong-fold",
            "unexplained-output",
            "stalled-application",
            "lost-write",
        ),
        reading="application",
        closings=of_applications,
        needs=(ClientCapability.COMMITS,),
    ),
    "transactions": WorkloadKind(
        transactions,
        (
            "lost-write",
            "aborted-read",
            "early-read",
            "divergent-reads",
            "torn-transaction",
            "failed-send-committed",
            "zombie",
            "hanging-transaction",
        ),
        writing="transactions",
        closings=of_transactions,
        needs=(ClientCapability.TRANSACTIONS,),
    ),
    "keyed-transactions": WorkloadKind(
        keyed_transactions,
        ("lost-write", "returned-key", "divergent-state", "aborted-read", "torn-transaction", "hanging-transaction"),
        writing="transactions",
        keyed=True,
        closings=of_keyed_transactions,
        needs=(ClientCapability.TRANSACTIONS, ClientCapability.TOMBSTONES),
    ),
}


def _listed(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """The writes that ``plan`` lists, and none after them."""
    for write in plan.writes:
        yield DueWrite(write.due_us, write.producer, write.partition, write.key.encode(), plan.payload_bytes)


_OF_A_LIST: Final = WorkloadKind(_listed, ())


def kind_of(plan: WorkloadPlan) -> WorkloadKind:
    """The kind of the workload that ``plan`` names, or of the writes that it lists."""
    return _OF_A_LIST if plan.name == LISTED else WORKLOADS[plan.name]


#: The end of the name of each topic that a pipeline writes to, after that of the topic that it reads.
OUTPUT: Final = "-out"


def topics_of(plan: WorkloadPlan) -> tuple[str, ...]:
    """The topics of a run, those of the plan first; all have as many log partitions."""
    if plan.application is not None:
        outputs = () if plan.application.shape == "none" else plan.application.output or (plan.topic + OUTPUT,)
        return (*plan.topic_names, *outputs)
    outputs = plan.topic_names if kind_of(plan).reading == "pipeline" else ()
    return (*plan.topic_names, *(name + OUTPUT for name in outputs))
