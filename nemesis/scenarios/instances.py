"""Instances of an application under test that die, are deployed again, freeze, are cut off, come and go."""

from __future__ import annotations

from typing import Final

from nemesis.faults import InstanceAdd, InstanceCut, InstanceFreeze, InstanceKill, InstanceStop
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import shared
from nemesis.scenarios.scene import Family, Part, Scenario, Scene

#: Instances of a deployment in a row; of fewer, some are met twice.
IN_A_ROW: Final = 3


def _two_at_once(scene: Scene) -> list[Part]:
    """Two instances die at the same moment, and come back one after the other."""
    first_ms, second_ms = scene.lasting_ms(), scene.lasting_ms() + shared.APART_MS
    pick = scene.draw("pick", IN_A_ROW)
    return [
        Part(0, first_ms, InstanceKill(_instance(pick))),
        Part(0, second_ms, InstanceKill(_instance(pick + 1))),
    ]


def _deployment(scene: Scene) -> list[Part]:
    """Every instance is stopped in order and started again, one after the other."""
    down_ms, gap_ms = scene.between_ms(500, 1_000), scene.between_ms(500, 1_500)
    first, pace_ms = scene.draw("first", IN_A_ROW), down_ms + gap_ms
    return [
        Part(turn * pace_ms, turn * pace_ms + down_ms, InstanceStop(_instance(first + turn)))
        for turn in range(IN_A_ROW)
    ]


def _scale_out(scene: Scene) -> list[Part]:
    return [Part(0, scene.lasting_ms(scene.timings.member_ms), InstanceAdd(_instance(0)))]


def _instance(pick: int) -> Role:
    return Role(RoleKind.INSTANCE, pick=pick)


INSTANCE_KILL: Final = Family(
    "instance-kill",
    (shared.hit_one("one", InstanceKill, RoleKind.INSTANCE), Scenario("two-at-once", _two_at_once)),
    about="Instances of the application are killed (SIGKILL), and started again.",
)
INSTANCE_STOP: Final = Family(
    "instance-stop",
    (Scenario("deployment", _deployment), shared.hit_one("one", InstanceStop, RoleKind.INSTANCE)),
    about="Instances of the application are stopped in order (SIGTERM) and started again: one, or all in a row.",
)
#: Frozen past its session, and past the time-out of its transaction, an instance goes on as a zombie.
INSTANCE_FREEZE: Final = Family(
    "instance-freeze",
    (
        shared.hit_one(
            "past-session", InstanceFreeze, RoleKind.INSTANCE, at_least_ms=lambda timings: timings.member_ms * 3 // 2
        ),
        shared.hit_one(
            "past-transaction",
            InstanceFreeze,
            RoleKind.INSTANCE,
            at_least_ms=lambda timings: timings.transaction_ms * 3 // 2,
        ),
        shared.hit_one("blink", InstanceFreeze, RoleKind.INSTANCE),
    ),
    about="Instances of the application freeze (SIGSTOP) and go on (SIGCONT), some as zombies.",
)
INSTANCE_SCALE: Final = Family(
    "instance-scale",
    (
        Scenario("one-more", _scale_out),
        shared.hit_one("one-less", InstanceStop, RoleKind.INSTANCE, at_least_ms=lambda timings: timings.member_ms),
    ),
    about="The application has one instance more for a while, or one less.",
)


def _cut_off(name: str, kind: RoleKind, at_least_ms: shared.Lasting) -> Scenario:
    """One instance is cut off from a broker with this role."""

    def parts(scene: Scene) -> list[Part]:
        instance, broker = scene.role(RoleKind.INSTANCE, 0), scene.role(kind, scene.partition())
        return [Part(0, scene.lasting_ms(at_least_ms(scene.timings)), InstanceCut(instance, broker))]

    return Scenario(name, parts)


#: Cut off from its group's coordinator an instance is given up, and may not know it.
INSTANCE_CUT: Final = Family(
    "instance-cut",
    (
        _cut_off("from-coordinator", RoleKind.COORDINATOR, lambda timings: timings.member_ms * 3 // 2),
        _cut_off(
            "from-transaction-coordinator",
            RoleKind.TRANSACTION_COORDINATOR,
            lambda timings: timings.transaction_ms * 3 // 2,
        ),
        _cut_off("from-leader", RoleKind.LEADER, lambda timings: timings.unanswered_ms),
    ),
    about="Instances of the application are cut off from one broker: a coordinator, or a leader (needs root).",
)
