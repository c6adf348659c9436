"""A scenario: a few faults that overlap, drawn for one purpose. Families of them, and the scene that they are drawn in.

Numbers like S01 name the scenarios with a known outcome per setting, which docs/guides/kafka-stories.md lists. The
times of a scenario come from the settings under test, because "longer than the session" is what matters, not seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from nemesis.cluster import Capability
from nemesis.faults import Draw, Fault
from nemesis.roles import PICKS, Role, RoleKind

#: Room for an election, or for an ISR change to be accepted, after the time that the rule itself needs.
MARGIN_MS: Final = 300


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that decide how long a fault must last to matter.

    Session time-out, replica.lag.time.max.ms, for how long a client waits for an answer (request.timeout.ms), for how
    long a tombstone stays (delete.retention.ms), after which silence a group gives a member up (session.timeout.ms),
    and when brokers abort a transaction (transaction.timeout.ms).
    """

    session_ms: int = 1_500
    lag_ms: int = 1_500
    request_ms: int = 1_500
    retention_ms: int = 1_000
    member_ms: int = 6_000
    transaction_ms: int = 10_000

    @property
    def fence_ms(self) -> int:
        """Silence after which the controller has surely fenced a broker and elected others (rules 13 and 20)."""
        return self.session_ms * 5 // 4 + MARGIN_MS

    @property
    def shrink_ms(self) -> int:
        """Lack of fetches after which a follower is surely out of the ISR: 1 to 1.5 times the lag time (rule 10)."""
        return self.lag_ms * 3 // 2 + MARGIN_MS

    @property
    def unanswered_ms(self) -> int:
        """Silence after which a client has surely given up a request and, where it may, sent it again."""
        return self.request_ms + MARGIN_MS


class Part(msgspec.Struct, frozen=True):
    """One fault of a scenario, in milliseconds from the scenario's begin."""

    begin_ms: int
    end_ms: int
    fault: Fault


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario is drawn from this: chance, timings, the plan's bounds, and the size of the cluster."""

    draw: Draw
    timings: Timings
    fault_ms_min: int
    fault_ms_max: int
    brokers: int
    partitions: int

    def of(self, performance: str) -> Scene:
        """The same scene, with draws that belong to one ``performance`` of a scenario alone."""
        return msgspec.structs.replace(self, draw=lambda label, bound: self.draw(f"{performance}: {label}", bound))

    def lasting_ms(self, at_least_ms: int = 0) -> int:
        """A duration within the plan's bounds, and not below what the scenario needs."""
        drawn = self.fault_ms_min + self.draw("fault-ms", self.fault_ms_max - self.fault_ms_min + 1)
        return max(drawn, at_least_ms)

    def between_ms(self, least_ms: int, most_ms: int) -> int:
        """A moment from ``least_ms`` to ``most_ms``."""
        return least_ms + self.draw("moment-ms", most_ms - least_ms + 1)

    def behind_ms(self) -> int:
        """The time for which followers lag: long enough for writes, too short to leave the ISR."""
        return min(self.between_ms(300, 600), self.timings.lag_ms * 4 // 5)

    def partition(self) -> int:
        """The position of one log partition."""
        return self.draw("partition", self.partitions)

    def role(self, kind: RoleKind, partition: int = 0) -> Role:
        """A role with a drawn pick."""
        return Role(kind, partition, self.draw("pick", PICKS))


class Scenario(msgspec.Struct, frozen=True):
    """A named way to draw parts. ``number`` is its place in the list of known outcomes, if it has one.

    One number may be in several families: the same script with another fault. ``preparation`` says why it begins with
    a cut of links before its own fault, in words for the report.
    """

    name: str
    parts: Callable[[Scene], list[Part]]
    number: str = ""
    preparation: str = ""

    def parts_of_any_scene(self) -> list[Part]:
        """Its parts in one scene of many: another one would hit others, at other times."""
        return self.parts(_ANY_SCENE)

    def faults(self) -> list[Fault]:
        """Its faults; whom they hit, and when, is any."""
        return [part.fault for part in self.parts_of_any_scene()]


class Family(msgspec.Struct, frozen=True):
    """Scenarios with one purpose. The first is its signature, with which every schedule of the family begins.

    ``on_request`` ones are never drawn by chance: a plan asks for them by name or number. ``about`` says what happens,
    for people; a family of a fault that needs no script leaves that to the fault. The steps of one that goes on
    ``beside`` the others wait for the cluster (:mod:`nemesis.rollout`), so no schedule has them.
    """

    name: str
    scenarios: tuple[Scenario, ...]
    on_request: tuple[Scenario, ...] = ()
    about: str = ""
    beside: bool = False

    @property
    def every_scenario(self) -> tuple[Scenario, ...]:
        """All of them, those included that are never drawn."""
        return self.scenarios + self.on_request

    def names(self, scenario: Scenario) -> tuple[str, ...]:
        """The words for one of its scenarios in a plan: its number, and ``family/name``."""
        return tuple(filter(None, (scenario.number, f"{self.name}/{scenario.name}")))

    def needs(self) -> frozenset[Capability]:
        """The parts of a target that its faults use."""
        return frozenset(
            need for scenario in self.every_scenario for fault in scenario.faults() for need in fault.needs
        )

    def strikes(self) -> frozenset[str]:
        """The kinds of fault that it is about: those of every scenario, or of any where no kind is in all of them.

        The other faults of a scenario prepare for these, as a cut of links before a kill does, or follow from them.
        """
        kinds = [{fault.kind for fault in scenario.faults()} for scenario in self.every_scenario]
        return frozenset(set.intersection(*kinds) or set.union(*kinds))


#: Any scene will do to see which faults a scenario has: chance decides whom they hit and when.
_ANY_SCENE: Final = Scene(
    draw=lambda _label, _bound: 0, timings=Timings(), fault_ms_min=0, fault_ms_max=0, brokers=3, partitions=1
)
