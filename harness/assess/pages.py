"""An assessment as Markdown, and as one HTML page in the style of the report that needs no network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from checkers import counted
from harness.assess.sentences import TITLES, clean_words, heading, names_of, settings_words, story_words
from harness.records.assessment_file import Assessed, Assessment, Concern
from harness.report import page_style
from harness.templates import templates_of

#: Names of topics that the page lists of a group.
LISTED_MAX: Final = 500


def as_page(assessment: Assessment) -> str:
    """The page. Everything from the configuration is escaped."""
    environment = templates_of("harness.assess")
    environment.filters.update(names=names_of, settings=settings_words, clean=clean_words, story=story_words)
    environment.filters.update(counted=counted)
    template = environment.get_template("assessment.html.j2")
    return template.render(
        assessment=assessment,
        heading=heading(assessment),
        titles=TITLES,
        style=page_style(),
        listed_max=LISTED_MAX,
        code=_code(assessment),
    )


def _code(assessment: Assessment) -> int:
    """The colour of the heading: 0 where all is well, 1 where a requirement is not met or something is new."""
    if assessment.new or any(not requirement.met for requirement in assessment.requirements):
        return 1
    return 0 if all(group.clean for group in assessment.groups) else 2


def as_markdown(assessment: Assessment) -> str:
    """The same in Markdown, for the page of a job."""
    return "\n".join(_markdown(assessment)) + "\n"


def _markdown(assessment: Assessment) -> Iterator[str]:
    yield "# ackproof assess"
    yield ""
    yield heading(assessment)
    for requirement in assessment.requirements:
        yield ""
        yield f"**{'Met' if requirement.met else 'Not met'}**: {_escaped(requirement.text)}"
        yield from (f"- {_escaped(reason)}" for reason in requirement.reasons)
    for title, texts in (("New", assessment.new), ("Gone", assessment.gone)):
        if texts:
            yield ""
            yield f"**{title}**"
            yield from (f"- {_escaped(text)}" for text in texts)
    for group in assessment.groups:
        yield from _group(group)
    yield ""
    yield "## Limits"
    yield ""
    yield from (f"- {_escaped(limit)}" for limit in assessment.limits)


def _group(group: Assessed) -> Iterator[str]:
    yield ""
    yield f"## {_escaped(names_of(group.topics))}"
    yield ""
    yield f"Producer: {_escaped(group.producer)}. {_escaped(settings_words(group))}."
    yield ""
    for promised in group.promised:
        yield f"- {', '.join(promised.families)}: {_escaped(promised.sentence)}"
    if group.clean:
        yield ""
        yield clean_words(group)
    if rows := [(TITLES[concern.kind], concern) for concern in group.concerns]:
        yield from _table([*rows, *(("Whatever is set", concern) for concern in group.left)])
    elif group.left:
        yield from _table([("Whatever is set", concern) for concern in group.left])


def _table(rows: list[tuple[str, Concern]]) -> Iterator[str]:
    yield ""
    yield "| | what | shown by | change | price |"
    yield "|---|---|---|---|---|"
    for title, concern in rows:
        shown = "; ".join(map(story_words, concern.shown)) or concern.link
        cells = (title, f"{concern.name}: {concern.sentence}", shown, concern.change, concern.price)
        yield f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """The text as a cell of a table; names of topics and files may have Markdown's own signs."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
