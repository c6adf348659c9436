"""Wires, cuts and connections, without any broker."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.ground.choices import Choices, Stream
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.network import Network
from harness.worlds.simulated.wires import DELAYS_US, RESET, SLOW_US
from nemesis.cluster import CLIENTS, Link

CLIENT = CLIENTS + 1
SECOND_US = 1_000_000


class Inbox:
    """Keeps what arrives."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.got: list[tuple[int, Any]] = []
        self.receive: Callable[[int, Any], None] = lambda source, message: self.got.append((source, message))

    def connected(self, broker: int) -> None:
        self.got.append((broker, "connected"))

    def disconnected(self, broker: int) -> None:
        self.got.append((broker, "disconnected"))

    def messages(self) -> list[Any]:
        return [message for _, message in self.got]


class Chosen(Choices):
    """Delays by chance, without resets; whether cuts retransmit, and the next draw of a delay, as given."""

    def __init__(self, *, retransmits: bool = False) -> None:
        super().__init__(1)
        self._retransmits = retransmits
        self.next_delay: int | None = None

    def draw(self, label: str, bound: int) -> int:
        return int(self._retransmits) if label.startswith("cut ") else super().draw(label, bound)

    def stream(self, label: str) -> Stream:
        stream = super().stream(label)
        return Delays(self, stream) if label.startswith("delay ") else stream


class Delays(Stream):
    def __init__(self, chosen: Chosen, drawn: Stream) -> None:
        super().__init__(drawn.label, lambda: 0.0)
        self._chosen = chosen
        self._drawn = drawn

    def draw(self, bound: int) -> int:
        choice, self._chosen.next_delay = self._chosen.next_delay, None
        return choice if choice is not None else self._drawn.draw(bound - 1)


class Bench:
    """Brokers 0 and 1 and one client that is connected to broker 0."""

    def __init__(self, *, retransmits: bool = False) -> None:
        self.loop = Loop()
        self.chance = Chosen(retransmits=retransmits)
        self.network = Network(self.loop, self.chance)
        self.brokers = [Inbox(self.loop), Inbox(self.loop)]
        for node, inbox in enumerate(self.brokers):
            self.network.started(node, inbox)
        self.client = Inbox(self.loop)
        self.network.add_client(CLIENT, self.client)
        self.connect()
        self.client.got.clear()

    def connect(self) -> None:
        self.network.connect(CLIENT, 0)
        self.settle()

    def send(self, source: int, target: int, *messages: Any) -> None:
        wire = self.network.wire(source, target)
        assert wire is not None
        for message in messages:
            wire.send(message)

    def settle(self) -> None:
        self.loop.run(lambda: False, self.loop.now_us() + SECOND_US)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_one_wire_keeps_the_order_in_which_it_was_given(bench: Bench) -> None:
    bench.send(0, 1, *range(200))
    bench.settle()
    assert bench.brokers[1].messages() == list(range(200))


def test_messages_of_different_wires_overtake_each_other(bench: Bench) -> None:
    for number in range(100):
        bench.send((0, CLIENT)[number % 2], (1, 0)[number % 2], number)
    order: list[int] = []
    for inbox in bench.brokers:
        inbox.receive = lambda source, message: order.append(message)
    bench.settle()
    assert sorted(order) == list(range(100))
    assert order != list(range(100))


def test_a_message_takes_between_a_fifth_of_a_millisecond_and_thirty() -> None:
    assert min(DELAYS_US) == 200
    assert 2_000 < max(DELAYS_US) <= 30_000
    assert sorted(DELAYS_US)[len(DELAYS_US) // 2] < 1_000


def test_a_one_way_cut_delivers_the_other_way(bench: Bench) -> None:
    cut = bench.network.cut([Link(0, 1)])
    bench.send(0, 1, "lost")
    bench.send(1, 0, "arrives")
    bench.settle()
    assert bench.brokers[0].messages() == ["arrives"]
    assert bench.brokers[1].messages() == []
    assert cut is not None
    assert cut.dropped == 1


def test_a_cut_also_stops_what_is_under_way(bench: Bench) -> None:
    bench.send(0, 1, "under way")
    bench.network.cut([Link(0, 1)])
    bench.settle()
    assert bench.brokers[1].messages() == []


def test_a_cut_that_retransmits_delivers_everything_in_order_after_the_heal() -> None:
    bench = Bench(retransmits=True)
    bench.send(0, 1, "under way")
    bench.network.cut([Link(0, 1)])
    bench.send(0, 1, "second", "third")
    bench.settle()
    assert bench.brokers[1].messages() == []
    (cut,) = bench.network.heal([Link(0, 1)])
    bench.send(0, 1, "fourth")
    bench.settle()
    assert bench.brokers[1].messages() == ["under way", "second", "third", "fourth"]
    assert (cut.delayed, cut.dropped) == (3, 0)


def test_cutting_again_and_healing_again_changes_nothing(bench: Bench) -> None:
    assert bench.network.cut([Link(0, 1)]) is not None
    assert bench.network.cut([Link(0, 1)]) is None
    assert len(bench.network.heal([Link(0, 1)])) == 1
    assert bench.network.heal([Link(0, 1)]) == []
    bench.send(0, 1, "whole")
    bench.settle()
    assert bench.brokers[1].messages() == ["whole"]


def test_a_cut_of_all_clients_holds_for_one_that_comes_later(bench: Bench) -> None:
    bench.network.cut([Link(CLIENTS, 0)])
    late = Inbox(bench.loop)
    bench.network.add_client(CLIENT + 1, late)
    bench.network.connect(CLIENT + 1, 0)
    bench.send(CLIENT, 0, "lost")
    bench.settle()
    assert late.got == []
    assert bench.brokers[0].messages() == []


def test_a_connection_that_lost_requests_to_a_cut_is_broken_when_it_heals(bench: Bench) -> None:
    bench.network.cut([Link(CLIENTS, 0)])
    bench.send(CLIENT, 0, "lost")
    bench.network.heal([Link(CLIENTS, 0)])
    bench.send(CLIENT, 0, "on the same connection")
    bench.settle()
    assert bench.client.messages() == ["disconnected"]
    assert bench.brokers[0].messages() == []


def test_a_reset_connection_loses_the_request_and_tells_the_client(bench: Bench) -> None:
    bench.chance.next_delay = RESET
    bench.send(CLIENT, 0, "lost", "lost too")
    bench.settle()
    assert bench.brokers[0].messages() == []
    assert bench.client.messages() == ["disconnected"]
    bench.connect()
    bench.send(CLIENT, 0, "again")
    bench.settle()
    assert bench.brokers[0].messages() == ["again"]


def test_a_dead_broker_refuses_and_a_cut_one_says_nothing(bench: Bench) -> None:
    bench.network.died(0)
    bench.settle()
    assert bench.client.messages() == ["disconnected"]
    bench.connect()
    assert bench.client.messages() == ["disconnected", "disconnected"]
    bench.network.cut([Link(0, CLIENTS)])
    bench.connect()
    assert len(bench.client.got) == 2


def test_what_was_sent_to_a_dead_process_does_not_reach_the_next(bench: Bench) -> None:
    bench.send(1, 0, "to the first")
    bench.network.died(0)
    bench.brokers[0].receive = lambda source, message: None
    reborn = Inbox(bench.loop)
    bench.network.started(0, reborn)
    bench.send(1, 0, "to the second")
    bench.settle()
    assert reborn.messages() == ["to the second"]


def test_a_request_on_the_old_connection_does_not_reach_a_restarted_broker(bench: Bench) -> None:
    bench.network.died(0)
    reborn = Inbox(bench.loop)
    bench.network.started(0, reborn)
    bench.send(CLIENT, 0, "nobody listens")
    bench.settle()
    assert reborn.messages() == []
    bench.connect()
    bench.send(CLIENT, 0, "now")
    bench.settle()
    assert reborn.messages() == ["now"]


def test_a_slow_link_delivers_everything_late_and_in_order() -> None:
    bench = Bench()
    assert bench.network.slow([Link(0, 1)]) == [Link(0, 1)]
    assert bench.network.slow([Link(0, 1)]) == []
    bench.send(0, 1, "a", "b")
    bench.loop.run(lambda: False, bench.loop.time_us + SLOW_US)
    assert bench.brokers[1].messages() == []
    assert bench.network.restore_link_speed([Link(0, 1)]) == [Link(0, 1)]
    bench.send(0, 1, "c")
    bench.settle()
    assert bench.brokers[1].messages() == ["a", "b", "c"]


def test_a_slow_link_of_clients_is_slow_for_each_of_them() -> None:
    bench = Bench()
    bench.network.slow([Link(CLIENTS, 0)])
    bench.send(CLIENT, 0, "request")
    bench.loop.run(lambda: False, bench.loop.time_us + SLOW_US)
    assert bench.brokers[0].messages() == []
    bench.settle()
    assert bench.brokers[0].messages() == ["request"]


def is_odd(_source: int, _target: int, message: Any) -> bool:
    return isinstance(message, int) and message % 2 == 1


def test_chosen_messages_are_held_until_they_are_released(bench: Bench) -> None:
    bench.network.filter([Link(0, 1)], is_odd, keeps=True)
    bench.send(0, 1, 1, 2, 3)
    bench.settle()
    assert bench.brokers[1].messages() == [2]
    (ended,) = bench.network.release([Link(0, 1)])
    bench.settle()
    assert bench.brokers[1].messages() == [2, 1, 3]
    assert (len(ended.held), ended.dropped) == (2, 0)
    bench.send(0, 1, 5)
    bench.settle()
    assert bench.brokers[1].messages() == [2, 1, 3, 5]
    assert bench.network.release([Link(0, 1)]) == []


def test_a_first_message_that_is_held_is_overtaken_by_its_repetition(bench: Bench) -> None:
    bench.network.filter([Link(0, 1)], is_odd, keeps=True, most=1)
    bench.send(0, 1, 1, 2, 1)
    bench.settle()
    assert bench.brokers[1].messages() == [2, 1]
    (ended,) = bench.network.release([Link(0, 1)])
    bench.settle()
    assert bench.brokers[1].messages() == [2, 1, 1]
    assert len(ended.held) == 1


def test_chosen_messages_are_dropped_and_counted(bench: Bench) -> None:
    bench.network.filter([Link(0, 1), Link(1, 0)], is_odd, keeps=False)
    bench.send(0, 1, 1, 2, 3)
    bench.send(1, 0, 5)
    ended = bench.network.release([Link(0, 1), Link(1, 0)])
    bench.settle()
    assert bench.brokers[1].messages() == [2]
    assert bench.brokers[0].messages() == []
    assert sum(gone.dropped for gone in ended) == 3


def test_the_release_of_some_links_of_a_hold_delivers_what_these_hold(bench: Bench) -> None:
    bench.network.filter([Link(0, 1), Link(1, 0)], is_odd, keeps=True)
    bench.send(0, 1, 1)
    bench.send(1, 0, 3)
    (ended,) = bench.network.release([Link(0, 1)])
    bench.settle()
    assert (bench.brokers[1].messages(), bench.brokers[0].messages()) == ([1], [])
    (later,) = bench.network.release([Link(0, 1), Link(1, 0)])
    bench.settle()
    assert (bench.brokers[1].messages(), bench.brokers[0].messages()) == ([1], [3])
    assert (len(ended.held), len(later.held)) == (1, 1)


def test_a_second_hold_on_a_link_loses_nothing_of_the_first(bench: Bench) -> None:
    bench.network.filter([Link(0, 1)], is_odd, keeps=True)
    bench.send(0, 1, 1, 3)
    bench.network.filter([Link(0, 1)], lambda *sent: not is_odd(*sent), keeps=True)
    bench.send(0, 1, 2, 5)
    ended = bench.network.release([Link(0, 1)])
    bench.settle()
    assert bench.brokers[1].messages() == [1, 3, 2, 5]
    assert sum(len(gone.held) for gone in ended) == 4


def test_of_two_holds_on_a_link_each_ends_by_its_name(bench: Bench) -> None:
    bench.network.filter([Link(0, 1)], is_odd, "odd", keeps=True)
    bench.network.filter([Link(0, 1)], lambda *_: True, "any", keeps=True)
    bench.send(0, 1, 1, 2)
    bench.network.release([Link(0, 1)], "any")
    bench.send(0, 1, 3, 4)
    bench.settle()
    assert bench.brokers[1].messages() == [2, 4]
    bench.network.release([Link(0, 1)], "odd")
    bench.settle()
    assert bench.brokers[1].messages() == [2, 4, 1, 3]


def test_a_filter_of_all_clients_holds_for_each_of_them_and_for_new_processes(bench: Bench) -> None:
    bench.network.filter([Link(CLIENTS, 0)], is_odd, keeps=False)
    bench.network.died(0)
    bench.network.started(0, bench.brokers[0])
    bench.connect()
    bench.connect()
    bench.send(CLIENT, 0, 1, 2)
    bench.settle()
    assert bench.brokers[0].messages() == [2]


def test_what_a_filter_held_is_lost_if_the_link_is_cut_when_it_is_released(bench: Bench) -> None:
    bench.network.filter([Link(0, 1)], is_odd, keeps=True)
    bench.send(0, 1, 1)
    bench.network.cut([Link(0, 1)])
    bench.network.release([Link(0, 1)])
    bench.network.heal([Link(0, 1)])
    bench.settle()
    assert bench.brokers[1].messages() == []
