"""The logs of coordinators, which a broker has made the first time that anybody asks for a coordinator."""

from types import SimpleNamespace

import msgspec
from client_side import Asked

from harness.broker.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, BrokerState, Image, TopicConfig
from harness.broker.server.config import NodeConfig
from harness.broker.server.handlers.coordinators import Coordinators

UNCLEAN_3 = TopicConfig(min_insync_replicas=3, unclean_leader_election_enable=True, flush_ms=5)


def made(brokers, defaults):
    """The settings of both logs, in a cluster of so many brokers."""
    topics = {}

    def create_topic(_sender, topic, _done, *, config, **_):
        topics[topic] = config

    image = Image(1, {node: BrokerState(1, False, "h", 1) for node in range(brokers)}, {})
    coordinators = Coordinators(7, lambda: image, SimpleNamespace(create_topic=create_topic), defaults)
    for kind in (0, 1):
        Asked(coordinators.find, 10, 4, coordinator_keys=["a"], key_type=kind)
    return topics


def test_the_log_of_groups_has_the_brokers_defaults_and_that_of_transactions_its_own():
    own = TopicConfig(min_insync_replicas=2)
    assert made(3, UNCLEAN_3) == {
        OFFSETS_TOPIC: msgspec.structs.replace(UNCLEAN_3, flush_ms=2**63 - 1),
        TRANSACTIONS_TOPIC: own,
    }
    assert made(3, TopicConfig()) == {OFFSETS_TOPIC: TopicConfig(), TRANSACTIONS_TOPIC: own}


def test_no_log_of_a_coordinator_needs_more_replicas_than_it_has():
    assert [config.min_insync_replicas for config in made(1, UNCLEAN_3).values()] == [1, 1]
    assert [config.min_insync_replicas for config in made(2, UNCLEAN_3).values()] == [2, 2]


def test_a_node_is_told_the_defaults_in_its_file():
    config = NodeConfig(role="broker", node=0, port=1, directory="", control_socket="", trace="", topics=UNCLEAN_3)
    assert msgspec.json.decode(msgspec.json.encode(config), type=NodeConfig).topics == UNCLEAN_3
