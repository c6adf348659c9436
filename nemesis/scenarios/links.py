"""Network partitions, messages that are held while everything else arrives, and slow or lossy links.

Over slow and lossy links followers lag without a connection breaking.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import HoldMessages, Kill, LossyLink, Partition, SlowLink
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import shared
from nemesis.scenarios.scene import Family, Part, Scenario, Scene
from nemesis.topology import Shape


def _last_in_sync_fenced(scene: Scene) -> list[Part]:
    """S06 without a death: the ISR shrinks to the leader, which then loses the controller; followers are well."""
    leader = Role(RoleKind.LEADER, scene.partition())
    fenced_at_ms = shared.alone_at_ms(scene)
    end_ms = fenced_at_ms + scene.timings.fence_ms + shared.SUCCESSOR_MS
    # In reach of its clients it goes on answering as a leader whom the controller has given up; else it is only away.
    shape = (Shape.FROM_CONTROLLER, Shape.ISOLATE_ALSO_FROM_CLIENTS)[scene.draw("also-clients", 2)]
    return [
        Part(0, end_ms, Partition(leader, Shape.FROM_BROKERS)),
        Part(fenced_at_ms, end_ms, Partition(leader, shape)),
    ]


def _fenced_while_lagging(scene: Scene) -> list[Part]:
    """Two overlapping cuts in one direction each: followers cannot fetch, then the leader cannot be heard."""
    leader = Role(RoleKind.LEADER, scene.partition())
    muted_at_ms = scene.behind_ms()
    end_ms = muted_at_ms + scene.timings.fence_ms + shared.SUCCESSOR_MS
    return [
        Part(0, end_ms, Partition(leader, Shape.NO_FETCH)),
        Part(muted_at_ms, end_ms, Partition(leader, Shape.NO_HEARTBEAT)),
    ]


def _write_parked(scene: Scene) -> list[Part]:
    """S21: writes with acks=all wait for followers, their clients send them again, and then the followers come back."""
    leader = Role(RoleKind.LEADER, scene.partition())
    end_ms = max(scene.timings.shrink_ms, scene.timings.unanswered_ms) + shared.alone_ms(scene)
    return [Part(0, end_ms, Partition(leader, Shape.FROM_BROKERS))]


def _reply_lost(scene: Scene) -> list[Part]:
    """S22: the leader takes writes whose answers never arrive, and their clients send them again."""
    end_ms = scene.timings.unanswered_ms + scene.between_ms(200, 700)
    return [Part(0, end_ms, Partition(Role(RoleKind.LEADER, scene.partition()), Shape.MUTE_TO_CLIENTS))]


def _isr_change_late(scene: Scene) -> list[Part]:
    """The leader's request to shrink the ISR is held, and arrives when the followers have long caught up."""
    leader = Role(RoleKind.LEADER, scene.partition())
    back_at_ms = scene.timings.shrink_ms + scene.between_ms(200, 500)
    # NO_HEARTBEAT is the one link from the leader to the controller; heartbeats pass, so the session stays.
    held = HoldMessages(leader, Shape.NO_HEARTBEAT, "AlterPartition")
    return [
        Part(0, back_at_ms, Partition(leader, Shape.FROM_BROKERS)),
        Part(0, back_at_ms + scene.between_ms(500, 1_000), held),
    ]


def _around(name: str, shape: Shape, kind: RoleKind) -> Scenario:
    return shared.hit_one(name, partial(Partition, shape=shape), kind)


#: The first makes acks=1 lose whenever it fits.
PARTITION: Final = Family(
    "partition",
    (
        # The leader reaches clients only, another is elected, both take writes.
        shared.hit_all(
            "zombie-leader",
            partial(Partition, shape=Shape.ISOLATE),
            RoleKind.LEADER,
            "S04",
            at_least_ms=lambda timings: timings.fence_ms + shared.SUCCESSOR_MS,
        ),
        Scenario("last-in-sync-fenced", _last_in_sync_fenced),
        Scenario("fenced-while-lagging", _fenced_while_lagging),
        _around("follower-isolated", Shape.ISOLATE, RoleKind.FOLLOWER),
        _around("follower-without-leader", Shape.FROM_BROKERS, RoleKind.FOLLOWER),
        _around("leader-without-controller", Shape.FROM_CONTROLLER, RoleKind.LEADER),
        _around("leader-without-clients", Shape.FROM_CLIENTS, RoleKind.LEADER),
        _around("leader-deaf", Shape.DEAF, RoleKind.LEADER),
        _around("leader-mute", Shape.MUTE, RoleKind.LEADER),
        _around("halves", Shape.HALVES, RoleKind.BROKER),
        _around("bridge", Shape.BRIDGE, RoleKind.BROKER),
        _around("ring", Shape.RING, RoleKind.BROKER),
    ),
    on_request=(
        Scenario("write-parked", _write_parked, number="S21"),
        Scenario("reply-lost", _reply_lost, number="S22"),
        Scenario("isr-change-late", _isr_change_late),
    ),
    about="Links are cut, both ways or one, between brokers, to the controller, to clients.",
)


def _leader_ahead(scene: Scene, late: type[LossyLink | SlowLink]) -> list[Part]:
    """As S01, over links that deliver late: followers lag behind the leader, which dies with what has not arrived."""
    leader, dies_at_ms = Role(RoleKind.LEADER, scene.partition()), scene.between_ms(1_000, 2_000)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms + shared.SUCCESSOR_MS)
    slow = late(leader, Shape.FROM_BROKERS)
    return [Part(0, dies_at_ms + shared.OVERLAP_MS, slow), Part(dies_at_ms, end_ms, Kill(leader))]


def _late(late: type[LossyLink | SlowLink]) -> tuple[Scenario, ...]:
    """Links of one kind deliver late. Over slow links the first scenario makes acks=1 lose whenever it fits."""

    def scenario(name: str, shape: Shape, kind: RoleKind) -> Scenario:
        strike = partial(late, shape=shape)
        return shared.hit_one(name, strike, kind, at_least_ms=lambda timings: timings.shrink_ms)

    return (
        Scenario("leader-ahead", partial(_leader_ahead, late=late)),
        scenario("replication", Shape.FROM_BROKERS, RoleKind.LEADER),
        scenario("one-follower", Shape.FROM_BROKERS, RoleKind.FOLLOWER),
        scenario("leader-and-controller", Shape.FROM_CONTROLLER, RoleKind.LEADER),
        scenario("leader-and-clients", Shape.FROM_CLIENTS, RoleKind.LEADER),
    )


SLOW_LINK: Final = Family("slow-link", _late(SlowLink), about="Links deliver late.")
LOSSY_LINK: Final = Family("lossy-link", _late(LossyLink), about="Links lose packets by chance, and TCP repeats them.")
