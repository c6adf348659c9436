"""Text for ``tc`` that makes links slow, and the reading of what it lists. No effects here.

A slow link delivers little at a time: what a source sends to a target passes a class of its own with a small rate
(``htb``), everything else passes as before. Before that it waits in the class's own queue, its leaf: in
:data:`LATE` for some time in any case, in :data:`FIFO` only for what was there before. A node's qdisc stands on its own
interface and dies with its namespace.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

#: Less than a few dozen small writes a second: followers fall behind without a connection breaking.
RATE_KBIT: Final = 16
#: A class must be able to hold two full packets, or it delivers none.
_BURST_BYTES: Final = 3_000
#: A queue that delays every packet by a fifth of a second, give or take, as over an ocean: much less than a session.
#: Packets may overtake one another in it, which TCP mends. Not every kernel has it (sch_netem).
LATE: Final = "netem limit 1000 delay 200ms 50ms"
#: The queue that a class has anyway.
FIFO: Final = "pfifo limit 1000"
_OTHERS: Final = "1:fff"
#: Class numbers are hexadecimal; a target's is its node number and this.
_FIRST_CLASS: Final = 0x10
_CLASS: Final = re.compile(
    r"^class htb 1:([0-9a-f]+) .*?^ Sent (\d+) bytes \d+ pkt \(dropped (\d+), overlimits (\d+)", re.M | re.S
)
_DELAY: Final = re.compile(r"^qdisc netem [0-9a-f]+: parent 1:([0-9a-f]+) .*?\bdelay (\d+)(?:\.\d+)?ms", re.M)


def rules(device: str, targets: Collection[int], addresses: Mapping[int, str], leaf: str) -> str:
    """Lines for ``tc -batch`` on a device without such rules: what goes to ``targets`` is slow. ``leaf`` queues it."""
    slow = f"htb rate {RATE_KBIT}kbit burst {_BURST_BYTES} quantum 1514"
    lines = [
        f"qdisc add dev {device} root handle 1: htb default {_OTHERS[2:]}",
        f"class add dev {device} parent 1: classid {_OTHERS} htb rate 10gbit quantum 60000",
    ]
    for target in sorted(targets):
        own = f"{target + _FIRST_CLASS:x}"
        number = f"1:{own}"
        match = f"u32 match ip dst {addresses[target]}/32"
        lines += [
            f"class add dev {device} parent 1: classid {number} {slow}",
            f"qdisc add dev {device} parent {number} handle {own}: {leaf}",
            f"filter add dev {device} parent 1: protocol ip prio 1 {match} flowid {number}",
        ]
    return "\n".join(lines) + "\n"


def clearing(device: str) -> str:
    """The line that removes them all, with what waits in them: TCP sends it again."""
    return f"qdisc del dev {device} root\n"


def seen(listing: str) -> dict[int, dict[str, int]]:
    """From ``tc -s class show``: by target, ``bytes`` that passed, and how often a packet had to wait (``waits``)."""
    found = {int(number, 16): (int(sent), int(waits)) for number, sent, _, waits in _CLASS.findall(listing)}
    return {
        number - _FIRST_CLASS: {"bytes": sent, "waits": waits}
        for number, (sent, waits) in found.items()
        if f"1:{number:x}" != _OTHERS
    }


def delays_ms(listing: str) -> dict[int, int]:
    """From ``tc qdisc show``: by target, how late its packets are made; nothing where the leaf delays none."""
    return {int(number, 16) - _FIRST_CLASS: int(ms) for number, ms in _DELAY.findall(listing)}
