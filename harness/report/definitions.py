"""The definitions of anomalies as the report quotes them."""

from __future__ import annotations

from checkers import ANOMALIES


def definitions() -> dict[str, str]:
    """Specifications of all anomalies by name, as the checkers decide them."""
    return {name: anomaly.specification for name, anomaly in ANOMALIES.items()}
