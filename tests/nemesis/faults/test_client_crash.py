"""A producer that dies: whom it hits, what is observed of it, and that no promise is weaker for it."""

import msgspec
import pytest

from checkers import faults_possible
from checkers.verdicts.promises import promise
from harness.plan import parse_plan
from nemesis.cluster import CLIENTS, Capability
from nemesis.evidence import ProducerDied
from nemesis.faults import Aim, ClientCrash, fault_kind
from nemesis.player import Player
from nemesis.receipts import Receipt, to_json
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import FAMILIES, needs_of
from nemesis.schedule import Schedule, ScheduledFault
from workloads.replacement import CrashedProducer
from workloads.settings import Settings

CRASH = ClientCrash(Role(RoleKind.PRODUCER, pick=7))
DIED: ProducerDied = {"instance": 2, "outstanding": 5, "successor": 9}


class Producers:
    """Notes who is crashed."""

    def __init__(self):
        self.crashed = []

    def crash_producer(self, pick):
        self.crashed.append(pick)
        return CrashedProducer(instance=2, outstanding=5, successor=9)


@pytest.fixture
def play(make_world):
    def start(clients, lacks=None):
        world = make_world(lacks=lacks)
        target = msgspec.structs.replace(world.target, clients=clients)
        step = ScheduledFault(
            begin_ms=100, end_ms=500, group=0, family="client-crash", scenario="producer", fault=CRASH
        )
        player = Player(
            Schedule(steps=(step,), healed_ms=900), target, world.clock, dead_brokers_max=0, witness=lambda _: None
        )
        player.start()
        world.drive(lambda: False, 600_000)
        (receipt,) = player.receipts
        return receipt, world.cluster.calls

    return start


def test_the_pick_of_its_role_says_which_producer_dies_and_its_end_undoes_nothing(play):
    producers = Producers()
    receipt, calls = play(producers)
    assert producers.crashed == [7]
    assert calls == [], "nothing is done to the cluster"
    assert (receipt.fault, receipt.role, receipt.targets) == ("clientcrash", "a producer", (CLIENTS,))
    assert (receipt.mark, receipt.took_effect) == ("end", True)
    assert (receipt.begin_evidence, receipt.end_evidence) == ({str(CLIENTS): DIED}, {})


def test_where_nobody_offers_clients_it_is_skipped_and_the_receipt_says_why(play):
    receipt, _ = play(None, {Capability.CLIENTS: "somebody else's clients"})
    assert (receipt.mark, receipt.took_effect, receipt.reason) == ("skipped", False, "somebody else's clients")


def test_aiming_at_a_producer_asks_nothing_of_the_cluster(make_world):
    world = make_world()
    world.cluster.dead = {0, 1, 2}
    assert CRASH.aim(world.target.view()) == Aim(nodes=(CLIENTS,))


def test_it_reaches_no_broker_so_no_promise_is_weaker_for_it(play):
    receipt, _ = play(Producers())
    (seen,) = faults_possible([msgspec.json.decode(to_json(receipt), type=Receipt)])
    assert (seen.kind, seen.clients_only) == ("clientcrash", True)
    (elected_meanwhile,) = faults_possible([msgspec.structs.replace(receipt, moved={"t-0": {"leader": [0, 1]}})])
    assert not elected_meanwhile.clients_only, "a leader changed, whose own receipt a history that was cut off lacks"
    assert not promise(Settings(acks=1), [seen]).permits_loss
    assert promise(Settings(acks=1), [elected_meanwhile]).permits_loss
    assert seen.facts.spares_process
    assert not seen.facts.ends_process
    assert not seen.facts.destroys_copy
    assert not ClientCrash.stops_brokers


def test_a_plan_names_its_family_which_needs_no_script():
    assert [scenario.name for scenario in FAMILIES["client-crash"].scenarios] == ["producer"]
    assert needs_of("client-crash") == {Capability.CLIENTS}
    plan = parse_plan('families = ["client-crash"]\n[worlds.simulated]\n', "p.toml")
    assert plan.families == ("client-crash",)


def test_what_its_evidence_says_can_be_read_and_missing_evidence_says_nothing():
    words = fault_kind("clientcrash").in_words({str(CLIENTS): DIED})
    assert words == "producer 2 died (sends outstanding: 5), producer 9 took its place"
    assert ClientCrash.in_words({}) == fault_kind("kill").in_words({"0": {"exit": "signal 9"}}) == ""
