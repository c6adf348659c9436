"""``expired-write``: acknowledged values that were older than retention.ms before any ok poll had read them.

Example: ``a@3`` is acknowledged at 2 s, and retention.ms is 10 s. Readers are behind; at 14 s a final reader begins, is
told that the log starts at 9, and reads from there to the end. No client ever reads ``a``.

Brokers drop whole segments by age, and ask no reader: permitted always, and named, because a consumer that is
slower than retention.ms, or away for longer, never learns of such a value.

Values before an offset at which a broker said that the log begins count, too, whatever removed them.

False alarms avoided: as for ``unseen``. Not found: younger values, which are due (``lost-write``).

Findings, one a log partition: key, unseen (how many), messages (the values, in order). The count adds up values. O(n).
"""

from __future__ import annotations

from checkers.anomalies.anomaly import About, Allowed, Anomaly, Found
from checkers.anomalies.unseen import Unread, found_by_partition, never_read
from checkers.columns.log import Log


class ExpiredWrite(Unread, kw_only=True):
    """The values of a log partition that went by their age, and that no client read."""


def find(log: Log) -> Found:
    """Log partitions with acknowledged values that were never read, and are too old now."""
    return found_by_partition(log, never_read(log, log.expired), ExpiredWrite)


ANOMALY = Anomaly.documented(
    "expired-write",
    __doc__,
    ExpiredWrite,
    find,
    Allowed.ALWAYS,
    about=About.READERS,
    title="A write that was acknowledged was too old before anyone read it",
    rule="A log keeps records for retention.ms, and asks no reader (rule 47).",
)
