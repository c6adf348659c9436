"""How fast the cluster of processes answers a bare kafka-python loop, and what the harness's own driver costs on top.

Both send the same payloads to the same log partitions with one producer, the same configuration and the same bound on
what is outstanding, and take turns on one cluster, so that a slow moment of the machine hits both. Two loads: *paced*,
where latency tells what the driver adds to a write; and *saturated*, where throughput tells what it costs, because
driver, client library and brokers share the cores. The processor time of this process for each acknowledged write is
what a busy machine disturbs least. The driver also writes its history, as in every run.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from kafka import KafkaProducer

from harness.clients import producer_configuration
from harness.errors import HarnessError
from harness.plan import Processes, RunSpec
from harness.records.files import HISTORY
from harness.worlds.processes import processes_world
from harness.worlds.real import RealWorld
from nemesis.plan import FaultPlan
from workloads import ACKS_ALL, EventType, Function, Settings, WorkloadPlan
from workloads.driver import OUTSTANDING_MAX, Workload, partition_names
from workloads.history import LiveHistoryWriter, read_events
from workloads.values import encode

MEASURED_S: Final = 4.0
#: Turns of the bare loop and the driver at each load; the medians of three bear one bad turn each.
TURNS: Final = 3
#: Writes per second of the paced load: ten times what the default campaign asks of a cluster.
PACE: Final = 600.0
#: The driver is asked for more than the bare loop reached, so that the cluster, not the plan, is its limit.
PRESSING: Final = 1.3
#: Writes per second that no loop reaches: a bare loop without a pace.
UNPACED: Final = 1e9
#: For the last answers after a measurement.
ANSWER_LIMIT_S: Final = 10.0


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledged writes per second, their latencies in milliseconds, and this process's processor time for each."""

    writes_per_second: float
    cpu_us: float
    p50_ms: float
    p99_ms: float
    p999_ms: float


class Turn(NamedTuple):
    """One after the other, on one cluster."""

    bare: Answered
    driven: Answered


class ClusterSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """``by_acks`` is the bare, saturated loop's; the turns are at acks=all."""

    by_acks: dict[str, Answered]
    paced: list[Turn]
    saturated: list[Turn]

    @property
    def latency_overhead(self) -> float:
        """What the driver adds to the median latency of a paced write, as a share of the bare loop's."""
        return _median(t.driven.p50_ms for t in self.paced) / _median(t.bare.p50_ms for t in self.paced) - 1

    @property
    def throughput_overhead(self) -> float:
        """The share of the bare loop's saturated throughput that the driver costs; below 0 is noise."""
        bare = _median(t.bare.writes_per_second for t in self.saturated)
        return 1 - _median(t.driven.writes_per_second for t in self.saturated) / bare

    @property
    def cpu_overhead(self) -> float:
        """What the driver adds to the processor time of a saturated write, as a share of the bare loop's."""
        return _median(t.driven.cpu_us for t in self.saturated) / _median(t.bare.cpu_us for t in self.saturated) - 1

    def lines(self) -> Iterator[str]:
        """For people."""
        for acks, one in self.by_acks.items():
            latencies = f"p50 {one.p50_ms:.1f}  p99 {one.p99_ms:.1f}  p999 {one.p999_ms:.1f} ms"
            yield f"acknowledged writes per second, acks={acks:<4}   {one.writes_per_second:9.0f}   {latencies}"
        p50 = " ".join(f"{t.bare.p50_ms:.2f}/{t.driven.p50_ms:.2f}" for t in self.paced)
        name = f"overhead in latency, {PACE:.0f} writes/s"
        yield f"{name:<43}{self.latency_overhead:9.1%}   p50 in ms, bare/driver: {p50}"
        rates = " ".join(f"{t.bare.writes_per_second:.0f}/{t.driven.writes_per_second:.0f}" for t in self.saturated)
        name = "overhead in saturated throughput"
        yield f"{name:<43}{self.throughput_overhead:9.1%}   writes/s, bare/driver: {rates}"
        cpu = " ".join(f"{t.bare.cpu_us:.0f}/{t.driven.cpu_us:.0f}" for t in self.saturated)
        name = "overhead in processor time of a write"
        yield f"{name:<43}{self.cpu_overhead:9.1%}   µs, saturated, bare/driver: {cpu}"


def measure_cluster(directory: Path) -> ClusterSpeed:
    """Measure a three-broker cluster on loopback whose files stand in ``directory``; takes about a minute.

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
        paced, saturated = [], []
        for number in range(TURNS):
            here = directory / f"turn-{number}"
            bare = _bare(spec, configuration, PACE)
            paced.append(Turn(bare, _driven(world, spec, PACE, here / "paced")))
            bare = _bare(spec, configuration, UNPACED)
            pressing = bare.writes_per_second * PRESSING
            saturated.append(Turn(bare, _driven(world, spec, pressing, here / "saturated")))
    finally:
        world.close()
    return ClusterSpeed(by_acks=by_acks, paced=paced, saturated=saturated)


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
    """Where the brokers listen, by the files that they were started with."""
    nodes = [msgspec.json.decode(path.read_bytes()) for path in sorted((directory / "data").glob("*.json"))]
    return [f"{node['host']}:{node['port']}" for node in nodes if node["role"] == "broker"]


def _bare(spec: RunSpec, configuration: Mapping[str, Any], pace: float) -> Answered:
    """What a bare loop had acknowledged that sends at most ``pace`` writes a second."""
    partitions = spec.workload.partitions
    payloads = [encode(name, b"key-0", 0) for name in partition_names(spec.workload)]
    latencies: list[float] = []
    free = threading.Semaphore(OUTSTANDING_MAX)
    producer = KafkaProducer(**configuration)

    def answered(begun: float) -> None:
        latencies.append(time.perf_counter() - begun)
        free.release()

    try:
        began, began_cpu_s, number = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - began < MEASURED_S and free.acquire(timeout=ANSWER_LIMIT_S):
            early_s = began + number / pace - time.perf_counter()
            if early_s > 0:  # a sleep of nothing would still give the processor away
                time.sleep(early_s)
            number += 1
            at = number % partitions
            begun = time.perf_counter()
            future = producer.send(spec.workload.topic, value=payloads[at], key=b"key-0", partition=at)
            future.add_callback(lambda _, begun=begun: answered(begun)).add_errback(lambda _: free.release())
        producer.flush(ANSWER_LIMIT_S)
        return _summary(latencies, time.perf_counter() - began, time.process_time() - began_cpu_s)
    finally:
        producer.close(ANSWER_LIMIT_S)


def _driven(world: RealWorld, spec: RunSpec, pace: float, directory: Path) -> Answered:
    """What the harness's driver had acknowledged that sends ``pace`` writes a second, by its own history."""
    plan = msgspec.structs.replace(spec.workload, writes_per_second=pace, consumers=0)
    clock = world.clock
    with LiveHistoryWriter(directory / HISTORY, "bench") as recorder:
        workload = Workload(plan, spec.chosen(), clients=world.clients, clock=clock, recorder=recorder)
        began_us, began_cpu_s = clock.now_us(), time.process_time()
        workload.begin()
        world.drive(lambda: False, began_us + int(MEASURED_S * 1e6))
        workload.producers.stop()
        world.drive(lambda: workload.producers.outstanding == 0, clock.now_us() + int(ANSWER_LIMIT_S * 1e6))
        wall_s, cpu_s = (clock.now_us() - began_us) / 1e6, time.process_time() - began_cpu_s
        workload.close_clients()
    return _summary(_recorded_latencies(directory / HISTORY), wall_s, cpu_s)


def _recorded_latencies(history: Path) -> list[float]:
    """Seconds from invoke to ok of every acknowledged send; a process has one open at a time."""
    begun_us: dict[int, int] = {}
    latencies = []
    for event in read_events(history):
        if event.function is Function.SEND and event.type is EventType.INVOKE:
            begun_us[event.process] = event.time_us
        elif event.function is Function.SEND and event.type is EventType.OK:
            latencies.append((event.time_us - begun_us[event.process]) / 1e6)
    return latencies


def _summary(latencies: Sequence[float], wall_s: float, cpu_s: float) -> Answered:
    if not latencies:
        raise HarnessError("no write was acknowledged by the measured cluster; see its logs, or try again")
    p50, p99, p999 = (float(p) * 1000 for p in np.percentile(latencies, [50, 99, 99.9]))
    done = len(latencies)
    return Answered(writes_per_second=done / wall_s, cpu_us=cpu_s / done * 1e6, p50_ms=p50, p99_ms=p99, p999_ms=p999)


def _median(values: Iterator[float]) -> float:
    return statistics.median(values)
