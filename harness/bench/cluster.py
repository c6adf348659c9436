"""How fast the cluster of processes answers a bare kafka-python loop, and what the harness's own driver costs on top.

Both send the same payloads to the same log partitions with one producer, the same configuration and the same bound on
what is outstanding, as fast as they are answered; they take turns on one cluster, so that a slow moment of the machine
hits both. The driver also writes its history to disk, as in every run.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from kafka import KafkaProducer

from harness.errors import HarnessError
from harness.plan import RunSpec
from harness.rundir import HISTORY
from harness.worlds.processes import ProcessesWorld
from nemesis.plan import FaultPlan
from workloads.driver import Workload, partition_names
from workloads.history import LiveHistoryWriter
from workloads.plan import WorkloadPlan
from workloads.producing import OUTSTANDING_MAX
from workloads.settings import ACKS_ALL, Settings
from workloads.values import encode

MEASURED_S: Final = 5.0
#: Turns of the bare loop and the driver; the medians of three bear one bad turn each.
TURNS: Final = 3
#: The driver is asked for more than the bare loop reached, so that the cluster, not the plan, is its limit.
PRESSING: Final = 1.3
#: For the last answers after a measurement.
ANSWER_LIMIT_S: Final = 10.0


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledged writes per second, and their latencies in milliseconds."""

    writes_per_second: float
    p50_ms: float
    p99_ms: float
    p999_ms: float


class ClusterSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """``by_acks`` is the bare loop's; ``bare`` and ``driven`` are writes per second of each turn at acks=all."""

    by_acks: dict[str, Answered]
    bare: list[float]
    driven: list[float]

    @property
    def overhead(self) -> float:
        """The share of the bare loop's throughput that the driver costs, by medians; below 0 is noise."""
        return 1 - statistics.median(self.driven) / statistics.median(self.bare)

    def lines(self) -> Iterator[str]:
        """For people."""
        for acks, one in self.by_acks.items():
            latencies = f"p50 {one.p50_ms:.1f}  p99 {one.p99_ms:.1f}  p999 {one.p999_ms:.1f} ms"
            yield f"acknowledged writes per second, acks={acks:<4}   {one.writes_per_second:9.0f}   {latencies}"
        turns = f"bare {_rounded(self.bare)}, driver {_rounded(self.driven)} writes/s"
        yield f"the harness's own overhead, acks=all       {self.overhead:10.1%}   ({turns})"


def measure_cluster(directory: Path) -> ClusterSpeed:
    """Measure a three-broker cluster on loopback whose files stand in ``directory``; takes about a minute.

    Raises:
        HarnessError: the cluster did not start, or nothing was acknowledged.
    """
    spec = _spec()
    world = ProcessesWorld(spec, directory)
    try:
        world.open()
        configuration = world.effective_configuration()["producer"]
        by_acks = {
            name: _latencies(*_bare(spec, configuration | {"acks": acks}))
            for name, acks in (("1", 1), ("all", ACKS_ALL))
        }
        bare, driven = [], []
        for turn in range(TURNS):
            latencies, wall_s = _bare(spec, configuration)
            bare.append(len(latencies) / wall_s)
            driven.append(_driven(world, spec, bare[-1] * PRESSING, directory / f"turn-{turn}"))
    finally:
        world.close()
    return ClusterSpeed(by_acks=by_acks, bare=bare, driven=driven)


def _spec() -> RunSpec:
    settings = Settings(acks=ACKS_ALL, min_insync_replicas=2)
    return RunSpec(
        world="processes",
        cell="bench",
        family="none",
        settings=settings.to_mapping(),
        workload=WorkloadPlan(producers=1, consumers=1, duration_ms=120_000),
        faults=FaultPlan(families=(), count=0),
        seed=0,
    )


def _bare(spec: RunSpec, configuration: Mapping[str, Any]) -> tuple[list[float], float]:
    """Latencies in seconds of what a bare loop had acknowledged, and the wall seconds that it took."""
    partitions = spec.workload.partitions
    payloads = [encode(name, b"key-0", 0, 0) for name in partition_names(spec.workload)]
    latencies: list[float] = []
    free = threading.Semaphore(OUTSTANDING_MAX)
    producer = KafkaProducer(
        **{name: value for name, value in configuration.items() if name in KafkaProducer.DEFAULT_CONFIG}
    )

    def answered(begun: float) -> None:
        latencies.append(time.perf_counter() - begun)
        free.release()

    try:
        began, number = time.perf_counter(), 0
        while time.perf_counter() - began < MEASURED_S and free.acquire(timeout=ANSWER_LIMIT_S):
            number += 1
            at = number % partitions
            begun = time.perf_counter()
            future = producer.send(spec.workload.topic, value=payloads[at], key=b"key-0", partition=at)
            future.add_callback(lambda _, begun=begun: answered(begun)).add_errback(lambda _: free.release())
        producer.flush(ANSWER_LIMIT_S)
        return latencies, time.perf_counter() - began
    finally:
        producer.close(ANSWER_LIMIT_S)


def _driven(world: ProcessesWorld, spec: RunSpec, writes_per_second: float, directory: Path) -> float:
    """Acknowledged writes per second of the harness's driver, which is asked for ``writes_per_second``."""
    plan = msgspec.structs.replace(spec.workload, writes_per_second=writes_per_second, consumers=0)
    clock = world.clock
    with LiveHistoryWriter(directory / HISTORY, "bench") as recorder:
        workload = Workload(plan, clients=world.clients, clock=clock, recorder=recorder)
        began_us = clock.now_us()
        workload.begin()
        world.drive(lambda: False, began_us + int(MEASURED_S * 1e6))
        workload.stop_writing()
        world.drive(lambda: workload.outstanding == 0, clock.now_us() + int(ANSWER_LIMIT_S * 1e6))
        wall_s = (clock.now_us() - began_us) / 1e6
        workload.close_clients()
    return workload.counts.acknowledged / wall_s


def _latencies(latencies: list[float], wall_s: float) -> Answered:
    if not latencies:
        raise HarnessError("no write was acknowledged by the measured cluster; see its logs, or try again")
    p50, p99, p999 = (float(p) * 1000 for p in np.percentile(latencies, [50, 99, 99.9]))
    return Answered(writes_per_second=len(latencies) / wall_s, p50_ms=p50, p99_ms=p99, p999_ms=p999)


def _rounded(rates: list[float]) -> str:
    return " ".join(f"{rate:.0f}" for rate in rates)
