"""An assessment in words: lines for a terminal, and the parts that Markdown and the page share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers import counted
from harness.records.assessment_file import Assessed, Assessment, Concern, Shown

#: Names of topics that a line shows.
NAMES_MAX: Final = 3
#: Stories that a concern shows in the terminal; JSON and the page have all.
STORIES_MAX: Final = 3
TITLES: Final = {"weakness": "Weak", "defect": "Known defects", "risk": "Risky"}


def heading(assessment: Assessment) -> str:
    """The first line: what was assessed, and what came of it."""
    topics = len({name for group in assessment.groups for name in group.topics})
    release = f", Apache Kafka {assessment.release}" if assessment.release else ""
    brokers = f", {counted(assessment.brokers, 'broker')}" if assessment.brokers else ""
    clean = len({name for group in assessment.groups if group.clean for name in group.topics})
    answers = counted(len(assessment.groups), "answer")
    return (
        f"{counted(topics, 'topic')} with {answers}{release}{brokers}: {clean:,} with no weakness and no risk that is "
        f"known here, {topics - clean:,} with some."
    )


def names_of(topics: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(topics) - NAMES_MAX
    names = ", ".join(topics[:NAMES_MAX])
    return f"{names} and {more:,} more" if more > 0 else names


def settings_words(group: Assessed) -> str:
    """The settings that decide, as ``name=value``."""
    return ", ".join(f"{name}={value}" for name, value in group.settings.items())


def clean_words(group: Assessed) -> str:
    """The word about a group in which nothing is the matter, with its limits."""
    departed = f" ({group.departed} of them could not do every step under these settings)" if group.departed else ""
    return (
        f"Nothing is the matter that is known here: of {counted(group.performed, 'story', 'stories')} none shows harm "
        f"that a recommended setting prevents{departed}. That is no proof: a story is one order of events."
    )


def story_words(shown: Shown) -> str:
    """One story, and what it shows."""
    together = f" (until {' and '.join(shown.together)} is changed, too)" if shown.together else ""
    return f"{shown.story} {shown.title}: {', '.join(shown.records)} {shown.harm}{together}"


def lines_of(assessment: Assessment) -> Iterator[str]:
    """The assessment for a terminal."""
    yield heading(assessment)
    for group in assessment.groups:
        yield ""
        yield from _group(group)
    if assessment.groups:
        yield ""
    for limit in assessment.limits:
        yield f"limit: {limit}"
    for requirement in assessment.requirements:
        yield f"{'met' if requirement.met else 'NOT MET'}: {requirement.text}"
        yield from (f"  {reason}" for reason in requirement.reasons)
    yield from (f"new: {text}" for text in assessment.new)
    yield from (f"gone: {text}" for text in assessment.gone)


def _group(group: Assessed) -> Iterator[str]:
    racks = f" in {counted(group.racks, 'rack')}" if group.racks else ""
    yield f"{names_of(group.topics)}: {counted(group.partitions, 'log partition')}{racks}, producer {group.producer}"
    yield f"  {settings_words(group)}"
    for promised in group.promised:
        yield f"  Promised under {', '.join(promised.families)}: {promised.sentence}"
    if group.clean:
        yield f"  {clean_words(group)}"
    for kind, title in TITLES.items():
        for concern in group.concerns:
            if concern.kind == kind:
                yield from _concern(title, concern)
    for concern in group.left:
        yield from _concern("Whatever is set", concern)
    if group.unknown:
        yield f"  Not known of {counted(len(group.unknown), 'story', 'stories')}: {'; '.join(group.unknown)}"


def _concern(title: str, concern: Concern) -> Iterator[str]:
    yield f"  {title}: {concern.name}: {concern.sentence}"
    for shown in concern.shown[:STORIES_MAX]:
        yield f"    {story_words(shown)}"
    if (more := len(concern.shown) - STORIES_MAX) > 0:
        yield f"    and {counted(more, 'more story', 'more stories')}"
    if concern.command:
        yield f"    again: {concern.command}"
    if concern.change:
        yield f"    change: {concern.change}; price: {concern.price}"
    if concern.link:
        yield f"    more: {concern.link}"
