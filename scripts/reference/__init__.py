"""The generated half of the documentation: one module a page of `docs/reference/`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from scripts.reference.anomalies import anomalies
from scripts.reference.claims import claims
from scripts.reference.commands import commands
from scripts.reference.faults import faults
from scripts.reference.outcomes import outcomes
from scripts.reference.plan_keys import plan_keys
from scripts.reference.replication_rules import replication_rules
from scripts.reference.schemas import schemas
from scripts.reference.served_apis import served_apis
from scripts.reference.settings import settings
from scripts.reference.stories import stories

DIRECTORY: Final = Path(__file__).parents[2] / "docs" / "reference"
#: Every page by its file's name.
PAGES: Final[dict[str, Callable[[], str]]] = {
    "anomalies.md": anomalies,
    "claims.md": claims,
    "commands.md": commands,
    "faults.md": faults,
    "outcomes.md": outcomes,
    "plan-keys.md": plan_keys,
    "replication-rules.md": replication_rules,
    "schemas.md": schemas,
    "served-apis.md": served_apis,
    "settings.md": settings,
    "stories.md": stories,
}
