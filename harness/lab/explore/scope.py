"""Scopes: what may happen in an exhaustive search, how often, under which settings, and what that leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from harness.ground.errors import PlanError
from harness.lab.explore.any_scope import AnyScope, ScopeConstants, Times
from workloads import Settings

#: The effect of a crash on a broker's records: keeps them, loses an end of what was not flushed, or may lose all of it.
Loss = Literal["nothing", "unflushed", "everything"]
#: The broker that the controller elects of several candidates: the first in the order of assignment, or any of them.
Elected = Literal["any", "assigned"]

#: Names of brokers are merged by trying every order of them.
Brokers = Annotated[int, msgspec.Meta(ge=1, le=5)]


class Constants(ScopeConstants, frozen=True):
    """The constants of a scope of replication.

    ``records`` are written one after the other, to a broker that thinks it leads. ``crashes`` end a process, with
    ``crash_loses``. ``fences`` are sessions of live brokers that expire; those of dead ones always do. ``moves`` are
    planned moves of the leader. ``shrinks`` are followers that a leader finds silent for replica.lag.time.max.ms,
    ``proposals`` all changes of the ISR that leaders ask for. ``skips`` are decisions of the controller that a broker
    never hears of, because it hears of a later one first. ``losses`` are messages that never arrive, ``timeouts``
    requests that are sent again. ``in_sync`` brokers are in the ISR at the beginning. ``cleanings`` are passes of
    cleaners that change something, ``late_cleanings`` those of them that come when the time limits of tombstones are
    over. ``retries`` are records without an acknowledgement that their client sends again, to any broker that thinks it
    leads. ``keys`` are those of the records (:mod:`harness.lab.explore.keys`).
    """

    brokers: Brokers = 3
    in_sync: Brokers = 3
    records: Times = 1
    crashes: Times = 0
    crash_loses: Loss = "nothing"
    fences: Times = 0
    moves: Times = 0
    shrinks: Times = 0
    proposals: Times = 3
    skips: Times = 0
    losses: Times = 0
    timeouts: Times = 0
    cleanings: Times = 0
    late_cleanings: Times = 0
    retries: Times = 0
    keys: str = ""
    elected: Elected = "any"
    responses_wait: bool = True
    fetches_park: bool = False
    checkpoints: bool = False
    stale_requests: bool = False


class Scope(AnyScope, frozen=True):
    """A scope of replication: brokers with one log partition, and their controller.

    Its rules are :data:`harness.lab.explore.rules.RULES`.
    """

    constants: Constants = Constants()

    @property
    @override
    def in_effect(self) -> dict[str, object]:
        """All settings under Kafka's names; every broker has a replica.

        Raises:
            PlanError: see :attr:`chosen`.
        """
        return {**super().in_effect, "replication.factor": self.constants.brokers}

    @property
    @override
    def chosen(self) -> Settings:
        settings = super().chosen
        self._refuse_idle_cleaners(settings)
        if self.constants.retries and not settings.enable_idempotence:
            raise PlanError("retries would only double records; add --set enable.idempotence=true")
        return settings

    def _refuse_idle_cleaners(self, settings: Settings) -> None:
        """Refuse keys that are not letters, and what would keep cleaners from doing anything."""
        keys, policy = self.constants.keys, settings.cleanup_policy
        if keys and not (keys.isascii() and keys.isalpha()):
            raise PlanError(f"keys={keys} are not letters; write one a record, a capital for a tombstone, as in kKx")
        if policy != "delete" and not keys:
            raise PlanError(f"cleanup.policy={policy} needs records with keys; add --constant keys=kKx")
        if policy == "delete" and self.constants.cleanings:
            raise PlanError("cleanings happen in a compacted log; add --set cleanup.policy=compact")
        if settings.min_compaction_lag_ms:
            raise PlanError("explore knows no age of records; leave out min.compaction.lag.ms")

    @override
    def varied(self, constants: Mapping[str, object], settings: Mapping[str, object]) -> Self:
        """The same; with other bounds than of records it is about no family.

        Raises:
            PlanError: see the method of all scopes; or more brokers are in sync than there are.
        """
        varied = super().varied(constants, settings)
        changed = varied.constants
        if changed.in_sync > changed.brokers:
            raise PlanError(f"in-sync={changed.in_sync} is more than brokers={changed.brokers}; lower the first")
        same = changed == replace(self.constants, records=max(changed.records, self.constants.records))
        return varied if same else replace(varied, families=())

    @override
    def leaves_out(self) -> list[str]:
        """Sentences about what no state of this search has."""
        chosen = self.constants
        bounded = [f"more than {getattr(chosen, name)} {words}" for name, words in _BOUNDED.items()]
        sentences = [", ".join(bounded)]
        sentences.append(self._left_out_of_cleaning())
        numbered = self.chosen.enable_idempotence
        sentences.append("a second producer, and epochs of producers" if numbered else "sequence numbers of producers")
        if self.rules:
            sentences.append(f"all rules but {', '.join(self.rules)}")
        if chosen.elected == "assigned":
            sentences.append("other orders of assignment than 0, 1, 2")
        if not chosen.responses_wait:
            sentences.append("answers that are under way while something else happens")
        if not chosen.stale_requests:
            sentences.append("requests that arrive after their follower has given them up or died, and answers to them")
        if not chosen.fetches_park:
            sentences.append("fetches that wait at the leader for records (replica.fetch.wait.max.ms is 0)")
        if not chosen.checkpoints:
            sentences.append("checkpoints of the high watermark: a restarted broker begins at 0")
        return sentences + list(ALWAYS_LEFT_OUT)

    def _left_out_of_cleaning(self) -> str:
        cleanings, late = self.constants.cleanings, self.constants.late_cleanings
        if not cleanings:
            return "cleaners of compacted logs"
        return (
            f"more than {cleanings} passes of cleaners that change something, {late} of them after "
            "delete.retention.ms; records that share a segment"
        )


_BOUNDED: Final = {
    "records": "records",
    "crashes": "crashes",
    "fences": "fenced live brokers",
    "moves": "planned moves",
    "shrinks": "followers found silent",
    "proposals": "proposals of an ISR",
    "skips": "skipped decisions of the controller",
    "losses": "lost messages",
    "timeouts": "repeated requests",
    "retries": "records that are sent again",
}
#: Features that no scope has, whatever its constants.
ALWAYS_LEFT_OUT: Final = (
    "liveness: only what must never happen is looked at",
    "time as a number: a timer that is set may fire at any moment, and nothing happens because of a certain duration",
    "heartbeats and registrations as messages: they are one step with the controller's answer",
    "refusals that leave their follower as it was, which asks the same again: they make no state",
    "connections that break: a follower of a dead broker waits for the controller's next decision",
    "a controller that fails; messages that overtake each other on one connection",
    "more than one log partition, clients that read, failed disks, clean stops",
)
