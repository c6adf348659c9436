"""Notices when this machine's processors hardly serve, because others have them.

A node that gets a processor for a tenth of the time sends its heartbeats late, and is fenced; where it starts again,
that takes minutes. The harness itself may be served well meanwhile: it mostly sleeps, and who slept is served first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from time import monotonic, thread_time
from typing import ClassVar, Final

from typing_extensions import override

from harness.ground.machine.versions import processors
from harness.ground.machine.watch import Watch

#: The processor's time that a try takes: several turns of the kernel's, so that it has to wait for others as nodes do.
WORK_S: Final = 0.01
#: An election takes a second or two, and the default of recovery_limit_ms is 10 s: where all takes ten times as long,
#: a sound log comes back too late.
TIMES_SLOWER: Final = 10
#: Nodes that used at least this share of the processors had their time: what they waited for is one another.
OWN_SHARE: Final = 0.5

#: Rounds of hashing that take about a tenth of :data:`WORK_S`.
_TENTH: Final = 4_000


class ProcessorWatch(Watch):
    """Works for :data:`WORK_S`. ``processor_s`` gives the processor's time that the nodes have used."""

    slow_s: ClassVar[float] = WORK_S * TIMES_SLOWER
    pause_s: ClassVar[float] = 0.5
    hindrance: ClassVar[str] = f"others had its processors, and work for {WORK_S} s took longer than {slow_s} s"

    def __init__(self, processor_s: Callable[[], float]) -> None:
        self._processor_s = processor_s
        super().__init__()

    @override
    def _tries(self) -> Generator[bool]:
        used_s, at_s = self._processor_s(), monotonic()
        while True:
            _work()
            before_s, before_at_s = used_s, at_s
            used_s, at_s = self._processor_s(), monotonic()
            yield used_s - before_s < OWN_SHARE * processors() * (at_s - before_at_s)


def _work() -> None:
    """Use a processor for :data:`WORK_S`, however long that takes, without holding up other threads of Python.

    A thread that gives the interpreter away waits milliseconds for each other one that works. That is no lack of
    processors, so it happens only twice: a tenth of the work says how fast this processor is, the rest is one piece.
    """
    begin_s = thread_time()
    _hash(_TENTH)
    _hash(max(1, round(_TENTH * (WORK_S / (thread_time() - begin_s) - 1))))


def _hash(rounds: int) -> None:
    hashlib.pbkdf2_hmac("sha256", b"ackproof", b"watch", rounds)  # releases the interpreter meanwhile
