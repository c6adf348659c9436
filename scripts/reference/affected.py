"""Parts of documents that are made of ``known_defects.toml``: the list of findings, and how the page of each begins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from harness.ground.known_defects import Defect, ProductFinding
from scripts.reference.markdown import bullets, wrapped

PAGES: Final = Path(__file__).parents[2] / "docs" / "findings"
INDEX: Final = PAGES.parent / "index.md"
#: Letters to those who can mend a finding, by number; not sent where the finding was not reported.
REPORTS: Final = PAGES / "reports"
BEGIN: Final = "<!-- made of harness/ground/known_defects.toml by `make reference` -->"
END: Final = "<!-- until here -->"
#: The first heading of a finding's page after its title.
HEADING: Final = "## Who is affected, and what to do\n"
#: The part of a page that is made, its marks included.
MADE: Final = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def affected(finding: ProductFinding) -> str:
    """Releases, harm and change of settings for each defect of the finding, and where it was reported."""
    several = len(finding.defect) > 1
    points = [point for defect in finding.defect for point in _points(defect, f" ({defect.name})" * several)]
    return "\n\n".join([BEGIN, bullets(points), wrapped(_reported(finding)), END])


def _reported(finding: ProductFinding) -> str:
    """A defect with the name of a public issue was reported by others."""
    names = [defect.name for defect in finding.defect]
    others = [name for name in names if not name.startswith("finding-")]
    by_others = [f"{', '.join(others)}, by others"] if others else []
    report = f" ([report](reports/{finding.number}.md))" * (REPORTS / f"{finding.number}.md").exists()
    own = [finding.reported or ("the rest not yet" if others else "not yet") + report]
    return f"Reported: {'; '.join(by_others + own * (others != names))}."


def with_affected(page: str, finding: ProductFinding) -> str:
    """The page with its title and this section made again; a page without marks is refused."""
    text = _made_again(page, affected(finding), f"docs/findings/{finding.page}")
    return "".join([f"# {_as_heading(finding.title)}\n\n", *text.partition(HEADING)[1:]])


def with_findings(page: str, findings: Iterable[ProductFinding]) -> str:
    """The index of the documents with its list of findings made again."""
    links = [f"[{each.number}: {each.title}](findings/{each.page})" for each in findings]
    return _made_again(page, "\n\n".join([BEGIN, bullets(links), END]), "docs/index.md")


def _made_again(page: str, made: str, name: str) -> str:
    if not MADE.search(page):
        raise ValueError(f"{name} has no section between {BEGIN} and {END}")
    return MADE.sub(lambda _: made, page)


def _as_heading(title: str) -> str:
    """Names of programs keep their small letter."""
    return title if title.startswith(("librdkafka", "kafka-python")) else title[0].upper() + title[1:]


def _points(defect: Defect, name: str) -> tuple[str, ...]:
    in_use = ", ".join(need.replace("-", " ") for need in defect.needs)
    return (
        f"Affected{name}: {defect.releases}{f'. In use: {in_use}' if in_use else ''}.",
        f"Harm: {defect.harm}.",
        f"What to do: {defect.change}. Price: {defect.price}.",
    )
