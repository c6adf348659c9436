"""The ids and epochs of producers in a history in virtual time: successors have later ones, as coordinators decide."""

from __future__ import annotations

import itertools
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from harness.plan import parse_plan
from harness.records.files import HISTORY
from harness.runs.run.performing import perform_run
from workloads import EventType, Function, TransactionEnd
from workloads.history import read_events

PLAN = """
seed = 5
families = ["kill"]
[settings]
min.insync.replicas = 2
transaction.version = {version}
[workload]
name = "transactions"
sends_per_transaction = 4
aborts_percent = 25
takeover_every_ms = 2_500
[worlds.simulated]
runs = 1
workload = {{ writes_per_second = 60.0, duration_ms = 8_000, drain_limit_ms = 60_000 }}
faults = {{ count = 1, exercised_min = 1, at_stake_min = 1 }}
"""


def ends_in(run: Path) -> dict[str, list[TransactionEnd]]:
    """By transactional id, the ends of its transactions: producer after producer, as it made them."""
    ends: dict[str, list[TransactionEnd]] = defaultdict(list)
    for event in read_events(run / HISTORY):
        if event.function is Function.TXN and event.type is not EventType.INVOKE:
            end = msgspec.json.decode(event.detail or "", type=TransactionEnd)
            ends[end.transactional_id].append(end)
    return {name: sorted(own, key=lambda end: end.number) for name, own in ends.items()}


@pytest.mark.parametrize("version", [1, 2])
def test_a_producer_has_a_later_epoch_than_those_before_it_and_with_version_2_after_each_end(
    version: int, tmp_path: Path
) -> None:
    (spec,) = parse_plan(PLAN.format(version=version), "p.toml").runs()
    assert perform_run(spec, tmp_path / "run").status == "completed"
    pairs = [pair for own in ends_in(tmp_path / "run").values() for pair in itertools.pairwise(own)]
    assert {after.number > before.number for before, after in pairs} == {True, False}
    for before, after in pairs:
        assert before.producer is not None
        assert after.producer is not None
        assert before.producer.producer_id == after.producer.producer_id
        later = after.producer.producer_epoch - before.producer.producer_epoch
        assert later > 0 if version == 2 or after.number > before.number else later == 0
