"""Reading log lines of Kafka before 3.3. They are of 0.10.1, 0.10.2, 0.11.0, 2.0.1, 2.2.2, 2.4.1 and 2.8.2."""

from pathlib import Path
from typing import Any

import pytest

from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    BrokerRegistered,
    Fact,
    HighWatermarkMoved,
    IsrChanged,
    LeaderElected,
    ReplicaRecovered,
    Truncated,
)
from harness.worlds.kafka.log_events import observations_in
from harness.worlds.kafka.log_patterns import (
    LogEvent,
    PartitionDescribed,
    ReplicasAssigned,
    RoleTaken,
    read_line,
    understand,
)
from harness.worlds.kafka.logged_metadata import BrokerLogs

TIME = "2026-11-21T15:28:53.714"
BROKER = f"{TIME} TRACE state.change.logger"
HEARD_BY_0_10 = (
    f"{BROKER} Broker 0 received LeaderAndIsr request PartitionState(controllerEpoch=1, leader=0, leaderEpoch=0, "
    "isr=[0, 2, 1], zkVersion=0, replicas=[0, 1, 2]) correlation id 3 from controller 0 epoch 1 for partition "
    "[a-b,0]"
)
HEARD_BY_0_11 = (
    f"{BROKER} Broker 0 received LeaderAndIsr request PartitionState(controllerEpoch=1, leader=2, leaderEpoch=0, "
    "isr=2,0,1, zkVersion=0, replicas=2,0,1) correlation id 3 from controller 0 epoch 1 for partition [a-b,0]"
)
HEARD_BY_2_0 = (
    f"{BROKER} [Broker id=0] Received LeaderAndIsr request PartitionState(controllerEpoch=1, leader=2, leaderEpoch=0, "
    "isr=2,0,1, zkVersion=0, replicas=2,0,1, isNew=true) correlation id 2 from controller 0 epoch 1 for partition a-b-0"
)
UPDATED_IN_2_0 = (
    f"{BROKER} [Broker id=0] Cached leader info PartitionState(controllerEpoch=1, leader=-1, leaderEpoch=1, isr=[2], "
    "zkVersion=4, replicas=[2, 0, 1], offlineReplicas=[]) for partition a-b-0 in response to UpdateMetadata request "
    "sent by controller 0 epoch 1 with correlation id 3"
)
HEARD_BY_2_4 = (
    f"{BROKER} [Broker id=0] Received LeaderAndIsr request LeaderAndIsrPartitionState(topicName='a-b', "
    "partitionIndex=0, controllerEpoch=1, leader=2, leaderEpoch=0, isr=[2, 0, 1], zkVersion=0, replicas=[2, 0, 1], "
    "addingReplicas=[], removingReplicas=[], isNew=true) correlation id 1 from controller 2 epoch 1"
)
IN_SYNC_IN_0_10 = (
    f"{TIME} TRACE kafka.cluster.Partition Partition [a-b,0] on broker 2: ISR updated to [ReplicaId: 2; Topic: a-b; "
    "Partition: 0; isLocal: true; lastCaughtUpTimeMs: 0; Highwatermark: 1756 [0 : 65757],ReplicaId: 0; Topic: a-b; "
    "Partition: 0; isLocal: false; lastCaughtUpTimeMs: 1795274287422] and zkVersion updated to [2]"
)
IN_SYNC_IN_2_2 = (
    f"{TIME} TRACE kafka.cluster.Partition [Partition a-b-0 broker=0] ISR updated to [Replica(replicaId=0, topic=a-b, "
    "partition=0, isLocal=true, lastCaughtUpTimeMs=0, highWatermark=(offset=4255 segment=[0:153216]), "
    "lastStableOffset=(offset=4255 segment=[0:153216])),Replica(replicaId=2, topic=a-b, partition=0, isLocal=false, "
    "lastCaughtUpTimeMs=1795277537081)] and zkVersion updated to [2]"
)
IN_SYNC_IN_2_4 = (
    f"{TIME} INFO kafka.cluster.Partition [Partition a-b-0 broker=0] ISR updated to [0,1,2] and zkVersion updated to "
    "[2]"
)
IN_SYNC_IN_2_8 = (
    f"{TIME} INFO kafka.cluster.Partition [Partition a-b-0 broker=1] ISR updated to 1,0,2 and version updated to [4]"
)
LEADS_IN_0_11 = (
    f"{TIME} INFO kafka.cluster.Partition Partition [a-b,0] on broker 0: a-b-0 starts at Leader Epoch 1 from offset "
    "616. Previous Leader Epoch was: 0"
)
LEADS_IN_2_4 = (
    f"{TIME} INFO kafka.cluster.Partition [Partition a-b-0 broker=0] a-b-0 starts at leader epoch 2 from offset 331 "
    "with high watermark 329. Previous leader epoch was 0."
)
LEADS_IN_2_8 = (
    f"{TIME} INFO state.change.logger [Broker id=1] Leader a-b-0 starts at leader epoch 1 from offset 892 with high "
    "watermark 891 ISR [1,0] addingReplicas [] removingReplicas []. Previous leader epoch was 0."
)
FOLLOWS_IN_2_8 = (
    f"{TIME} INFO state.change.logger [Broker id=0] Follower a-b-0 starts at leader epoch 3 from offset 5203 with "
    "high watermark 5046. Previous leader epoch was 2."
)
BECAME_IN_0_10 = (
    f"{BROKER} Broker 0 completed LeaderAndIsr request correlationId 1 from controller 1 epoch 2 for the "
    "become-{} transition for partition a-b-0"
)
BECAME_IN_2_8 = (
    f"{BROKER} [Broker id=0] Completed LeaderAndIsr request correlationId 1 from controller 0 epoch 1 for the "
    "become-follower transition for partition a-b-0 with leader 0"
)
LOADED_BY_0_10 = (
    f"{TIME} INFO kafka.log.Log Completed load of log a-b-0 with 1 log segments and log end offset 694 in 117 ms"
)
LOADED_BY_2_0 = (
    f"{TIME} INFO kafka.log.Log [Log partition=a-b-0, dir=/a,isr=2/2] Completed load of log with 1 segments, log "
    "start offset 0 and log end offset 562 in 242 ms"
)
LOADED_BY_2_8 = (
    f"{TIME} INFO kafka.log.LogManager Completed load of Log(dir=/a,isr=2/0/a-b-0, topic=a-b, partition=0, "
    "highWatermark=5, lastStableOffset=0, logStartOffset=0, logEndOffset=422) with 1 segments in 350ms (1/1 loaded in "
    "/a,isr=2/0)"
)
TRUNCATED_BY_0_10 = f"{TIME} INFO kafka.log.Log Truncating log a-b-0 to offset 468."
TRUNCATED_BY_2_4 = f"{TIME} INFO kafka.log.Log [Log partition=a-b-0, dir=/a,isr=2/1] Truncating to offset 453"
ASSIGNED = (
    f"{TIME} INFO kafka.controller.KafkaController [Controller 1]: Updated assigned replicas for partition [a-b,0] "
    "being reassigned to 2,0,1 "
)
STATE = PartitionDescribed("a-b-0", leader=2, leader_epoch=0, partition_epoch=0, isr=(2, 0, 1), replicas=(2, 0, 1))


def isr(*nodes: int, partition_epoch: int) -> IsrChanged:
    return IsrChanged(partition="a-b-0", isr=nodes, partition_epoch=partition_epoch)


def leads(leader_epoch: int, end_offset: int, **more: Any) -> BecameLeader:
    return BecameLeader(partition="a-b-0", leader_epoch=leader_epoch, end_offset=end_offset, **more)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (HEARD_BY_0_10, STATE._replace(leader=0, isr=(0, 2, 1), replicas=(0, 1, 2))),
        (HEARD_BY_0_11, STATE),
        (HEARD_BY_2_0, STATE),
        (HEARD_BY_2_4, STATE),
        (UPDATED_IN_2_0, STATE._replace(leader=-1, leader_epoch=1, partition_epoch=4, isr=(2,))),
        (IN_SYNC_IN_0_10, isr(2, 0, partition_epoch=2)),
        (IN_SYNC_IN_2_2, isr(0, 2, partition_epoch=2)),
        (IN_SYNC_IN_2_4, isr(0, 1, 2, partition_epoch=2)),
        (IN_SYNC_IN_2_8, isr(1, 0, 2, partition_epoch=4)),
        (LEADS_IN_0_11, leads(1, 616)),
        (LEADS_IN_2_4, leads(2, 331)),
        (LEADS_IN_2_8, leads(1, 892, isr=(1, 0), high_watermark=891)),
        (FOLLOWS_IN_2_8, BecameFollower(partition="a-b-0", leader_epoch=3, end_offset=5203)),
        (BECAME_IN_0_10.format("leader"), RoleTaken("a-b-0", role="leader")),
        (BECAME_IN_0_10.format("follower").replace("a-b-0", "[a-b,0]"), RoleTaken("a-b-0", role="follower")),  # 0.10.1
        (BECAME_IN_2_8, RoleTaken("a-b-0", role="follower")),
        (LOADED_BY_0_10, ReplicaRecovered(partition="a-b-0", end_offset=694)),
        (LOADED_BY_2_0, ReplicaRecovered(partition="a-b-0", end_offset=562)),
        (LOADED_BY_2_8, ReplicaRecovered(partition="a-b-0", end_offset=422, high_watermark=5)),
        (TRUNCATED_BY_0_10, Truncated(partition="a-b-0", to_offset=468)),
        (TRUNCATED_BY_2_4, Truncated(partition="a-b-0", to_offset=453)),
        (ASSIGNED, ReplicasAssigned("a-b-0", (2, 0, 1))),
    ],
)
def test_a_line_of_an_old_broker_is_understood(text: str, event: LogEvent) -> None:
    assert understood(text) == event


@pytest.mark.parametrize("text", ["[Kafka Server 0], started", "[KafkaServer id=0] started"])
def test_a_started_broker_is_known_by_either_of_its_words(text: str) -> None:
    line = f"{TIME} INFO kafka.server.KafkaServer {text}"
    assert understood(line) == BrokerRegistered(broker=0)


@pytest.mark.parametrize(
    "text",
    [
        f"{TIME} INFO kafka.log.Log Truncating a-b-0 to 498 has no effect as the largest offset in the log is 497.",
        f"{TIME} INFO kafka.log.Log Completed load of log a-b-0 with 1 log segments and log end offset 0 in 34 ms",
        f"{BROKER} Broker 0 cached leader info (LeaderAndIsrInfo:(Leader:0,ISR:0,LeaderEpoch:0,ControllerEpoch:1),",
    ],
)
def test_other_lines_of_old_brokers_say_nothing(text: str) -> None:
    line = read_line(text)
    assert line is not None
    assert understand(line) is None


def understood(text: str) -> LogEvent:
    line = read_line(text)
    assert line is not None
    message = understand(line)
    assert message is not None
    return message


def told_by(log: Path, *lines: str) -> list[Fact]:
    log.write_text("\n".join([*lines, ""]))
    return [seen.fact for seen in observations_in({0: log}, 0) if not isinstance(seen.fact, HighWatermarkMoved)]


def test_a_role_of_which_an_old_broker_says_no_more_is_completed_by_what_it_heard(tmp_path: Path) -> None:
    heard = HEARD_BY_0_11.replace("leader=2", "leader=0")
    shown = told_by(tmp_path / "log", heard, BECAME_IN_0_10.format("leader"), HEARD_BY_2_4, BECAME_IN_2_8)
    assert shown[1:] == [BecameLeader(partition="a-b-0", leader_epoch=0, isr=(2, 0, 1))]
    later = HEARD_BY_0_11.replace("leaderEpoch=0", "leaderEpoch=1")
    shown = told_by(tmp_path / "log", heard, BECAME_IN_0_10.format("leader"), later, BECAME_IN_0_10.format("follower"))
    assert shown[-1] == BecameFollower(partition="a-b-0", leader_epoch=1, leader=2)


def test_a_role_is_told_once_where_the_broker_says_it_twice(tmp_path: Path) -> None:
    heard = HEARD_BY_2_4.replace("leaderEpoch=0", "leaderEpoch=3")
    shown = told_by(tmp_path / "log", heard, FOLLOWS_IN_2_8, BECAME_IN_2_8)
    assert [type(fact) for fact in shown] == [LeaderElected, BecameFollower]
    assert shown[1] == BecameFollower(partition="a-b-0", leader=2, leader_epoch=3, end_offset=5203)


def test_where_a_log_ended_is_known_after_a_start_and_not_once_it_has_grown(tmp_path: Path) -> None:
    became = BECAME_IN_0_10.format("follower")
    shown = told_by(tmp_path / "log", LOADED_BY_0_10, HEARD_BY_0_11, TRUNCATED_BY_0_10, became, TRUNCATED_BY_0_10)
    cuts = [fact.from_offset for fact in shown if isinstance(fact, Truncated)]
    assert cuts == [694, None]


def test_the_order_of_replicas_that_only_the_controller_tells_stands(tmp_path: Path) -> None:
    class Nodes:
        brokers = (0,)

        def log(self, node: int) -> Path:
            return tmp_path / f"node-{node}.log"

    viewer = BrokerLogs(Nodes())  # type: ignore[arg-type]
    newer = HEARD_BY_0_10.replace("leaderEpoch=0", "leaderEpoch=1").replace("zkVersion=0", "zkVersion=1")
    (tmp_path / "node-0.log").write_text(f"{HEARD_BY_0_10}\n{ASSIGNED}\n{newer}\n")
    state = viewer.image().partitions["a-b-0"]
    assert (state.replicas, state.leader_epoch) == ((2, 0, 1), 1)
