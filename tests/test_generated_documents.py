"""Documents that are made from the source are as it is now; `python -m tests.test_generated_documents` writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest

from checkers import ANOMALIES
from workloads.settings import INT_MAX, NEVER, Settings

DOCS: Final = Path(__file__).parent.parent / "docs"
MADE: Final = "Made by `python -m tests.test_generated_documents`; a test says whether it is up to date."


def anomalies() -> str:
    """The checkers' registry: every name with its specification."""
    rows = [
        f"| [`{name}`](#{name.lower()}) | {_first(one.specification)} | {one.allowed.value} |"
        for name, one in ANOMALIES.items()
    ]
    sections = [f"## {name}\n\n```\n{one.specification}\n```" for name, one in ANOMALIES.items()]
    return "\n".join(
        [
            "# Anomalies",
            "",
            f"Ways in which a history can contradict a log, from the registry `checkers/anomalies/__init__.py`. {MADE}",
            "Whether a finding breaks a promise depends on the settings and the faults ([method](method.md)).",
            "",
            "| name | what it is | a history that shows it is called valid |",
            "|---|---|---|",
            *rows,
            "",
            "\n\n".join(sections),
            "",
        ]
    )


def settings() -> str:
    """Every setting with its scope, its default and what it may be."""
    rows = [_row(one.default, one.metadata) for one in fields(Settings)]
    return "\n".join(
        [
            "# Settings",
            "",
            f"What a plan can set, from `workloads/settings.py`. {MADE}",
            "Those of the scope `reference` are rules of replication that Kafka fixed once per release; only the",
            "reference broker can switch them ([rules](replication-rules.md), [plans](plans.md)).",
            "",
            "| setting | scope | default | may be |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _first(specification: str) -> str:
    return " ".join(specification.partition("\n\n")[0].split()).partition(": ")[2].rstrip(".").replace("|", "\\|")


def _row(default: Any, metadata: Any) -> str:
    shown = str(default).lower() if isinstance(default, bool) else _number(default)
    return f"| `{metadata['name']}` | {metadata['scope']} | `{shown}` | {_may_be(default, metadata)} |"


def _number(value: object) -> str:
    return {NEVER: "never (2^63-1)", INT_MAX: "2^31-1"}.get(value, str(value))


def _may_be(default: Any, metadata: Any) -> str:
    if metadata["choices"]:
        return ", ".join(f"`{value}`" for value in metadata["choices"])
    if isinstance(default, bool):
        return "`true`, `false`"
    least, most = metadata["bounds"]
    return f"{least} to {_number(most)}"


DOCUMENTS: Final[dict[str, Callable[[], str]]] = {"anomalies.md": anomalies, "settings.md": settings}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_generated_document_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == DOCUMENTS[name]()


if __name__ == "__main__":
    for name, make in DOCUMENTS.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
