"""Holds an assessment against an earlier one, so that CI shows only what has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from harness.assess.sentences import names_of
from harness.ground.errors import PlanError
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
            f"{path} is not an assessment ({reason_of(error)}); write one with ackproof assess ... --json > last.json"
        ) from error
    if baseline.version != ASSESSMENT_VERSION:
        raise PlanError(f"{path} is of version {baseline.version}, and this is {ASSESSMENT_VERSION}; write it again")
    return baseline


def compared(assessment: Assessment, baseline: Assessment) -> Assessment:
    """The assessment with what is new since the ``baseline``, and what is gone.

    A defect of the release or of a client is new once, not with each topic, and a new topic does not make it new.
    What was said of a topic that is not there any more was not mended, so the topic is gone, and nothing else.
    """
    before, now = _Had.of(baseline), _Had.of(assessment)
    absent = before.topics - now.topics
    new = {each for each in now.concerns - before.concerns if not before.knows_defect_of_new_topic(each)}
    gone = {each for each in before.concerns - now.concerns if each.topic not in absent}
    return msgspec.structs.replace(
        assessment,
        new=tuple(sorted(_lines(new, before))),
        gone=tuple(sorted([*_lines(gone, now), *(f"{topic}: the topic" for topic in absent)])),
    )


class _Of(NamedTuple):
    topic: str
    kind: str
    name: str


class _Had(NamedTuple):
    """The concerns, topics, and names of defects that an assessment has."""

    concerns: set[_Of]
    topics: set[str]
    defects: set[str]

    @classmethod
    def of(cls, assessment: Assessment) -> Self:
        concerns = {
            _Of(topic, concern.kind, concern.name)
            for group in assessment.groups
            for topic in group.topics
            for concern in group.concerns
        }
        topics = {topic for group in assessment.groups for topic in group.topics}
        return cls(concerns, topics, {each.name for each in concerns if each.kind == "defect"})

    def knows_defect_of_new_topic(self, concern: _Of) -> bool:
        return concern.kind == "defect" and concern.name in self.defects and concern.topic not in self.topics


def _lines(concerns: set[_Of], other: _Had) -> Iterator[str]:
    """A line for each topic and concern; one for a defect that the ``other`` assessment has of no topic."""
    of_all: dict[str, list[str]] = {}
    for topic, kind, name in sorted(concerns):
        if kind == "defect" and name not in other.defects:
            of_all.setdefault(name, []).append(topic)
        else:
            yield f"{topic}: {kind} {name}"
    yield from (f"{names_of(topics)}: defect {name}" for name, topics in of_all.items())
