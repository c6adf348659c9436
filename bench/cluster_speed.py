"""Measures the cluster of processes with a bare kafka-python loop, and the extra cost of the harness's own driver.

Both send payloads of the same size to the same log partitions with one producer, the same configuration and the same
bound on what is outstanding. They take turns on one cluster, in many short pairs that begin with either in turn, and
each pair is compared by itself: a slow moment of the machine hits both halves of a pair, and where it hits one half, it
does not move the median over pairs. There are two loads. *Paced*: latency shows what the driver adds to a write.
*Saturated*: throughput shows its cost, because driver, client library and brokers share the cores. A busy machine
disturbs least the processor time of this process for each acknowledged write. The driver also writes its history, as
in every run.

The bare loop does less than any program that keeps account of its writes: its payloads are made once, so that all have
the same value and checksum, its key never changes, and its answers are timed on the library's own thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from kafka import KafkaProducer

from harness.ground.errors import HarnessError
from harness.plan import Processes, RunSpec
from harness.records.files import HISTORY
from harness.worlds.clients import producer_configuration
from harness.worlds.processes import processes_world
from harness.worlds.real import RealWorld
from nemesis.plan import FaultPlan
from workloads import ACKS_ALL, EventType, Function, Settings, WorkloadPlan
from workloads.driver import OUTSTANDING_MAX, Workload, partition_names
from workloads.history import LiveHistoryWriter, read_events
from workloads.values import encode

#: Each half of a pair: the time until clients are connected and busy, then the measured time.
WARM_S: Final = 0.4
MEASURED_S: Final = 1.6
PAIRS: Final = 12
#: Writes per second of the paced load: ten times what the default campaign asks of a cluster.
PACE: Final = 600.0
#: Both are asked for more than a loop without a pace reached, so that the cluster, not the plan, is the limit. Without
#: a pace the bare loop would send in bursts, whose larger batches cost less.
PRESSING: Final = 1.3
#: Writes per second that no loop reaches: a bare loop without a pace.
UNPACED: Final = 1e9
#: For the last answers after a measurement.
ANSWER_LIMIT_S: Final = 10.0


class WriteSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledged writes per second, their latencies in milliseconds, and this process's processor time for each."""

    writes_per_second: float
    cpu_us: float
    p50_ms: float
    p99_ms: float
    p999_ms: float


class Pair(NamedTuple):
    """Two halves, one right after the other on one cluster, in either order."""

    bare: WriteSpeed
    driven: WriteSpeed


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The median over pairs, and the bounds of their middle half."""

    median: float
    low: float
    high: float


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """All pairs at one load, and what the driver adds to the bare loop's, as a share, pair by pair."""

    pairs: list[Pair]
    latency: Spread
    throughput: Spread
    processor_time: Spread

    @classmethod
    def of(cls, pairs: list[Pair]) -> Load:
        """Compare each pair by itself."""
        return cls(
            pairs=pairs,
            latency=_spread([p.driven.p50_ms / p.bare.p50_ms - 1 for p in pairs]),
            throughput=_spread([p.driven.writes_per_second / p.bare.writes_per_second - 1 for p in pairs]),
            processor_time=_spread([p.driven.cpu_us / p.bare.cpu_us - 1 for p in pairs]),
        )

    def line(self, name: str, added: Spread, field: str, unit: str) -> str:
        """One line for people: the added share, then the medians of both halves."""
        bare, driven = (
            _spread([getattr(half, field) for half in halves]).median for halves in zip(*self.pairs, strict=True)
        )
        share = f"{added.median:+.1%} ({added.low:+.1%} to {added.high:+.1%})"
        return f"{name:<52} {share:<30} {bare:,.4g} and {driven:,.4g} {unit}"


class ClusterSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """``by_acks`` is the bare, saturated loop's; the pairs are at acks=all."""

    by_acks: dict[str, WriteSpeed]
    paced: Load
    saturated: Load

    def lines(self) -> Iterator[str]:
        """Lines for people."""
        for acks, answered in self.by_acks.items():
            latencies = f"p50 {answered.p50_ms:.1f}  p99 {answered.p99_ms:.1f}  p999 {answered.p999_ms:.1f} ms"
            yield f"acknowledged writes per second, acks={acks:<4}   {answered.writes_per_second:9.0f}   {latencies}"
        yield f"what the driver adds: median of {len(self.paced.pairs)} pairs (their middle half); bare and driven"
        paced, saturated = self.paced, self.saturated
        yield paced.line(f"p50 latency, {PACE:.0f} writes/s", paced.latency, "p50_ms", "ms")
        yield paced.line(f"processor time of a write, {PACE:.0f} writes/s", paced.processor_time, "cpu_us", "µs")
        yield saturated.line("throughput, saturated", saturated.throughput, "writes_per_second", "writes/s")
        yield saturated.line("processor time of a write, saturated", saturated.processor_time, "cpu_us", "µs")


class _Reading(NamedTuple):
    """Clocks and counts at the begin or the end of a measurement."""

    wall_s: float
    cpu_s: float
    acknowledged: int

    @classmethod
    def now(cls, acknowledged: int) -> _Reading:
        return cls(time.perf_counter(), time.process_time(), acknowledged)


def measure_cluster(directory: Path) -> ClusterSpeed:
    """Measure a three-broker cluster on loopback whose files are in ``directory``; takes about two minutes.

    Raises:
        HarnessError: the cluster did not start, or nothing was acknowledged.
    """
    spec = _spec()
    world = processes_world(spec, directory)
    try:
        world.open()
        configuration = producer_configuration(spec.chosen(), _addresses(directory), process=0)
        by_acks = {
            name: _bare(spec, configuration | {"acks": acks}, UNPACED) for name, acks in (("1", 1), ("all", ACKS_ALL))
        }
        pressing = by_acks["all"].writes_per_second * PRESSING
        paced: list[Pair] = []
        saturated: list[Pair] = []
        for number in range(PAIRS):
            for pairs, pace in ((paced, PACE), (saturated, pressing)):
                here = directory / f"{number}-{pace:.0f}"
                if number % 2:
                    driven = _driven(world, spec, pace, here)
                    pairs.append(Pair(_bare(spec, configuration, pace), driven))
                else:
                    pairs.append(Pair(_bare(spec, configuration, pace), _driven(world, spec, pace, here)))
    finally:
        world.close()
    return ClusterSpeed(by_acks=by_acks, paced=Load.of(paced), saturated=Load.of(saturated))


def _spec() -> RunSpec:
    settings = Settings(acks=ACKS_ALL, min_insync_replicas=2)
    return RunSpec(
        world=Processes(),
        cell="bench",
        family="none",
        settings=settings.to_mapping(),
        workload=WorkloadPlan(producers=1, consumers=1, duration_ms=120_000),
        faults=FaultPlan(families=(), count=0),
        seed=0,
    )


def _addresses(directory: Path) -> list[str]:
    """The addresses of the brokers, from the files that they were started with."""
    nodes = [msgspec.json.decode(path.read_bytes()) for path in sorted((directory / "data").glob("*.json"))]
    return [f"{node['host']}:{node['port']}" for node in nodes if node["role"] == "broker"]


def _bare(spec: RunSpec, configuration: Mapping[str, Any], pace: float) -> WriteSpeed:
    """Acknowledged writes of a bare loop of ``pace`` writes a second; it waits while too many are outstanding."""
    partitions = spec.workload.partitions
    payloads = [encode(name, b"key-0", 0) for name in partition_names(spec.workload)]
    latencies: list[float] = []
    free = threading.Semaphore(OUTSTANDING_MAX)
    producer = KafkaProducer(**configuration)

    def answered(begun: float) -> None:
        latencies.append(time.perf_counter() - begun)
        free.release()

    def send_for(seconds: float) -> None:
        began, number = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            if not free.acquire(blocking=False):
                free.acquire(timeout=ANSWER_LIMIT_S)
                number = max(number, int((time.perf_counter() - began) * pace))  # what was due meanwhile is not made
            early_s = began + number / pace - time.perf_counter()
            if early_s > 0:  # a sleep of nothing would still give the processor away
                time.sleep(early_s)
            number += 1
            partition = number % partitions
            begun = time.perf_counter()
            future = producer.send(spec.workload.topic, value=payloads[partition], key=b"key-0", partition=partition)
            future.add_callback(lambda _, begun=begun: answered(begun)).add_errback(lambda _: free.release())

    try:
        send_for(WARM_S)
        begin = _Reading.now(len(latencies))
        send_for(MEASURED_S)
        end = _Reading.now(len(latencies))
        producer.flush(ANSWER_LIMIT_S)
        return _answered(begin, end, latencies[begin.acknowledged :])
    finally:
        producer.close(ANSWER_LIMIT_S)


def _driven(world: RealWorld, spec: RunSpec, pace: float, directory: Path) -> WriteSpeed:
    """Acknowledged writes of the harness's driver at ``pace`` writes a second, by its own history."""
    plan = msgspec.structs.replace(spec.workload, writes_per_second=pace, consumers=0)
    clock = world.clock
    with LiveHistoryWriter(directory / HISTORY, "bench") as recorder:
        workload = Workload(plan, spec.chosen(), clients=world.clients, clock=clock, recorder=recorder)
        workload.begin()
        world.drive(lambda: False, clock.now_us() + int(WARM_S * 1e6))
        began_us, begin = clock.now_us(), _Reading.now(workload.producers.counts.acknowledged)
        world.drive(lambda: False, began_us + int(MEASURED_S * 1e6))
        end = _Reading.now(workload.producers.counts.acknowledged)
        workload.producers.stop()
        world.drive(lambda: workload.producers.outstanding == 0, clock.now_us() + int(ANSWER_LIMIT_S * 1e6))
        workload.close_clients()
    return _answered(begin, end, _recorded_latencies(directory / HISTORY, began_us))


def _recorded_latencies(history: Path, since_us: int) -> list[float]:
    """Seconds from invoke to ok of every send acknowledged since then; a process has one open at a time."""
    begun_us: dict[int, int] = {}
    latencies = []
    for event in read_events(history):
        if event.function is Function.SEND and event.type is EventType.INVOKE:
            begun_us[event.process] = event.time_us
        elif event.function is Function.SEND and event.type is EventType.OK and event.time_us >= since_us:
            latencies.append((event.time_us - begun_us[event.process]) / 1e6)
    return latencies


def _answered(begin: _Reading, end: _Reading, latencies: Sequence[float]) -> WriteSpeed:
    done = end.acknowledged - begin.acknowledged
    if not done:
        raise HarnessError("no write was acknowledged by the measured cluster; see its logs, or try again")
    p50, p99, p999 = (float(p) * 1000 for p in np.percentile(latencies, [50, 99, 99.9]))
    return WriteSpeed(
        writes_per_second=done / (end.wall_s - begin.wall_s),
        cpu_us=(end.cpu_s - begin.cpu_s) / done * 1e6,
        p50_ms=p50,
        p99_ms=p99,
        p999_ms=p999,
    )


def _spread(values: Sequence[float]) -> Spread:
    low, median, high = (float(value) for value in np.percentile(values, [25, 50, 75]))
    return Spread(median=median, low=low, high=high)
