"""Makes wrong rules of a line or two, one after the other, and says whether the tests that are to notice do.

Usage: python -m scripts.mutations [COMMIT]

Each is made in a worktree of its own of the commit, by default the present one. Only what `make check` runs is asked.
It takes minutes; docs/decisions/043 has the answers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
CORE: Final = "harness/broker/core"


class Mutation(NamedTuple):
    """A line as it is and as it is made wrong, and the tests that are to notice."""

    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


_SWARM: Final = "tests/harness/worlds/simulated/test_swarm.py::test_"
_TRACES: Final = "tests/harness/lab/conform/test_recorded_traces.py"
_STORIES: Final = "tests/harness/runs/stories/test_table.py"
_GROUPS: Final = "tests/harness/lab/explore/groups/test_group_scopes.py"
_JUDGE: Final = "tests/checkers/anomalies/test_against_the_judge.py"
_OF_GROUPS: Final = "tests/checkers/anomalies/test_groups.py"
_MISSED: Final = "tests/harness/broker/core/test_missed_epoch.py"
_PRODUCER: Final = "tests/harness/worlds/simulated/test_producer_model.py"

MUTATIONS: Final = (
    Mutation(
        f"{CORE}/commit_rule.py",
        "enough = len(replica.maximal_isr) >= replica.min_isr",
        "enough = len(replica.maximal_isr) >= replica.min_isr - 1",
        (_STORIES,),
    ),
    Mutation(
        f"{CORE}/commit_rule.py",
        "return len(replica.isr) >= replica.min_isr",
        "return len(replica.maximal_isr) >= replica.min_isr",
        ("tests/harness/broker/core/test_proposals.py",),
    ),
    Mutation(
        f"{CORE}/commit_rule.py",
        "if self._strict and len(replica.isr) < replica.min_isr:",
        "if self._strict and len(replica.maximal_isr) < replica.min_isr:",
        ("tests/harness/broker/core/test_proposals.py",),
    ),
    Mutation(
        f"{CORE}/replica.py",
        "follower = kind(node, now_us if in_sync else NEVER_US)",
        "follower = kind(node, now_us)",
        (_MISSED,),
    ),
    Mutation(
        f"{CORE}/replica.py",
        "follower.restart_clock(now_us, end, in_sync)",
        "follower.restart_clock(now_us, end, True)",
        (_MISSED,),
    ),
    Mutation(
        f"{CORE}/follower.py",
        "return self.end_offset == leader_end or now_us - self.caught_up_us <= lag_us",
        "return now_us - self.caught_up_us <= 2 * lag_us",
        (_STORIES,),
    ),
    Mutation(
        f"{CORE}/election.py",
        "return epoch, answer.end_offset, answer.broker == ballot.preferred",
        "return epoch, -answer.end_offset, answer.broker == ballot.preferred",
        (f"{_SWARM}a_quorum_that_elects_by_epoch_and_log_end_loses_nothing",),
    ),
    Mutation(
        f"{CORE}/cleaner.py",
        "return type(record) is Deletion and NONE != batch.delete_horizon_us <= now_us",
        "return type(record) is Deletion and NONE != batch.delete_horizon_us",
        ("tests/harness/lab/search/test_compacted_runs.py",),
    ),
    Mutation(
        f"{CORE}/groups/group.py",
        "if now_us - self.heard_us[name] > session_us",
        "if now_us - self.heard_us[name] > 3 * session_us",
        (_TRACES, _STORIES),
    ),
    Mutation(
        f"{CORE}/groups/coordinator.py",
        "return NO_ERROR if message.member_epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH",
        "return NO_ERROR if message.member_epoch <= member.epoch else ErrorCode.STALE_MEMBER_EPOCH",
        ("tests/harness/broker/core/test_groups.py",),
    ),
    Mutation(
        f"{CORE}/transaction_coordinator.py",
        "now_ms - record.begun_ms > record.timeout_ms",
        "now_ms - record.begun_ms > 2 * record.timeout_ms",
        (
            "tests/harness/runs/stories/test_transaction_steps.py",
            _TRACES,
        ),
    ),
    Mutation(
        f"{CORE}/transaction_coordinator.py",
        "for transaction in self._transactions.values():\n            if transaction.record.state in _PREPARED:",
        "for transaction in self._transactions.values():\n            if transaction.record.state is _PREPARED[0]:",
        ("tests/harness/broker/core/test_transactions.py",),
    ),
    Mutation(
        "checkers/anomalies/lost_write.py",
        "due &= (log.order.last_index <= _bound(log)[log.values.partition]) & ~log.removable",
        "due &= (log.order.last_index < _bound(log)[log.values.partition]) & ~log.removable",
        (_JUDGE,),
    ),
    Mutation(
        "checkers/anomalies/lost_write.py",
        "due = (log.order.last_index >= 0) & ~log.seen & (log.writer >= 0)",
        "due = (log.order.last_index >= 0) & (log.writer >= 0)",
        (_JUDGE,),
    ),
    Mutation(
        "checkers/anomalies/lost_write.py",
        "(log.offset[sends] < end[partition])",
        "(log.offset[sends] <= end[partition])",
        ("tests/checkers/anomalies/test_planted_anomalies.py",),
    ),
    Mutation(
        "checkers/anomalies/reordered.py",
        "np.flatnonzero(delta < 0)",
        "np.flatnonzero(delta < -1)",
        (_JUDGE,),
    ),
    Mutation(
        "checkers/anomalies/duplicate.py",
        "several = np.flatnonzero(counts > 1)",
        "several = np.flatnonzero(counts > 2)",
        (_JUDGE,),
    ),
    Mutation(
        "checkers/anomalies/g1a.py",
        "log.sends[log.type[log.sends] == FAIL]",
        "log.sends[log.type[log.sends] != OK]",
        (_JUDGE,),
    ),
    Mutation(
        "checkers/anomalies/group_went_back.py",
        "log.offset[row] < log.offset[commit]",
        "log.offset[row] < log.offset[commit] - 1",
        (_OF_GROUPS,),
    ),
    Mutation(
        "checkers/anomalies/two_owners.py",
        "newest[before[valid]] > since[valid]",
        "newest[before[valid]] >= since[valid]",
        (_OF_GROUPS,),
    ),
    # With >= nothing would change: a completion and an invocation are two events.
    Mutation(
        "checkers/cycles/edges.py",
        "ended(log, candidates.earlier) > began(log, candidates.later)",
        "ended(log, candidates.earlier) > began(log, candidates.later) + 1",
        ("tests/checkers/cycles/test_transactions.py",),
    ),
    Mutation(
        "checkers/cycles/search.py",
        "if len(component) < 2:",
        "if len(component) < 3:",
        (
            "tests/checkers/cycles/test_transactions.py",
            _JUDGE,
        ),
    ),
    Mutation(
        "harness/worlds/simulated/producer.py",
        "connection.in_flight >= self._max_in_flight",
        "connection.in_flight > self._max_in_flight",
        (_PRODUCER,),
    ),
    Mutation(
        "harness/worlds/simulated/producer.py",
        "if batch.attempts > self._retries or now_us >= batch.created_us + self._delivery_us:",
        "if batch.attempts > self._retries:",
        (_PRODUCER,),
    ),
    Mutation(
        "harness/lab/explore/groups/rules.py",
        "if offset < acknowledged[partition]:",
        "if offset < acknowledged[partition] - 1:",
        (_GROUPS,),
    ),
    Mutation(
        "nemesis/schedule.py",
        "most_stopped(parts, brokers, rack_size) > plan.dead_brokers_max",
        "most_stopped(parts, brokers, rack_size) > plan.dead_brokers_max + 1",
        ("tests/nemesis/test_schedule.py",),
    ),
    Mutation(
        "harness/plan/bounds.py",
        "if value > self.most:",
        "if value > self.most + 1:",
        (
            "tests/harness/plan/test_bounds.py",
            "tests/harness/plan/test_plan.py",
        ),
    ),
    Mutation(
        "harness/assess/requirements.py",
        "story.harm in LOSSES and set(story.families) <= set(families)",
        "story.harm in LOSSES and set(story.families) < set(families)",
        (
            "tests/harness/assess/test_forms_of_clients.py",
            "tests/harness/assess/test_answers.py",
        ),
    ),
    Mutation(
        "harness/campaigns/report/certificate.py",
        "lost_at_least=judgement.lost > placed,",
        "lost_at_least=judgement.lost >= placed,",
        ("tests/harness/campaigns/report/test_certificate.py",),
    ),
    Mutation(
        "harness/campaigns/report/certificate.py",
        "if (rest := certificate.lost - places.total()) > 0:",
        "if (rest := certificate.lost - places.total()) > 1:",
        ("tests/harness/campaigns/report/test_certificate.py",),
    ),
    Mutation(
        "harness/campaigns/campaign/pool.py",
        "if worker.job is None and worker.niceness == niceness)",
        "if worker.job is None)",
        ("tests/harness/campaigns/campaign/test_campaign.py",),
    ),
    Mutation(
        "harness/campaigns/campaign/pool.py",
        "if not worker.lives or worker.jobs == self._jobs_max:",
        "if worker.jobs == self._jobs_max:",
        ("tests/harness/campaigns/campaign/test_campaign.py",),
    ),
    Mutation(
        "harness/lab/conform/comparing.py",
        "answers[name] = text if text == core.answers_before.get(name, NO_ANSWER) else now.get(name, NO_ANSWER)",
        "answers[name] = text",
        ("tests/harness/lab/conform/test_changed_traces.py",),
    ),
)


def noticed(mutation: Mutation, tree: Path) -> bool:
    """True if a test fails with the wrong rule. Afterwards the tree is as it was.

    Raises:
        ValueError: the file has not one such line.
    """
    file = tree / mutation.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.right) != 1:
        raise ValueError(f"{mutation.file} has not one {mutation.right!r}")
    file.write_text(text.replace(mutation.right, mutation.wrong), encoding="utf-8")
    asked = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not system and not root", *mutation.tests]
    try:
        done = subprocess.run(  # noqa: S603 - our own
            [sys.executable, *asked],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree)},
            capture_output=True,
            check=False,
        )
    finally:
        file.write_text(text, encoding="utf-8")
    return done.returncode == 1


def main(arguments: Sequence[str]) -> None:
    """Make them all, and say of each whether it was noticed."""
    commit = arguments[0] if arguments else "HEAD"
    with TemporaryDirectory(prefix="mutations-") as scratch:
        tree = Path(scratch) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            for mutation in MUTATIONS:
                word = "noticed" if noticed(mutation, tree) else "NOT NOTICED"
                sys.stdout.write(f"{word}: {mutation.file}: {mutation.wrong}\n")
                sys.stdout.flush()
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=ROOT, check=True)  # noqa: S603, S607 - our own


if __name__ == "__main__":
    main(sys.argv[1:])
