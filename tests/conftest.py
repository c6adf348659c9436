"""A world without mishaps, in virtual time: an instant log in memory, and a cluster that does what a nemesis asks.

Hypothesis draws the same examples in every run, so that a red test is red again. To look for more, say
``HYPOTHESIS_PROFILE=explore``: other examples each time, and ten to thirty times as many (where a test sets a number of
its own, only of histories).
"""

import gc
import heapq
import os
import signal
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial

import hypothesis
import msgspec
import pytest

from nemesis.cluster import CONTROLLER, Capability, ClusterView, Link, PartitionView, Target
from scripts.spark_archive import ARCHIVE, options
from workloads.client import Fetched, Offsets, PollOutcome, SendOutcome
from workloads.operations import Event, EventType
from workloads.replacement import CrashedProducer

#: The part of the short tests after which no worker begins a long one, while the others would have nothing to do.
LONG_TESTS_END = 0.8

#: Thresholds of the garbage collection: many times the usual ones.
COLLECTED_AFTER = (20_000, 20, 20)

# With what `make test` makes there Spark's Java starts in two thirds of the processor time.
if ARCHIVE.is_file():
    os.environ.setdefault("SPARK_SUBMIT_OPTS", options(ARCHIVE))

# A shell lets what it starts in the background ignore Ctrl-C, and processes hand that on to those that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The short tests of a module go to one worker, and so do those that share a fixture of it: each is made once.

    Workers find the long tests among the short ones: while some wait, others compute, and short ones are the end.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None and (not is_long(item) or shares_fixture(item)):
            item.add_marker(pytest.mark.xdist_group(f"{item.path.parent.name}/{item.path.stem}"))
    # Set by pytest-xdist in workers that do whole groups.
    if getattr(config.option, "loadgroup", False):
        spread(items)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End what a folder's tests shared with the last test of their group in this worker.

    Folders without ``__init__.py`` are no packages: pytest would keep clusters of theirs until all tests are over.
    """
    if not hasattr(item.config, "workerinput") or nextitem is None or group_of(item) == group_of(nextitem):
        return
    for definitions in item.session._fixturemanager._arg2fixturedefs.values():
        for fixture in definitions:
            if fixture.scope == "package":
                fixture.finish(item._request)


def group_of(item: pytest.Item) -> str | None:
    marker = item.get_closest_marker("xdist_group")
    return None if marker is None else str(marker.args[0])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of collected tests stay until the end: no garbage collection needs to look at them, now or later.

    What the tests make is looked at less often, too: a twentieth of the processor time of the fast ones went there.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECTED_AFTER)
        gc.enable()


def is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("system") is not None


def shares_fixture(item: pytest.Item) -> bool:
    fixtures = getattr(item, "_fixtureinfo", None)
    return fixtures is not None and any(made[-1].scope == "module" for made in fixtures.name2fixturedefs.values())


def spread(items: list[pytest.Item]) -> None:
    """Spread the long tests evenly over so much of the short ones.

    Of both, groups come before single tests, the largest first: a worker has a whole group to do, and none is to begin
    late.
    """
    waiting = {group_of(item) for item in items if is_long(item)} - {None}
    sizes = Counter(group_of(item) for item in items)
    short, long = [], []
    for item in items:
        (long if is_long(item) or group_of(item) in waiting else short).append(item)
    places = {}
    for part, end in ((short, 1.0), (long, LONG_TESTS_END)):
        part.sort(key=lambda item: (0, "") if (group := group_of(item)) is None else (-sizes[group], group))
        places |= {item: end * number / len(part) for number, item in enumerate(part)}
    items.sort(key=places.__getitem__)


class VirtualClock:
    def __init__(self):
        self.time_us = 0
        self._due = []
        self._calls = 0

    def now_us(self):
        return self.time_us

    def call_at(self, time_us, callback):
        self._calls += 1
        heapq.heappush(self._due, (max(time_us, self.time_us), self._calls, callback))

    def starve(self, lost_us, every_us):
        """From now on, each time ``every_us`` are over, ``lost_us`` of them went by without anybody being served."""
        self.time_us += lost_us
        self.call_at(self.time_us + every_us - lost_us, partial(self.starve, lost_us, every_us))

    def drive(self, finished, limit_us):
        while not finished() and self._due and self._due[0][0] <= limit_us:
            due_us, _, callback = heapq.heappop(self._due)
            # A callback that takes its time, as commands on real machines do, moves the clock itself.
            self.time_us = max(self.time_us, due_us)
            callback()
        if not finished():
            self.time_us = max(self.time_us, limit_us)
        return finished()


@dataclass
class PerfectLog:
    """Clients of a log that takes every record, unless ``answer_send`` or ``answer_poll`` says something else.

    ``silent`` are (process, log partition) of producers that never answer, ``refusing`` those that refuse every send.
    """

    clock: VirtualClock
    name: str = "perfect"
    latency_us: int = 1_000
    records: dict[str, list[tuple[bytes, bytes]]] = field(default_factory=dict)
    answer_send: Callable[..., SendOutcome | None] = lambda partition: None
    answer_poll: Callable[..., PollOutcome | None] = lambda process, partitions: None
    silent_sends: bool = False
    silent: set[tuple[int, str]] = field(default_factory=set)
    refusing: dict[int, str] = field(default_factory=dict)
    unknown_ends: set[str] = field(default_factory=set)
    producers: list["PerfectProducer"] = field(default_factory=list)
    consumers: list["PerfectConsumer"] = field(default_factory=list)

    def name_of(self, process):
        return f"{self.name} of {process}"

    def producer(self, process, transactional_id=None):
        self.producers.append(PerfectProducer(self, process))
        return self.producers[-1]

    def consumer(self, process, membership=None, isolation="read_uncommitted"):
        self.consumers.append(PerfectConsumer(self, process))
        return self.consumers[-1]

    def later(self, callback):
        self.clock.call_at(self.clock.now_us() + self.latency_us, callback)


class PerfectProducer:
    def __init__(self, log: PerfectLog, process: int):
        self.log, self.process, self.closed, self.open = log, process, False, {}

    def send(self, partition, key, payload, done):
        token = object()
        self.open[token] = done
        if self.process in self.log.refusing:
            self.log.later(partial(self._refuse, token, self.log.refusing[self.process]))
        elif not self.log.silent_sends and (self.process, partition) not in self.log.silent:
            self.log.later(partial(self._arrive, token, partition, key, payload))

    def _arrive(self, token, partition, key, payload):
        done = self.open.pop(token, None)
        if done is None:
            return
        outcome = self.log.answer_send(partition)
        if outcome is None:
            kept = self.log.records.setdefault(partition, [])
            kept.append((key, payload))
            outcome = SendOutcome(EventType.OK, offset=len(kept) - 1, node=0)
        done(outcome)

    def _refuse(self, token, error):
        if (done := self.open.pop(token, None)) is not None:
            done(SendOutcome(EventType.FAIL, error=error))

    def close(self):
        self._end("ClientClosed")

    def crash(self):
        self._end("ClientCrashed")

    def _end(self, error):
        self.closed = True
        for done in self.open.values():
            self.log.later(partial(done, SendOutcome(EventType.INFO, error=error)))
        self.open.clear()


class PerfectConsumer:
    own_commits = None

    def __init__(self, log: PerfectLog, process: int):
        self.log, self.process, self.closed = log, process, False
        self.positions: dict[str, int] = {}

    def assign(self, partitions: Sequence[str], *, from_start: bool):
        self.positions = {name: 0 if from_start else self.positions.get(name, 0) for name in partitions}

    def poll(self, max_wait_ms, done):
        self.log.later(partial(self._answer, done))

    def _answer(self, done):
        outcome = self.log.answer_poll(self.process, tuple(self.positions))
        if self.closed:
            outcome = PollOutcome(EventType.INFO, error="ClientClosed")
        done(outcome or PollOutcome(EventType.OK, tuple(self._fetch())))

    def _fetch(self):
        for name, position in self.positions.items():
            records = self.log.records.get(name, [])[position:]
            self.positions[name] += len(records)
            for index, (key, payload) in enumerate(records):
                yield Fetched(name, position + index, key, payload)

    def end_offsets(self, partitions, done):
        names = [name for name in partitions if name not in self.log.unknown_ends]
        self.log.later(partial(done, Offsets({name: len(self.log.records.get(name, [])) for name in names})))

    def close(self):
        self.closed = True


class ObedientCluster:
    """Every part of a target in one: does what it is told, elects at once, notes every call. ``blind`` sees nothing."""

    def __init__(self, brokers=3, partitions=("t-0", "t-1", "t-2"), *, blind=False):
        self.brokers = tuple(range(brokers))
        self.dead, self.frozen, self.links, self.calls, self.blind = set(), set(), set(), [], blind
        self.controller_active = True
        self.racks: dict[int, str] = {}
        self.most_stopped, self.elected = 0, 0
        self.never_in_sync: dict[str, set[int]] = {}
        self.places = {name: [(start + n) % brokers for n in range(brokers)] for start, name in enumerate(partitions)}

    def target(self, lacks=None):
        parts = {part.value: self for part in Capability if part not in (lacks or {})}
        return Target(view=self.view, **parts, lacks=lacks or {})

    def view(self):
        running = tuple(broker for broker in self.brokers if broker not in self.dead | self.frozen)
        states = {name: self._state(name, running) for name in self.places}
        controls = tuple({CONTROLLER} - self.dead - self.frozen)
        return ClusterView(
            states,
            running,
            self.brokers,
            running_controllers=controls,
            controller_active=self.controller_active,
            racks=self.racks,
        )

    def _state(self, name, running):
        replicas = self.places[name]
        isr = tuple(n for n in replicas if n in running and n not in self.never_in_sync.get(name, ()))
        elections = sum(what not in {"heal", "release", "deliver", "spare"} for what, _ in self.calls) + self.elected
        return PartitionView(isr[0] if isr else None, elections, isr, tuple(replicas))

    def _did(self, what, whom):
        self.calls.append((what, whom))
        self.most_stopped = max(self.most_stopped, len((self.dead | self.frozen) - {CONTROLLER}))
        seen = [str(whom)] if what == "slow" else str(whom)  # as evidence has it
        return {} if self.blind else {what: seen}

    def kill(self, node):
        self.dead.add(node)
        return self._did("kill", node)

    def cut_power(self, node):
        self.dead.add(node)
        return self._did("cut_power", node)

    def restart(self, node):
        self.dead.discard(node)
        return self._did("restart", node)

    def pause(self, node):
        self.frozen.add(node)
        return self._did("pause", node)

    def resume(self, node):
        self.frozen.discard(node)
        return self._did("resume", node)

    def deliver(self, links: Collection[Link]):
        return self._did("deliver", tuple(links))

    def cut(self, links: Collection[Link]):
        self.links |= set(links)
        return self._did("cut", sorted(links))

    def heal(self, links: Collection[Link]):
        self.links -= set(links)
        return self._did("heal", sorted(links))

    def crash_producer(self, pick):
        self._did("crash_producer", pick)
        return CrashedProducer(instance=0, outstanding=0, successor=1)

    def __getattr__(self, name):
        """Every other action of the contract is noted."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *whom, **how: self._did(name, (*whom, *how.values()))


class PerfectWorld:
    def __init__(self, lacks=None, **cluster):
        self.clock = VirtualClock()
        self.clients = PerfectLog(self.clock)
        self.cluster = ObedientCluster(**cluster)
        self.target = self.cluster.target(lacks)
        self.opened, self.closed = 0, 0
        self.died = []
        self.disk_stands_until_us = 0

    def open(self):
        self.opened += 1

    def drive(self, finished, limit_us):
        return self.clock.drive(finished, limit_us)

    def hindrance(self):
        stands = self.disk_stands_until_us and self.clock.time_us < self.disk_stands_until_us
        return "its disk stands" if stands else ""

    def crashes(self):
        return self.died

    def observations(self):
        return ()

    broken_invariant = None

    def out_of_sync(self, healed_us):
        return {}

    def refused_attempts(self):
        return None

    def replica_logs(self):
        return None

    def close(self):
        self.closed += 1


class EventList:
    """A recorder that keeps its events."""

    def __init__(self):
        self.events: list[Event] = []

    def record(self, event):
        self.events.append(msgspec.structs.replace(event, index=len(self.events)))

    def of(self, function, *types):
        return [e for e in self.events if e.function is function and (not types or e.type in types)]


@pytest.fixture
def perfect_world():
    return PerfectWorld()


@pytest.fixture(scope="session")
def make_world():
    return PerfectWorld


@pytest.fixture
def events():
    return EventList()
