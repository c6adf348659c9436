"""Findings that a plan of the project shows, as 002: a run of it is performed, and judged as in a campaign."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import msgspec

from checkers import check_one, judge
from harness.lab.findings.playable import NETWORK, PlayableFinding, Played, Way
from harness.lab.findings.stage import FindingStage, NotObservedError, rules_of
from harness.plan import Kafka, read_plan, require_kind, starter
from harness.records.files import HISTORY
from harness.runs.run import perform_run
from workloads import SettingValue


def play_plan(
    stage: FindingStage,
    name: str,
    anomalies: Collection[str],
    settings: Mapping[str, SettingValue] | None = None,
    family: str | None = None,
) -> Played:
    """Perform one run of a plan on Kafka; it shows where the checkers find one of these ``anomalies``."""
    (path,) = starter(name).values()
    spec = read_plan(path, {**(settings or {}), **rules_of(stage.version)}).single(family, "kafka", None)
    world = msgspec.structs.replace(require_kind(spec.world, Kafka), version=stage.version, patch=stage.patch)
    spec = msgspec.structs.replace(spec, world=world)
    stage.does(f"one run of the plan {name}")
    run = stage.directory / "run"
    ended = perform_run(spec, run)
    if ended.status != "completed":
        raise NotObservedError(f"the run of the plan {name} was not completed: {ended.reason}")
    judgement = judge(spec.chosen(), check_one(run / HISTORY), spec.faults.exercised_min, [spec.family])
    words = ", ".join(f"{count} {anomaly}" for anomaly, count in sorted(judgement.broken.items())) or "nothing"
    return Played.of(
        [f"the run of the plan {name}: {judgement.outcome}", f"what the checkers found and nothing permits: {words}"],
        shown=bool(judgement.broken.keys() & set(anomalies)),
    )


FINDING: Final = PlayableFinding(
    "002",
    {
        "moved": Way(
            "leadership moves away from a broker that is cut off, and back: story S40",
            partial(play_plan, name="stories/S40", anomalies=("lost-write",)),
        ),
    },
    programs=NETWORK,
)
