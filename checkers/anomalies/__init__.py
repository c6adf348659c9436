"""One module an anomaly. A new anomaly is one module and one line in :data:`KERNELS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from checkers.anomalies import (
    corrupt_read,
    duplicate,
    g1a,
    inconsistent_offsets,
    int_nonmonotonic_poll,
    int_nonmonotonic_send,
    int_poll_skip,
    int_send_skip,
    lost_write,
    nonmonotonic_poll,
    nonmonotonic_send,
    phantom_read,
    poll_skip,
    precommitted_read,
    unseen,
)
from checkers.anomalies.found import Found
from checkers.columns.log import Log

#: By name, in the order in which a report lists them.
KERNELS: Final[dict[str, Callable[[Log], Found]]] = {
    kernel.NAME: kernel.find
    for kernel in (
        lost_write,
        unseen,
        duplicate,
        inconsistent_offsets,
        phantom_read,
        corrupt_read,
        g1a,
        precommitted_read,
        nonmonotonic_poll,
        poll_skip,
        nonmonotonic_send,
        int_nonmonotonic_poll,
        int_poll_skip,
        int_nonmonotonic_send,
        int_send_skip,
    )
}

#: Anomalies that do not make a history invalid by themselves, as the field judges them: Kafka does not isolate writes.
ALLOWED: Final = ("int-send-skip", "G0", "G0-realtime")
#: Allowed where consumers subscribe: a group rebalance moves them without their knowing.
UNLESS_SUBSCRIBED: Final = ("poll-skip", "nonmonotonic-poll")
#: Allowed where overwrites count as dependencies, because of the same missing isolation of writes.
UNLESS_ISOLATED: Final = ("G1c", "G1c-realtime")
