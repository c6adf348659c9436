"""The small parts of a node: control socket, timers, sessions, trace, configuration, controller wire, groups."""

import asyncio
import json
from itertools import count

import pytest
from wires import Wire, frame

from harness.broker.core import messages as core
from harness.broker.core.effects import Arm, Deliver, Observed, Timer
from harness.broker.core.types import (
    BrokerState,
    ErrorCode,
    Image,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)
from harness.broker.server import sessions as sessions_module
from harness.broker.server.codec.controller_frames import Hello, decode, encode
from harness.broker.server.codec.wire import request_frame
from harness.broker.server.config import ConfigError, read_config
from harness.broker.server.control_socket import ControlSocket
from harness.broker.server.handlers.coordinators import partition_of
from harness.broker.server.links import BadFrameError, NodeLinks
from harness.broker.server.runtime import NodeFailure, Runtime, Timers, now_us
from harness.broker.server.sessions import FETCH_BYTES, PROMISED_BYTES, UNDER_WAY, RequestSession, peer_of
from harness.broker.server.trace import TraceFile
from harness.ground.observations import Acknowledged, BecameLeader, HighWatermarkMoved, RecordsAppended

T0 = TopicPartition("t", 0)


# --- control ---------------------------------------------------------------------------------------------------------


class Inside:
    """The node that a control socket steers."""

    def status(self):
        return {"image": 1}

    def move_leader(self, partition, leader):
        return "" if (partition, leader) == ("t-0", 2) else "no such luck"


def test_the_control_socket_passes_moves_on(tmp_path):
    control = ControlSocket(tmp_path / "s", 100, NodeLinks(100), Inside(), pytest.fail)
    assert control.answer(b'{"op":"move","partition":"t-0","leader":2}')["ok"]
    assert control.answer(b'{"op":"move","partition":"t-0","leader":1}') == {"ok": False, "error": "no such luck"}


def test_the_control_socket_cuts_heals_and_stops(tmp_path):
    stopped = []
    links = NodeLinks(0)
    control = ControlSocket(tmp_path / "s", 0, links, Inside(), lambda: stopped.append(True))
    assert control.answer(b'{"op":"cut","links":[[0,1],[1,0]]}')["ok"]
    assert links.outbound_cut(1) is not None
    answer = control.answer(b'{"op":"status"}')
    assert (answer["node"], answer["image"], set(answer["links"])) == (0, 1, {"0>1", "1>0"})
    assert set(control.answer(b'{"op":"heal","links":[[0,1]]}')["links"]) == {"0>1"}
    assert links.outbound_cut(1) is None
    assert links.inbound_cut(1) is not None
    assert control.answer(b'{"op":"stop"}')["ok"]
    assert stopped == [True]


@pytest.mark.parametrize("line", [b"", b"nonsense", b'{"op":"explode"}', b'{"op":"cut","links":[["a",1]]}', b'{"x":1}'])
def test_a_bad_control_line_is_answered_in_words(tmp_path, line):
    answer = ControlSocket(tmp_path / "s", 0, NodeLinks(0), Inside(), pytest.fail).answer(line)
    assert answer["ok"] is False
    assert "not a command" in answer["error"]


# --- runtime ---------------------------------------------------------------------------------------------------------


def test_reminders_come_in_the_order_of_their_times():
    fired = []

    async def run():
        timers = Timers(lambda timer: fired.append(timer.subject))
        base = now_us()
        for subject, at_us in enumerate((30_000, 10_000, 20_000, 10_000)):
            timers.arm(base + at_us, Timer("t", subject))
        await asyncio.sleep(0.06)
        timers.arm(now_us() + 1_000, Timer("t", "late"))
        timers.close()
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert fired == [1, 3, 2, 0]


class ScriptedCore:
    def __init__(self, effects):
        self.effects = effects

    def start(self, now):
        return self.effects

    def on_message(self, now, sender, message):
        raise KeyError("lost its head")

    def on_timer(self, now, timer):
        return [Deliver(9, timer.subject)]


def test_the_runtime_settles_before_it_sends_and_reports_a_failing_core(tmp_path):
    done = []

    async def run():
        trace = TraceFile(tmp_path / "trace", 3, 0)
        arm = Arm(now_us(), Timer("t", "reminded"))
        scripted = ScriptedCore([Deliver(1, "hello"), Observed(BecameLeader(partition="t-0", leader_epoch=2)), arm])
        runtime = Runtime(scripted, lambda to, what: done.append((to, what)), trace, lambda: done.append("settled"))
        runtime.start()
        await asyncio.sleep(0.02)
        with pytest.raises(NodeFailure, match="lost its head"):
            runtime.deliver(1, None)

    asyncio.run(run())
    assert done == ["settled", (1, "hello"), "settled", (9, "reminded")]
    [line] = map(json.loads, (tmp_path / "trace").read_text().splitlines())
    assert (line["node"], line["fact"]) == (3, {"what": "leader", "partition": "t-0", "leader_epoch": 2})


def test_the_trace_leaves_out_records_and_thins_the_high_watermark(tmp_path):
    trace = TraceFile(tmp_path / "trace", 0, 60_000)
    for number in range(100):
        trace.write(RecordsAppended(partition="t-0", base_offset=number, count=1, leader_epoch=0))
        trace.write(
            Acknowledged(partition="t-0", base_offset=number, next_offset=number + 1, acks=1, leader_epoch=0, isr=(0,))
        )
        trace.write(HighWatermarkMoved(partition="t-0", offset=number))
        trace.write(HighWatermarkMoved(partition="t-1", offset=number))
    trace.close()
    assert len((tmp_path / "trace").read_text().splitlines()) == 2


# --- sessions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client_id", "peer"),
    [("ackproof-broker-2", 2), ("ackproof-client-0", 1001), ("ackproof-client-41", 1042)],
)
def test_peers_are_known_by_their_client_id(client_id, peer):
    assert peer_of(client_id, NodeLinks(0)) == peer


@pytest.mark.parametrize(
    "client_id", [None, "", "rdkafka", "ackproof-client-", "ackproof-broker-x", "ackproof-broker-٣"]
)
def test_everybody_else_is_anonymous_and_another_one_each_time(client_id):
    links = NodeLinks(0)
    assert [peer_of(client_id, links), peer_of(client_id, links)] == [1_000_001, 1_000_002]


HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}


class Desk:
    """A session whose requests wait until they are answered by hand."""

    def __init__(self):
        self.waiting = []
        self.session = RequestSession(NodeLinks(0), self.waiting.append)
        self.wire = Wire()
        self.session.connection.connection_made(self.wire)
        self.numbers = count()

    def ask(self, times=1, key=12, version=3, **values):
        values = values or HEARTBEAT
        for _ in range(times):
            schema = sessions_module.codec.APIS[key].request
            self.session.connection.data_received(request_frame(schema, values, version, next(self.numbers), "c"))

    def answer(self, number):
        self.waiting[number].reply({"error_code": ErrorCode.NONE})

    def answered(self):
        """Correlations of the answers that went out, in order."""
        stream, correlations = self.wire.sent, []
        while stream:
            correlations.append(int.from_bytes(stream[4:8], "big"))
            stream = stream[4 + int.from_bytes(stream[:4], "big") :]
        return correlations


def test_answers_go_out_in_the_order_of_their_requests():
    desk = Desk()
    desk.ask(3)
    desk.answer(2)
    desk.answer(1)
    assert desk.answered() == []
    desk.answer(0)
    assert desk.answered() == [0, 1, 2]


def test_a_client_with_too_many_requests_under_way_is_not_read():
    desk = Desk()
    desk.ask(UNDER_WAY + 5)
    assert len(desk.waiting) == UNDER_WAY
    assert not desk.wire.reading
    desk.answer(0)
    assert len(desk.waiting) == UNDER_WAY + 1
    for number in range(1, UNDER_WAY + 1):
        desk.answer(number)
    assert desk.wire.reading
    assert len(desk.waiting) == UNDER_WAY + 5
    for number in range(UNDER_WAY + 1, UNDER_WAY + 5):
        desk.answer(number)
    assert desk.answered() == list(range(UNDER_WAY + 5))


def test_a_produce_without_acknowledgement_takes_no_place_in_the_order():
    desk = Desk()
    desk.ask(key=0, acks=0, timeout_ms=1, topic_data=[], transactional_id=None)
    desk.ask()
    desk.answer(1)
    assert desk.answered() == [1]


@pytest.mark.parametrize(("error", "closed"), [(ErrorCode.NOT_LEADER_OR_FOLLOWER, True), (ErrorCode.NONE, False)])
def test_a_refused_produce_without_acknowledgement_closes_the_connection(error, closed):
    desk = Desk()
    desk.ask(key=0, acks=0, timeout_ms=1, topic_data=[], transactional_id=None)
    parts = [{"index": 0, "error_code": ErrorCode.NONE}, {"index": 1, "error_code": error}]
    desk.waiting[0].reply({"responses": [{"name": "t", "partition_responses": parts}]})
    assert desk.wire.closed is closed
    assert desk.answered() == []


def test_a_client_with_too_many_bytes_of_fetches_under_way_is_not_read():
    desk = Desk()
    greedy = {"replica_id": -1, "max_wait_ms": 1, "min_bytes": 1, "max_bytes": 2**31 - 1, "topics": []}
    desk.ask(5, key=1, **greedy, version=4)
    assert len(desk.waiting) * FETCH_BYTES == PROMISED_BYTES
    assert not desk.wire.reading
    desk.waiting[0].reply({"responses": []})
    assert len(desk.waiting) * FETCH_BYTES == PROMISED_BYTES + FETCH_BYTES


def test_a_request_that_breaks_its_handler_closes_the_connection_only():
    def broken(*_):
        raise TypeError("no such luck")

    session = RequestSession(NodeLinks(0), broken)
    wire = Wire()
    session.connection.connection_made(wire)
    session.connection.data_received(request_frame(sessions_module.codec.APIS[12].request, HEARTBEAT, 3, 1, "c"))
    assert wire.closed


def test_a_failing_core_is_not_taken_for_a_bad_request():
    def failing(*_):
        raise NodeFailure("the disk is full")

    session = RequestSession(NodeLinks(0), failing)
    session.connection.connection_made(Wire())
    with pytest.raises(NodeFailure):
        session.connection.data_received(request_frame(sessions_module.codec.APIS[12].request, HEARTBEAT, 3, 1, "c"))


# --- configuration, controller wire, groups -------------------------------------------------------------------------


def test_a_configuration_is_read_or_says_what_to_correct(tmp_path):
    path = tmp_path / "c.json"
    good = {"role": "broker", "node": 1, "port": 1, "directory": "d", "control_socket": "s", "trace": "t"}
    path.write_text(json.dumps(good | {"broker": {"truncation": "kip-101"}}))
    assert read_config(path).broker.truncation == "kip-101"
    path.write_text(json.dumps(good | {"cuts": [[0, 1], [1, 0]]}))
    assert read_config(path).cuts == ((0, 1), (1, 0))
    path.write_text(json.dumps(good | {"control_socket": "s" * 108}))
    with pytest.raises(ConfigError, match="shorter path"):
        read_config(path)
    path.write_text(json.dumps(good | {"broker": {"truncation": "kip-1"}}))
    with pytest.raises(ConfigError, match="kip-1"):
        read_config(path)


STATE = PartitionState((0, 1), (0,), 0, 1, 2)
IMAGE = Image(3, {0: BrokerState(1, False, "h", 1)}, {"t": TopicState(TopicConfig(), (STATE,), 2)})


@pytest.mark.parametrize(
    "message",
    [
        Hello(2),
        core.RegisterBroker(1, 123456789012345678, "h", 5),
        core.HeartbeatResponse(ErrorCode.NONE, 4, False, False, IMAGE),
        core.MetadataUpdate(IMAGE),
        core.AlterPartition(1, 0, 1, T0, 2, 3, (core.IsrMember(0, 1), core.IsrMember(1, 5))),
        core.AlterPartitionResponse(1, T0, ErrorCode.NONE, STATE),
        core.CreateTopic(1, "t", 2, 3, TopicConfig(), ((0, 1), (1, 0))),
        core.TopicResponse(1, "t", ErrorCode.INVALID_PARTITIONS, "words"),
        core.AllocateProducerIdsResponse(ErrorCode.NONE, 1000, 1000),
    ],
)
def test_messages_of_the_controller_cross_the_wire_whole(message):
    sent = encode(message)
    assert decode(memoryview(sent)[4:]) == message


@pytest.mark.parametrize("body", [b"", b"\xc0", b"garbage", encode(Hello(1))[4:-1]])
def test_what_is_no_message_of_the_controller_is_refused(body):
    with pytest.raises(BadFrameError):
        decode(memoryview(body))


def test_frames_helper_agrees_with_the_wire():
    assert encode(Hello(1)) == frame(encode(Hello(1))[4:])


@pytest.mark.parametrize(("group", "number"), [("g", 103 % 4), ("ackproof-0", 1_056_643_390 % 4)])
def test_a_group_has_its_offsets_in_the_partition_that_faults_of_its_coordinator_strike(group, number):
    """It is that of Kafka, by the hash of Java's String; see the view of real clusters."""
    assert partition_of(group) == TopicPartition("__consumer_offsets", number)
