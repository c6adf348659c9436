from itertools import permutations

import networkx as nx
import pytest

from nemesis.cluster import CLIENTS, CONTROLLER, Link
from nemesis.topology import SHAPES, Shape, every_link, links_of

THREE = (0, 1, 2)
FIVE = (0, 1, 2, 3, 4)


def reach(shape, brokers, anchor):
    graph = nx.DiGraph(every_link(brokers))
    graph.remove_edges_from(links_of(shape, brokers, anchor))
    return graph


def heard_by(graph, brokers, listener):
    return {listener} | {logger for logger in brokers if graph.has_edge(logger, listener)}


def test_a_healthy_network_has_a_link_each_way_between_any_two():
    assert every_link(THREE) == {Link(*pair) for pair in permutations([*THREE, CONTROLLER, CLIENTS], 2)}


@pytest.mark.parametrize("shape", list(Shape))
@pytest.mark.parametrize("brokers", [THREE, FIVE])
def test_every_shape_cuts_something_and_nothing_that_does_not_exist(shape, brokers):
    cut = links_of(shape, brokers, (1,))
    assert cut
    assert cut <= every_link(brokers)
    assert Link(CLIENTS, CONTROLLER) not in cut


def test_every_shape_can_be_drawn():
    assert set(SHAPES) == set(Shape)


def test_a_one_way_cut_is_one_link():
    assert links_of(Shape.NO_HEARTBEAT, THREE, (1,)) == {Link(1, CONTROLLER)}


def test_followers_that_cannot_fetch_still_hear_their_leader():
    assert links_of(Shape.NO_FETCH, THREE, (0,)) == {Link(1, 0), Link(2, 0)}


def test_a_deaf_broker_is_heard_and_a_mute_one_hears():
    deaf, mute = links_of(Shape.DEAF, THREE, (0,)), links_of(Shape.MUTE, THREE, (0,))
    assert deaf == {Link(1, 0), Link(2, 0), Link(CONTROLLER, 0)}
    assert mute == {Link(link.target, link.source) for link in deaf}


def test_an_isolated_leader_still_reaches_clients_both_ways():
    graph = reach(Shape.ISOLATE, THREE, (0,))
    assert set(graph.successors(0)) == set(graph.predecessors(0)) == {CLIENTS}


def test_isolation_from_everybody_leaves_no_link():
    assert reach(Shape.ISOLATE_ALSO_FROM_CLIENTS, THREE, (0,)).degree(0) == 0


def test_replication_can_be_cut_without_touching_the_session():
    cut = links_of(Shape.FROM_BROKERS, THREE, (0,))
    assert cut == {Link(0, 1), Link(1, 0), Link(0, 2), Link(2, 0)}


def test_halves_do_not_reach_each_other_and_the_larger_keeps_the_controller():
    graph = reach(Shape.HALVES, FIVE, (3,))
    graph.remove_node(CLIENTS)
    assert sorted(map(sorted, nx.strongly_connected_components(graph))) == [[0, 1, 2, CONTROLLER], [3, 4]]


def test_halves_meet_in_the_bridge_only():
    graph = reach(Shape.BRIDGE, FIVE, (2,))
    assert heard_by(graph, FIVE, 2) == set(FIVE)
    graph.remove_nodes_from([CLIENTS, CONTROLLER, 2])
    assert sorted(map(sorted, nx.strongly_connected_components(graph))) == [[0, 1], [3, 4]]


@pytest.mark.parametrize("brokers", [THREE, (0, 1, 2, 3), FIVE, tuple(range(7))])
def test_majorities_ring_gives_each_node_its_own_majority(brokers):
    graph = reach(Shape.RING, brokers, (1,))
    majorities = [frozenset(heard_by(graph, brokers, broker)) for broker in brokers]
    assert {len(majority) for majority in majorities} == {len(brokers) // 2 + 1}
    assert len(set(majorities)) == len(brokers)


def test_a_ring_of_five_is_cut_both_ways():
    cut = links_of(Shape.RING, FIVE, (0,))
    assert cut == {Link(link.target, link.source) for link in cut}
