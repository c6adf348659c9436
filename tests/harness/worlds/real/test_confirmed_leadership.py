"""An act that an operator was granted is evidence once the controller says so."""

import pytest

from harness.ground.errors import HostError
from harness.worlds.processes import move_leader
from harness.worlds.real import leadership
from harness.worlds.real.leadership import ConfirmedReassignment
from nemesis.cluster import CONTROLLER, PartitionView


class Controller:
    """A cluster of one partition. ``late`` looks see it as it was; ``grants`` is the answer to an operator."""

    def __init__(self, grants="", *, does=True, late=0):
        self.state = PartitionView(leader=0, leader_epoch=3, isr=(0, 1, 2), replicas=(0, 1, 2))
        self.before, self.grants, self.does, self.late = self.state, grants, does, late
        self.asked = []

    def partitions(self):
        self.late -= self.state is not self.before
        return {"t-0": self.before if self.late >= 0 else self.state}

    def move_leader(self, partition, broker, replicas):
        return self._do((partition, broker, replicas), leader=broker, leader_epoch=4)

    def reassign(self, partition, replicas):
        leaving = () if replicas[0] == self.state.replicas[0] else (2,)
        return self._do((partition, replicas), replicas=(*replicas, *leaving))

    def _do(self, asked, **change):
        self.asked.append(asked)
        if self.does:
            fields = {name: getattr(self.state, name) for name in self.state.__struct_fields__}
            self.state = PartitionView(**{**fields, **change})
        if isinstance(self.grants, BaseException):
            raise self.grants
        return self.grants


@pytest.fixture
def lead(monkeypatch):
    monkeypatch.setattr(leadership, "CONFIRM_LIMIT_S", 0.2)
    return lambda controller: ConfirmedReassignment(controller.move_leader, controller.reassign, controller.partitions)


def test_a_move_is_told_as_the_controller_tells_it(lead):
    controller = Controller(late=3)
    assert lead(controller).move_leader("t-0", 1) == {"leader": 1, "leader_epoch": 4}
    assert controller.asked == [("t-0", 1, (1, 2, 0))], "the leader before it is preferred least"


def test_a_refusal_is_told_with_what_stands(lead):
    controller = Controller("NotEnough", does=False)
    assert lead(controller).move_leader("t-0", 1) == {"refused": "NotEnough", "leader": 0, "leader_epoch": 3}


def test_an_answer_without_a_deed_is_no_evidence(lead):
    assert lead(Controller(does=False)).move_leader("t-0", 1)["unconfirmed"] == "the leader stayed"


@pytest.mark.parametrize("does", [True, False])
def test_a_request_that_nobody_answered_may_have_been_granted(lead, does):
    evidence = lead(Controller(HostError("silence"), does=does)).move_leader("t-0", 1)
    assert evidence.get("unconfirmed") == (None if does else "silence")
    assert "refused" not in evidence


@pytest.mark.parametrize(("partition", "broker"), [("t-9", 1), ("t-0", 7)])
def test_what_cannot_be_granted_is_not_asked(lead, partition, broker):
    controller = Controller()
    assert lead(controller).move_leader(partition, broker)["refused"]
    assert controller.asked == []


def test_replicas_that_still_have_to_leave_come_last(lead):
    evidence = lead(Controller()).reassign("t-0", (1, 0))
    assert evidence == {"replicas": [1, 0, 2], "leader": 0, "leader_epoch": 3}
    refused = lead(Controller("Invalid", does=False)).reassign("t-0", (1, 0))
    assert refused == {"refused": "Invalid", "replicas": [0, 1, 2], "leader": 0, "leader_epoch": 3}


def test_replicas_that_were_in_front_before_are_no_evidence_that_the_others_left(lead):
    """A controller's word comes late: the first look after the request sees the old replicas."""
    evidence = lead(Controller(late=3)).reassign("t-0", (0,))
    assert evidence == {"replicas": [0], "leader": 0, "leader_epoch": 3}
    assert lead(Controller(does=False)).reassign("t-0", (0,))["unconfirmed"] == "the replicas stayed"


class Host:
    def __init__(self, answer):
        self.answer, self.requests = answer, []

    def ask(self, nodes, request, limit_s):
        self.requests.append((list(nodes), dict(request)))
        return {} if self.answer is None else {CONTROLLER: self.answer}


def test_the_reference_controller_is_asked_over_its_control_socket():
    host = Host({"ok": True})
    assert move_leader(host, "t-0", 1, (0, 1)) == ""
    assert host.requests == [([CONTROLLER], {"op": "move", "partition": "t-0", "leader": 1})]
    assert move_leader(Host({"ok": False, "error": "no"}), "t-0", 1, (0, 1)) == "no"
    with pytest.raises(HostError):
        move_leader(Host(None), "t-0", 1, (0, 1))
