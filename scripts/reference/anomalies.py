"""The page of anomalies, from the registry of the checkers."""

from __future__ import annotations

from checkers import ANOMALIES
from scripts.reference.markdown import page, table, wrapped

INTRODUCTION = """
An anomaly is a way in which a history can contradict a log. The settings and the faults decide whether one breaks a
promise: [method](../explained/method.md). A history of another tool has no settings: there an anomaly makes it not
valid, except where the last column says so.
"""


def anomalies() -> str:
    """Every anomaly with its specification."""
    rows = [
        (f"[`{name}`](#{name.lower()})", _first(anomaly.specification), anomaly.about.value, anomaly.allowed.value)
        for name, anomaly in ANOMALIES.items()
    ]
    sections = [f"## {name}\n\n```\n{anomaly.specification}\n```" for name, anomaly in ANOMALIES.items()]
    return page(
        "Anomalies",
        "`checkers/anomalies/`",
        wrapped(INTRODUCTION.strip()),
        table(["name", "meaning", "about", "valid even so"], rows),
        *sections,
    )


def _first(specification: str) -> str:
    sentence = " ".join(specification.partition("\n\n")[0].split()).partition(": ")[2].rstrip(".")
    return sentence.replace("``", "`")
