"""A running cluster survives kills, cuts, bad requests and restarts."""

import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest
from batch_maker import records
from confluent_kafka import Consumer, KafkaException
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from process_cluster import CONTROLLER, LIMIT_S, Cluster, wait_for

from harness.broker.server.codec import APIS
from harness.broker.server.codec.wire import request_frame
from harness.broker.server.handlers.coordinators import partition_of
from harness.ground.observations import Truncated

pytestmark = pytest.mark.system
METADATA_REQUEST = b"\0\x03\0\x01\0\0\0\x07\0\x04test\0\0\0\0"


@pytest.fixture(autouse=True)
def _whole(cluster):
    """Every node runs and no link is cut, whatever an earlier test left."""
    for node in (CONTROLLER, *cluster.brokers):
        if node not in cluster.processes:
            cluster.start_node(node)
        cluster.heal_all(node)
    wait_for(lambda: cluster.live_brokers() == set(cluster.brokers), "all brokers live")


@pytest.fixture
def topic(cluster, request):
    """A topic of one partition on all three brokers, in sync, named after the test."""
    name = request.node.name.replace("[", "-").replace("]", "")[:80]
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    admin.create_topics([NewTopic(name=name, num_partitions=1, replication_factor=3)])
    admin.close()
    cluster.wait_for_topic(name, 1)
    return name


def producer(cluster, **config):
    return KafkaProducer(
        **{
            "bootstrap_servers": cluster.bootstrap,
            "acks": "all",
            "enable_idempotence": True,
            "request_timeout_ms": 2_000,
            "delivery_timeout_ms": 60_000,
            "metadata_max_age_ms": 1_000,
            **config,
        }
    )


def everything(cluster, topic):
    """All values of the topic's only partition."""
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest", request_timeout_ms=5_000
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]
    read = []
    wait_for(lambda: _read_more(consumer, read) >= end, f"{topic} is read to {end}")
    consumer.close()
    return read


def _read_more(consumer, read):
    """The number of records that were read. A poll may end in the refusal of a dead broker; the next goes on."""
    with suppress(KafkaError):
        for records in consumer.poll(200).values():
            read += [record.value for record in records]
    return len(read)


def leader(cluster, topic):
    return cluster.partition(f"{topic}-0")["leader"]


def isr(cluster, topic):
    return set(cluster.partition(f"{topic}-0").get("isr", ()))


def test_the_controller_moves_a_leader_on_demand_and_says_why_not(cluster, topic):
    old = leader(cluster, topic)
    new = next(node for node in cluster.brokers if node != old)
    assert cluster.control(CONTROLLER, op="move", partition=f"{topic}-0", leader=new)["ok"]
    assert leader(cluster, topic) == new
    client = producer(cluster)
    assert client.send(topic, b"after the move").get(LIMIT_S).offset == 0
    client.close()
    wait_for(lambda: isr(cluster, topic) == set(cluster.brokers), "everybody follows the new leader")
    for node, partition, why in [
        (CONTROLLER, "nothing-0", "partition nothing-0 does not exist"),
        (CONTROLLER, topic + "-x", "topic-number"),
        (new, f"{topic}-0", "ask the controller"),
    ]:
        answer = cluster.control(node, op="move", partition=partition, leader=old)
        assert (answer["ok"], why in answer["error"]) == (False, True)
    answer = cluster.control(CONTROLLER, op="move", partition=f"{topic}-0", leader=9)
    assert "not a live member of the ISR" in answer["error"]


def test_a_refused_write_without_acknowledgement_breaks_the_connection(cluster, topic):
    """With acks=0 there is no other way to let a client know that it writes to somebody who does not lead."""
    leads = leader(cluster, topic)
    data = [{"name": topic, "partition_data": [{"index": 0, "records": records()}]}]
    write = {"transactional_id": None, "acks": 0, "timeout_ms": 100, "topic_data": data}
    for node in cluster.brokers:
        with connect(cluster, node) as client:
            client.sendall(request_frame(APIS[0].request, write, 3, 1, "c"))
            if node == leads:
                client.sendall(framed(METADATA_REQUEST))
                assert client.recv(4096)[4:8] == b"\0\0\0"
            else:
                assert is_closed(client)
    wait_for(lambda: "a write with acks=0 was refused: NOT_LEADER" in cluster.log((leads + 1) % 3), "it is logged")
    assert everything(cluster, topic) == [b"value"]


def test_the_leaders_death_loses_nothing_that_was_acknowledged(cluster, topic):
    client = producer(cluster)
    sent = []
    for number in range(300):
        sent.append(client.send(topic, b"%d" % number, partition=0))
        if number == 100:
            sent[50].get(LIMIT_S)
            killed = leader(cluster, topic)
            cluster.kill(killed)
        time.sleep(0.002)
    acknowledged = [b"%d" % number for number, future in enumerate(sent) if future.get(LIMIT_S) is not None]
    client.close()
    assert leader(cluster, topic) != killed
    wait_for(lambda: isr(cluster, topic) == set(cluster.brokers) - {killed}, "the other two are in sync")
    assert everything(cluster, topic) == acknowledged
    assert len(acknowledged) == 300
    cluster.start_node(killed)
    wait_for(lambda: killed in isr(cluster, topic), "the killed broker is back in the ISR")
    logs = [cluster.status(node)["logs"][f"{topic}-0"]["end_offset"] for node in cluster.brokers]
    assert logs == [300] * 3


def test_a_killed_follower_recovers_its_log_and_a_torn_tail_is_fetched_again(cluster, topic):
    client = producer(cluster)
    for number in range(50):
        client.send(topic, b"%d" % number, partition=0).get(LIMIT_S)
    follower = next(node for node in cluster.brokers if node != leader(cluster, topic))
    cluster.kill(follower)
    [segment] = cluster.node_directory(follower).glob(f"data/{topic}-0@*/*.log")
    segment.write_bytes(segment.read_bytes()[:-7])
    cluster.start_node(follower)
    client.send(topic, b"after", partition=0).get(LIMIT_S)
    client.close()
    wait_for(lambda: follower in isr(cluster, topic), "the follower is back")
    wait_for(lambda: cluster.status(follower)["logs"][f"{topic}-0"]["end_offset"] == 51, "its log is whole")
    assert "was cut at offset 49" in cluster.log(follower)
    others = [next(cluster.node_directory(n).glob(f"data/{topic}-0@*/*.log")).read_bytes() for n in cluster.brokers]
    assert others[0] == others[1] == others[2]


def test_a_leader_cut_from_everybody_but_its_client_acknowledges_nothing_with_acks_all(cluster, topic):
    old = leader(cluster, topic)
    others = [n for n in (*cluster.brokers, CONTROLLER) if n != old]
    links = [(old, n) for n in others] + [(n, old) for n in others]
    cluster.cut(links)
    zombie = producer(cluster, bootstrap_servers=f"127.0.0.1:{cluster.ports[old]}", enable_idempotence=False, retries=0)
    unheard = zombie.send(topic, b"to the zombie", partition=0)
    wait_for(lambda: leader(cluster, topic) not in (old, -1), "another leads")
    client = producer(cluster)
    client.send(topic, b"to the new leader", partition=0).get(LIMIT_S)
    held = cluster.heal(links)
    assert any(count["bytes"] for counts in held.values() for count in counts.values())
    wait_for(lambda: old in isr(cluster, topic), "the old leader follows")
    with pytest.raises(KafkaError):
        unheard.get(LIMIT_S)
    assert everything(cluster, topic) == [b"to the new leader"]
    seen = [observation for observation in cluster.trace(old) if observation.partition == f"{topic}-0"]
    assert [observation.fact.to_offset for observation in seen if isinstance(observation.fact, Truncated)] == [0]
    zombie.close()
    client.close()


def test_a_follower_that_cannot_hear_the_leader_leaves_the_isr_and_returns_after_healing(cluster, topic):
    lead = leader(cluster, topic)
    follower = next(node for node in cluster.brokers if node != lead)
    client = producer(cluster)
    client.send(topic, b"one", partition=0).get(LIMIT_S)
    cluster.cut([(lead, follower)])
    client.send(topic, b"two", partition=0).get(LIMIT_S)
    assert follower not in isr(cluster, topic)
    wait_for(lambda: follower in cluster.live_brokers(), "the follower is live")
    assert cluster.status(follower)["logs"][f"{topic}-0"]["end_offset"] <= 1
    held = cluster.heal([(lead, follower)])
    assert held[str(lead)][f"{lead}>{follower}"]["frames"] > 0
    wait_for(lambda: follower in isr(cluster, topic), "the follower is back")
    client.close()


def test_a_cut_client_is_not_heard_and_others_are(cluster, topic):
    lead = leader(cluster, topic)
    muted = producer(cluster, client_id="ackproof-client-7", retries=0, enable_idempotence=False)
    muted.send(topic, b"before", partition=0).get(LIMIT_S)
    cluster.cut([(1008, node) for node in cluster.brokers])
    lost = muted.send(topic, b"while cut", partition=0)
    heard = producer(cluster, client_id="ackproof-client-8")
    heard.send(topic, b"other", partition=0).get(LIMIT_S)
    assert not lost.is_done
    wait_for(lambda: cluster.control(lead, op="status")["links"][f"1008>{lead}"]["bytes"] > 0, "bytes wait")
    cluster.heal([(1008, node) for node in cluster.brokers])
    wait_for(lambda: b"while cut" in everything(cluster, topic), "what was held arrived")
    muted.close()
    heard.close()


def test_a_paused_leader_is_replaced_and_follows_when_it_wakes(cluster, topic):
    client = producer(cluster)
    client.send(topic, b"one", partition=0).get(LIMIT_S)
    paused = leader(cluster, topic)
    cluster.processes[paused].send_signal(signal.SIGSTOP)
    try:
        wait_for(lambda: leader(cluster, topic) not in (paused, -1), "another leads")
        client.send(topic, b"two", partition=0).get(LIMIT_S)
    finally:
        cluster.processes[paused].send_signal(signal.SIGCONT)
    wait_for(lambda: paused in isr(cluster, topic), "the paused one follows")
    assert everything(cluster, topic) == [b"one", b"two"]
    client.close()


def test_the_controllers_death_stops_no_write_and_its_image_survives(cluster, topic):
    before = cluster.status(CONTROLLER)["image"]
    cluster.kill(CONTROLLER)
    client = producer(cluster)
    client.send(topic, b"without controller", partition=0).get(LIMIT_S)
    client.close()
    cluster.start_node(CONTROLLER)
    wait_for(lambda: cluster.live_brokers() == set(cluster.brokers), "every broker is live again")
    after = cluster.status(CONTROLLER)["image"]
    assert after["version"] >= before["version"]
    assert set(after["partitions"]) == set(before["partitions"])


def test_a_clean_stop_hands_leadership_over_and_needs_no_recovery(cluster, topic):
    client = producer(cluster)
    client.send(topic, b"one", partition=0).get(LIMIT_S)
    stopped = leader(cluster, topic)
    assert cluster.stop(stopped) == 0
    assert leader(cluster, topic) not in (stopped, -1)
    assert list(cluster.node_directory(stopped).glob(f"data/{topic}-0@*/clean-shutdown"))
    client.send(topic, b"two", partition=0).get(LIMIT_S)
    client.close()
    cluster.start_node(stopped)
    wait_for(lambda: stopped in isr(cluster, topic), "it is back")


def test_a_topic_made_again_while_a_broker_was_down_has_none_of_the_old_records(cluster, topic):
    client = producer(cluster)
    client.send(topic, b"old", partition=0).get(LIMIT_S)
    client.close()
    cluster.kill(2)
    wait_for(lambda: 2 not in cluster.live_brokers(), "2 is fenced")
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.rsplit(",", 1)[0])
    admin.delete_topics([topic])
    wait_for(lambda: not cluster.partition(f"{topic}-0"), "the topic is gone")
    cluster.start_node(2)
    wait_for(lambda: 2 in cluster.live_brokers(), "2 is back")
    admin.create_topics([NewTopic(name=topic, num_partitions=1, replication_factor=3)])
    admin.close()
    cluster.wait_for_topic(topic, 1)
    again = producer(cluster)
    assert again.send(topic, b"new", partition=0).get(LIMIT_S).offset == 0
    again.close()
    assert everything(cluster, topic) == [b"new"]


def test_committed_offsets_survive_the_death_of_their_coordinator(cluster, topic):
    client = producer(cluster)
    for value in (b"one", b"two", b"three"):
        client.send(topic, value, partition=0).get(LIMIT_S)
    group = {"bootstrap_servers": cluster.bootstrap, "group_id": topic, "auto_offset_reset": "earliest"}
    consumer = KafkaConsumer(topic, consumer_timeout_ms=LIMIT_S * 1000, max_poll_records=2, **group)
    assert [next(consumer).value, next(consumer).value] == [b"one", b"two"]
    consumer.commit()
    consumer.close()
    coordinator = cluster.partition(str(partition_of(topic)))["leader"]
    cluster.kill(coordinator)
    again, read = KafkaConsumer(topic, **group), []
    wait_for(lambda: _read_more(again, read), "the group's next member reads on")
    assert read == [b"three"]
    again.close()
    client.close()


def test_members_go_on_without_a_rebalance_when_their_coordinator_dies(cluster, topic):
    client, rebalances, read = producer(cluster), [], []
    group = {"bootstrap.servers": cluster.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(group | {"session.timeout.ms": 30_000, "enable.auto.commit": False})
    note = {f"on_{what}": lambda *_, what=what: rebalances.append(what) for what in ("assign", "revoke", "lost")}
    consumer.subscribe([topic], **note)

    def reads(value):
        client.send(topic, value, partition=0).get(LIMIT_S)
        wait_for(lambda: _poll_more(consumer, read) == value, f"{value} is read")

    reads(b"one")
    cluster.kill(cluster.partition(str(partition_of(topic)))["leader"])
    reads(b"two")
    wait_for(lambda: _commits(consumer), "a commit in the same generation")
    assert (read, rebalances) == ([b"one", b"two"], ["assign"])
    consumer.close()
    client.close()


def _poll_more(consumer, read):
    message = consumer.poll(0.1)
    read += [] if message is None or message.error() else [message.value()]
    return read[-1] if read else None


def _commits(consumer):
    try:
        return consumer.commit(asynchronous=False)
    except KafkaException:
        return None


def test_a_broker_whose_disk_refuses_a_write_stops_and_the_others_go_on(cluster, topic):
    client = producer(cluster)
    client.send(topic, b"small", partition=0).get(LIMIT_S)
    broken = leader(cluster, topic)
    process = psutil.Process(cluster.processes[broken].pid)
    largest = max(path.stat().st_size for path in cluster.node_directory(broken).rglob("*") if path.is_file())
    process.rlimit(psutil.RLIMIT_FSIZE, (largest + 50_000, largest + 50_000))
    client.send(topic, b"large" * 50_000, partition=0).get(LIMIT_S)
    client.close()
    assert cluster.processes.pop(broken).wait(LIMIT_S) == 70
    assert "the node stops" in cluster.log(broken)
    assert everything(cluster, topic) == [b"small", b"large" * 50_000]


# --- bad requests ----------------------------------------------------------------------------------------------------


def connect(cluster, node=0):
    return socket.create_connection(("127.0.0.1", cluster.ports[node]), timeout=LIMIT_S)


def is_closed(client):
    """True if the broker closes the connection without an answer."""
    client.settimeout(LIMIT_S)
    try:
        return client.recv(100) == b""
    except ConnectionResetError:
        return True


def framed(body):
    return len(body).to_bytes(4, "big") + body


BAD = {
    "oversized length": b"\x7f\xff\xff\xff" + b"x" * 100,
    "negative length": b"\xff\xff\xff\xfe" + b"x" * 100,
    "unknown API": framed(b"\x7f\xff\0\0\0\0\0\x01\xff\xff"),
    "unknown version": framed(b"\0\x03\0\x63\0\0\0\x01\xff\xff"),
    "header cut short": framed(b"\0\x03\0"),
    "body cut short": framed(METADATA_REQUEST[:-2]),
    "text": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "impossible name": framed(b"\0\x13\0\x02\0\0\0\x01\0\x01c" + b"\0\0\0\x01\xff\xff" + b"\0" * 20),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("node", [0, CONTROLLER])
def test_a_bad_request_closes_its_connection_and_hurts_nobody_else(cluster, kind, node):
    with connect(cluster) as good, connect(cluster, node) as bad:
        bad.sendall(BAD[kind])
        assert is_closed(bad)
        good.sendall(framed(METADATA_REQUEST))
        assert good.recv(4096)[4:8] == b"\0\0\0\x07"
    wait_for(lambda: "bad request" in cluster.log(node), "the reason is logged")
    assert cluster.processes[node].poll() is None


def test_a_request_cut_short_by_closing_is_forgotten(cluster):
    for _ in range(20):
        with connect(cluster) as bad:
            bad.sendall(framed(METADATA_REQUEST)[:-3])
    with connect(cluster) as good:
        good.sendall(framed(METADATA_REQUEST))
        assert good.recv(4096)


def test_garbage_of_every_api_kills_no_node(cluster):
    chance = random.Random(11)
    for _ in range(150):
        key = chance.choice([0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18, 19, 20, 22, 23, 32])
        body = bytes(chance.choice((0, 0, 1, 2, chance.randrange(256))) for _ in range(chance.randrange(80)))
        with connect(cluster) as bad:
            bad.sendall(framed(bytes((0, key, 0, chance.randrange(13))) + b"\0\0\0\1\0\1c" + body))
            bad.settimeout(0.02)
            try:
                bad.recv(100)
            except OSError:
                continue
    assert all(process.poll() is None for process in cluster.processes.values())
    with connect(cluster) as good:
        good.sendall(framed(METADATA_REQUEST))
        assert good.recv(4096)[4:8] == b"\0\0\0\x07"


def test_responses_keep_the_order_of_their_requests_while_a_fetch_is_parked(cluster, topic):
    name = topic.encode()
    fetch = b"\0\x01\0\x04\0\0\0\x01\0\x04test" + b"\xff\xff\xff\xff" + (400).to_bytes(4, "big") + b"\0\0\0\x01"
    fetch += b"\0\x10\0\0\0" + b"\0\0\0\x01" + len(name).to_bytes(2, "big") + name
    fetch += b"\0\0\0\x01" + b"\0\0\0\0" + b"\0" * 8 + b"\0\x10\0\0"
    with connect(cluster, leader(cluster, topic)) as client:
        begin = time.monotonic()
        client.sendall(framed(fetch) + framed(METADATA_REQUEST))
        answers = client.makefile("rb")
        correlations = []
        for _ in range(2):
            size = int.from_bytes(answers.read(4), "big")
            correlations.append(int.from_bytes(answers.read(size)[:4], "big"))
    assert correlations == [1, 7]
    assert time.monotonic() - begin >= 0.39


# --- nodes by themselves ---------------------------------------------------------------------------------------------


def test_a_clean_stop_leaves_the_broker_epoch_to_the_next_start_and_a_kill_does_not(cluster):
    mark = cluster.node_directory(1) / "data" / "clean-shutdown"
    broker_epoch = cluster.status(1)["broker_epoch"]
    assert not mark.exists()
    assert cluster.stop(1) == 0
    assert int(mark.read_text()) == broker_epoch
    cluster.start_node(1)
    wait_for(lambda: cluster.control_if_up(1).get("broker_epoch", -1) > broker_epoch, "it is registered again")
    assert not mark.exists()
    cluster.kill(1)
    assert not mark.exists()


def test_a_taken_port_ends_a_node_with_98_and_one_line(tmp_path):
    made = Cluster(tmp_path, brokers=0)
    with socket.create_server(("127.0.0.1", made.ports[CONTROLLER])):
        made.start_node(CONTROLLER)
        assert made.processes.pop(CONTROLLER).wait(LIMIT_S) == 98
    [line] = made.log(CONTROLLER).splitlines()
    assert "is in use" in line


@pytest.mark.parametrize(("content", "words"), [("{", "not a node's"), ('{"rol": 1}', "rol"), (None, "cannot be read")])
def test_an_unusable_configuration_ends_a_node_with_64_and_one_line(tmp_path, content, words):
    path = tmp_path / "config.json"
    if content is not None:
        path.write_text(content)
    command = [sys.executable, "-m", "harness.broker.server", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 64
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_node_stops_by_itself_when_its_lifetime_is_over(tmp_path):
    made = Cluster(tmp_path, brokers=0, max_lifetime_s=0.3)
    made.start_node(CONTROLLER)
    try:
        assert made.processes[CONTROLLER].wait(LIMIT_S) == 0
    finally:
        made.close()


def test_the_control_socket_refuses_nonsense_in_words(cluster):
    assert cluster.control(0, op="dance")["ok"] is False
    assert "not a command" in cluster.control(0, op="cut", links="all")["error"]
    assert cluster.control(0, op="status")["ok"] is True
