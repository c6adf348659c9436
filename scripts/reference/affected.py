"""The section of a finding's page that says who is affected, and what to do: made of ``known_defects.toml``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from harness.ground.known_defects import Defect, ProductFinding
from scripts.reference.markdown import bullets, wrapped

PAGES: Final = Path(__file__).parents[2] / "docs" / "findings"
BEGIN: Final = "<!-- made of harness/ground/known_defects.toml by `make reference` -->"
END: Final = "<!-- until here -->"
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
    own = [finding.reported or "the rest not yet" if others else finding.reported or "not yet"]
    return f"Reported: {'; '.join(by_others + own * (others != names))}."


def with_affected(page: str, finding: ProductFinding) -> str:
    """The page with this section made again; a page without its marks is refused."""
    if not MADE.search(page):
        raise ValueError(f"docs/findings/{finding.page} has no section between {BEGIN} and {END}")
    return MADE.sub(lambda _: affected(finding), page)


def _points(defect: Defect, name: str) -> tuple[str, ...]:
    in_use = ", ".join(need.replace("-", " ") for need in defect.needs)
    return (
        f"Affected{name}: {defect.releases}{f'. In use: {in_use}' if in_use else ''}.",
        f"Harm: {defect.harm}.",
        f"What to do: {defect.change}. Price: {defect.price}.",
    )
