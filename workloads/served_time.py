"""Time in which the harness was served: on a starved machine clients and brokers had no more chance than it had.

Code that waits for a log to come back looks every so often. If its timer comes late, the time after it was due does not
count. None does while the disk hardly serves. In virtual time all time counts.
"""

from __future__ import annotations

from workloads.client import Clock


class ServedTime:
    """The served time since this was made, for a caller that looks every ``every_us`` microseconds."""

    def __init__(self, clock: Clock, every_us: int) -> None:
        self._clock, self._every_us = clock, every_us
        self._looked_us, self._until_us = clock.now_us(), 0

    def now_us(self) -> int:
        """Served time until now: since the last look at most ``every_us``."""
        return self._until_us + min(self._clock.now_us() - self._looked_us, self._every_us)

    def look(self, *, serves: bool = True) -> int:
        """Look again; the served time until now, without that since the last look if it was not served (``serves``)."""
        until_us = self.now_us() if serves else self._until_us
        self._until_us, self._looked_us = until_us, self._clock.now_us()
        return self._until_us
