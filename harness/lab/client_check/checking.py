"""Tries every point with a program, on a cluster of the reference broker that is started for it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.ground.errors import PlanError
from harness.ground.progress import Progress
from harness.lab.client_check.points import POINTS, CheckPoint
from harness.lab.client_check.stage import SETTINGS, BrokenPointError, CheckStage
from harness.lab.findings import OpenCluster
from harness.plan import ClientProgram, Processes, RunSpec
from harness.worlds.processes import processes_world
from nemesis.plan import FaultPlan
from workloads import WorkloadPlan


class PointResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a point: what it tries, if it holds, and why it does not; null if the program lacks it."""

    name: str
    tries: str
    holds: bool | None
    problem: str = ""


class CheckedProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program that was checked: its command, what it says of itself, and each point."""

    command: tuple[str, ...]
    name: str
    version: str
    capabilities: tuple[str, ...]
    protocols: tuple[str, ...]
    points: tuple[PointResult, ...]

    @property
    def keeps(self) -> bool:
        """True of a program that keeps to every point that it can be tried with."""
        return not any(point.holds is False for point in self.points)


def check_program(command: Sequence[str], directory: Path, progress: Progress) -> CheckedProgram:
    """Try every point; the files of the cluster are in ``directory``.

    Raises:
        PlanError: there is no such program.
    """
    program = ClientProgram(command=tuple(command))
    if shutil.which(program.command[0]) is None:
        raise PlanError(f"there is no program {program.command[0]} that can be started; write the whole command")
    spec = RunSpec(
        world=Processes(),
        cell="check",
        family="kill",
        settings=SETTINGS.to_mapping(),
        workload=WorkloadPlan(),
        faults=FaultPlan(),
        seed=1,
    )
    world = processes_world(spec, directory)
    try:
        world.open()
        stage = CheckStage(f"the client program {program.name}", command, OpenCluster(world, directory))
        try:
            with progress.phase("checking", len(POINTS)):
                points = tuple(_tried(point, stage, progress) for point in POINTS)
            return _told(program, stage, points)
        finally:
            stage.close()
    finally:
        world.close()


def _tried(point: CheckPoint, stage: CheckStage, progress: Progress) -> PointResult:
    tries = (point.attempt.__doc__ or "").partition("\n")[0]
    progress.advance(point.name)
    try:
        lacking = [need for need in point.needs if need not in stage.hello.capabilities]
        if lacking:
            return PointResult(name=point.name, tries=tries, holds=None, problem=f"it has no {lacking[0]}")
        point.attempt(stage)
    except BrokenPointError as error:
        stage.close()  # the next point begins with a new process
        return PointResult(name=point.name, tries=tries, holds=False, problem=str(error))
    return PointResult(name=point.name, tries=tries, holds=True)


def _told(program: ClientProgram, stage: CheckStage, points: tuple[PointResult, ...]) -> CheckedProgram:
    said = stage.last_hello
    return CheckedProgram(
        command=program.command,
        name=said.name if said else "",
        version=said.version if said else "",
        capabilities=said.capabilities if said else (),
        protocols=said.protocols if said else (),
        points=points,
    )
