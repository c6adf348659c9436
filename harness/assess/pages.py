"""An assessment as Markdown, and as one HTML page in the style of the report that needs no network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from checkers import counted
from harness.assess.sentences import (
    CLEAN,
    REASONS_MAX,
    TITLES,
    clean_words,
    gathered,
    heading,
    measured_words,
    names_of,
    not_known,
    settings_words,
    story_words,
    table_of,
    without_common,
    worst_first,
    worst_of,
)
from harness.campaigns.report import card_table, page_style
from harness.ground.templates import templates_of
from harness.records.assessment_file import Assessed, Assessment, Concern

#: Names of topics that the page lists of a group.
LISTED_MAX: Final = 500


def as_page(assessment: Assessment) -> str:
    """The page. Everything from the configuration is escaped."""
    assessment = worst_first(assessment)
    environment = templates_of("harness.assess")
    environment.filters.update(names=names_of, settings=settings_words, clean=clean_words, story=story_words)
    environment.filters.update(measured=measured_words)
    environment.filters.update(counted=counted, own=without_common)
    template = environment.get_template("assessment.html.j2")
    return template.render(
        assessment=assessment,
        table=table_of(assessment),
        heading=heading(assessment),
        requirements=sorted(assessment.requirements, key=lambda requirement: requirement.met),
        common=gathered(assessment, ("defect",)),
        unknown=list(not_known(assessment)),
        titles=TITLES,
        style=page_style(),
        cards=card_table(),
        listed_max=LISTED_MAX,
        reasons_max=REASONS_MAX,
        code=_code(assessment),
    )


def _code(assessment: Assessment) -> int:
    """The colour of the heading: 0 where all is well, 1 where a requirement is not met or something is new."""
    if assessment.new or any(not requirement.met for requirement in assessment.requirements):
        return 1
    return 0 if all(worst_of(group) == CLEAN for group in assessment.groups) else 2


def as_markdown(assessment: Assessment) -> str:
    """The same in Markdown, for the page of a job."""
    return "\n".join(_markdown(worst_first(assessment))) + "\n"


def _markdown(assessment: Assessment) -> Iterator[str]:
    yield "# ackproof assess"
    yield ""
    yield heading(assessment)
    for requirement in sorted(assessment.requirements, key=lambda each: each.met):
        yield ""
        yield f"**{requirement.words.capitalize()}**: {_escaped(requirement.text)}"
        yield from (f"- {_escaped(reason)}" for reason in requirement.reasons)
    for title, texts in (("New", assessment.new), ("Gone", assessment.gone)):
        if texts:
            yield ""
            yield f"**{title}**"
            yield from (f"- {_escaped(text)}" for text in texts)
    if assessment.groups:
        yield from ("", "| topics | producer | answer | first change |", "|---|---|---|---|")
        yield from (_row(*row) for row in table_of(assessment))
    for group in assessment.groups:
        yield from _group(group)
    if common := gathered(assessment, ("defect",)):
        yield from ("", "## Known defects, and what no recommended setting prevents")
        yield from _table([(f"{said.title} ({said.of})", said.concern) for said in common])
    yield from ("", "## Limits", "")
    yield from (f"- Not known: {_escaped(text)}" for text in not_known(assessment))
    yield from (f"- {_escaped(limit)}" for limit in assessment.limits)


def _group(group: Assessed) -> Iterator[str]:
    yield from ("", f"## {_escaped(names_of(group.topics))}", "")
    yield f"Producer: {_escaped(group.producer)}. {_escaped(settings_words(group))}."
    yield ""
    for promised in group.promised:
        yield f"- {', '.join(promised.families)}: {_escaped(promised.sentence)}"
    if group.clean:
        yield from ("", clean_words(group))
    if concerns := without_common(group).concerns:
        yield from _table([(TITLES[concern.kind], concern) for concern in concerns])


def _table(rows: list[tuple[str, Concern]]) -> Iterator[str]:
    yield from ("", "| | what | shown by | change | price |", "|---|---|---|---|---|")
    for title, concern in rows:
        shown = "; ".join(map(story_words, concern.shown)) or concern.link
        price = "; ".join((concern.price, *(f"measured {measured_words(each)}" for each in concern.measured)))
        yield _row(title, f"{concern.name}: {concern.sentence}", shown, concern.change, price)


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """The text as a cell of a table; names of topics and files may have Markdown's own signs."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
