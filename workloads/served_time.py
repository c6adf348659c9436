"""Time in which the harness was served: on a starved machine clients and brokers had no more chance than it had.

Code that waits for a log to come back looks every so often. If its timer comes late, the time after it was due does not
count. None does while something hinders the machine from serving the nodes. In virtual time all time counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from workloads.client import Clock

#: The hindrance of a machine whose timers come late.
LATE: Final = "it woke the harness late"


class ServedTime:
    """The served time since this was made, for a caller that looks every ``every_us`` microseconds."""

    def __init__(self, clock: Clock, every_us: int) -> None:
        self._clock, self._every_us = clock, every_us
        self._began_us = self._looked_us = clock.now_us()
        self._until_us = 0
        self._lost_us: Counter[str] = Counter()

    def now_us(self) -> int:
        """Served time until now: since the last look at most ``every_us``."""
        return self._until_us + min(self._clock.now_us() - self._looked_us, self._every_us)

    def look(self, hindrance: str = "") -> int:
        """Look again; the served time until now, without that since the last look if there was a ``hindrance``."""
        until_us = self._until_us if hindrance else self.now_us()
        now_us = self._clock.now_us()
        self._lost_us[hindrance or LATE] += now_us - self._looked_us - (until_us - self._until_us)
        self._until_us, self._looked_us = until_us, now_us
        return self._until_us

    def lost(self) -> str:
        """Say how much of the time until the last look was not served, and what hindered the machine for longest."""
        total_us = self._looked_us - self._began_us
        why = max(self._lost_us, key=self._lost_us.__getitem__, default=LATE)
        return f"in {(total_us - self._until_us) / 1e6:.1f} of {total_us / 1e6:.1f} s the machine was too slow: {why}"
