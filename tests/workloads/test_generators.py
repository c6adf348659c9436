"""Every workload that a plan can name writes what its plan asks for."""

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

import checkers.anomalies
from checkers.verdicts.verdict import Verdict
from workloads.generators import WORKLOADS
from workloads.plan import WorkloadPlan


@pytest.fixture(params=WORKLOADS)
def writes(request):
    def first(number, **plan):
        return list(islice(WORKLOADS[request.param].writes(WorkloadPlan(name=request.param, **plan)), number))

    return first


def test_writes_are_in_the_order_in_which_they_are_due(writes):
    due_us = [write.due_us for write in writes(1_000)]
    assert due_us == sorted(due_us)


def test_the_rate_over_whole_seconds_is_the_plans(writes):
    assert sum(write.due_us < 10_000_000 for write in writes(2_000, writes_per_second=70)) == 700


@pytest.mark.parametrize("name", [name for name, kind in WORKLOADS.items() if not kind.keyed])
def test_every_producer_writes_to_every_partition_under_every_key(name):
    plan = WorkloadPlan(name=name, producers=3, partitions=4, keys=5)
    targets = {(w.producer, w.partition, w.key) for w in islice(WORKLOADS[name].writes(plan), 1_000)}
    assert len(targets) == 3 * 4 * 5


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_log_partition_of_every_topic_is_written_to(name):
    plan = WorkloadPlan(name=name, topic="t", topics=2, partitions=20)
    assert {write.partition for write in islice(WORKLOADS[name].writes(plan), 2_000)} == set(range(40))
    assert [str(plan.log_partitions[number]) for number in (0, 19, 20, 39)] == ["t-0", "t-19", "t.2-0", "t.2-19"]


@pytest.mark.parametrize("name", WORKLOADS)
def test_with_skew_the_first_log_partition_has_its_share_and_the_last_one_too(name):
    plan = WorkloadPlan(name=name, topics=2, partitions=20, skew=1.0)
    counts = Counter(write.partition for write in islice(WORKLOADS[name].writes(plan), 20_000))
    harmonic = sum(1 / n for n in range(1, 41))
    assert [counts[n] / 20_000 for n in (0, 1, 39)] == pytest.approx(
        [1 / harmonic, 1 / 2 / harmonic, 1 / 40 / harmonic], rel=0.1
    )
    assert len(counts) == 40


def test_with_skew_keys_are_unequal_under_every_producer_and_in_every_partition():
    plan = WorkloadPlan(partitions=4, keys=8, producers=3, skew=1.0)
    written = list(islice(WORKLOADS["steady"].writes(plan), 30_000))
    for chosen in ([w for w in written if w.producer == 2], [w for w in written if w.partition == 3]):
        counts = Counter(write.key for write in chosen)
        assert counts[b"key-0"] / counts[b"key-7"] == pytest.approx(8, rel=0.2)


def test_keys_that_are_written_twice_end_with_a_tombstone_or_a_last_value():
    plan = WorkloadPlan(name="keyed", partitions=2, keys=4)
    of_key = {}
    for write in islice(WORKLOADS["keyed"].writes(plan), 600):
        of_key.setdefault((write.partition, write.key), []).append(write.tombstone)
    assert of_key[0, b"key-10"] == [False, False, True]
    assert of_key[1, b"key-11"] == [False, False, False]
    assert all(not any(tombstones[:-1]) for tombstones in of_key.values())


def test_transactions_of_keys_write_what_keys_are_written():
    plan = WorkloadPlan(name="keyed-transactions", partitions=2, keys=4, producers=3, sends_per_transaction=2)
    written = list(islice(WORKLOADS["keyed-transactions"].writes(plan), 600))
    alone = list(islice(WORKLOADS["keyed"].writes(plan), 600))
    assert {write._replace(due_us=0) for write in written} == {write._replace(due_us=0) for write in alone}
    assert all(first.producer == second.producer for first, second in zip(written[::2], written[1::2], strict=True))
    assert any(write.tombstone for write in written)


def test_neighbours_begin_at_different_partitions(writes):
    assert [write.partition for write in writes(3, producers=3, partitions=3)] == [0, 1, 2]


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_a_workload_is_made_to_show_is_something_that_a_verdict_can_name(name):
    assert WORKLOADS[name].checks
    assert set(WORKLOADS[name].checks) <= {*checkers.anomalies.ANOMALIES, *Verdict.__struct_fields__}


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_has_its_row_in_the_documentation(name):
    docs = Path(__file__).parents[2] / "docs"
    assert f"`{name}`" in (docs / "reference" / "plan-keys.md").read_text(encoding="utf-8")
