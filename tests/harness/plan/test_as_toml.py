"""A run written down as a plan is read as the same run."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.plan import parse_plan, plan_text
from harness.runs.run import planned
from nemesis.scenarios import FAMILIES
from workloads import LISTED, PlannedWrite

PLAN = """
families = ["{family}"]
racks = ["a", "b", "b"]
[settings]
acks = 1
"min.insync.replicas" = 1
"unclean.leader.election.enable" = false
"replica.lag.time.max.ms" = 1000
[workload]
partitions = 2
duration_ms = 60_000
[worlds.simulated]
runs = 1
[worlds.simulated.faults]
count = 12
"""
WRITES = st.lists(
    st.builds(
        PlannedWrite,
        due_us=st.integers(0, 59_999_999),
        producer=st.integers(0, 2),
        partition=st.integers(0, 1),
        key=st.sampled_from(["key-0", 'a "quoted" one']),
    ),
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(FAMILIES)), st.integers(0, 9), WRITES)
@example("upgrade", 0, [])  # its schedule has no fault
def test_a_written_run_is_read_as_the_same(family, seed, writes):
    plan = parse_plan(PLAN.format(family="kill"), "drawn.toml")
    (drawn,) = msgspec.structs.replace(plan, families=(family,)).runs()
    spec = msgspec.structs.replace(drawn, schedule=planned(drawn, lambda label, bound: (seed + len(label)) % bound))
    in_order = tuple(sorted(writes, key=lambda write: write.due_us))
    if in_order:
        workload = msgspec.structs.replace(spec.workload, name=LISTED, writes=in_order)
        spec = msgspec.structs.replace(spec, workload=workload)
    (again,) = parse_plan(plan_text(spec, "again", ["why"]), "again.toml").runs()
    assert again.schedule == spec.schedule
    assert again.workload.writes == spec.workload.writes
    assert again.settings == spec.settings
    assert again.client_defaults == spec.client_defaults
    assert (again.seed, again.family, again.racks) == (spec.seed, family, spec.racks)


def test_a_run_whose_faults_are_drawn_cannot_be_written_down():
    (drawn,) = parse_plan(PLAN.format(family="kill"), "drawn.toml").runs()
    with pytest.raises(ValueError, match="drawn"):
        plan_text(drawn, "again")
