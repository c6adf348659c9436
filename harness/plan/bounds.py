"""Bounds of numbers in plans and options: the least, the most, and the reason why no more is of use.

A field of a table has them in its annotation: ``Annotated[int, msgspec.Meta(ge=1, le=100, description=reason)]``.
Numbers that depend on the rest of a plan, such as that of a broker, are checked with that rest; their only bound here
is the 64 bits of a number in TOML.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple, get_args

import msgspec

#: Integers of TOML have 64 bits, and so has a seed wherever it is stored.
NUMBER_MAX: Final = 2**63 - 1
#: Runs of one campaign.
RUNS_MAX: Final = 100_000
#: Combinations of the values of one matrix, exclusions not counted.
COMBINATIONS_MAX: Final = 10_000
#: Exclusions of one matrix; each is compared with each combination.
EXCLUSIONS_MAX: Final = 100
#: Writes of one run: histories as large were checked (results/reference/measurements.md), larger ones never.
WRITES_MAX: Final = 100_000_000
#: Bytes of the writes of one run in virtual time, where all that brokers hold is in memory: 2,000,000 small writes.
SIMULATED_BYTES_MAX: Final = 8_000_000_000
#: Bytes of such a write without its payload, observers and history included: 3,300 to 4,000 were measured.
SIMULATED_WRITE_BYTES: Final = 4_000
#: The most writes of a simulated run that has a trace; for it the run is done again, event by event.
TRACED_WRITES_MAX: Final = 100_000
#: Brokers of one cluster; the controller is node 100 (nemesis.cluster).
BROKERS_MAX: Final = 100
PORT_MAX: Final = 65_535
#: A number of a port, as a mark of its key.
PORT: Final = msgspec.Meta(ge=1, le=PORT_MAX, description="no port has a higher number")


class Bounds(NamedTuple):
    """Numbers from ``least`` to ``most``; the ``reason`` says why no more."""

    least: float
    most: float = NUMBER_MAX
    reason: str = "integers of TOML have 64 bits"

    def problem(self, value: float) -> str | None:
        """A part of a sentence that refuses ``value``; None where it is within the bounds."""
        if math.isnan(value):
            return "nan is not a number; write a number"
        if value > self.most:
            return f"{value} is too large; the most is {self.most}: {self.reason}"
        return f"{value} is too small; the least is {self.least}" if value < self.least else None


def bounds_of(field: msgspec.structs.FieldInfo) -> Bounds:
    """The bounds of a key that is a number; without others it is not negative, and a time lasts a day at most."""
    limits = [mark for mark in get_args(field.type)[1:] if isinstance(mark, msgspec.Meta)]
    least, most, reason = (limits[0].ge or 0, limits[0].le, limits[0].description) if limits else (0, None, None)
    if most is not None and reason is not None:
        return Bounds(least, most, reason)
    if field.name.endswith(("_ms", "_ms_min", "_ms_max")):
        return Bounds(least, 86_400_000, "a run lasts a day at most, and ackproof soak repeats runs for longer")
    return Bounds(least)
