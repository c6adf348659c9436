"""The prices of changes as they were measured: figures of runs on Apache Kafka that are kept (results/reference).

``scripts/reference/prices.py`` makes the data of the verdicts of these runs; ``make reference`` writes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from typing import Final

import msgspec

from harness.records.assessment_file import MeasuredPrice

#: The data, in this folder.
PRICES_FILE: Final = "measured_prices.json"
#: Figures by the name of a change.
MeasuredPrices = Mapping[str, tuple[MeasuredPrice, ...]]


def measured_of(changes: Collection[str], library: str = "") -> tuple[MeasuredPrice, ...]:
    """The measurements of these changes, by their names, those with one client library alone where it is named."""
    prices = (price for change in changes for price in _measured_prices().get(change, ()))
    return tuple(price for price in prices if price.client.lower().startswith(library))


@cache
def _measured_prices() -> MeasuredPrices:
    text = resources.files("harness.assess").joinpath(PRICES_FILE).read_bytes()
    return msgspec.json.decode(text, type=dict[str, tuple[MeasuredPrice, ...]])
