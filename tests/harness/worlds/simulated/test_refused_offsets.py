"""Offsets in a transaction are refused in virtual time, in a sentence."""

from harness.worlds.simulated.clients import NO_OFFSETS
from workloads import EventType, MemberToken, SendOutcome


def test_offsets_in_a_transaction_are_refused(stage):
    world, outcomes = stage(), []
    transactions = world.world.clients.producer(500, "mine").transactions
    transactions.send_offsets({"t-0": 1}, MemberToken("g"), outcomes.append)
    world.until(lambda: bool(outcomes))
    assert outcomes == [SendOutcome(EventType.FAIL, None, NO_OFFSETS)]
