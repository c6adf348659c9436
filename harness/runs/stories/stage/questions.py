"""Asks a cluster after a step of a story what readers, members and operators are told, without changing anything.

Only who compares two performances asks: the questions take time on a real cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from harness.runs.stories.stage.stage import StoryStage
from harness.runs.stories.stage.trace import Told
from workloads import NOTHING

#: The name of each fact.
LEADER: Final = "leader of the coordinator's log"
EPOCHS: Final = "leader epochs of the coordinator's log"
ISR: Final = "isr of the coordinator's log"
COMMITTED: Final = "committed by the group"
MEMBERS: Final = "members of the group"
ASSIGNED: Final = "members of the group with the log partition"
STABLE_END: Final = "last stable offset"
TRANSACTIONAL_ID: Final = "transactional id "
READ: Final = "read in this step"


class Questions:
    """The questions of a story with a coordinator. Without one, none is asked."""

    def __init__(self, stage: StoryStage) -> None:
        self._stage = stage
        self._first_epoch: int | None = None

    def begin(self) -> None:
        """Count the leader epochs of the coordinator's log from now on: Kafka's begins with any."""
        log = self._stage.log_of_coordinator
        self._first_epoch = None if log is None else log.leader_epoch

    def ask(self) -> Mapping[str, Told]:
        """All facts that are told now, by name; a question without an answer has none."""
        if self._first_epoch is None or not (self._stage.grouped or self._stage.planned):
            return {}
        told = dict(self._of_coordinator(self._first_epoch))
        told |= dict(self._of_group()) if self._stage.grouped else {}
        told |= dict(self._of_transactions()) if self._stage.planned else {}
        return {name: value for name, value in told.items() if value is not None}

    def _of_coordinator(self, first_epoch: int) -> Iterator[tuple[str, Told]]:
        if (log := self._stage.log_of_coordinator) is not None:
            yield LEADER, "no broker" if log.leader is None else log.leader
            yield EPOCHS, log.leader_epoch - first_epoch
            yield ISR, tuple(sorted(log.isr))

    def _of_transactions(self) -> Iterator[tuple[str, Told]]:
        yield STABLE_END, self._stage.stable_end()
        for name in dict.fromkeys(each.transactional_id for each in self._stage.producers.values()):
            yield f"{TRANSACTIONAL_ID}{name}", self._stage.state_of(name)

    def _of_group(self) -> Iterator[tuple[str, Told]]:
        partition, word = self._stage.partition, self._stage.group()
        yield COMMITTED, None if word.committed is None else word.committed.get(partition, NOTHING)
        yield MEMBERS, word.members
        yield ASSIGNED, word.assigned
        for name, member in self._stage.members.items():
            # Not how long it waits, and when it asks again: each client decides that.
            yield f"member {name}: assigned", member.assigned
