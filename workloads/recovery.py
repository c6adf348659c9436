"""Writes of fresh clients after everything was healed: a log that takes none of them has not come back.

They are ordinary sends of the history by instances of their own, and are judged as all others. A client that fails is
followed by another fresh one, so that only the log can be the reason for a write that never succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from workloads.client import SendOutcome
from workloads.instance import ProducerInstance, Writers
from workloads.operations import EventType

#: Between a send that failed and the next one.
RETRY_MS: Final = 200
#: The key of these writes.
KEY: Final = b"recovery"
#: Writes of each log partition where no answer proves one (acks=0) and each may be lost on its way.
UNANSWERED_WRITES: Final = 3


class RecoveryWrites:
    """One write of each log partition by fresh producers, again and again until it is acknowledged.

    Attributes:
        values: where acknowledgements prove nothing (acks=0), the log partition of each value that was sent: a reader
            must see one.
    """

    def __init__(self, writers: Writers, partitions: Sequence[str], *, acks: int) -> None:
        self._writers = writers
        self._clock = writers.clock
        self._unproved = acks == 0
        self._answers_left = dict.fromkeys(partitions, UNANSWERED_WRITES if self._unproved else 1)
        self._why = dict.fromkeys(partitions, "no answer")
        self._instances: list[ProducerInstance] = []
        self._over = False
        self.values: dict[int, str] = {}

    @property
    def finished(self) -> bool:
        """True once every log partition has acknowledged what it had to."""
        return self._over or not any(self._answers_left.values())

    def start(self) -> None:
        """Write from now on."""
        self._renew()
        for partition in self._answers_left:
            self._write(partition)

    def end(self) -> None:
        """Write nothing more and close every client."""
        self._over = True
        for instance in self._instances:
            instance.close()

    def unwritten(self, read: frozenset[int]) -> dict[str, str]:
        """The log partitions that took no write, and why; ``read`` are those of ``values`` that a reader saw."""
        if self._unproved:
            proved = {self.values[value] for value in read}
            return {name: "no final reader saw a write" for name in self._answers_left if name not in proved}
        return {name: self._why[name] for name, left in self._answers_left.items() if left}

    def _renew(self) -> None:
        self._instances.append(ProducerInstance(self._writers, self._answered))

    def _write(self, partition: str) -> None:
        if self._over:
            return
        value = self._instances[-1].send(partition, KEY)
        if self._unproved:
            self.values[value] = partition

    def _answered(self, instance: ProducerInstance, partition: str, outcome: SendOutcome) -> None:
        if self._over:
            return
        if outcome.type is EventType.OK:
            self._answers_left[partition] -= 1
        else:
            self._why[partition] = outcome.error or "an unknown end"
            if instance is self._instances[-1]:
                self._renew()
        if self._answers_left[partition]:
            self._clock.call_at(self._clock.now_us() + RETRY_MS * 1000, partial(self._write, partition))
