"""A producer that crashes in virtual time: its connections break off, and no broker hears of it."""

from nemesis.cluster import CLIENTS, Link
from workloads.operations import EventType

SEEDS = range(8)


def held_back(stage, seed, end):
    """The log's copies of a write that a cut held back when its producer ended, and how the send ended."""
    world = stage(seed=seed)
    producer, outcomes = world.world.clients.producer(500), []
    producer.send("t-0", b"k", b"before", outcomes.append)
    world.until(lambda: bool(outcomes))
    links = [Link(CLIENTS, world.leader), Link(world.leader, CLIENTS)]
    world.target.links.cut(links)
    producer.send("t-0", b"k", b"held", outcomes.append)
    world.wait(100)
    end(producer)
    world.wait(10)
    world.target.links.heal(links)
    world.wait(1_000)
    return world.read_all(), outcomes


def test_what_a_crashed_producer_had_not_sent_never_arrives(stage):
    for seed in SEEDS:
        values, outcomes = held_back(stage, seed, lambda producer: producer.crash())
        assert values == ["before"]
        assert [outcome.type for outcome in outcomes] == [EventType.OK, EventType.INFO]
        assert outcomes[-1].error == "ClientCrashed"


def test_what_a_closed_producer_had_given_to_its_connection_may_arrive(stage):
    arrived = ["held" in held_back(stage, seed, lambda producer: producer.close())[0] for seed in SEEDS]
    assert any(arrived), "or the crash would show nothing"


def test_a_crashed_producer_answers_later_sends_and_a_second_end_changes_nothing(stage):
    producer, outcomes = (world := stage()).world.clients.producer(500), []
    producer.crash()
    producer.crash()
    producer.close()
    producer.send("t-0", b"k", b"late", outcomes.append)
    world.until(lambda: bool(outcomes))
    assert outcomes[0].type is EventType.INFO
