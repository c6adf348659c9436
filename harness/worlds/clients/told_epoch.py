"""The id and epoch of a producer as librdkafka's statistics tell them, JSON every so often; no call of it does.

Two calls may give the producer another epoch. So statistics count from the end of the last of these, and none counts
while one goes on, or after one that failed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from harness.worlds.clients.client_thread import NEVER
from workloads import ProducerEpoch


class _ExactlyOnce(msgspec.Struct):
    """The part about an idempotent producer: whether it may use its id now, id and epoch; -1 where it has none."""

    idemp_state: str
    producer_id: int
    producer_epoch: int


class _Statistics(msgspec.Struct):
    """The part of the statistics that is read. ``ts`` is when they were begun, in microseconds as :func:`_now_us`."""

    ts: int
    eos: _ExactlyOnce | None = None


_DECODER: Final = msgspec.json.Decoder(_Statistics)


class ToldEpoch:
    """The id and epoch of one producer. The library calls :meth:`on_statistics`, on any thread."""

    def __init__(self) -> None:
        self._since_us = NEVER
        self._told: tuple[int, ProducerEpoch | None] = (0, None)

    @property
    def present(self) -> ProducerEpoch | None:
        """The id and epoch with which the producer writes now, None where the latest statistics do not tell."""
        told_us, epoch = self._told
        return epoch if told_us >= self._since_us else None

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Around a call that may change them."""
        self._since_us = NEVER
        yield
        self._since_us = _now_us()

    def on_statistics(self, text: str) -> None:
        """Take statistics. Those of an unknown form tell nothing: an error here would end the library's thread."""
        with suppress(msgspec.MsgspecError):
            told = _DECODER.decode(text)
            if told.eos is not None and told.eos.idemp_state == "Assigned":
                self._told = told.ts, msgspec.convert(told.eos, ProducerEpoch, from_attributes=True)


def _now_us() -> int:
    """The time of the monotonic clock, which librdkafka uses too."""
    return time.monotonic_ns() // 1_000
