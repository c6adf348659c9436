"""Every number of plans and options that has bounds: the least, the most, and the reason why no more is of use.

Numbers that depend on the rest of a plan, such as that of a broker, are checked with that rest; their only bound here
is the 64 bits of a number in TOML.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from nemesis.schedule import FAULTS_MAX

#: Integers of TOML have 64 bits, and so has a seed wherever it is stored.
NUMBER_MAX: Final = 2**63 - 1
#: Runs of one campaign.
RUNS_MAX: Final = 100_000
#: Combinations of the values of one matrix, exclusions not counted.
COMBINATIONS_MAX: Final = 10_000
#: Exclusions of one matrix; each is compared with each combination.
EXCLUSIONS_MAX: Final = 100
#: Writes of one run: histories as large were checked (results/reference/measurements.md), larger ones never.
WRITES_MAX: Final = 100_000_000
#: Bytes of the writes of one run in virtual time, where all that brokers hold is in memory: 2,000,000 small writes.
SIMULATED_BYTES_MAX: Final = 8_000_000_000
#: Bytes of such a write without its payload, observers and history included: 3,300 to 4,000 were measured.
SIMULATED_WRITE_BYTES: Final = 4_000
#: The most writes of a simulated run that has a trace; for it the run is done again, event by event.
TRACED_WRITES_MAX: Final = 100_000
#: Brokers of one cluster; the controller is node 100 (nemesis.cluster).
BROKERS_MAX: Final = 100
PORT_MAX: Final = 65_535


class Bounds(NamedTuple):
    """Numbers from ``least`` to ``most``; the ``reason`` says why no more."""

    least: float
    most: float
    reason: str

    def problem(self, value: float) -> str | None:
        """A part of a sentence that refuses ``value``; None where it is within the bounds."""
        if math.isnan(value):
            return "nan is not a number; write a number"
        if value > self.most:
            return f"{value} is too large; the most is {self.most}: {self.reason}"
        return f"{value} is too small; the least is {self.least}" if value < self.least else None


def _milliseconds(least: int) -> Bounds:
    return Bounds(least, 86_400_000, "a run lasts a day at most, and ackproof soak repeats runs for longer")


_NODES: Final = "controllers have the numbers from 100 on"
_THREAD: Final = "each is a thread or a process"
_PORT: Final = Bounds(1, PORT_MAX, "no port has a higher number")
#: The number of a thing that the rest of the plan defines.
_NUMBER: Final = Bounds(0, NUMBER_MAX, "integers of TOML have 64 bits")

#: By the name of the key, or of the option.
BOUNDS: Final[Mapping[str, Bounds]] = {
    "seed": Bounds(0, NUMBER_MAX, "seeds are stored in 64 bits"),
    "brokers": Bounds(1, BROKERS_MAX, _NODES),
    "log_dirs": Bounds(1, 100, "no broker has more disks"),
    # Of a world.
    "runs": Bounds(1, RUNS_MAX, "each leaves a directory of files, and one job checks them all"),
    "parallel": Bounds(1, 256, "each run has processes of its own"),
    "controllers": Bounds(1, NUMBER_MAX, _NUMBER.reason),
    "node": Bounds(0, NUMBER_MAX, _NUMBER.reason),
    "limit_s": Bounds(0.1, 600, "the workload waits for a command"),
    "port": _PORT,
    "broker_port": _PORT,
    # Of the workload.
    "topics": Bounds(1, 100, "each is made, and read to its end, one after the other"),
    "skew": Bounds(0, 4, "nearly all writes would go to one log partition"),
    "partitions": Bounds(1, 10_000, "the reference broker has no more"),
    "producers": Bounds(1, 1_000, _THREAD),
    "consumers": Bounds(0, 1_000, _THREAD),
    "writes_per_second": Bounds(0.001, 1_000_000, "no client library is as fast"),
    "payload_bytes": Bounds(0, 1_000_000, "brokers refuse larger records where they have their defaults"),
    "keys": Bounds(1, 1_000_000, "each is a name that the checkers keep in memory"),
    "sends_per_transaction": Bounds(1, 1_000, "each has to be answered before the transaction ends"),
    "aborts_percent": Bounds(0, 100, "it is a share"),
    "takeover_every_ms": _milliseconds(0),
    "duration_ms": _milliseconds(1),
    "poll_wait_ms": _milliseconds(0),
    "member_change_ms": _milliseconds(0),
    "drain_limit_ms": _milliseconds(1),
    "replace_silent_ms": _milliseconds(0),
    "recovery_limit_ms": _milliseconds(1),
    # Of the faults.
    "count": Bounds(0, FAULTS_MAX, "each leaves a receipt, and the report shows them all"),
    "fault_ms_min": _milliseconds(0),
    "fault_ms_max": _milliseconds(1),
    "healed_ms_min": _milliseconds(0),
    "dead_brokers_max": Bounds(1, NUMBER_MAX, _NUMBER.reason),
    "exercised_min": Bounds(1, FAULTS_MAX * RUNS_MAX, "no campaign has more faults"),
    "at_stake_min": Bounds(1, 1_000_000_000, "no campaign writes more"),
    # Of faults and writes one by one.
    "begin_ms": _milliseconds(0),
    "end_ms": _milliseconds(0),
    "at_ms": _milliseconds(0),
    "broker": _NUMBER,
    "partition": _NUMBER,
    "producer": _NUMBER,
    "pick": _NUMBER,
    "group": Bounds(0, FAULTS_MAX - 1, "a schedule has no more faults"),
    # Of commands.
    "workers": Bounds(1, 256, "each is a process"),
}
