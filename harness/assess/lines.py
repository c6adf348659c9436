"""An assessment in lines for a terminal: verdicts, one table, then each concern once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers import counted
from harness.assess.sentences import (
    REASONS_MAX,
    TITLES,
    Said,
    clean_said,
    clean_words,
    gathered,
    heading,
    left_title,
    measured_words,
    names_of,
    not_known,
    ordered,
    promises_said,
    settings_words,
    story_words,
    table_of,
    without_common,
    worst_first,
)
from harness.records.assessment_file import Assessed, Assessment, Concern

#: Columns that a cell of the table is padded to; longer names move their line only.
CELL_MAX: Final = 40
_MORE: Final = "more: --details has settings, promises and every story of each group; --page writes them as a page"


def lines_of(assessment: Assessment, *, details: bool = False) -> Iterator[str]:
    """The assessment for a terminal; ``details`` adds each group with its promises, settings and stories."""
    assessment = worst_first(assessment)
    if verdicts := list(_verdicts(assessment, details=details)):
        yield from (*verdicts, "")
    yield heading(assessment)
    if assessment.groups:
        yield ""
        yield from _table(assessment)
    if details:
        for group in assessment.groups:
            yield ""
            yield from _group(group)
    elif assessment.groups:
        yield ""
        yield from promises_said(assessment)
    said = gathered(assessment, ("defect",)) if details else gathered(assessment)
    title = ""
    for each in said:
        if details or each.title != title:
            yield ""
        title = each.title
        yield from _said(each, details=details)
    if not details:
        yield from (line for clean in clean_said(assessment) for line in ("", clean))
    yield ""
    yield from (f"not known: {text}" for text in not_known(assessment))
    yield from (f"limit: {limit}" for limit in assessment.limits)
    if assessment.groups and not details:
        yield _MORE


def _verdicts(assessment: Assessment, *, details: bool) -> Iterator[str]:
    """Requirements, those that are not met first, and what is new: the exit code is about these."""
    for requirement in sorted(assessment.requirements, key=lambda each: each.met):
        yield f"{requirement.words}: {requirement.text}"
        yield from (f"  {reason}" for reason in requirement.reasons[: None if details else REASONS_MAX])
        if not details and (more := len(requirement.reasons) - REASONS_MAX) > 0:
            yield f"  and {counted(more, 'more reason')}"
    yield from (f"new: {text}" for text in assessment.new)
    yield from (f"gone: {text}" for text in assessment.gone)


def _table(assessment: Assessment) -> Iterator[str]:
    several = len({group.producer for group in assessment.groups}) > 1
    producers = ["producer"] if several else []
    told = [
        [row.topics, *([row.producer] if several else []), row.answer, row.first_change] for row in table_of(assessment)
    ]
    rows = [["topics", *producers, "answer", "first change"], *told]
    widths = [min(max(map(len, column)), CELL_MAX) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        yield "  ".join([*padded, row[-1]])


def _said(said: Said, *, details: bool) -> Iterator[str]:
    concern = said.concern
    yield f"{said.title}: {concern.name} ({said.of}): {concern.sentence}"
    yield from _concern(concern, "  ", details=details)


def _group(group: Assessed) -> Iterator[str]:
    racks = f" in {counted(group.racks, 'rack')}" if group.racks else ""
    yield f"{names_of(group.topics)}: {counted(group.partitions, 'log partition')}{racks}, producer {group.producer}"
    yield f"  {settings_words(group)}"
    for promised in group.promised:
        yield f"  Promised under {', '.join(promised.families)}: {promised.sentence}"
    if group.clean:
        yield f"  {clean_words(group)}"
    for concern in without_common(group).concerns:
        yield f"  {TITLES[concern.kind]}: {concern.name}: {concern.sentence}"
        yield from _concern(concern, "    ", details=True)
    if common := _common(group):
        yield f"  Said below: {common}"


def _common(group: Assessed) -> str:
    defects = [concern.name for concern in ordered(group.concerns) if concern.kind == "defect"]
    return "; ".join([*defects, *(f"{left_title(concern).lower()}: {concern.name}" for concern in group.left)])


def _concern(concern: Concern, indent: str, *, details: bool) -> Iterator[str]:
    yield from (f"{indent}{line}" for line in _stories(concern, details=details))
    if concern.command:
        yield f"{indent}again: {concern.command}"
    more = f"more: {concern.link}" if concern.link and (details or concern.kind == "defect") else ""
    change = f"change: {concern.change}; price: {concern.price}" if concern.change else ""
    if change or more:
        yield f"{indent}{'; '.join(filter(None, (change, more)))}"
    yield from (f"{indent}measured: {measured_words(price)}" for price in concern.measured)


def _stories(concern: Concern, *, details: bool) -> Sequence[str]:
    if details or not concern.shown:
        return [story_words(shown) for shown in concern.shown]
    more = len(concern.shown) - 1
    others = f"; and {counted(more, 'more story', 'more stories')}" if more else ""
    return [f"{story_words(concern.shown[0])}{others}"]
