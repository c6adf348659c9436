"""Anomalies of order: where a client's steps through a log partition skip values or go back.

Each is one look at steps of one kind (:mod:`checkers.columns.steps`), and each kernel's docstring is its specification.
In a compacted log a skip counts only over a record that compaction may not remove. All are O(n), and none claims
anything about values whose place is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from checkers.anomalies.anomaly import About, Allowed, Anomaly, Finding, Found
from checkers.columns.ids import Flags
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from checkers.columns.steps import Steps
from checkers.columns.version_order import VersionOrder
from workloads.history import COMMITTED


class OddStep(Finding, kw_only=True):
    """A step from one value to another: inside one ``op``, or from the first of two ``ops`` to the second."""

    delta: int
    values: list[Any] | None = None
    op: EventPlace | None = None
    ops: list[EventPlace] | None = None
    skipped: list[Any] | None = None


def poll_skip(log: Log) -> Found:
    """``poll-skip``: between two polls, a consumer passed over a value of the log.

    Example: a consumer's poll ends with ``b@2``, its next begins with ``d@4``, and another client saw ``c@3``.

    False alarms avoided: holes at which no client saw a value; assignments that drop the partition in between; failed
    and uncertain polls, which are compared but do not move the consumer; values whose place is not known, or where
    other values were seen, too; values that a cleaner or their age may have removed; for a reader of committed records,
    what only readers of uncommitted ones see, and what was aborted.

    A value that is in the log twice counts where it is last, so a duplicate may show as a skip, too.

    Findings: key, delta, ops, skipped (at most 100 values). O(n).
    """
    return _of_both_levels(_skips, log, log.poll_steps, log.other_poll_steps)


def nonmonotonic_poll(log: Log) -> Found:
    """``nonmonotonic-poll``: between two polls, a consumer went back in the log, or read a value again.

    Example: a consumer's poll ends with ``c@3``, its next begins with ``b@2`` (delta -1).

    False alarms avoided: as for ``poll-skip``; a poll that names the log partition and brings nothing forgets the
    place; a fresh client of the same person is another process and starts anywhere.

    Findings: key, delta, values, ops. O(n).
    """
    return _of_both_levels(_reversals, log, log.poll_steps, log.other_poll_steps)


def nonmonotonic_send(log: Log) -> Found:
    """``nonmonotonic-send``: a value that a producer sent later is earlier in the log.

    Example: a producer's operation sends ``c@3 d@4``, its next one ``a@1 b@2``: from ``d`` to ``a`` it went back
    (delta -3). Values of uncertain operations count if a client saw where they are.

    False alarms avoided: failed operations; values whose place is not known; as the reference tool does it, an
    assignment that leaves the partition out also forgets the producer's place.

    Findings: key, delta, values, ops. O(n).
    """
    return _reversals(log, log.order, log.send_steps)


def int_nonmonotonic_poll(log: Log) -> Found:
    """``int-nonmonotonic-poll``: inside one operation, records were read out of the log's order, or one twice.

    Example: one poll returns ``c@3 a@1`` (delta -1 if no client saw anything in between); two polls of one operation
    both return ``c@3`` (delta 0).

    False alarms avoided: as for ``int-poll-skip``.

    Findings: key, values, delta, op. O(n).
    """
    return _of_both_levels(_reversals, log, log.inner_reads, log.other_inner_reads)


def int_poll_skip(log: Log) -> Found:
    """``int-poll-skip``: inside one operation, neighbouring records that were read pass over a value of the log.

    Example: one poll returns ``a@1 d@4``, and another client saw ``b@2``.

    False alarms avoided: those of ``poll-skip``; partitions that a group rebalance touched inside the operation.

    Findings: key, values, delta, skipped (at most 100 values), op. O(n).
    """
    return _of_both_levels(_skips, log, log.inner_reads, log.other_inner_reads)


def int_nonmonotonic_send(log: Log) -> Found:
    """``int-nonmonotonic-send``: the values that one operation sent are in the log in another order.

    Example: an operation sends ``c`` and then ``a``; ``a`` is at 1 and ``c`` at 3. A producer that retries with several
    requests in flight and without idempotence does this.

    False alarms avoided: values whose place is not known.

    Findings: key, values, delta, op. O(n).
    """
    return _reversals(log, log.order, log.inner_sends)


def int_send_skip(log: Log) -> Found:
    """``int-send-skip``: a value of another operation is between two neighbouring sends of one operation.

    Example: one operation sends ``a@1`` and ``c@3``, another one's ``b`` is at 2. Kafka does not isolate writers, so
    this makes no history invalid; it tells how writers interleave. What may be gone is passed over as by ``poll-skip``.

    Findings: key, values, delta, skipped (at most 100 values), op. O(n).
    """
    return _skips(log, log.order, log.inner_sends)


#: In the order in which a report lists them.
ORDER = tuple(
    Anomaly.documented(name, kernel.__doc__, OddStep, kernel, allowed, about=about)
    for name, kernel, allowed, about in (
        ("nonmonotonic-poll", nonmonotonic_poll, Allowed.SUBSCRIBED, About.READERS),
        ("poll-skip", poll_skip, Allowed.SUBSCRIBED, About.READERS),
        ("nonmonotonic-send", nonmonotonic_send, Allowed.NEVER, About.PRODUCERS),
        ("int-nonmonotonic-poll", int_nonmonotonic_poll, Allowed.NEVER, About.READERS),
        ("int-poll-skip", int_poll_skip, Allowed.NEVER, About.READERS),
        ("int-nonmonotonic-send", int_nonmonotonic_send, Allowed.NEVER, About.PRODUCERS),
        ("int-send-skip", int_send_skip, Allowed.ALWAYS, About.PRODUCERS),
    )
)


def _of_both_levels(
    look: Callable[[Log, VersionOrder, Steps], Found], log: Log, of_first: Steps, of_other: Steps
) -> Found:
    """A look at the steps of readers of each isolation level, in the order that this level sees."""
    first = look(log, log.order_of_first, of_first)
    return first if not len(of_other.delta) else first.followed_by(look(log, log.order_of_other, of_other))


def _skips(log: Log, order: VersionOrder, steps: Steps) -> Found:
    """Steps over at least one value, the widest first."""
    wide = steps.where(steps.delta > 1)
    if log.removable.any():
        wide = wide.where(_over_one(order, log, wide, ~log.removable))
    if log.isolation is not None and log.aborted.any():
        committed = log.isolation[wide.later] == COMMITTED
        wide = wide.where(~committed | _over_one(order, log, wide, ~(log.removable | log.aborted)))

    def describe(number: int) -> OddStep:
        step = _step(log, wide, number)
        if step.ops is not None:
            step.values = None
        low = int(order.sure_index[log.value_id[wide.earlier[number]]])
        over = order.between(int(log.partition[wide.later[number]]), low, low + int(wide.delta[number]))
        step.skipped = log.values.number[over].tolist()
        return step

    return Found(partition=log.partition[wide.later], describe=describe, row=wide.later, rank=-wide.delta)


def _over_one(order: VersionOrder, log: Log, wide: Steps, which: Flags) -> Flags:
    """Mark the steps over one of ``which`` values (bool)."""
    holds = np.zeros(len(order.offsets), dtype=bool)
    holds[order.entry_offset[which[order.entry_value]]] = True
    count = np.append(0, np.cumsum(holds))
    low = order.first_offset_id[log.partition[wide.later]] + order.sure_index[log.value_id[wide.earlier]]
    over: Flags = count[low + wide.delta] > count[low + 1]
    return over


def _reversals(log: Log, _: VersionOrder, steps: Steps) -> Found:
    """Steps that go back or stay, the furthest first."""
    back = steps.where(steps.delta < 1)
    return Found(
        partition=log.partition[back.later],
        describe=lambda number: _step(log, back, number),
        row=back.later,
        rank=back.delta,
    )


def _step(log: Log, steps: Steps, number: int) -> OddStep:
    """Describe a step with its two values and the operation, or the two operations, that made it."""
    earlier, later = int(steps.earlier[number]), int(steps.later[number])
    inner = log.index[earlier] == log.index[later]
    return OddStep(
        key=log.key(later),
        delta=int(steps.delta[number]),
        values=[int(log.value[earlier]), int(log.value[later])],
        op=log.op(later) if inner else None,
        ops=None if inner else [log.op(earlier), log.op(later)],
    )
