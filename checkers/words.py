"""Words that sentences of verdicts and of the harness share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from workloads import ProducerEpoch
from workloads.values import split

_SECOND_US: Final = 1_000_000


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 run``, ``2,000 runs``; ``plural`` is needed where it is not ``noun`` with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    """A share with two significant digits, three from ten percent on; never rounded down to nothing."""
    if share in {0.0, 1.0}:
        return f"{share * 100:.0f} %"
    digits = 2 if share < 0.1 else 3
    return f"{float(f'{share * 100:.{digits}g}'):g} %" if share >= 1e-6 else "< 0.0001 %"


def seconds(time_us: int | None) -> str:
    """A time in seconds, or "never"."""
    return "never" if time_us is None else f"{time_us / 1e6:.2f} s"


def span(span_us: int) -> str:
    """A span in milliseconds, from a second on in seconds."""
    return f"{span_us / 1000:,.2f} ms" if span_us < _SECOND_US else seconds(span_us)


def write_name(value: int) -> str:
    """A written value by who wrote it and its number among that process's writes."""
    process, sequence = split(value)
    return f"write {sequence} of process {process}"


def written(value: object) -> str:
    """A written value by its name; other tools' are any JSON."""
    return write_name(value) if isinstance(value, int) else f"value {value}"


def held_record(value: int) -> str:
    """A record as a broker's disk holds it: one that is not sound has a number below 0."""
    return write_name(value) if value >= 0 else "a record that is not sound"


def producer_name(producer: ProducerEpoch) -> str:
    """A producer as replicas.parquet and logs of brokers name it."""
    return f"id {producer.producer_id}, epoch {producer.producer_epoch}"


def process_names(processes: Sequence[int]) -> str:
    """Processes of clients by their numbers."""
    return f"process{'es' if len(processes) > 1 else ''} {', '.join(map(str, processes))}"
