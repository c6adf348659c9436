"""Logs of Kafka's controller fit the core's controller, and a log with one change in it does not.

The log is of a run on Kafka 4.3.1 under kill and partition (seed 261460035032911), without the facts that are not held.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from harness.broker.core import controller, election
from harness.broker.core.types import PartitionState, TopicConfig
from harness.cli.app import exit_code_of
from harness.ground.errors import PlanError
from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    IsrChanged,
    LeaderElected,
    Observation,
    ProposalRefused,
    Truncated,
    from_lines,
)
from harness.lab.conform.free_runs import FreeRun, held_observations, held_run
from harness.plan import Kafka, Namespaces, RunSpec, Simulated
from harness.records.cluster_file import write_observations
from harness.records.run_record import Ended, write_record
from nemesis.cluster import CONTROLLER
from nemesis.plan import FaultPlan
from workloads import Settings, WorkloadPlan

LOG: Final = Path(__file__).parent / "kafka-4.3.1-kill-partition.jsonl"
SETTINGS: Final = Settings(min_insync_replicas=2)
NAME: Final = "ackproof-0"


def log() -> list[Observation]:
    with LOG.open("rb") as file:
        return list(from_lines(file))


def held(seen: Sequence[Observation], settings: Settings = SETTINGS) -> dict[str, FreeRun]:
    return {free_run.partition: free_run for free_run in held_observations(seen, settings)}


def test_the_log_of_a_run_on_kafka_fits() -> None:
    of_each = held(log())
    assert {name: (free_run.changes, free_run.misfit) for name, free_run in of_each.items()} == {
        "ackproof-0": (10, ()),
        "ackproof-1": (10, ()),
    }
    assert all(free_run.roles > 15 and free_run.deviations == 0 for free_run in of_each.values())


def is_change(observation: Observation) -> bool:
    return observation.node >= CONTROLLER and isinstance(observation.fact, LeaderElected | IsrChanged)


def others(isr: tuple[int, ...]) -> tuple[int, ...]:
    return tuple({0, 1, 2} ^ {isr[0]} if len(isr) == 1 else set(isr[1:]))


CHANGES: Final[dict[str, Callable[[Any], dict[str, object]]]] = {
    "a later leader epoch": lambda fact: {"leader_epoch": fact.leader_epoch + 1},
    "an earlier leader epoch": lambda fact: {"leader_epoch": fact.leader_epoch - 1},
    "a later partition epoch": lambda fact: {"partition_epoch": fact.partition_epoch + 1},
    "another leader": lambda fact: {"leader": (fact.leader + 1) % 3},
    "another ISR": lambda fact: {"isr": others(fact.isr)},
    "an eligible replica": lambda fact: {"elr": (1,)},
    "other replicas": lambda fact: {"replicas": (0, 1, 3)},
}


def altered(change: Callable[[Any], dict[str, object]]) -> Iterator[tuple[str, list[Observation]]]:
    """The log with another fact in the place of one change of a log partition, each in turn but the first."""
    seen = log()
    indices = [
        index for index, observation in enumerate(seen) if is_change(observation) and observation.partition == NAME
    ][1:]
    for index in indices:
        observation = seen[index]
        fact = msgspec.structs.replace(observation.fact, **change(observation.fact))
        yield (
            str(observation.time_us),
            [*seen[:index], msgspec.structs.replace(observation, fact=fact), *seen[index + 1 :]],
        )


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_one_change_that_is_another_does_not_fit(change: Callable[[Any], dict[str, object]]) -> None:
    missed = [time for time, seen in altered(change) if held(seen)[NAME].fits]
    assert missed == []


def test_what_does_not_fit_is_named_with_its_neighbours_and_what_the_core_would_show() -> None:
    *_, (_, seen) = altered(CHANGES["a later leader epoch"])
    misfit = held(seen)[NAME].misfit
    assert [line.partition(":")[0] for line in misfit[:2]] == ["before", "does not fit"]
    assert "leader epoch 5" in misfit[1]
    assert any(line.startswith("the core would show leader 2, leader epoch 4") for line in misfit)


def test_a_change_that_is_missing_does_not_fit() -> None:
    seen = log()
    indices = [
        index for index, observation in enumerate(seen) if is_change(observation) and observation.partition == NAME
    ][1:-1]
    missed = [index for index in indices if held([*seen[:index], *seen[index + 1 :]])[NAME].fits]
    assert missed == []


def test_a_broker_that_was_never_taken_back_does_not_fit() -> None:
    """One that was never fenced may have been stopped in order."""
    seen = [
        observation
        for observation in log()
        if not (isinstance(observation.fact, BrokerRegistered) and observation.time_us > 5_000_000)
    ]
    assert not held(seen)[NAME].fits


ROLES: Final[dict[str, tuple[type, dict[str, object]]]] = {
    "a leader of another epoch": (BecameLeader, {"leader_epoch": 9}),
    "a leader with another ISR": (BecameLeader, {"isr": (0, 1)}),
    "a follower of another": (BecameFollower, {"leader": 0, "leader_epoch": 2}),
    "an ISR that was never committed": (IsrChanged, {"isr": (1,)}),
    "a truncation to elsewhere": (Truncated, {"to_offset": 3}),
}


@pytest.mark.parametrize(("kind", "change"), ROLES.values(), ids=ROLES)
def test_a_broker_that_does_something_else_does_not_fit(kind: type, change: dict[str, object]) -> None:
    seen = log()
    index = next(
        index
        for index, observation in enumerate(seen)
        if observation.node < CONTROLLER
        and isinstance(observation.fact, kind)
        and observation.partition == NAME
        and observation.time_us > 6_000_000
    )
    fact = msgspec.structs.replace(seen[index].fact, **change)
    free_run = held([*seen[:index], msgspec.structs.replace(seen[index], fact=fact), *seen[index + 1 :]])[NAME]
    assert free_run.misfit[0].startswith("does not fit: ")


def test_a_wrong_rule_of_the_controller_does_not_fit() -> None:
    assert not held(log(), Settings(min_insync_replicas=2, planted_bug="keep-fenced-in-isr"))[NAME].fits


def settled(leader_epoch: Callable[[bool], int], partition_epoch: Callable[[bool], int]) -> Callable[..., Any]:
    """A wrong :func:`controller.settle`: by how much a change raises the epochs, by whether another broker leads."""

    def settle(before: PartitionState, after: PartitionState) -> PartitionState:
        moved = after.leader != before.leader
        epochs = {
            "leader_epoch": before.leader_epoch + leader_epoch(moved),
            "partition_epoch": before.partition_epoch + partition_epoch(moved),
        }
        return before if after == before else msgspec.structs.replace(after, **epochs)

    return settle


#: The right rule, which the wrong one asks.
elect: Final = election.ByIsr.elect


def elected_last(rule: election.ByIsr, state: PartitionState, topic: TopicConfig) -> PartitionState:
    """The last in the order of preference is elected."""
    wrong = elect(rule, msgspec.structs.replace(state, replicas=state.replicas[::-1]), topic)
    return msgspec.structs.replace(wrong, replicas=state.replicas)


#: Wrong rules that no planted bug has, each with the function that it takes the place of.
WRONG_RULES: Final[dict[str, tuple[object, str, Callable[..., Any]]]] = {
    "an election keeps the leader epoch": (controller, "settle", settled(lambda _: 0, lambda _: 1)),
    "every change raises the leader epoch": (controller, "settle", settled(lambda _: 1, lambda _: 1)),
    "an election keeps the partition epoch": (controller, "settle", settled(int, lambda moved: 1 - moved)),
    "the last member leaves the ISR": (controller, "without", controller.leave),
    "the last replica is elected": (election.ByIsr, "elect", elected_last),
    "a leader stays though it is fenced": (controller.Controller, "_active", lambda *_: True),
    "no member is added to the ISR": (controller.Controller, "_eligible", lambda *_: False),
}


@pytest.mark.parametrize(("part", "name", "wrong"), WRONG_RULES.values(), ids=WRONG_RULES)
def test_a_rule_that_is_changed_by_hand_does_not_fit(
    part: object, name: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, name, wrong)
    assert not all(free_run.fits for free_run in held(log()).values())


def said(time_ms: int, fact: Any, node: int = CONTROLLER) -> Observation:
    return Observation(time_us=time_ms * 1_000, node=node, fact=fact)


def beginning() -> list[Observation]:
    first = LeaderElected(
        partition="t-0", leader=0, leader_epoch=0, isr=(0, 1, 2), partition_epoch=0, replicas=(0, 1, 2)
    )
    return [*(said(1, BrokerRegistered(broker=node)) for node in range(3)), said(2, first)]


def isr(partition_epoch: int, *members: int, replicas: tuple[int, ...] | None = None) -> IsrChanged:
    return IsrChanged(
        partition="t-0", isr=members, leader_epoch=0, partition_epoch=partition_epoch, leader=0, replicas=replicas
    )


def refused(error: str, *members: int, broker: int = 0, **reason: Any) -> ProposalRefused:
    epochs = {"leader_epoch": 0, "partition_epoch": 1} | reason
    return ProposalRefused(partition="t-0", broker=broker, error=error, isr=members, **epochs)


#: After broker 2 was fenced, each with whether the core's controller refuses it so.
REFUSALS: Final = {
    "an old partition epoch": (refused("INVALID_UPDATE_VERSION", 0, 1, old_epoch=0), True),
    "no old partition epoch": (refused("INVALID_UPDATE_VERSION", 0, 1, old_epoch=1), False),
    "another broker than the leader": (refused("INVALID_REQUEST", 0, 1, broker=1), True),
    "the leader": (refused("INVALID_REQUEST", 0, 1), False),
    "an old leader epoch": (refused("FENCED_LEADER_EPOCH", 0, 1, old_epoch=-1), True),
    "no old leader epoch": (refused("FENCED_LEADER_EPOCH", 0, 1, old_epoch=0), False),
    "a fenced member": (refused("INELIGIBLE_REPLICA", 0, 1, 2, ineligible=(2,)), True),
    "a member that is not fenced": (refused("INELIGIBLE_REPLICA", 0, 1, 2, ineligible=(1, 2)), False),
    "another incarnation": (refused("INELIGIBLE_REPLICA", 0, 1, ineligible=(1,), earlier=(1,)), True),
    "the incarnation that is registered": (refused("INELIGIBLE_REPLICA", 0, 1, ineligible=(1,)), False),
    "at another partition epoch": (refused("INVALID_UPDATE_VERSION", 0, 1, old_epoch=1, partition_epoch=2), False),
    "at another leader epoch": (refused("FENCED_LEADER_EPOCH", 0, 1, old_epoch=0, leader_epoch=1), False),
}


@pytest.mark.parametrize(("fact", "fits"), REFUSALS.values(), ids=REFUSALS)
def test_a_proposal_is_refused_for_the_same_reason_or_does_not_fit(fact: ProposalRefused, fits: bool) -> None:
    """The partition epoch that an ineligible member raises in the core alone is a known deviation."""
    gone = [said(9_000, BrokerFenced(broker=2)), said(9_001, isr(1, 0, 1))]
    back = [said(19_000, BrokerRegistered(broker=2)), said(19_001, isr(2, 0, 1, 2))]
    of_it = held([*beginning(), *gone, said(14_000, fact), *back])["t-0"]
    assert (of_it.fits, of_it.refusals) == (fits, 1)
    assert of_it.deviations == (fits and fact.error == "INELIGIBLE_REPLICA")


def test_a_refusal_that_does_not_fit_is_named_with_the_answer_of_the_core() -> None:
    gone = [said(9_000, BrokerFenced(broker=2)), said(9_001, isr(1, 0, 1))]
    seen = [*beginning(), *gone, said(14_000, refused("INVALID_REQUEST", 0)), said(20_000, isr(2, 0))]
    *_, misfit, answer = held(seen)["t-0"].misfit
    assert misfit.startswith("does not fit: 14.000 s, node 100, refused-proposal: broker 0, error INVALID_REQUEST, ")
    assert answer.startswith("the core answers NONE then, and would show leader 0, leader epoch 0, partition epoch 2, ")


ELR: Final = Settings(min_insync_replicas=2, eligible_leader_replicas=True)


def listed(time_ms: int, leader: int, epochs: tuple[int, int], *lists: tuple[int, ...]) -> Observation:
    """An election, with leader epoch and partition epoch, ISR, ELR and last known leader."""
    isr, elr, last = lists
    return said(
        time_ms,
        LeaderElected(
            partition="t-0", leader=leader, leader_epoch=epochs[0], partition_epoch=epochs[1], isr=isr, elr=elr,
            last_known_elr=last,
        ),
    )  # fmt: skip


def emptied(*, struck: bool) -> list[Observation]:
    """All three brokers fall silent, 0 last; 1 is back, 0 is back after an unclean stop."""
    elr = (0, 1)
    seen = [
        *beginning(),
        said(9_000, BrokerFenced(broker=2)),
        said(9_001, isr(1, 0, 1)),
        said(12_000, BrokerFenced(broker=1)),
        said(12_001, msgspec.structs.replace(isr(2, 0), elr=(1,))),
        said(15_000, BrokerFenced(broker=0)),
        listed(15_001, -1, (1, 3), (), elr, (0,)),
    ]
    if struck:
        elr = (1,)
        seen.append(
            said(
                20_000,
                IsrChanged(
                    partition="t-0", leader=-1, leader_epoch=1, partition_epoch=4, isr=(), elr=elr, last_known_elr=(0,)
                ),
            )
        )
    return [
        *seen,
        said(25_000, BrokerRegistered(broker=1)),
        listed(25_001, 1, (2, 4 + struck), (1,), tuple({*elr} - {1}), ()),
    ]


@pytest.mark.parametrize(("later_ms", "fits"), [(900, True), (1_100, False)])
def test_a_change_that_follows_from_a_fenced_broker_is_logged_soon(later_ms: int, fits: bool) -> None:
    gone = [said(9_000, BrokerFenced(broker=2)), said(9_000 + later_ms, isr(1, 0, 1))]
    assert held([*beginning(), *gone])["t-0"].fits is fits


@pytest.mark.parametrize("struck", [False, True])
def test_lists_of_eligible_replicas_are_held(struck: bool) -> None:
    seen = emptied(struck=struck)
    assert held(seen, ELR)["t-0"].fits
    for index, line in enumerate(seen):
        if isinstance(line.fact, LeaderElected | IsrChanged) and line.fact.partition_epoch:
            for other in ({"elr": (2,)}, {"last_known_elr": (2,)}):
                fact = msgspec.structs.replace(line.fact, **other)
                assert not held([*seen[:index], said(line.time_us // 1_000, fact), *seen[index + 1 :]], ELR)["t-0"].fits


def test_an_unclean_stop_that_strikes_no_broker_off_does_not_fit() -> None:
    wrong = dataclasses.replace(ELR, planted_bug="eligible-after-unclean-stop")
    assert held(emptied(struck=False), wrong)["t-0"].fits
    assert not held(emptied(struck=True), wrong)["t-0"].fits


@pytest.mark.parametrize(("later_ms", "fits"), [(400, True), (600, False)])
def test_two_lines_close_together_may_be_in_the_other_order_and_others_not(later_ms: int, fits: bool) -> None:
    """A broker that is fenced yet is in the ISR, for a while."""
    gone = [said(9_000, BrokerFenced(broker=2)), said(9_001, isr(1, 0, 1))]
    back = [said(15_000, isr(2, 0, 1, 2)), said(15_000 + later_ms, BrokerRegistered(broker=2))]
    assert held([*beginning(), *gone, *back])["t-0"].fits is fits


def test_a_broker_that_stops_in_order_is_fenced_at_once_and_its_session_may_end_later() -> None:
    """Kafka logs the second since 4.0. A leader that stops leaves its ISRs first."""
    follower = [said(9_000, BrokerFenced(broker=2)), said(9_000, isr(1, 0, 1))]
    leader = [said(9_000, isr(1, 0, 1)), said(9_400, BrokerFenced(broker=2))]
    back = [said(20_000, BrokerRegistered(broker=2)), said(20_500, isr(2, 0, 1, 2))]
    for gone in (follower, leader):
        for ended in ([], [said(18_000, BrokerFenced(broker=2))]):
            of_it = held([*beginning(), *gone, *ended, *back])["t-0"]
            assert (of_it.fits, of_it.deviations) == (True, 0)


def test_a_leader_that_stopped_in_order_is_back_though_nobody_logged_that_it_was_fenced() -> None:
    """A search that knows no stops in order would find no order: a leader cannot propose an ISR without itself."""
    elected = LeaderElected(partition="t-0", leader=1, leader_epoch=1, isr=(1, 2), partition_epoch=1)
    joined = IsrChanged(partition="t-0", isr=(0, 1, 2), leader_epoch=1, partition_epoch=2, leader=1)
    back = said(12_000, BrokerRegistered(broker=0))
    assert held([*beginning(), said(9_000, elected), back, said(12_500, joined)])["t-0"].fits
    assert not held([*beginning(), said(9_000, elected), said(12_500, joined)])["t-0"].fits


def test_an_emptied_directory_is_a_known_deviation_after_a_registration_and_nothing_else_is() -> None:
    back = [
        said(9_000, BrokerFenced(broker=2)),
        said(9_001, isr(1, 0, 1)),
        said(15_000, BrokerRegistered(broker=2)),
        said(15_100, isr(2, 0, 1)),
        said(15_200, isr(3, 0, 1, 2)),
    ]
    of_it = held([*beginning(), *back])["t-0"]
    assert (of_it.fits, of_it.deviations) == (True, 1)
    late = [*back[:3], said(21_000, isr(2, 0, 1))]
    assert not held([*beginning(), *late])["t-0"].fits


def test_replicas_in_another_order_are_a_known_deviation() -> None:
    of_it = held([*beginning(), said(9_000, isr(1, 0, 1, 2, replicas=(1, 0, 2)))])["t-0"]
    assert (of_it.fits, of_it.deviations) == (True, 1)


def test_what_a_restarted_controller_repeats_is_not_new() -> None:
    again = [said(9_000, isr(1, 0, 1)), said(15_000, isr(1, 0, 1)), said(15_001, isr(2, 0, 1, 2))]
    assert held([*beginning(), *again])["t-0"].fits


def test_nothing_observed_does_not_fit() -> None:
    role = said(3, BecameFollower(partition="t-0", leader=0, leader_epoch=0), node=1)
    assert held([role])["t-0"].misfit == ("the controller said nothing about it",)
    with pytest.raises(PlanError, match="no log partition"):
        held([])


@pytest.mark.parametrize(("more_ms", "fits"), [(400, True), (600, False)])
def test_a_broker_that_is_fenced_without_a_change_fits_only_where_the_log_ends(more_ms: int, fits: bool) -> None:
    gone = [said(9_000, isr(1, 0, 1, 2, replicas=(1, 0, 2))), said(20_000, BrokerFenced(broker=2))]
    later = said(20_000 + more_ms, BrokerRegistered(broker=0))
    free_run = held([*beginning(), *gone, later])["t-0"]
    assert free_run.fits is fits
    if not fits:
        before, misfit, core = free_run.misfit
        assert before.startswith("before: 9.000 s, ")
        assert misfit == "does not fit: 20.000 s, node 100, fenced: broker 2"
        assert core.startswith("the core would show leader 0, leader epoch 0, partition epoch 2, ISR 0 1, ")
        assert core.endswith(" then, and nothing follows")


def test_a_first_change_alone_is_nothing_that_was_compared() -> None:
    alone = held(beginning())["t-0"]
    assert (alone.misfit, alone.compared, alone.fits) == ((), False, False)
    role = said(3, BecameFollower(partition="t-0", leader=0, leader_epoch=0), node=1)
    assert held([*beginning(), role])["t-0"].fits


@pytest.mark.parametrize("controller", [False, True])
def test_a_run_in_which_nothing_was_compared_is_not_held(
    controller: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the lines of the controller, and with the first of them alone."""
    role = said(3, BecameFollower(partition="t-0", leader=0, leader_epoch=0), node=1)
    run = run_of(tmp_path, Kafka(host=Namespaces()), beginning() if controller else [role])
    assert exit_code_of(["conform", str(run)]) == 2
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.endswith(": nothing was compared")
    assert last == "1 run, 1 log partition, 0 of them unexplained, 1 not compared"
    write_observations(run, [*log(), role])
    assert exit_code_of(["conform", str(run)]) == 2
    assert exit_code_of(["conform", str(run), "--bug", "keep-fenced-in-isr"]) == 1


@pytest.mark.parametrize(
    "seen", [[], [said(3, BecameFollower(partition="__cluster-0", leader=0, leader_epoch=0), node=1)]]
)
def test_a_run_without_a_log_partition_of_its_own_is_refused(
    seen: Sequence[Observation], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path, Kafka(host=Namespaces()), seen)
    assert exit_code_of(["conform", str(run)]) == 64
    assert f"{run}: no log partition was observed in this run, so nothing is compared" in capsys.readouterr().err


def run_of(directory: Path, world: Kafka | Simulated, seen: Sequence[Observation] | None = None) -> Path:
    spec = RunSpec(
        world=world,
        cell="all",
        family="kill",
        settings=SETTINGS.to_mapping(),
        workload=WorkloadPlan(topic="ackproof", partitions=2),
        faults=FaultPlan(),
        seed=1,
    )
    write_record(directory, spec, Ended(status="completed"))
    write_observations(directory, log() if seen is None else seen)
    return directory


def test_a_run_is_held_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path, Kafka(host=Namespaces()))
    assert [free_run.fits for free_run in held_run(run)] == [True, True]
    assert exit_code_of(["conform", str(run)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 run, 2 log partitions, 0 of them unexplained"
    assert exit_code_of(["conform", str(run), "--bug", "keep-fenced-in-isr"]) == 1
    assert "  does not fit: 7.096 s, node 100, election: " in capsys.readouterr().out
    assert exit_code_of(["conform", str(run), "S01"]) == 64
    assert "name either runs, or stories and traces" in capsys.readouterr().err
    assert exit_code_of(["conform", str(run), "--version", "3.9.2"]) == 64
    assert "is a recorded run, so nothing is performed; leave --version out" in capsys.readouterr().err


def test_a_run_of_another_world_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="is not a run of Apache Kafka with one KRaft controller"):
        held_run(run_of(tmp_path, Simulated()))
