"""A script's acts leave receipts, as a schedule's faults do, so that promises and exercise apply to it."""

import pytest

from nemesis.cluster import Capability, Link, require
from nemesis.observed_acts import ObservedActs
from nemesis.receipts import Receipt
from tests.conftest import ObedientCluster, VirtualClock

BOTH = (Link(0, 1), Link(1, 0))


class Acts:
    def __init__(self, **cluster):
        self.clock, self.marks = VirtualClock(), list[tuple[str, str]]()
        self.cluster = ObedientCluster(**cluster)
        target = self.cluster.target(lacks={Capability.POWER: "none here"})
        self.script = ObservedActs(target, self.clock.now_us, self.note, number="S40", story="a story")
        self.target = self.script.target

    def note(self, receipt: Receipt) -> None:
        self.marks.append((receipt.fault, receipt.mark))


def test_a_kill_lasts_until_the_node_is_started_again():
    acts = Acts()
    processes = require(acts.target.processes)
    processes.kill(1)
    acts.clock.time_us = 7
    processes.restart(1)
    (receipt,) = acts.script.receipts
    assert acts.marks == [("kill", "begin"), ("kill", "end")]
    assert (receipt.targets, receipt.begun_us, receipt.ended_us, receipt.took_effect) == ((1,), 0, 7, True)
    assert (receipt.family, receipt.story, receipt.touched) == ("S40", "a story", ("t-0", "t-1", "t-2"))
    assert receipt.end_evidence == {"restart": "1"}


def test_a_cut_lasts_until_the_last_of_its_links_is_whole():
    acts = Acts()
    links = require(acts.target.links)
    links.cut(BOTH)
    links.heal(BOTH[:1])
    assert acts.marks == [("partition", "begin")]
    links.heal(BOTH[1:])
    assert acts.marks[-1] == ("partition", "end")
    assert acts.script.receipts[0].links == BOTH


def test_what_changed_while_an_act_lasted_is_in_its_receipt_however_short_it_was():
    """Whoever looks at the cluster between two acts lets the receipt of what lasts see it."""
    acts = Acts()
    require(acts.target.links).cut(BOTH)
    acts.clock.time_us = 5
    acts.cluster.elected += 3
    acts.target.view()
    acts.clock.time_us = 7
    acts.cluster.elected -= 3
    require(acts.target.links).heal(BOTH)
    looks = acts.script.receipts[0].seen["t-0"]
    assert [(look.time_us, look.leader_epoch) for look in looks] == [(0, 0), (5, 4), (7, 1)]


def test_the_cluster_is_looked_at_before_an_act_is_undone():
    acts = Acts()
    processes = require(acts.target.processes)
    processes.kill(0)
    acts.clock.time_us = 7
    processes.restart(0)
    assert [(look.time_us, look.leader) for look in acts.script.receipts[0].seen["t-0"]] == [(0, 0), (7, 1), (7, 0)]


def test_what_nobody_saw_undone_lasts():
    acts = Acts()
    processes = require(acts.target.processes)
    processes.kill(1)
    acts.cluster.blind = True
    assert processes.restart(1) == {}
    assert acts.marks == [("kill", "begin")]
    acts.cluster.blind = False
    processes.restart(1)
    assert acts.marks[-1] == ("kill", "end")


def test_a_planned_move_is_over_at_once_and_is_of_its_own_log_partition():
    acts = Acts()
    require(acts.target.leadership).move_leader("t-0", 2)
    assert acts.marks == [("moveleader", "begin"), ("moveleader", "end")]
    assert acts.script.receipts[0].touched == ("t-0",)


def test_what_was_not_observed_is_not_claimed():
    acts = Acts(blind=True)
    require(acts.target.processes).kill(1)
    assert not acts.script.receipts[0].took_effect


def test_what_a_script_leaves_undone_ends_with_it():
    acts = Acts()
    require(acts.target.messages).hold(BOTH, "Fetch")
    require(acts.target.processes).pause(2)
    acts.script.end()
    acts.script.end()
    assert acts.marks[2:] == [("holdmessages", "end"), ("pause", "end")]


def test_all_acts_are_one_story_in_their_order():
    acts = Acts()
    require(acts.target.processes).kill(0)
    require(acts.target.links).cut(BOTH)
    assert [(receipt.sequence, receipt.group) for receipt in acts.script.receipts] == [(0, 0), (1, 0)]


def test_what_the_cluster_lacks_its_script_lacks_too():
    acts = Acts()
    assert acts.target.power is None
    assert acts.target.why_not([Capability.POWER]) == "none here"


@pytest.mark.parametrize(
    "part", ["processes", "links", "messages", "files", "write_caches", "log_directories", "leadership"]
)
def test_every_part_that_a_script_uses_leaves_receipts(part: str):
    acts = Acts()
    assert type(getattr(acts.target, part)).__module__ == "nemesis.observed_acts"
