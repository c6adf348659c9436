"""The definitions of anomalies as the report quotes them: the docstrings of the modules that decide them."""

from __future__ import annotations

import ast
from importlib import resources
from importlib.resources.abc import Traversable


def definitions() -> dict[str, str]:
    """Docstrings of ``checkers/anomalies/*.py`` by the anomaly's name, which is the module's with dashes.

    ``divergent-replicas`` is decided from the replicas' logs and not by a kernel. Read from the source, not by
    importing: a report needs no checker's dependencies.
    """
    folder = resources.files("checkers") / "anomalies"
    found: dict[str, str] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py") and not file.name.startswith("_"):
            text = _docstring(file)
            if text:
                found[file.name.removesuffix(".py").replace("_", "-")] = text
    return found | {
        "divergent-replicas": _docstring(resources.files("checkers") / "anomalies" / "divergent_replicas.py") or ""
    }


def _docstring(file: Traversable) -> str | None:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
