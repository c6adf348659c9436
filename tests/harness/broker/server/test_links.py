import pytest
from wires import Wire, frame

from harness.broker.server import links as links_module
from harness.broker.server.links import ANONYMOUS, BadFrameError, FramedConnection, NodeLinks


class End:
    """A connection of ``links`` with its wire and what it received."""

    def __init__(self, links, peer=None):
        self.received = []
        self.wire = Wire()
        self.connection = FramedConnection(
            links, self._receive, peer=peer, identify=None if peer is not None else lambda f: int(bytes(f)[:4])
        )
        self.connection.connection_made(self.wire)

    def _receive(self, connection, body):
        self.received.append(bytes(body))
        if body == b"bad":
            raise BadFrameError("bad")
        if body == b"busy":
            connection.set_busy(True)

    def get(self, *bodies):
        self.connection.data_received(b"".join(frame(body) for body in bodies))


@pytest.fixture
def links():
    return NodeLinks(0)


def test_frames_are_delivered_in_order_however_the_bytes_arrive(links):
    stream = frame(b"one") + frame(b"") + frame(b"three" * 1000)
    for piece in (1, 3, 7, 100, 10_000):
        end = End(links, peer=1)
        for offset in range(0, len(stream), piece):
            end.connection.data_received(stream[offset : offset + piece])
        assert end.received == [b"one", b"", b"three" * 1000]


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x06\x40\x00\x01"])
def test_a_negative_or_oversized_length_closes_only_that_connection(links, length):
    bad, good = End(links, peer=1), End(links, peer=2)
    bad.connection.data_received(length + b"x")
    good.get(b"fine")
    assert bad.wire.closed
    assert (good.received, good.wire.closed) == ([b"fine"], False)


def test_nothing_after_a_bad_frame_is_delivered(links):
    end = End(links, peer=1)
    end.get(b"good", b"bad", b"more")
    assert end.wire.closed
    assert end.received == [b"good", b"bad"]


def test_a_cut_link_is_not_read_and_what_waited_comes_after_healing(links):
    end = End(links, peer=1)
    links.cut([(1, 0)])
    assert not end.wire.reading
    end.get(b"a", b"b")
    end.connection.send(b"out")
    assert (end.received, end.wire.sent) == ([], b"out")
    assert links.held()["1>0"].bytes == 10
    assert links.heal([(1, 0)])["1>0"].bytes == 10
    assert end.received == [b"a", b"b"]
    assert end.wire.reading
    assert links.held() == {}


def test_the_other_direction_of_a_cut_holds_what_is_sent_and_keeps_its_order(links):
    end = End(links, peer=1)
    links.cut([(0, 1)])
    for body in (b"1", b"2", b"3"):
        end.connection.send(frame(body))
    end.get(b"still heard")
    assert (end.wire.sent, end.received) == (b"", [b"still heard"])
    held = links.heal([(0, 1)])["0>1"]
    assert (held.frames, held.bytes) == (3, 15)
    assert end.wire.sent == frame(b"1") + frame(b"2") + frame(b"3")
    end.connection.send(b"x")
    assert end.wire.sent.endswith(b"x")


def test_a_cut_that_holds_too_much_drops_the_connection(links, monkeypatch):
    monkeypatch.setattr(links_module, "HELD_BYTES", 100)
    end = End(links, peer=1)
    links.cut([(0, 1)])
    for _ in range(11):
        end.connection.send(b"0123456789")
    assert end.wire.closed


def test_a_cut_peers_new_connection_is_accepted_and_its_first_frame_waits(links):
    links.cut([(1001, 0)])
    end = End(links)
    end.get(b"1001 hello", b"again")
    assert end.connection.peer == 1001
    assert (end.received, end.wire.closed) == ([], False)
    links.heal([(1001, 0)])
    assert end.received == [b"1001 hello", b"again"]


def test_a_cut_of_all_clients_covers_known_and_unknown_ones_but_no_broker(links):
    client, stranger, broker = End(links, 1001), End(links, links.next_anonymous()), End(links, 2)
    links.cut([(1000, 0), (0, 1000)])
    for end in (client, stranger, broker):
        end.get(b"in")
        end.connection.send(b"out")
    assert [end.received for end in (client, stranger, broker)] == [[], [], [b"in"]]
    assert [end.wire.sent for end in (client, stranger, broker)] == [b"", b"", b"out"]
    assert stranger.connection.peer > ANONYMOUS
    links.heal([(1000, 0), (0, 1000)])
    assert [end.wire.sent for end in (client, stranger)] == [b"out", b"out"]


def test_one_clients_cut_leaves_other_clients_alone_and_outlives_the_healing_of_all(links):
    first, other = End(links, 1001), End(links, 1002)
    links.cut([(0, 1001), (0, 1000)])
    links.heal([(0, 1000)])
    for end in (first, other):
        end.connection.send(b"out")
    assert (first.wire.sent, other.wire.sent) == (b"", b"out")


def test_links_of_other_nodes_are_none_of_this_nodes_business(links):
    end = End(links, peer=1)
    links.cut([(1, 2), (2, 1)])
    end.get(b"in")
    assert end.received == [b"in"]
    assert links.held() == {}


def test_cutting_and_healing_twice_is_the_same_as_once(links):
    end = End(links, peer=1)
    links.cut([(0, 1)])
    end.connection.send(b"x")
    links.cut([(0, 1)])
    assert links.held()["0>1"].frames == 1
    links.heal([(0, 1)])
    assert links.heal([(0, 1)]) == {}
    assert end.wire.sent == b"x"


def test_a_busy_owner_stops_the_reading_and_gets_the_rest_later(links):
    end = End(links, peer=1)
    end.get(b"one", b"busy", b"later")
    assert (end.received, end.wire.reading) == ([b"one", b"busy"], False)
    end.connection.set_busy(False)
    assert (end.received, end.wire.reading) == ([b"one", b"busy", b"later"], True)


def test_a_peer_that_does_not_read_is_not_read_either(links):
    end = End(links, peer=1)
    end.connection.pause_writing()
    end.get(b"request")
    assert (end.received, end.wire.reading) == ([], False)
    end.connection.resume_writing()
    assert end.received == [b"request"]


@pytest.mark.parametrize("direction", ["in", "out", "held"])
def test_all_connections_together_keep_only_so_many_bytes(links, monkeypatch, direction):
    monkeypatch.setattr(links_module, "KEPT_BYTES", 1_000)
    monkeypatch.setattr(links_module, "LITTLE_BYTES", 100)
    first, second, idle = End(links, peer=1), End(links, peer=2), End(links, peer=3)
    for end in (first, second):
        assert not end.wire.closed
        keep(end, links, direction, 600)
    assert [end.wire.closed for end in (first, second, idle)] == [False, True, False]
    first.connection.connection_lost(None)
    assert not first.connection.kept_bytes()


def keep(end, links, direction, size):
    if direction == "in":
        end.connection.data_received(b"\0\0\xff\xff" + b"x" * (size - 4))
    elif direction == "out":
        end.wire.unsent = size
        end.connection.send(b"answer")
    else:
        links.cut([(0, end.connection.peer)])
        end.connection.send(b"x" * size)


def test_there_are_only_so_many_connections(links, monkeypatch):
    monkeypatch.setattr(links_module, "CONNECTIONS", 2)
    ends = [End(links, peer=1) for _ in range(3)]
    assert [end.wire.closed for end in ends] == [False, False, True]
    ends[0].connection.connection_lost(None)
    assert not End(links, peer=1).wire.closed
