"""Wrong rules of coordinators, cleaning and retention, none of them a planted bug: a hunt notices each.

Each is one text of the source in a wrong form, with the portfolio that has its workload and what is set beside.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest

from tests.harness.lab.search.patched_core import ROOT, alarmed

CORE: Final = "harness/broker/core"


class WrongRule(NamedTuple):
    """A rule as it is and as it is made wrong, where it is hunted, and an alarm that rings."""

    meaning: str
    file: str
    right: str
    wrong: str
    portfolio: str
    rings: str
    changed: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    runs: int = 12


#: Segments of a topic without keys that go while a run lasts.
EXPIRING: Final = {"settings": {"retention.ms": 5_000, "segment.ms": 1_000}}

WRONG_RULES: Final = (
    WrongRule(
        "a repeated end decides again",
        f"{CORE}/transaction_coordinator.py",
        "elif record.state is TransactionState.ONGOING:\n            state",
        "elif record.state in {TransactionState.ONGOING, _COMPLETE[wanted]}:\n            state",
        "transactions",
        "decision-follows",
    ),
    WrongRule(
        "a superseded producer adds log partitions",
        f"{CORE}/transaction_coordinator.py",
        "return NO_ERROR if message.producer_epoch in epochs else ErrorCode.PRODUCER_FENCED, transaction",
        "return NO_ERROR if message.producer_epoch <= epochs[0] else ErrorCode.PRODUCER_FENCED, transaction",
        "transactions",
        "only-its-producer-decides",
        {"workload": {"partitions": 8}},  # More than a transaction has.
    ),
    WrongRule(
        "a transaction ends in its first log partition only",
        f"{CORE}/transaction_coordinator.py",
        "state = replace(record, state=wanted, producer_epoch",
        "state = replace(record, state=wanted, partitions=record.partitions[:1], producer_epoch",
        "transactions",
        "decision-follows",
    ),
    WrongRule(
        "a transaction is aborted at the first check, whatever its time-out",
        f"{CORE}/transaction_coordinator.py",
        "now_ms - record.begun_ms > record.timeout_ms",
        "now_ms > record.begun_ms",
        "wide-transactions",
        "transaction-ends-in-time",
    ),
    WrongRule(
        "what was aborted and truncated stays aborted",
        f"{CORE}/log.py",
        "            self.producers = Producers([*self._below, *self.batches])\n",
        "",
        "transactions-and-moves",
        "transactions-as-logged",
    ),
    WrongRule(
        "a heartbeat of any member keeps all",
        f"{CORE}/groups/coordinator.py",
        "group.heard_us[message.member] = self._context.now_us",
        "group.heard_us = dict.fromkeys(group.heard_us, self._context.now_us)",
        "groups",
        "member-lives-by-its-session",
        {"settings": {"group.protocol": "consumer"}},
    ),
    WrongRule(
        "a coordinator looks for silent members once, and keeps those that die later while others commit",
        f"{CORE}/coordinator.py",
        "        self._look_again(replica)\n        if not",
        "        if not",
        "groups",
        "member-lives-by-its-session",
        {"settings": {"group.protocol": "consumer"}},
    ),
    WrongRule(
        "the leader of a classic group is never given up",
        f"{CORE}/groups/classic.py",
        "if member.expires_us <= now_us and not member.waits:",
        "if member.expires_us <= now_us and not member.waits and name != self.leader:",
        "groups",
        "member-lives-by-its-session",
        {"settings": {"group.protocol": "classic"}},
    ),
    WrongRule(
        "a new coordinator knows no offsets that are pending",
        f"{CORE}/groups/coordinator.py",
        "        self._keep(group, {partition: offset}, batch.base_offset, batch.producer_id)",
        "        batch.transactional or self._keep(group, {partition: offset}, batch.base_offset, NONE)",
        "pipelines",
        "loaded-as-logged",
    ),
    WrongRule(
        "cleaning removes the last batch of a producer",
        f"{CORE}/cleaner.py",
        "if batch.base_offset == last.base_offset or log.producers.ends_with(batch):",
        "if batch.base_offset == last.base_offset:",
        "compacted",
        "cleaning-keeps",
        # A producer is silent for longer than a segment.
        {"workload": {"producers": 6, "writes_per_second": 4.0}},
    ),
    WrongRule(
        "an aborted value replaces the committed one of its key",
        f"{CORE}/cleaner.py",
        "[batch for batch in below if batch.base_offset not in aborted]",
        "below",
        "compacted-transactions",
        "cleaning-keeps",
    ),
    WrongRule(
        "a tombstone goes with the second pass",
        f"{CORE}/cleaner.py",
        "return now_us + self._retention_us",
        "return now_us",
        "compacted",
        "tombstone-stays",
    ),
    WrongRule(
        "retention goes by the oldest record of a segment",
        f"{CORE}/retention.py",
        "return now_us - max(stamps, default=NONE) > self._age_us",
        "return now_us - min(stamps, default=NONE) > self._age_us",
        "operators",
        "retention-keeps-young",
        EXPIRING,
    ),
)


@pytest.mark.parametrize("rule", WRONG_RULES, ids=lambda rule: rule.meaning)
def test_the_text_of_a_rule_stands_once(rule: WrongRule) -> None:
    assert (ROOT / rule.file).read_text(encoding="utf-8").count(rule.right) == 1
    assert rule.wrong != rule.right


@pytest.mark.system
@pytest.mark.parametrize("rule", WRONG_RULES, ids=lambda rule: rule.meaning)
def test_a_hunt_notices_a_wrong_rule_and_is_silent_without_it(rule: WrongRule) -> None:
    words = [rule.file, rule.right, rule.wrong, rule.portfolio, json.dumps(dict(rule.changed)), str(rule.runs)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.lab.search.patched_core", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    alarm = json.loads(done.stdout)
    assert alarm is not None, "not noticed"
    run, rang = alarm
    assert rule.rings in rang
    assert alarmed(rule.portfolio, rule.changed, run + 1) is None
