"""Racks and assignments of a plan on real nodes (rule 26)."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from harness.plan import RunSpec
from harness.worlds.processes import processes_world
from nemesis.roles import Role, RoleKind, resolve

pytestmark = pytest.mark.system
RACKS = ("a", "a", "b", "b")


def test_replicas_alternate_between_racks_unless_they_are_assigned_by_hand(
    tmp_path: Path, make_spec: Callable[..., RunSpec]
) -> None:
    together = ((0, 1), (1, 0), (2, 3))
    for assignment in ((), together):
        spec = make_spec({"replication.factor": 2}, brokers=4, racks=RACKS, assignment=assignment)
        directory = tmp_path / str(len(assignment))
        directory.mkdir()
        with closing(processes_world(spec, directory)) as world:
            world.open()
            view = world.target.view()
            assert resolve(Role(RoleKind.RACK, pick=1), view) == (2, 3)
            placed = tuple(view.partitions[name].replicas for name in sorted(view.partitions))
        if assignment:
            assert placed == together
        else:
            assert all({RACKS[node] for node in replicas} == {"a", "b"} for replicas in placed)
