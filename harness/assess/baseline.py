"""Holds an assessment against an earlier one, so that CI shows only what has changed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness.errors import PlanError
from harness.records.assessment_file import ASSESSMENT_VERSION, Assessment
from workloads import reason_of


def read_baseline(path: Path) -> Assessment:
    """The assessment that ``ackproof assess --json`` wrote into a file.

    Raises:
        PlanError: it cannot be read, or is not one of this version.
    """
    try:
        baseline = msgspec.json.decode(path.read_bytes(), type=Assessment)
    except (OSError, msgspec.DecodeError) as error:
        raise PlanError(
            f"{path} is not an assessment ({reason_of(error)}); write one: ackproof assess ... --json > {path}"
        ) from error
    if baseline.version != ASSESSMENT_VERSION:
        raise PlanError(f"{path} is of version {baseline.version}, and this is {ASSESSMENT_VERSION}; write it again")
    return baseline


def compared(assessment: Assessment, baseline: Assessment) -> Assessment:
    """The assessment with what is new since the ``baseline``, and what is gone."""
    before, now = _concerns(baseline), _concerns(assessment)
    return msgspec.structs.replace(assessment, new=tuple(sorted(now - before)), gone=tuple(sorted(before - now)))


def _concerns(assessment: Assessment) -> set[str]:
    return {
        f"{topic}: {concern.kind} {concern.name}"
        for group in assessment.groups
        for topic in group.topics
        for concern in group.concerns
    }
