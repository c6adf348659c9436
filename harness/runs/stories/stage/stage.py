"""The stage of a script: the world of its story, with all that its steps act by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from harness.ground.errors import PlanError
from harness.plan import RunSpec
from harness.runs.stories.stage.patience import Patience
from harness.runs.stories.stage.script_faults import ScriptFaults
from harness.runs.stories.stage.story_world import StoryWorld
from harness.runs.stories.stage.trace import StepError
from harness.runs.stories.stage.writes import ScriptedRecord, Writes
from harness.worlds.contract import World
from nemesis.open_faults import Cause, OpenFaults
from nemesis.receipts import Receipt
from workloads import Recorder
from workloads.driver import DueWrite, SendCounts, SteppedMember, SteppedProducer, SteppedTransaction, Workload, Writers
from workloads.history import HistoryInMemory

Answer = TypeVar("Answer")


class StoryStage(StoryWorld):
    """A story's world with the clients and the faults of its script.

    ``keys`` are those of the records of the script, ``planned`` the writes of each of its transactions.

    Attributes:
        read_last: the names of the records that the last reader got whose level is its own.
    """

    def __init__(
        self,
        world: World,
        workload: Workload,
        spec: RunSpec,
        recorder: Recorder,
        *,
        keys: Mapping[str, bytes],
        planned: Mapping[str, Sequence[DueWrite]],
        grouped: bool,
    ) -> None:
        if world.direct is None:
            raise PlanError("this world cannot send single writes, so no scripted story can be performed in it")
        records: dict[str, ScriptedRecord] = {}
        super().__init__(world, workload.partitions[0], records, grouped=grouped)
        self.workload: Final = workload
        self.clients: Final = world.clients
        self.direct: Final = world.direct
        self.settings: Final = spec.chosen()
        self.patience: Final = Patience.of(spec)
        self.poll_wait_ms: Final = spec.workload.poll_wait_ms
        keyed = "compact" in self.settings.cleanup_policy
        writers = Writers(world.clients, world.clock, recorder, workload.new_process, SendCounts(), keyed)
        self.writes: Final = Writes(
            world.direct, self.partition, self.settings, writers=writers, records=records, keys=keys
        )
        # Where transactions of a script with a group have no record, they are no part of its history.
        judged = not grouped or any(planned.values())
        self._writers = writers if judged else writers._replace(recorder=HistoryInMemory())
        self.records: Final = records
        self.planned: Final = planned
        self.grouped: Final = grouped
        #: Producers with transactional ids, transactions and members of the group, by name. Each of the first and of
        #: the last is a client of its own; those that are gone are there too.
        self.producers: Final[dict[str, SteppedProducer]] = {}
        self.transactions: Final[dict[str, SteppedTransaction]] = {}
        self.members: Final[dict[str, SteppedMember]] = {}
        self.read_last: tuple[str, ...] | None = None

    def begin_faults(self, cause: Cause, witness: Callable[[Receipt], None]) -> None:
        """Let what is done to the cluster from now on leave its receipts with ``witness``."""
        self.open_faults = OpenFaults(self.target, lambda: self.now_us, witness)
        self.look = self.open_faults.view
        self.faults = ScriptFaults(self, self.open_faults, cause)

    def new_producer(self, transactional_id: str) -> SteppedProducer:
        """Another producer with this transactional id, which has not asked yet to be in charge."""
        before = [each for each in self.producers.values() if each.transactional_id == transactional_id]
        return SteppedProducer(self._writers, self.workload.partitions, transactional_id, before)

    def producer(self, name: str) -> SteppedProducer:
        """The producer of that name.

        Raises:
            StepError: it was not made.
        """
        if name not in self.producers:
            raise StepError(f"the producer {name} was not made")
        return self.producers[name]

    def transaction(self, name: str) -> SteppedTransaction:
        """The transaction of that name.

        Raises:
            StepError: it was not begun.
        """
        if name not in self.transactions or self.transactions[name].refused:
            raise StepError(f"the transaction {name} was not begun")
        return self.transactions[name]

    def moment(self, finished: Callable[[], bool], moments: int = 1) -> None:
        """Let time pass until ``finished()``, at most some moments: an answer that can come at all comes in one."""
        self.until(finished, moments * self.patience.answer_ms)

    def answer(self, ask: Callable[[Callable[[Answer], None]], None], moments: int = 1) -> Answer | None:
        """Ask, and wait some moments for the answer."""
        answers: list[Answer] = []
        ask(answers.append)
        self.moment(lambda: bool(answers), moments)
        return answers[0] if answers else None

    def leader_found(self) -> bool:
        """Wait for a leader as long as an election may take; True if there is one."""
        return self.until(lambda: self.leads(self.view.leader), self.patience.election_ms)

    def named(self, values: Iterable[int]) -> tuple[str, ...]:
        """The names of the records with these values; a value of no record of the script is left out."""
        names = self.names
        return tuple(names[value] for value in values if value in names)
