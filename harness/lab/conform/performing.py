"""Performs a story twice: on a real cluster, and by the core in virtual time at the pace of the first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
from typing_extensions import override

from harness.ground.choices import Choices
from harness.ground.errors import PlanError
from harness.lab.conform.recorded import KAFKA, RecordedStep, RecordedTrace, recorded, steps_of
from harness.lab.conform.shown import ShownState, shown
from harness.plan import AnyWorld, Kafka, Namespaces, Processes, RunSpec, Simulated
from harness.runs.run import kept_until_undone, prepared
from harness.runs.stories import (
    STABLE_END,
    AsLongAs,
    Column,
    Story,
    Told,
    UntilAtRest,
    column_named,
    outcome_of,
    perform_script,
    unmet,
    verdict_in_memory,
)
from harness.worlds.contract import ReplicaState
from harness.worlds.factory import world_for
from harness.worlds.simulated import SimulatedWorld
from harness.worlds.simulated.clients import parsed
from harness.worlds.simulated.steady import Steady
from nemesis.cluster import CONTROLLER, Link, Messages, PartitionView, Target, require
from nemesis.evidence import LinksCut
from nemesis.plan import FaultPlan
from workloads import Event, Settings, WorkloadPlan
from workloads.history import HistoryInMemory

#: The replicas of a second log partition. Those of the first are in the order of their numbers everywhere.
ELSEWHERE_FIRST: Final = (1, 2, 0)
WORKLOAD: Final = WorkloadPlan(
    topic="story", partitions=1, producers=1, consumers=1, drain_limit_ms=60_000, recovery_limit_ms=30_000
)
#: Long enough for a machine that does much else; the steps of scripts wait for states. A story may have its own.
TIMES: Final[Mapping[str, object]] = {
    "broker.session.timeout.ms": 9_000,
    "broker.heartbeat.interval.ms": 2_000,
    "replica.lag.time.max.ms": 10_000,
    "request.timeout.ms": 10_000,
    "delivery.timeout.ms": 30_000,
    # So often are high watermarks on disks, where they are seen; a cluster that is at rest has written them.
    "replica.high.watermark.checkpoint.interval.ms": 250,
}
#: No transaction is over time, and no member that stands between two steps is given up, unless the story says so.
LONG_TRANSACTIONS: Final[Mapping[str, object]] = {"transaction.timeout.ms": 60_000}
LONG_SESSIONS: Final[Mapping[str, object]] = {"session.timeout.ms": 45_000}
#: The worlds that the core can be held against.
ELSEWHERE: Final[Mapping[str, AnyWorld]] = {
    "kafka": Kafka(host=Namespaces(), client="confluent-kafka"),
    "processes": Processes(client="confluent-kafka"),
}


def with_rests(story: Story) -> Story:
    """The story with time limits that rests between its steps do not exceed."""
    long = {**(LONG_TRANSACTIONS if story.transactions else {}), **(LONG_SESSIONS if story.grouped else {})}
    settings = {**TIMES, **long, **story.settings, **story.real_time}
    return msgspec.structs.replace(story, settings=settings)


def spec_of(story: Story, column: Column, world: AnyWorld) -> RunSpec:
    """The run of a story with the settings of a column."""
    return _spec(story, column.name, column.chosen(with_rests(story).settings), world)


def _spec(story: Story, column: str, settings: Settings, world: AnyWorld) -> RunSpec:
    return RunSpec(
        world=world,
        cell=column,
        family=story.number,
        settings=settings.to_mapping(),
        workload=msgspec.structs.replace(WORKLOAD, name=story.workload, partitions=story.log_partitions),
        faults=FaultPlan(),
        seed=0,
        brokers=settings.replication_factor,
        assignment=(tuple(range(story.replicas)), ELSEWHERE_FIRST)[: story.log_partitions],
        story=story.number,
    )


def world_named(name: str, release: str = "") -> AnyWorld:
    """The world in which stories are performed, with Kafka of this ``release``, or of the default one.

    Raises:
        PlanError: this world has no releases.
    """
    world = ELSEWHERE[name]
    if not release:
        return world
    if not isinstance(world, Kafka):
        raise PlanError(f'the world "{name}" has no releases; leave --version out, or choose --world kafka')
    return msgspec.structs.replace(world, version=release)


def world_of(story: Story, name: str, release: str = "") -> AnyWorld:
    """The world in which this story is performed; errors as :func:`world_named`.

    Transactions on Kafka are those of its Java client, with the members beside them: ends of librdkafka's raise no
    producer epoch (KIP-890), whatever transaction version the cluster has.
    """
    world = world_named(name, release)
    of_java = bool(story.transactions) and isinstance(world, Kafka)
    return msgspec.structs.replace(world, client="java") if of_java else world


def performed_elsewhere(story: Story, column: str, world: str, release: str = "") -> RecordedTrace:
    """The trace of a story on a real cluster, with Kafka of this ``release``.

    Raises:
        PlanError: this world cannot do what the story asks for, or the story has no such column.
        HostError: this machine cannot offer the world, or something was not undone.
        HarnessError: the cluster could not be started, or the harness failed.
        KeyboardInterrupt: the user wants no more. What was not undone is named in each, for `ackproof heal`.
    """
    if not story.takes(column_named(column)):
        raise PlanError(f"{story.number} is performed in other columns: {', '.join(story.columns)}")
    spec = spec_of(story, column_named(column), world_of(story, world, release))
    if problem := unmet(with_rests(story), spec):
        raise PlanError(f"{story.number} {problem}")
    with kept_until_undone("ackproof-conform-") as directory:
        real = world_for(prepared(spec, story), directory, Steady(0))
        history = HistoryInMemory()
        performance = perform_script(story.in_column(spec.cell), spec, real, history, UntilAtRest())
        version = real.effective_configuration()["broker"].get("version", "")
        outcome = outcome_of(performance, verdict_in_memory(story, column, performance, history, real))
    system = f"{KAFKA} {version}" if world == "kafka" else "reference broker, processes"
    return recorded(story, spec, system, performance.trace, outcome)


def playable(stories: Iterable[Story], columns: Iterable[str], world: str, release: str = "") -> list[str]:
    """The numbers of the stories that this world can perform in all these columns; errors as :func:`world_named`."""
    where = world_named(world, release)
    chosen = [*map(column_named, columns)]
    return [
        story.number
        for story in stories
        if all(story.takes(column) and not why_not(story, column, where) for column in chosen)
    ]


def why_not(story: Story, column: Column, world: AnyWorld) -> str:
    """The reason why the story cannot be performed in this column and world; "" if it can."""
    return unmet(with_rests(story), spec_of(story, column, world))


class Moment(msgspec.Struct, frozen=True):
    """A state that the core went through, from ``time_us`` on."""

    time_us: int
    view: PartitionView
    fenced: frozenset[int]
    replicas: tuple[ReplicaState, ...]


class CoreStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step as the core performed it, and the states that it ``passed`` through in it, oldest first.

    These have no answers of clients, and of what is told the last stable offset alone. ``answers_before`` and
    ``told_before`` are what was known when the step began.
    """

    step: RecordedStep
    passed: Sequence[ShownState]
    answers_before: Mapping[str, str] = {}
    told_before: Mapping[str, Told] = {}


def performed_by_core(story: Story, trace: RecordedTrace, bug: str, choices: Choices) -> list[CoreStep]:
    """The same story in virtual time, each step as long as it lasted in ``trace``; with a planted ``bug``, or "none".

    Raises:
        SettingsError: the trace has settings that there are no more.
    """
    settings = Settings.from_mapping({**trace.settings, "planted.bug": bug})
    spec = _spec(story, trace.column, settings, Simulated())
    world = _WholeLinks(spec, choices, invariants=False)
    moments = _Moments(world, f"{WORKLOAD.topic}-0")
    pace = AsLongAs(world.clock.now_us, [step.lasted_ms for step in trace.steps])
    performed = perform_script(story.in_column(spec.cell), spec, world, _Forgetting(), pace).trace
    names = {end.value: name for name, end in performed.records.items()}
    steps: list[CoreStep] = []
    last: ShownState | None = None
    for entry, step in zip(performed.entries[:-1], steps_of(performed), strict=True):
        within = [moment for moment in moments.seen if entry.begun_us <= moment.time_us <= entry.ended_us]
        before = [moment for moment in moments.seen if moment.time_us < entry.begun_us][-1:]
        passed = [_shown_then(moment, names) for moment in [*before, *within]]
        answers, told = ({}, {}) if last is None else (last.answers, last.told)
        steps.append(CoreStep(step=step, passed=passed, answers_before=answers, told_before=told))
        last = step.shown
    return steps


def _shown_then(moment: Moment, names: Mapping[int, str]) -> ShownState:
    """The state at a moment, without what clients and coordinators tell."""
    state = shown(moment.view, moment.fenced, moment.replicas, names, {})
    leader = moment.view.leader
    replica = next((each for each in moment.replicas if each.leading and each.node == leader), None)
    told = {} if replica is None else {STABLE_END: replica.last_stable_offset}
    return msgspec.structs.replace(state, told=told)


class _WholeLinks(SimulatedWorld):
    """The simulated world, in which a link is held or dropped as a whole where a script names one API.

    So it is on real hosts, which cannot tell messages apart: a broker whose AlterPartition is dropped is fenced. Nor
    does it learn that, since brokers of Kafka ask the controller for metadata: both directions are gone.
    """

    @cached_property
    @override
    def target(self) -> Target:
        target = super().target
        return msgspec.structs.replace(target, messages=_WholeLinkMessages(require(target.messages)))


class _WholeLinkMessages(Messages):
    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    @override
    def hold(self, links: Collection[Link], api: str = "") -> LinksCut:
        return self._messages.hold(_in_effect(links))

    @override
    def delay(self, links: Collection[Link], api: str = "") -> LinksCut:
        return self._messages.delay(_in_effect(links))

    @override
    def drop(self, links: Collection[Link], api: str = "") -> LinksCut:
        return self._messages.drop(_in_effect(links))

    @override
    def release(self, links: Collection[Link], action: str = "", api: str = "") -> LinksCut:
        return self._messages.release(_in_effect(links), action)

    @override
    def release_one(self, link: Link, *, newest: bool) -> LinksCut:
        return self._messages.release_one(link, newest=newest)


def _in_effect(links: Collection[Link]) -> Collection[Link]:
    return {*links, *(Link(link.target, link.source) for link in links if CONTROLLER in link)}


class _Moments:
    """Watches a world: every state of a log partition that differs from the one before."""

    def __init__(self, world: SimulatedWorld, partition: str) -> None:
        self._world = world
        self._partition = partition
        self._last: tuple[object, ...] = ()
        self.seen: list[Moment] = []
        world.clock.on_step = self._step

    def _step(self, function: Callable[[Any], object], argument: Any) -> None:  # noqa: ARG002
        """Look closely only where something may have changed: most steps change nothing that is shown."""
        outline = tuple(self._outline())
        if outline == self._last:
            return
        self._last = outline
        world = self._world
        view = world.target.view().partitions.get(self._partition)
        if view is None:
            return
        replicas = tuple(world.replicas.state(node, self._partition) for node in world.cluster.brokers)
        self.seen.append(Moment(world.clock.time_us, view, world.replicas.fenced(), replicas))

    def _outline(self) -> Iterator[object]:
        cluster, partition = self._world.cluster, parsed(self._partition)
        yield cluster.image().version
        for node in cluster.brokers:
            broker, log = cluster.broker(node), cluster.log(node, partition)
            yield id(broker)
            if log is not None:
                yield (id(log), log.end_offset, tuple(log.epochs()), log.checkpointed_high_watermark())
            if broker is not None and (replica := broker.replicas.get(partition)) is not None:
                yield (replica.partition_epoch, replica.isr, replica.leading, replica.high_watermark)


class _Forgetting:
    """Takes events of clients, and keeps none: nothing is judged here."""

    def record(self, event: Event) -> None:
        """Take one event."""
