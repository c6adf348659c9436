"""The verdict of the slow judge: which anomalies a small history holds, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from tests.checkers.judge import applications, groups, keys, logs, transactions
from tests.checkers.judge.told import Told
from workloads.operations import Event

Finding = tuple[object, ...]

#: By the name of the anomaly: its rule.
RULES: dict[str, Callable[[Told], Iterable[Finding]]] = {
    "lost-write": logs.lost_write,
    "unseen": logs.unseen,
    "expired-write": logs.expired_write,
    "duplicate": logs.duplicate,
    "inconsistent-offsets": logs.inconsistent_offsets,
    "phantom-read": logs.phantom_read,
    "corrupt-read": logs.corrupt_read,
    "G1a": logs.g1a,
    "aborted-read": transactions.aborted_read,
    "early-read": transactions.early_read,
    "torn-transaction": transactions.torn_transaction,
    "failed-send-committed": transactions.failed_send_committed,
    "zombie": transactions.zombie,
    "hanging-transaction": transactions.hanging_transaction,
    "precommitted-read": transactions.precommitted_read,
    "nonmonotonic-poll": partial(logs.poll_order, skips=False, inside=False),
    "poll-skip": partial(logs.poll_order, skips=True, inside=False),
    "nonmonotonic-send": partial(logs.send_order, skips=False, inside=False),
    "int-nonmonotonic-poll": partial(logs.poll_order, skips=False, inside=True),
    "int-poll-skip": partial(logs.poll_order, skips=True, inside=True),
    "int-nonmonotonic-send": partial(logs.send_order, skips=False, inside=True),
    "int-send-skip": partial(logs.send_order, skips=True, inside=True),
    "reordered": logs.reordered,
    "divergent-reads": logs.divergent_reads,
    "unfounded-out-of-order": logs.unfounded_out_of_order,
    "group-skip": groups.group_skip,
    "group-went-back": groups.group_went_back,
    "returned-group": groups.returned_group,
    "two-owners": groups.two_owners,
    "unfenced-instance": groups.unfenced_instance,
    "stale-generation": groups.stale_generation,
    "missing-effect": lambda told: (*groups.missing_effect(told), *applications.missing_effect(told)),
    "doubled-effect": lambda told: (*groups.doubled_effect(told), *applications.doubled_effect(told)),
    "unexplained-output": applications.unexplained_output,
    "stalled-application": applications.stalled_application,
    "crash-loop": applications.crash_loop,
    "reordered-effect": applications.reordered_effect,
    "wrong-fold": applications.wrong_fold,
    "aborted-commit": groups.aborted_commit,
    "unstable-offset": groups.unstable_offset,
    "returned-key": keys.returned_key,
    "lost-tombstone": partial(keys.gone_early, tombstones=True),
    "cleaned-early": partial(keys.gone_early, tombstones=False),
    "divergent-state": keys.divergent_state,
}


def by_the_judge(events: Iterable[Event]) -> dict[str, set[Finding]]:
    """The anomalies that a history holds, by name, each with its places."""
    told = Told(events)
    every = {name: set(rule(told)) for name, rule in RULES.items()}
    return {name: findings for name, findings in every.items() if findings}
