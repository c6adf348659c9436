"""The stage of a script: the world of its story, with all that its steps act by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from harness.ground.errors import PlanError
from harness.plan import RunSpec
from harness.runs.stories.members import ScriptMembers
from harness.runs.stories.outside_commits import OutsideCommits
from harness.runs.stories.patience import Patience
from harness.runs.stories.script_faults import ScriptFaults
from harness.runs.stories.story_world import StoryWorld
from harness.runs.stories.transactions import ScriptTransactions
from harness.runs.stories.writes import ScriptedRecord, Writes
from harness.worlds.contract import World
from nemesis.open_faults import Cause, OpenFaults
from nemesis.receipts import Receipt
from workloads import Recorder
from workloads.driver import Workload
from workloads.history import HistoryInMemory


class Stage(StoryWorld):
    """A story's world with the clients and the faults of its script.

    ``planned`` are the records of each transaction of the script, of which those ``elsewhere`` are for a second log
    partition.

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
        planned: Mapping[str, tuple[str, ...]],
        elsewhere: frozenset[str],
        grouped: bool,
    ) -> None:
        if world.direct is None:
            raise PlanError("this world cannot send single writes, so no scripted story can be performed in it")
        records: dict[str, ScriptedRecord] = {}
        super().__init__(world, workload.partitions[0], records, grouped=grouped)
        self.workload: Final = workload
        self.clients: Final = world.clients
        self.settings: Final = spec.chosen()
        self.patience: Final = Patience.of(spec)
        self.poll_wait_ms: Final = spec.workload.poll_wait_ms
        self.writes: Final = Writes(
            world.direct,
            self.partition,
            self.settings,
            records,
            clock=world.clock,
            recorder=recorder,
            new_process=workload.new_process,
        )
        self.transactions: Final = ScriptTransactions(
            world.clients,
            workload.partitions,
            records,
            planned=planned,
            elsewhere=elsewhere,
            keyed="compact" in self.settings.cleanup_policy,
            clock=world.clock,
            # Where transactions of a script with a group have no record, they are no part of its history.
            recorder=HistoryInMemory() if grouped and not any(planned.values()) else recorder,
            new_process=workload.new_process,
        )
        self.members: Final = ScriptMembers(workload)
        self.outside: Final = OutsideCommits(world, self.transactions, workload.membership, workload.new_process)
        self.read_last: tuple[str, ...] | None = None

    def begin_faults(self, cause: Cause, witness: Callable[[Receipt], None]) -> None:
        """Let what is done to the cluster from now on leave its receipts with ``witness``."""
        self.open_faults = OpenFaults(self.target, lambda: self.now_us, witness)
        self.look = self.open_faults.view
        self.faults = ScriptFaults(self, self.open_faults, cause)

    def moment(self, finished: Callable[[], bool], moments: int = 1) -> None:
        """Let some moments pass, in each of which an answer comes if one can, or less if that is ``finished()``."""
        self.until(finished, moments * self.patience.answer_ms)

    def leader_found(self) -> bool:
        """Wait for a leader as long as an election may take; True if there is one."""
        return self.until(lambda: self.leads(self.view.leader), self.patience.election_ms)

    def named(self, values: Iterable[int]) -> tuple[str, ...]:
        """The names of the records that these values are of; those of no record of the script are left out."""
        names = self.names
        return tuple(names[value] for value in values if value in names)
