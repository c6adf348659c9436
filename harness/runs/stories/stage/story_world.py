"""The world of a story: an open world with one log partition, in the words of a script. It does not know which it is.

Names become brokers, states become questions to the cluster. What a world lacks of what a step needs is a
:class:`StepError`, which is a fact of the performance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from harness.broker.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from harness.ground.errors import PlanError
from harness.runs.stories.stage.names import Broker, BrokerRole, Record
from harness.runs.stories.stage.trace import StepError, broker_words
from harness.runs.stories.stage.writes import ScriptedRecord
from harness.worlds.contract import Flushed, GroupWord, Replicas, ReplicaState, World
from nemesis.cluster import Capability, ClusterView, PartitionView, require
from nemesis.disk_parts import LOG_PARTS
from workloads import LogPartition

#: The logs of coordinators.
TRANSACTIONS_LOG: Final = str(LogPartition(TRANSACTIONS_TOPIC, 0))
GROUPS_LOG: Final = str(LogPartition(OFFSETS_TOPIC, 0))
_UNKNOWN: Final = PartitionView(leader=None, leader_epoch=-1, isr=(), replicas=())


class NoSuchRoleError(StepError):
    """No broker has the role that a step names."""


class StoryWorld:
    """An open world with one log partition, in the words of a script.

    ``records`` are those that were sent so far, by name. The coordinator is that of transactions, or where it is
    ``grouped`` that of groups. ``look`` gives the newest view; a caller that wants to know what is seen replaces it.
    """

    def __init__(self, world: World, partition: str, records: dict[str, ScriptedRecord], *, grouped: bool) -> None:
        if world.replicas is None:
            raise PlanError("this world shows no replicas, so no scripted story can be performed in it")
        self._world = world
        self.target: Final = world.target
        self.look: Callable[[], ClusterView] = world.target.view
        self.partition = partition
        self._records = records
        self._log = GROUPS_LOG if grouped else TRANSACTIONS_LOG
        self._replicas: Replicas = world.replicas
        self._leaders: list[int] = []
        self._order: tuple[int, ...] = ()

    # --- what there is -----------------------------------------------------------------------------------------------

    @property
    def view(self) -> PartitionView:
        """The controller's word about the log partition."""
        state = self.look().partitions.get(self.partition, _UNKNOWN)
        if state.leader is not None and self._leaders[-1:] != [state.leader]:
            self._leaders.append(state.leader)
        return state

    @property
    def brokers(self) -> tuple[int, ...]:
        """The numbers of all brokers."""
        return self.look().brokers

    @property
    def running(self) -> tuple[int, ...]:
        """The brokers whose processes run."""
        return self.look().running

    def replica(self, node: int) -> ReplicaState:
        """The replica on a broker."""
        return self._replicas.state(node, self.partition)

    def replicas(self) -> tuple[ReplicaState, ...]:
        """The replicas on all brokers."""
        return tuple(map(self.replica, self.brokers))

    @property
    def names(self) -> dict[int, str]:
        """The names of the records that were sent so far, by their values."""
        return {record.value: name for name, record in self._records.items()}

    @property
    def coordinator(self) -> int | None:
        """The coordinator of transactions, or of the group, as the controller sees it."""
        return self.coordinator_of(self._log)

    def coordinator_of(self, log: str) -> int | None:
        """The coordinator whose log that is, as the controller sees it; None where Kafka has not made the log."""
        view = self.look()
        return next(iter(view.coordinators if log == GROUPS_LOG else view.transaction_coordinators), None)

    @property
    def log_of_coordinator(self) -> PartitionView | None:
        """The controller's word about the coordinator's log; None where there is no such log yet."""
        return self.look().internal.get(self._log)

    def group(self) -> GroupWord:
        """The word of the coordinator about the group."""
        return GroupWord() if self.coordinator is None else self._replicas.group(self.coordinator)

    def state_of(self, transactional_id: str) -> str | None:
        """The word of the coordinator of transactions about a transactional id."""
        coordinator = self.coordinator_of(TRANSACTIONS_LOG)
        return None if coordinator is None else self._replicas.transaction(coordinator, transactional_id)

    def stable_end(self) -> int | None:
        """The last stable offset, as the leader tells it."""
        leader = self.view.leader
        return None if leader is None else self._replicas.stable_end(leader, self.partition)

    @property
    def is_stable(self) -> bool:
        """True if no transaction is open where it is seen: the leader's last stable offset is its high watermark."""
        leader = None if self.view.leader is None else self.replica(self.view.leader)
        return leader is not None and leader.last_stable_offset in {None, leader.high_watermark, leader.log_end}

    def move_coordinator(self, node: int) -> str:
        """Hand the log of a coordinator over, as planned; the answer is why that was refused, or ""."""
        return str(require(self.target.leadership).move_leader(self._log, node).get("refused", ""))

    def fenced(self) -> tuple[int, ...]:
        """The brokers that the controller counts as dead."""
        return tuple(sorted(self._replicas.fenced()))

    def other_order(self) -> str:
        """Say in which order elections prefer the replicas, if it is not the first one any more; else "".

        A planned move on Kafka puts the new leader first, and then elections prefer other brokers than a script means.
        """
        order = self.view.replicas
        self._order = self._order or order
        preferred, given = broker_words(order), broker_words(self._order)
        return "" if order == self._order else f"elections prefer {preferred}, and not {given}"

    def keep_order(self) -> None:
        """Put the replicas in their first order again. It takes a request, which a cut link may hold for seconds."""
        if self.other_order():
            self._reassign(self.partition, self._order)
        self.order_coordinators()

    def order_coordinators(self) -> None:
        """Let the first broker that can be elected coordinate next: Kafka draws the order of its own logs by chance."""
        log = self.log_of_coordinator
        if log is not None and log.replicas != self.brokers:
            self._reassign(self._log, self.brokers)

    def _reassign(self, partition: str, order: Sequence[int]) -> None:
        if (reassignment := self.target.reassignment) is not None:
            reassignment.reassign(partition, order)

    def able(self, needs: Iterable[Capability]) -> None:
        """Check that the world can do what needs these.

        Raises:
            StepError: it cannot; the text says why.
        """
        if why_not := self.target.why_not(needs):
            raise StepError(why_not)

    # --- time --------------------------------------------------------------------------------------------------------

    def until(self, finished: Callable[[], bool], limit_ms: int) -> bool:
        """Let time pass until ``finished()``, at most ``limit_ms``; the answer is ``finished()``.

        The cluster is looked at meanwhile: what lasts has a receipt of what was seen of it.
        """

        def look() -> bool:
            self.look()
            return finished()

        return self._world.drive(look, self._world.clock.now_us() + limit_ms * 1000)

    @property
    def now_us(self) -> int:
        """The time of the run."""
        return self._world.clock.now_us()

    def let_pass(self, ms: int) -> None:
        """Let time pass."""
        self.until(lambda: False, ms)

    # --- names -------------------------------------------------------------------------------------------------------

    def node(self, broker: Broker) -> int:
        """The number of a broker.

        Raises:
            NoSuchRoleError: no broker has that role.
        """
        if isinstance(broker, int):
            return broker
        view = self.view
        former = self._leaders[:-1] if view.leader is not None else self._leaders
        if broker is BrokerRole.LEADER and view.leader is not None:
            return view.leader
        if broker is BrokerRole.FORMER_LEADER and former:
            return former[-1]
        if broker is BrokerRole.COORDINATOR and (coordinator := self.coordinator) is not None:
            return coordinator
        others = [node for node in view.replicas if node != view.leader and node not in former[-1:]]
        if broker is BrokerRole.OTHER_FOLLOWER and others:
            return others[0]
        raise NoSuchRoleError(f"no broker is {broker} now")

    def record(self, name: Record) -> ScriptedRecord:
        """A record that was sent.

        Raises:
            StepError: it was not, because there was no leader.
        """
        if name not in self._records:
            raise StepError(f"{name} was not sent")
        return self._records[name]

    def offset_of(self, name: Record, node: int) -> int | None:
        """The last offset at which a broker's log has a record, None where it lacks it, or has it torn or damaged."""
        value = self.record(name).value
        places = [record.offset for record in self.replica(node).records if record.value == value and record.intact]
        return places[-1] if places else None

    def next_offset(self, name: Record) -> int | None:
        """The offset right behind a record, None while no answer tells its own.

        Raises:
            StepError: it was not sent.
        """
        offset = self.record(name).end().offset
        return None if offset is None else offset + 1

    def covers(self, mark: int | None, node: int, name: Record) -> bool:
        """True if a broker's log has a record below this mark; errors as :meth:`record`."""
        offset = self.offset_of(name, node)
        return offset is not None and mark is not None and mark > offset

    def placed(self, name: Record, node: int) -> str:
        """Say where a broker's log has a record; errors as :meth:`record`."""
        offset = self.offset_of(name, node)
        return f"it lacks {name}" if offset is None else f"{name} is at offset {offset}"

    def pick_of(self, name: Record, node: int) -> int:
        """The position of a record in a broker's log, in parts of LOG_PARTS (:meth:`nemesis.disk_parts.Files.corrupt`).

        Raises:
            StepError: it is not there.
        """
        value = self.record(name).value
        values = [record.value for record in self.replica(node).records]
        if value not in values:
            raise StepError(f"the log of broker {node} does not have {name}")
        return -(-values.index(value) * LOG_PARTS // len(values))

    def flush(self, node: int) -> Flushed:
        """Force to disk what a broker has written."""
        return self._replicas.flush(node)

    # --- what states ask ---------------------------------------------------------------------------------------------

    @property
    def isr_of_coordinator(self) -> tuple[int, ...]:
        """The ISR of the coordinator's log, as the controller sees it."""
        log = self.log_of_coordinator
        return () if log is None else log.isr

    @property
    def group_is_empty(self) -> bool | None:
        """True if the coordinator knows of no member of the group; None where it does not tell."""
        return None if self.coordinator is None else self._replicas.group_is_empty(self.coordinator)

    def all_in_sync(self, nodes: tuple[int, ...]) -> bool:
        """True if these are the members of the ISR and run, with one log end, which is everybody's high watermark.

        A high watermark that this world cannot see is not asked for.
        """
        # The controller's word first: replicas are read only where it may be so.
        if not self.is_isr(set(nodes)):
            return False
        states = [state for state in map(self.replica, nodes) if state.running]
        covered = all(state.high_watermark in {None, state.log_end} for state in states)
        return len(states) == len(nodes) and len({state.log_end for state in states}) == 1 and covered

    def is_isr(self, nodes: set[int]) -> bool:
        """The ISR as the controller and the leader see it."""
        view = self.view
        if view.leader is None or set(view.isr) != nodes:
            return False
        leader = self.replica(view.leader)
        return leader.leading and (leader.isr is None or set(leader.isr) == nodes)

    def leads(self, node: int | None) -> bool:
        """True if a broker leads by the controller's word and by its own."""
        if node is None or self.view.leader != node:
            return False
        replica = self.replica(node)
        return replica.running and replica.leading
