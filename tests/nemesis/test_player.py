import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.cluster import Capability, Link
from nemesis.faults import Aim, Kill, Partition, Pause, PowerLoss, WipeDisk
from nemesis.plan import FaultPlan
from nemesis.player import Player
from nemesis.receipts import Receipt, degraded_to, effect_shown, moved, to_json, touched
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import FAMILIES, Timings
from nemesis.schedule import Schedule, ScheduledFault, draw_schedule
from nemesis.topology import Shape
from tests.nemesis.receipt_factory import a_receipt

LEADER = Role(RoleKind.LEADER, 0)


def step(begin_ms, end_ms, fault, group=0):
    return ScheduledFault(
        begin_ms=begin_ms, end_ms=end_ms, group=group, family="kill", scenario="a scenario", fault=fault
    )


@pytest.fixture
def play(make_world):
    def start(*steps, dead_brokers_max=2, **cluster):
        world = make_world(**cluster)
        marks = []
        player = Player(
            Schedule(steps=steps, healed_ms=10_000),
            world.target,
            world.clock,
            dead_brokers_max=dead_brokers_max,
            witness=lambda receipt: marks.append((receipt.mark, receipt.sequence)),
        )
        player.start()
        return world, player, marks

    return start


def cluster_at(world, time_ms):
    world.drive(lambda: False, time_ms * 1000)
    return world.cluster


def test_a_fault_begins_and_ends_on_time(play):
    world, player, marks = play(step(100, 200, Kill(LEADER)))
    assert cluster_at(world, 99).dead == set()
    assert cluster_at(world, 150).dead == {0}
    assert cluster_at(world, 250).dead == set()
    assert marks == [("begin", 0), ("end", 0)]
    (receipt,) = player.receipts
    assert (receipt.begun_us, receipt.ended_us) == (100_000, 200_000)
    assert receipt.took_effect
    assert receipt.targets == (0,)


def test_roles_are_resolved_when_the_fault_fires(play):
    world, player, _ = play(step(100, 900, Kill(LEADER)), step(200, 900, Kill(LEADER)))
    assert cluster_at(world, 300).dead == {0, 1}
    assert [receipt.targets for receipt in player.receipts] == [(0,), (1,)]


def test_what_is_impossible_now_is_skipped_with_a_receipt(play):
    world, player, marks = play(step(100, 200, Kill(LEADER)))
    world.cluster.dead = {0, 1, 2}
    cluster_at(world, 300)
    assert marks == [("skipped", 0)]
    (receipt,) = player.receipts
    assert receipt.reason == "the leader of partition 0 does not exist now"
    assert not receipt.took_effect
    assert not receipt.unsupported


def test_a_fault_that_is_not_to_be_had_here_is_skipped_and_the_receipt_says_why(play):
    steps = step(100, 200, PowerLoss(LEADER)), step(100, 200, Kill(LEADER))
    world, player, marks = play(*steps, lacks={Capability.POWER: "needs root"})
    assert cluster_at(world, 150).dead == {0}
    assert marks == [("skipped", 0), ("begin", 1)]
    assert player.receipts[0].reason == "needs root"
    assert [receipt.unsupported for receipt in player.receipts] == [True, False]


def test_power_comes_back_with_a_restart(play):
    world, player, _ = play(step(100, 200, PowerLoss(LEADER)))
    assert cluster_at(world, 150).dead == {0}
    assert cluster_at(world, 250).dead == set()
    assert [call for call in world.cluster.calls if call[1] == 0] == [("cut_power", 0), ("restart", 0)]
    assert player.receipts[0].fault == "powerloss"


def test_the_budget_holds_when_the_fault_fires(play):
    followers = Role(RoleKind.FOLLOWERS, 0)
    world, player, _ = play(step(100, 900, Pause(followers)), step(200, 800, Kill(LEADER)), dead_brokers_max=2)
    cluster_at(world, 1_000)
    assert world.cluster.most_stopped == 2
    assert player.receipts[1].mark == "skipped"
    assert player.receipts[1].reason == "it would exceed dead_brokers_max=2: 2 are dead or frozen already"


def test_a_link_cut_twice_heals_with_the_second_end(play):
    mute = Partition(LEADER, Shape.MUTE)
    no_heartbeat = Partition(LEADER, Shape.NO_HEARTBEAT)
    world, *_ = play(step(100, 300, mute), step(200, 400, no_heartbeat))
    assert len(cluster_at(world, 250).links) == 3
    assert cluster_at(world, 350).links == {Link(0, 100)}
    assert cluster_at(world, 450).links == set()


def slow(world, action, takes_ms):
    """The same action of the target, during which the clock moves on."""
    quick = getattr(world.cluster, action)

    def done(whom):
        world.clock.time_us += takes_ms * 1000
        return quick(whom)

    setattr(world.cluster, action, done)


def test_a_command_that_takes_its_time_takes_none_from_what_is_to_happen_between_two_faults(play):
    world, player, _ = play(step(100, 500, Partition(LEADER, Shape.ISOLATE)), step(400, 900, Kill(LEADER)))
    slow(world, "cut", 1_000)
    assert cluster_at(world, 1_399).dead == set()
    assert cluster_at(world, 1_401).dead == {0}
    assert world.cluster.links
    assert not cluster_at(world, 1_501).links
    assert cluster_at(world, 1_899).dead == {0}
    assert cluster_at(world, 1_901).dead == set()
    assert [receipt.begun_us for receipt in player.receipts] == [100_000, 1_400_000]
    assert player.late_us == 1_000_000


def test_every_slow_command_moves_what_follows_in_all_scenarios(play):
    world, player, _ = play(
        step(100, 200, Pause(LEADER)), step(100, 300, Kill(LEADER)), step(2_000, 2_100, Kill(LEADER), group=1)
    )
    slow(world, "pause", 300)
    slow(world, "kill", 300)
    cluster_at(world, 10_000)
    assert [receipt.begun_us for receipt in player.receipts] == [100_000, 400_000, 2_600_000]
    assert player.late_us == 900_000
    assert (world.cluster.dead, world.cluster.frozen) == (set(), set())


def test_a_schedule_played_in_virtual_time_never_falls_behind(play):
    world, player, _ = play(step(100, 200, Kill(LEADER)), step(100, 300, Kill(LEADER)))
    cluster_at(world, 1_000)
    assert [receipt.mark for receipt in player.receipts] == ["end", "end"]
    assert player.late_us == 0


def test_healing_undoes_what_lasts_and_forbids_the_rest(play):
    world, player, marks = play(
        step(100, 9_000, Kill(LEADER)), step(200, 9_000, Partition(LEADER, Shape.ISOLATE)), step(500, 600, Kill(LEADER))
    )
    cluster_at(world, 300)
    player.heal_all()
    target = cluster_at(world, 10_000)
    assert (target.dead, target.frozen, target.links) == (set(), set(), set())
    assert marks == [("begin", 0), ("begin", 1), ("skipped", 2), ("end", 1), ("end", 0)]
    assert "took too long" in player.receipts[2].reason


def test_healing_twice_marks_no_end_twice(play):
    world, player, marks = play(step(100, 9_000, Kill(LEADER)), step(8_000, 9_000, Kill(LEADER)))
    cluster_at(world, 300)
    player.heal_all()
    player.heal_all()
    assert marks == [("begin", 0), ("skipped", 1), ("end", 0)]


def test_healing_repairs_also_what_no_fault_did(play):
    world, player, _ = play()
    world.cluster.dead, world.cluster.frozen, world.cluster.links = {0}, {1}, {Link(1, 2)}
    player.heal_all()
    assert (world.cluster.dead, world.cluster.frozen, world.cluster.links) == (set(), set(), set())


@given(st.integers(0, 2**32), st.lists(st.sampled_from(sorted(FAMILIES)), min_size=1, unique=True), st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_any_schedule_is_undone_and_within_budget(make_world, seed, families, dead_max):
    chance, world, marks = random.Random(seed), make_world(), []
    schedule = draw_schedule(
        FaultPlan(families=tuple(families), count=30, dead_brokers_max=dead_max),
        timings=Timings(),
        brokers=3,
        partitions=3,
        duration_ms=60_000,
        draw=lambda label, bound: chance.randrange(bound),
    )
    player = Player(
        schedule,
        world.target,
        world.clock,
        dead_brokers_max=dead_max,
        witness=lambda receipt: marks.append((receipt.sequence, receipt.mark)),
    )
    player.start()
    cluster_at(world, 60_000)
    player.heal_all()
    assert world.cluster.most_stopped <= dead_max
    assert (world.cluster.dead, world.cluster.frozen, world.cluster.links) == (set(), set(), set())
    began = {sequence for sequence, mark in marks if mark == "begin"}
    assert began == {sequence for sequence, mark in marks if mark == "end"}
    assert len(player.receipts) == len(schedule.steps)


def test_receipt_without_evidence_claims_nothing(play):
    world, player, _ = play(step(100, 200, Kill(LEADER)), step(300, 400, Partition(LEADER, Shape.RING)), blind=True)
    cluster_at(world, 500)
    assert [receipt.took_effect for receipt in player.receipts] == [False, False]
    assert player.receipts[0].reason == "nothing was observed"


def test_every_node_needs_evidence_of_its_own():
    aim = Aim(nodes=(1, 2))
    assert effect_shown(aim, {"1": {"signal": 9}, "2": {"signal": 9}}) == (True, "observed when it began")
    assert effect_shown(aim, {"1": {"signal": 9}}) == (False, "nothing was observed of broker 2")


def test_a_death_alone_is_not_the_damage_that_was_meant():
    aim, dead, damaged = Aim(nodes=(1,)), {"exit": "signal 9"}, {"corrupted": {"offset": 3}}
    assert effect_shown(aim, {"1": dead}, "corrupted") == (False, "of broker 1 nothing was corrupted")
    assert effect_shown(aim, {"1": dead | damaged}, "corrupted")[0]


def test_what_nobody_confirmed_is_no_claim():
    aim = Aim(nodes=(1,))
    assert effect_shown(aim, {"1": {"unconfirmed": "silence"}}) == (
        False,
        "not confirmed, and may have happened: silence",
    )


def test_a_receipt_tells_what_the_controller_changed_meanwhile(play):
    world, player, _ = play(step(100, 200, Kill(LEADER)))
    cluster_at(world, 300)
    assert player.receipts[0].moved["t-0"]["leader"] == (0, 1)
    assert player.receipts[0].moved["t-0"]["isr"] == ((0, 1, 2), (1, 2))


def test_nothing_moved_in_a_cluster_that_stays_as_it_is(make_world):
    view = make_world().target.view()
    assert moved(view, view) == {}


def test_who_may_be_elected_besides_the_isr_is_no_move(make_world):
    view = make_world().target.view()
    eligible = {name: msgspec.structs.replace(state, elr=(9,)) for name, state in view.partitions.items()}
    assert moved(view, msgspec.structs.replace(view, partitions=eligible)) == {}


def test_a_receipt_is_written_whatever_the_evidence_is():
    shown = a_receipt(mark="begin", begin_evidence={"0": {"error": OSError("gone")}})
    assert '"error":"gone"' in to_json(shown)


def test_a_receipt_says_who_was_out_of_sync_when_the_fault_began(play):
    world, player, _ = play(step(100, 300, Kill(LEADER)), step(200, 250, Pause(Role(RoleKind.LEADER, 1))))
    world.cluster.never_in_sync = {"t-2": {1}}
    cluster_at(world, 400)
    assert [receipt.out_of_sync for receipt in player.receipts] == [
        {"t-2": (1,)},
        {"t-0": (0,), "t-1": (0,), "t-2": (0, 1)},
    ]


def test_an_emptied_disk_that_nobody_saw_emptied_was_a_kill(play):
    world, player, _ = play(step(100, 200, WipeDisk(LEADER)))
    cluster_at(world, 300)
    (receipt,) = player.receipts
    assert (receipt.took_effect, receipt.degraded_to) == (False, "kill")


def test_a_receipt_of_an_older_version_says_less_where_this_one_says_degraded_to():
    old = msgspec.to_builtins(a_receipt(fault="wipedisk")) | {"less": "kill"}
    del old["degraded_to"]
    assert msgspec.convert(old, Receipt).degraded_to == "kill"
    assert msgspec.json.decode(to_json(a_receipt(degraded_to="kill")), type=Receipt).degraded_to == "kill"


def test_a_receipt_names_the_log_partitions_that_the_fault_touched(play):
    """Log partition t-n has its replicas on brokers n and n + 1 of four, in a circle; what hits nobody's hits all."""
    aims = {
        Aim(nodes=(0,)): ("t-0", "t-3"),
        Aim(links=(Link(2, 100), Link(100, 2))): ("t-1", "t-2"),
        Aim(nodes=(100,)): ("t-0", "t-1", "t-2", "t-3"),
        Aim(nodes=(1000,)): ("t-0", "t-1", "t-2", "t-3"),
        Aim(partition="t-3", replicas=(1,)): ("t-3",),
    }
    world, *_ = play(partitions=tuple(f"t-{n}" for n in range(4)), brokers=4)
    world.cluster.places = {f"t-{n}": [n, (n + 1) % 4] for n in range(4)}
    assert {aim: touched(aim, world.cluster.view()) for aim in aims} == aims


def test_a_receipt_says_what_was_seen_of_leaders_and_in_sync_replicas_while_it_lasted(play):
    world, player, _ = play(step(100, 450, Kill(LEADER)))
    cluster_at(world, 150)
    assert player.receipts[0].touched == ("t-0", "t-1", "t-2")
    assert player.receipts[0].seen == {}, "it stands in the receipt of the end"
    cluster_at(world, 500)
    before, after = (0, 0, 3), (1, 1, 2)
    looks = [(100_000, *before), (200_000, *after), (450_000, *after)]
    assert [tuple(look) for look in player.receipts[0].seen["t-0"]] == looks


def test_a_state_that_lasted_stands_with_its_first_look_and_its_last(play):
    world, player, _ = play(step(100, 450, Pause(Role(RoleKind.NAMED, pick=9))), step(100, 650, Kill(LEADER)))
    cluster_at(world, 310)
    world.cluster.elected += 1
    cluster_at(world, 700)
    assert [look.time_us for look in player.receipts[1].seen["t-2"]] == [100_000, 200_000, 300_000, 400_000, 650_000]


@pytest.mark.parametrize(
    ("evidence", "came_to"),
    [
        ({"0": {"exit": "9", "lost": {"t-0": 0, "t-1": 0}}}, "kill"),
        ({"0": {"lost": {"t-0": 0}}, "1": {"lost": {"t-0": 1}}}, ""),
        ({"0": {"exit": "9", "log_bytes_before": 400, "log_bytes_after": 400}}, ""),
        ({"0": {"exit": "9"}}, ""),
        ({}, ""),
    ],
)
def test_a_loss_of_power_that_took_nothing_was_a_kill_where_its_evidence_counts_every_record(evidence, came_to):
    assert degraded_to(evidence, PowerLoss(LEADER)) == came_to
