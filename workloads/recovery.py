"""Writes of fresh clients after everything was healed: a log that takes none of them has not come back.

They are ordinary sends of the history by instances of their own, and are judged as all others. A client that fails, or
gives no answer for :data:`RENEW_MS`, is followed by another fresh one, so that only the log can be the reason for a
write that never succeeds. One that owes an answer stays open: an acknowledgement that comes late counts too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from workloads.client import SendOutcome
from workloads.instance import ProducerInstance, Writers
from workloads.operations import EventType

#: Between a send that failed and the next one.
RETRY_MS: Final = 200
#: Without an answer for this long, another fresh client is asked. An election takes a second or two; a request that was
#: sent before may hold its client up for request.timeout.ms, and then the client repeats it until delivery.timeout.ms:
#: neither must decide whether the log can be written. The default recovery_limit_ms has room for four clients.
RENEW_MS: Final = 3_000
#: Clients that owe answers and are kept open at a time, the newest: each has threads and connections.
OPEN_MAX: Final = 10
#: The key of these writes.
KEY: Final = b"recovery"
#: Writes of each log partition where no answer proves one (acks=0) and each may be lost on its way. They are
#: :data:`RENEW_MS` apart, so that one election does not take all.
UNANSWERED_WRITES: Final = 3


class RecoveryWrites:
    """A write of each log partition by fresh producers, again and again until it is acknowledged.

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
        #: The open clients, the newest last.
        self._instances: list[ProducerInstance] = []
        #: By log partition, the client that was asked last, and the number of that write.
        self._asked: dict[str, tuple[ProducerInstance, int]] = {}
        self._over = False
        self.values: dict[int, str] = {}

    @property
    def finished(self) -> bool:
        """True once every log partition has acknowledged as many writes as it must."""
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
        """Make a fresh client, and close those that owe no answer, or are too many."""
        owing = [instance for instance in self._instances if instance.outstanding]
        kept = owing[-OPEN_MAX + 1 :]
        gone = [instance for instance in self._instances if instance not in kept]
        self._instances = [*kept, ProducerInstance(self._writers, self._answered)]
        for instance in gone:
            instance.close()

    def _write(self, partition: str) -> None:
        if self._over or not self._answers_left[partition]:
            return
        newest = self._instances[-1]
        number = newest.send(partition, KEY)
        self._asked[partition] = newest, number
        if self._unproved:
            self.values[number] = partition
        self._later(RENEW_MS, partial(self._give_up, partition, newest, number))

    def _give_up(self, partition: str, instance: ProducerInstance, number: int) -> None:
        """Ask a fresh client if this write of ``instance`` is still the last one and has no answer."""
        if self._over or self._asked.get(partition) != (instance, number):
            return
        self._replace(instance)
        self._write(partition)

    def _replace(self, instance: ProducerInstance) -> None:
        if instance is self._instances[-1]:
            self._renew()

    def _answered(self, instance: ProducerInstance, partition: str, outcome: SendOutcome) -> None:
        if self._over:
            return
        if outcome.type is EventType.OK:
            self._answers_left[partition] = max(0, self._answers_left[partition] - 1)
        else:
            self._why[partition] = outcome.error or "an unknown end"
            self._replace(instance)
        if self._asked.get(partition, (None, 0))[0] is not instance:
            return  # a late answer: another client has been asked meanwhile
        del self._asked[partition]
        if self._answers_left[partition]:
            self._later(RENEW_MS if self._unproved else RETRY_MS, partial(self._write, partition))

    def _later(self, after_ms: int, what: Callable[[], None]) -> None:
        self._clock.call_at(self._clock.now_us() + after_ms * 1000, what)
