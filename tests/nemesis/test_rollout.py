"""Rollouts in virtual time: one node after the other, each once all is whole, beside the faults of a schedule."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec import UNSET

from nemesis.cluster import CONTROLLER, Capability, ClusterView, PartitionView
from nemesis.evidence import Described, Finalized, MembersChanged, NodeSaid, Prepared, ProcessSeen
from nemesis.faults import Join, Kill, Leave
from nemesis.player import Player
from nemesis.receipts import Receipt
from nemesis.roles import Role, RoleKind
from nemesis.rollout import STEP_LIMIT_MS, Rollout, rollout_steps
from nemesis.schedule import Schedule, ScheduledFault
from nemesis.succession import FormName, Succession, UpgradeBy
from tests.conftest import PerfectWorld

NODES = (CONTROLLER, 0, 1, 2)
DOWN_MS = 300
READY_MS = 700
MOVED_MS = 900


class TwoForms(Succession):
    """Nodes that end and start in their own time, and are ready later; ``slow`` ones never are."""

    def __init__(self, world: PerfectWorld, **refusals: str) -> None:
        self.world, self.refusals = world, refusals
        self.wanted = dict.fromkeys(NODES, "old")
        self.runs: dict[int, NodeSaid] = {node: {"version": "old", "incarnation": 1} for node in NODES}
        self.starts = dict.fromkeys(NODES, 1)
        self.slow: set[int] = set()
        self.afresh: list[int] = []
        self.left: dict[int, dict[str, list[int]]] = {}
        self.most_away = 0
        self.levels = {"metadata.version": 1}

    def later(self, delay_ms: int, do: Callable[[], None]) -> None:
        self.world.clock.call_at(self.world.clock.now_us() + delay_ms * 1000, do)

    def stop(self, node: int) -> ProcessSeen:
        """Do as :meth:`nemesis.cluster.NodeProcesses.stop` says."""
        cluster = self.world.cluster
        if node in cluster.dead | cluster.frozen:
            return {}
        cluster.dead.add(node)
        self.most_away = max(self.most_away, len(cluster.dead))
        return {"pid": node, "signal": 15}

    def restart(self, node: int) -> ProcessSeen:
        """Do as :meth:`nemesis.cluster.NodeProcesses.restart` says."""
        self.later(DOWN_MS, lambda: self.begin(node))
        return {"state": "ending"}

    def begin(self, node: int) -> None:
        """Let it run; it is ready later."""
        if node in self.world.cluster.dead:
            self.world.cluster.dead.discard(node)
            self.starts[node] += 1
            self.runs[node] = {}
            self.later(READY_MS, lambda: self.say(node))

    def say(self, node: int) -> None:
        """Let it say what it runs."""
        if node not in self.slow:
            self.runs[node] = {"version": self.wanted[node], "incarnation": self.starts[node]}

    def prepare(self, node: int, form: FormName, *, afresh: bool = False) -> Prepared:
        self.wanted[node] = "old" if form == "first" else "new"
        if afresh:
            self.afresh.append(node)
        return {"wanted": self.wanted[node]}

    def leave(self, node: int) -> MembersChanged:
        if self.refusals:
            return {"refused": self.refusals["refused"]}
        if node == CONTROLLER:
            return {"voters": []}
        before = {name: list(replicas) for name, replicas in self.world.cluster.places.items()}
        self.left[node] = before
        return self.assign({name: [other for other in replicas if other != node] for name, replicas in before.items()})

    def join(self, node: int) -> MembersChanged:
        return {"voters": [CONTROLLER]} if node == CONTROLLER else self.assign(self.left[node])

    def assign(self, replicas: dict[str, list[int]]) -> MembersChanged:
        """Let these be the replicas a while later, as a controller does."""
        self.later(MOVED_MS, lambda: self.world.cluster.places.update(replicas))
        return {"assigned": replicas}

    def observe(self, node: int) -> NodeSaid:
        return self.runs[node]

    def describe(self, node: int) -> Described:
        return {"features": dict(self.levels)}

    def finalize(self) -> Finalized:
        if self.refusals:
            return {"features": self.levels, "refused": self.refusals["refused"]}
        before, self.levels = self.levels, {"metadata.version": 2}
        return {"features_before": before, "features": self.levels}


class Tried:
    """A rollout over the fake, with a schedule beside it."""

    def __init__(
        self,
        *faults: ScheduledFault,
        back: bool = False,
        finalize: bool = True,
        way: UpgradeBy = "restart",
        lacks: Mapping[Capability, str] | None = None,
        never_in_sync: Mapping[str, set[int]] | None = None,
        **refusals: str,
    ) -> None:
        self.world = PerfectWorld(lacks)
        self.world.cluster.never_in_sync.update(never_in_sync or {})
        self.forms = TwoForms(self.world, **refusals)
        cluster: Any = self.world.cluster
        if not lacks:
            cluster.stop, cluster.restart = self.forms.stop, self.forms.restart
            cluster.observe, cluster.prepare = self.forms.observe, self.forms.prepare
            cluster.describe, cluster.finalize = self.forms.describe, self.forms.finalize
            cluster.leave, cluster.join = self.forms.leave, self.forms.join
        self.receipts: list[Receipt] = []
        schedule = Schedule(steps=faults, healed_ms=600_000)
        self.player = Player(
            schedule,
            self.world.target,
            self.world.clock,
            dead_brokers_max=2,
            witness=self.receipts.append,
            settled=lambda: self.rollout.settled(),  # noqa: PLW0108 - it is made after the player
        )
        self.rollout = Rollout(
            rollout_steps(NODES, way=way, back=back, finalize=finalize),
            self.player.faults,
            self.world.target,
            self.world.clock,
            first_sequence=len(faults),
            first_group=len(faults),
        )
        self.player.start()
        self.rollout.start()

    def until(self, time_ms: int) -> Tried:
        self.world.drive(lambda: False, time_ms * 1000)
        return self

    def steps(self) -> list[Receipt]:
        return [receipt for receipt in self.player.receipts if receipt.family == "upgrade"]


def kill(begin_ms: int, end_ms: int, broker: int, group: int = 0) -> ScheduledFault:
    fault = Kill(Role(RoleKind.NAMED, pick=broker))
    return ScheduledFault(
        begin_ms=begin_ms, end_ms=end_ms, group=group, family="kill", scenario="a scenario", fault=fault
    )


def test_every_node_is_upgraded_alone_and_in_order_and_then_the_features_are_finalized() -> None:
    tried = Tried().until(10_000)
    steps = tried.steps()
    assert tried.rollout.over
    assert [receipt.targets for receipt in steps] == [(CONTROLLER,), (0,), (1,), (2,), (CONTROLLER,)]
    assert [receipt.fault for receipt in steps] == ["upgrade"] * 4 + ["finalize"]
    assert [receipt.took_effect for receipt in steps] == [True] * 5
    assert tried.forms.most_away == 1
    for before, after in itertools.pairwise(steps):
        assert before.ended_us is not None
        assert before.ended_us - before.begun_us >= (DOWN_MS + READY_MS) * 1000
        assert before.ended_us <= after.begun_us


def test_a_receipt_says_what_the_node_ran_before_and_after_and_the_features() -> None:
    _, first, *_, last = Tried().until(10_000).steps()
    begun, ended = first.begin_evidence["0"], first.end_evidence["0"]
    assert (begun["version"], begun["wanted"], begun["signal"]) == ("old", "new", 15)
    assert (ended["version"], ended["incarnation"], ended["features"]) == ("new", 2, {"metadata.version": 1})
    assert first.out_of_sync == {}
    assert last.begin_evidence[str(CONTROLLER)]["features"] == {"metadata.version": 2}


def test_the_way_back_is_in_the_reverse_order_and_leaves_the_features_alone() -> None:
    tried = Tried(back=True, finalize=False).until(20_000)
    assert [receipt.targets[0] for receipt in tried.steps()] == [*NODES, *reversed(NODES)]
    assert {seen["version"] for seen in tried.forms.runs.values()} == {"old"}
    assert tried.forms.levels == {"metadata.version": 1}


def test_a_node_that_is_replaced_leaves_before_and_joins_afterwards() -> None:
    tried = Tried(way="move-and-replace").until(60_000)
    *steps, last = tried.steps()
    kinds = [(step.targets[0], step.fault) for step in steps]
    assert kinds == [(node, kind) for node in NODES for kind in ("leave", "replace", "join")]
    assert all(step.took_effect and step.mark == "end" for step in steps)
    assert last.fault == "finalize"
    assert tried.forms.afresh == [*NODES]
    assert [step.touched for step in steps if step.fault == "replace"][1:] == [()] * 3, "its replicas had moved away"
    assert {len(replicas) for replicas in tried.world.cluster.places.values()} == {3}
    for before, after in itertools.pairwise(steps):
        assert (before.ended_us or 0) <= after.begun_us


def test_a_replica_that_does_not_move_is_waited_for() -> None:
    tried = Tried(way="move-and-replace")
    steps = tried.until(20_000).steps()
    away = next(step for step in steps if step.fault == "leave" and step.targets == (0,))
    assert (away.ended_us or 0) - away.begun_us >= MOVED_MS * 1000


@pytest.mark.parametrize(
    ("step", "wanted", "replicas", "isr", "done"),
    [
        (Leave, [1, 2], (0, 1, 2), (0, 1, 2), False),
        (Leave, [1, 2], (1, 2), (1, 2), True),
        (Join, [0, 1, 2], (0, 1, 2), (1, 2), False),
        (Join, [0, 1, 2], (0, 1, 2), (1, 2, 0), True),
    ],
)
def test_replicas_of_internal_topics_are_waited_for_too(
    step: type[Leave | Join], wanted: list[int], replicas: tuple[int, ...], isr: tuple[int, ...], *, done: bool
) -> None:
    others = PartitionView(leader=1, leader_epoch=1, isr=(1,), replicas=(1, 2))
    internal = {"__consumer_offsets-7": PartitionView(leader=1, leader_epoch=1, isr=isr, replicas=replicas)}
    moved = ClusterView({"t-0": others}, (0, 1, 2), (0, 1, 2), internal={**internal, "__consumer_offsets-8": others})
    begun: MembersChanged = {"assigned": {"t-0": [1, 2], "__consumer_offsets-7": wanted}}
    assert step(Role(RoleKind.NAMED, pick=0)).is_done(0, moved, begun, {}) is done


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ({"voters": [100, 102]}, "the voters are 100, 102"),
        ({"assigned": {"t-0": [1, 2]}}, "log partitions with other replicas: 1"),
        ({"assigned": {}}, "log partitions with other replicas: 0"),
        ({"refused": "no"}, ""),
        ({"unconfirmed": "no broker answered"}, ""),
    ],
)
def test_what_a_node_that_leaves_changed_is_said_where_it_is_known(evidence: MembersChanged, words: str) -> None:
    assert Leave.in_words({"1": evidence}) == words


def test_a_node_that_is_not_let_go_stops_the_rollout() -> None:
    first, *others = Tried(way="replace", refused="no such voter").until(20_000).steps()
    assert (first.fault, first.took_effect, first.reason) == ("leave", False, "refused: no such voter")
    assert {step.mark for step in others} == {"skipped"}
    assert {step.reason for step in others} == {"step-1 (controller 100) did not come about: refused: no such voter"}


def test_faults_beside_it_wait_for_the_nodes_that_others_stopped_but_not_for_that_of_the_step() -> None:
    tried = Tried(kill(150, 400, 2), kill(1_000, 1_400, 1, group=1), kill(1_900, 2_300, 0, group=2))
    killed = [receipt for receipt in tried.until(40_000).player.receipts if receipt.fault == "kill"]
    ready_ms = DOWN_MS + READY_MS
    assert [receipt.took_effect for receipt in killed] == [True] * 3
    for before, after in itertools.pairwise(killed):
        assert after.begun_us - (before.ended_us or 0) >= ready_ms * 1000
    assert [receipt.mark for receipt in tried.steps()] == ["end"] * 5


def test_the_next_step_waits_until_a_fault_beside_it_is_over() -> None:
    tried = Tried(kill(150, 4_000, 2)).until(3_000)
    assert [receipt.targets for receipt in tried.steps()] == [(CONTROLLER,)]
    assert tried.steps()[0].mark == "begin"
    steps = tried.until(20_000).steps()
    assert len(steps) == 5
    assert steps[1].begun_us >= 4_000_000
    assert {seen["version"] for seen in tried.forms.runs.values()} == {"new"}


def test_a_node_that_is_killed_in_its_step_comes_back_in_its_new_form() -> None:
    tried = Tried(kill(1_500, 2_500, 0)).until(20_000)
    (killed,) = [receipt for receipt in tried.player.receipts if receipt.fault == "kill"]
    step = tried.steps()[1]
    assert step.begun_us < killed.begun_us < (step.ended_us or 0)
    assert [receipt.mark for receipt in tried.steps()] == ["end"] * 5


def test_a_replica_that_stays_out_of_sync_stops_the_rollout_and_the_rest_is_skipped_with_the_reason() -> None:
    tried = Tried(never_in_sync={"t-1": {2}})
    steps = tried.until(STEP_LIMIT_MS + 1_000).steps()
    assert tried.rollout.over
    assert {receipt.mark for receipt in steps} == {"skipped"}
    assert len(steps) == 5
    assert {receipt.reason for receipt in steps} == {
        f"step-1 (controller 100): {STEP_LIMIT_MS // 1000} s before it could begin, t-1 had a replica out of sync"
    }
    assert tried.forms.levels == {"metadata.version": 1}


def test_a_node_that_does_not_come_back_stops_the_rollout_and_nothing_is_finalized() -> None:
    tried = Tried()
    tried.forms.slow = {1}
    steps = tried.until(2 * STEP_LIMIT_MS).steps()
    assert [receipt.mark for receipt in steps] == ["end", "end", "end", "skipped", "skipped"]
    assert steps[2].end_evidence == {}
    assert "after it had begun, broker 1 was not ready" in steps[3].reason
    assert tried.forms.levels == {"metadata.version": 1}


def test_a_stop_ends_the_step_that_lasts_and_skips_the_rest_once() -> None:
    tried = Tried().until(1_500)
    tried.rollout.stop("the time is over")
    tried.rollout.stop("again")
    assert [receipt.mark for receipt in tried.steps()] == ["end", "end", "skipped", "skipped", "skipped"]
    assert {receipt.reason for receipt in tried.steps()[2:]} == {"the time is over"}
    assert len(tried.until(20_000).steps()) == 5


def test_a_step_that_is_ended_before_it_is_done_says_why_and_those_before_say_nothing() -> None:
    tried = Tried().until(1_500)
    tried.rollout.stop("the time is over")
    assert [receipt.cut_short for receipt in tried.steps()] == [UNSET, "the time is over", UNSET, UNSET, UNSET]


def test_a_world_without_releases_skips_every_step_with_its_reason() -> None:
    steps = Tried(lacks={Capability.SUCCESSION: "one release"}).until(2_000).steps()
    assert [(receipt.mark, receipt.reason, receipt.unsupported) for receipt in steps] == [
        ("skipped", "one release", True)
    ] * 5


def test_features_that_are_refused_have_no_effect() -> None:
    last = Tried(refused="unstable").until(10_000).steps()[-1]
    assert (last.took_effect, last.reason) == (False, "refused: unstable")


@pytest.mark.parametrize("seed", range(20))
def test_whatever_strikes_beside_it_at_most_one_node_is_away_for_the_upgrade(seed: int) -> None:
    faults = [
        kill(begin_ms, begin_ms + 50 + 37 * seed, (seed + n) % 3) for n, begin_ms in enumerate(range(500, 9_000, 1_900))
    ]
    tried = Tried(*faults).until(60_000)
    steps = [receipt for receipt in tried.steps() if receipt.fault == "upgrade"]
    assert len(steps) == len(NODES), f"seed {seed}"
    struck_us = [
        receipt.begun_us for receipt in tried.player.receipts if receipt.fault == "kill" and receipt.took_effect
    ]
    in_steps = [us for us in struck_us for step in steps if step.begun_us < us < (step.ended_us or 0)]
    assert len(in_steps) >= 2, "kills strike while steps last"
    assert tried.forms.most_away == 1
    assert all(earlier.ended_us <= later.begun_us for earlier, later in itertools.pairwise(steps) if earlier.ended_us)
    assert {seen["version"] for seen in tried.forms.runs.values()} == {"new"}
