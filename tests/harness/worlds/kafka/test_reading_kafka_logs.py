"""Reading Kafka's own log lines as observations, and as the controller's view. The lines are of 3.3, 4.1 and 4.3."""

from pathlib import Path

import pytest

from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    HighWatermarkMoved,
    IsrChanged,
    LeaderElected,
    NodeStarted,
    NotEnoughReplicas,
    Observation,
    ProposalRefused,
    ReplicaRecovered,
    SequenceRefused,
    Truncated,
)
from harness.worlds.hosts import NodeState
from harness.worlds.kafka.jvm import LEVELS
from harness.worlds.kafka.log_events import LogTail, observations_in
from harness.worlds.kafka.log_patterns import LogEvent, PartitionChanged, PartitionDescribed, read_line, understand
from harness.worlds.kafka.logged_metadata import BrokerLogs, ControllerLogs
from harness.worlds.real.view import Viewer
from nemesis.cluster import CONTROLLER
from workloads.plan import WorkloadPlan

CONTROLS = "org.apache.kafka.controller.ReplicationControlManager [QuorumController id=100]"
BEATS = "org.apache.kafka.controller.BrokerHeartbeatManager [QuorumController id=100]"
TIME = "2026-11-21T10:01:29.620"
WALL_US = 1_795_255_289_620_000
CREATED = (
    f"{TIME} INFO {CONTROLS} Replayed PartitionRecord for new partition foo-0 with topic ID x and Partition"
    "Registration(replicas=[1, 2, 0], directories=[], isr=[1, 2, 0], removingReplicas=[], addingReplicas=[], elr=[], "
    "lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)."
)
CREATED_BY_3_3 = (
    f"{TIME} INFO org.apache.kafka.controller.ReplicationControlManager [Controller 100] Created partition foo-0 with "
    "topic ID x and PartitionRegistration(replicas=[1, 2, 0], isr=[1, 2, 0], removingReplicas=[], addingReplicas=[], "
    "leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)."
)
LEADS = (
    f"{TIME} INFO state.change.logger [Broker id=1] Leader foo-0 with topic id Some(x) starts at leader epoch 3 from "
    "offset 162 with partition epoch 4, high watermark 160, ISR [1,2], adding replicas [] and removing replicas [] . "
    "Previous leader Some(0) and previous leader epoch was 2."
)
FOLLOWS = (
    f"{TIME} INFO state.change.logger [Broker id=2] Follower foo-0 starts at leader epoch 3 from offset 30 with "
    "partition epoch 4 and high watermark 22. Current leader is 1. Previous leader Some(0) and previous leader epoch "
    "was 2."
)
TRUNCATES = (
    f"{TIME} INFO org.apache.kafka.storage.internals.log.UnifiedLog [UnifiedLog partition=foo-0, dir=/a/acks=1,isr=2/2]"
    " Truncating to offset 22"
)
LOADED = (
    f"{TIME} INFO kafka.log.LogManager Completed load of Log(dir=/a/acks=1,isr=2/2/foo-0, topicId=x, topic=foo, "
    "partition=0, highWatermark=7, lastStableOffset=7, logStartOffset=0, logEndOffset=30) with 1 segments, "
    "local-log-start-offset 0 and log-end-offset 30 in 21ms (3/3 completed in /a/acks=1,isr=2/2)"
)
IN_SYNC = f"{TIME} INFO kafka.cluster.Partition [Partition foo-0 broker=1] ISR updated to 2,1  and version updated to 3"


def refused(because: str) -> str:
    """The line of 4.3.1; 3.9.2 does not say what was proposed."""
    return (
        f"{TIME} INFO {CONTROLS} Rejecting AlterPartition request from node 1 for foo-0 because {because}. Proposed "
        "ISR was [BrokerState(brokerId=1, brokerEpoch=18), BrokerState(brokerId=2, brokerEpoch=26)] and current ISR is "
        "[1]. Current replica set is [2, 0, 1]. Current partitionEpoch is 6. Current leaderEpoch is 2."
    )


def refusal(error: str, **reason: object) -> ProposalRefused:
    return ProposalRefused(
        partition="foo-0", broker=1, error=error, isr=(1, 2), leader_epoch=2, partition_epoch=6, **reason
    )


def change(words: str, unclean: str = "") -> str:
    return f"{TIME} DEBUG {CONTROLS} {unclean}partition change for foo-0 with topic ID x: {words}"


def message(text: str) -> LogEvent:
    line = read_line(text)
    assert line is not None
    assert line.wall_us == WALL_US
    shown = understand(line)
    assert shown is not None
    return shown


CREATION = PartitionDescribed(
    "foo-0", leader=1, leader_epoch=0, partition_epoch=0, isr=(1, 2, 0), replicas=(1, 2, 0), elr=()
)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (CREATED, CREATION),
        (CREATED_BY_3_3, CREATION),
        (
            LEADS,
            BecameLeader(partition="foo-0", leader_epoch=3, end_offset=162, isr=(1, 2), high_watermark=160),
        ),
        (FOLLOWS, BecameFollower(partition="foo-0", leader=1, leader_epoch=3, end_offset=30)),
        (TRUNCATES, Truncated(partition="foo-0", to_offset=22)),
        (LOADED, ReplicaRecovered(partition="foo-0", high_watermark=7, end_offset=30)),
        (IN_SYNC, IsrChanged(partition="foo-0", isr=(2, 1), partition_epoch=3)),
        (
            change("isr: [0, 1, 2] -> [1, 2], leader: 0 -> -1, leaderEpoch: 0 -> 1, partitionEpoch: 0 -> 1"),
            PartitionChanged("foo-0", isr=(1, 2), leader=-1, leader_epoch=1, partition_epoch=1),
        ),
        (
            change("elr: [] -> [1, 2], isr: [1, 2] -> [], leader: 1 -> 0", "UNCLEAN "),
            PartitionChanged("foo-0", elr=(1, 2), isr=(), leader=0, unclean=True),
        ),
        (refused("the current leader epoch is 2, not 1"), refusal("FENCED_LEADER_EPOCH", old_epoch=1)),
        (refused("the current leader is 0"), refusal("INVALID_REQUEST")),
        (refused("the current partition epoch is 6, not 5"), refusal("INVALID_UPDATE_VERSION", old_epoch=5)),
        (
            refused("it specified ineligible replicas [2 (fenced)] in the new ISR"),
            refusal("INELIGIBLE_REPLICA", ineligible=(2,)),
        ),
        (
            refused(
                "it specified ineligible replicas [1 (shutting down), 2 (broker epoch mismatch: requested=26 VS "
                "expected=31)] in the new ISR"
            ),
            refusal("INELIGIBLE_REPLICA", ineligible=(1, 2), earlier=(2,)),
        ),
    ],
)
def test_a_line_about_a_partition_is_understood(text: str, event: LogEvent) -> None:
    assert message(text) == event


@pytest.mark.parametrize("package", ["utils", "utils.internals"])
def test_a_node_says_which_release_it_is_under_the_name_of_4_3_and_of_4_4(package: str) -> None:
    """A rollout waits for it."""
    logger = f"org.apache.kafka.common.{package}.AppInfoParser"
    assert LEVELS[logger] == "INFO"
    assert message(f"{TIME} INFO {logger} Kafka version: 4.4.0") == NodeStarted(version="4.4.0")


def test_lines_about_brokers_are_understood() -> None:
    fenced = message(f"{TIME} INFO {CONTROLS} Fencing broker 0 at epoch 11 because its session has timed out.")
    back = message(
        f"{TIME} INFO {BEATS} The request from broker 0 to unfence has been granted because it has caught up."
    )
    assert (fenced, back) == (BrokerFenced(broker=0), BrokerRegistered(broker=0))


@pytest.mark.parametrize(
    "words",
    [
        "Unfenced broker 2 has requested and been granted an immediate shutdown.",
        "The request from broker 2 to shut down has been granted since the lowest active offset 32 is now greater.",
    ],
)
def test_a_broker_that_may_stop_in_order_is_fenced_with_that(words: str) -> None:
    """Before 4.0 no line follows when its session would have ended."""
    assert message(f"{TIME} INFO {BEATS} {words}") == BrokerFenced(broker=2)


@pytest.mark.parametrize(
    "text",
    [
        "\tat kafka.Kafka$.main(Kafka.scala:75)",
        "",
        f"{TIME} INFO kafka.server.KafkaRaftServer [KafkaRaftServer nodeId=100] Kafka Server started",
        f"{TIME} INFO kafka.log.UnifiedLog [UnifiedLog partition=foo-0, dir=/a] Truncating to 45 has no effect",
        f"{TIME} DEBUG {CONTROLS} No stale brokers found.",
        f"{TIME} INFO {BEATS} Unfenced broker 2 has requested and been granted a controlled shutdown.",
        f"{TIME} INFO {BEATS} Fenced broker 2 has requested and been granted an immediate shutdown.",
        f"{TIME} DEBUG {BEATS} The request from broker 2 to shut down can not yet be granted because of an offset.",
    ],
)
def test_other_lines_say_nothing(text: str) -> None:
    line = read_line(text)
    assert line is None or understand(line) is None


def test_the_exception_of_an_entry_tells_which_batch_was_refused(tmp_path: Path) -> None:
    errors = "org.apache.kafka.common.errors"
    failed = f"{TIME} ERROR kafka.server.ReplicaManager [ReplicaManager broker=1] Error processing append operation on"
    log = tmp_path / "node-1.log"
    log.write_text(
        f"{errors}.OutOfOrderSequenceException: Out of order sequence number for producer 9 at offset 1 in partition "
        "foo-0: 1 (incoming seq. number), 0 (current end sequence number)\n"
        f"{failed} partition foo.2-0\n"
        f"{errors}.OutOfOrderSequenceException: Out of order sequence number for producer 1000 at offset 30 in "
        "partition foo.2-0: 12 (incoming seq. number), 8 (current end sequence number)\n"
        f"{failed} partition foo-0\n{errors}.InvalidTxnStateException: Out of order sequence number for producer 1\n"
    )
    fact = SequenceRefused(partition="foo.2-0", producer_id=1000, sequence=12, last_sequence=8)
    assert observations_in({1: log}, WALL_US - 5_000) == [Observation(5_000, 1, fact)]


@pytest.mark.parametrize(
    ("whose", "numbers"),
    [
        (
            "Invalid sequence number for new epoch of producer 9",
            "1 (request epoch), 3 (seq. number), 0 (current producer",
        ),
        ("Out of order sequence number for producer 9 ", "3 (incoming seq. number), 0 (earliest seen sequence)"),
        (
            "Invalid sequence number for producer 9 ",
            "3 (incoming seq. number). Expected sequence 0 for transactions v2",
        ),
    ],
)
def test_a_batch_may_be_refused_without_a_word_on_what_the_log_has(whose: str, numbers: str, tmp_path: Path) -> None:
    log = tmp_path / "node-1.log"
    failed = f"{TIME} ERROR kafka.server.ReplicaManager [ReplicaManager broker=1] Error processing append operation on"
    error = f"OutOfOrderSequenceException: {whose}at offset 1 in partition foo-0: {numbers}"
    log.write_text(f"{failed} partition foo-0\norg.apache.kafka.common.errors.{error}\n")
    fact = SequenceRefused(partition="foo-0", producer_id=9, sequence=3)
    assert observations_in({1: log}, WALL_US - 5_000) == [Observation(5_000, 1, fact)]


@pytest.mark.parametrize("partition", ["foo.2-0", "[foo.2,0]", "4x90Ow5TSx2qtw0DbTz6TQ:foo.2-0"])
@pytest.mark.parametrize("appended", [False, True])
def test_a_produce_request_that_fails_for_want_of_in_sync_replicas_says_so(
    tmp_path: Path, partition: str, appended: bool
) -> None:
    log = tmp_path / "node-1.log"
    failed = f"{TIME} DEBUG kafka.server.KafkaApis [KafkaApi-1] Produce request with correlation id 7 from client a-1"
    errors = "failed due to org.apache.kafka.common.errors"
    log.write_text(
        f"{failed} on partition {partition} {errors}.NotEnoughReplicas{'AfterAppend' * appended}Exception\n"
        f"{failed} on partition {partition} {errors}.NotLeaderOrFollowerException\n"
    )
    fact = NotEnoughReplicas(partition="foo.2-0", appended=appended)
    assert observations_in({1: log}, WALL_US - 5_000) == [Observation(5_000, 1, fact)]


def test_a_truncation_is_completed_with_what_the_broker_said_before(tmp_path: Path) -> None:
    log = tmp_path / "node-2.log"
    log.write_text(f"{LOADED}\n{FOLLOWS}\n{TRUNCATES}\n")
    seen = observations_in({2: log, 0: tmp_path / "missing.log"}, WALL_US - 5_000)
    assert [(type(observation.fact), observation.time_us, observation.node) for observation in seen] == [
        (ReplicaRecovered, 5_000, 2),
        (HighWatermarkMoved, 5_000, 2),
        (BecameFollower, 5_000, 2),
        (Truncated, 5_000, 2),
    ]
    assert seen[-1].fact == Truncated(partition="foo-0", to_offset=22, from_offset=30, leader=1, leader_epoch=3)


def test_a_change_of_leader_is_an_election_and_one_of_replicas_in_sync_is_not(tmp_path: Path) -> None:
    log = tmp_path / "node-100.log"
    elects = change("leader: 1 -> 2, leaderEpoch: 0 -> 1, partitionEpoch: 1 -> 2", "UNCLEAN ")
    log.write_text("\n".join([CREATED, change("isr: [1, 2, 0] -> [1, 2], partitionEpoch: 0 -> 1"), elects, ""]))
    _, shrunk, elected = (seen.fact for seen in observations_in({CONTROLLER: log}, WALL_US))
    assert isinstance(shrunk, IsrChanged)
    assert (shrunk.isr, shrunk.leader) == ((1, 2), 1)
    assert isinstance(elected, LeaderElected)
    assert (elected.leader, elected.unclean, elected.isr) == (2, True, (1, 2))


def test_eligible_replicas_are_those_of_the_change_before_if_no_line_says_otherwise(tmp_path: Path) -> None:
    log = tmp_path / "node-100.log"
    lines = [
        CREATED,
        change("isr: [1, 2, 0] -> [], leader: 1 -> -1, leaderEpoch: 0 -> 1, elr: [] -> [2], lastKnownElr: [] -> [1]"),
        change("replicas: [1, 2, 0] -> [2, 0, 1], partitionEpoch: 1 -> 2"),
        change("leader: -1 -> 2, leaderEpoch: 1 -> 2, elr: [2] -> [], lastKnownElr: [1] -> [], partitionEpoch: 2 -> 3"),
    ]
    log.write_text("\n".join(lines))
    facts = [seen.fact for seen in observations_in({100: log}, 0)]
    assert [(fact.elr, fact.last_known_elr) for fact in facts if isinstance(fact, LeaderElected | IsrChanged)] == [
        ((), ()),
        ((2,), (1,)),
        ((2,), (1,)),
        ((), ()),
    ]


def test_a_leader_that_logs_a_change_of_its_isr_twice_changed_it_once(tmp_path: Path) -> None:
    skipped = (
        f"{TIME} INFO state.change.logger [Broker id=1] Skipped the become-leader state change for foo-0 with topic id "
        "Some(x) and partition registration PartitionRegistration(replicas=[1, 2, 0], isr=[2, 1], leader=1, "
        "leaderEpoch=3, partitionEpoch=3) since it is already the leader with leader epoch 3. Current high watermark "
        "162, ISR [2,1], adding replicas [] and removing replicas []."
    )
    log = tmp_path / "node-1.log"
    log.write_text("\n".join((LEADS, IN_SYNC, skipped, skipped.replace("partitionEpoch=3", "partitionEpoch=5"))) + "\n")
    seen = [observation.fact for observation in observations_in({1: log}, WALL_US)]
    assert [fact.partition_epoch for fact in seen if isinstance(fact, IsrChanged)] == [3, 5]


def test_a_tail_gives_whole_lines_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = LogTail(path)
    assert tail.lines() == []
    path.write_text("one\ntw")
    assert tail.lines() == ["one"]
    with path.open("a") as file:
        file.write("o\n")
    assert tail.lines() == ["two"]
    assert tail.lines() == []


def viewer_of(directory: Path, controllers: int) -> Viewer:
    class Nodes:
        controllers: tuple[int, ...] = ()
        brokers: tuple[int, ...] = ()
        running: tuple[int, ...] = ()

        def in_state(self, state: NodeState, nodes: tuple[int, ...]) -> tuple[int, ...]:
            here = {node: NodeState.RUNNING if node in self.running else NodeState.DEAD for node in nodes}
            return tuple(node for node in nodes if here[node] is state)

        def log(self, node: int) -> Path:
            return directory / f"node-{node}.log"

    nodes = Nodes()
    nodes.controllers = nodes.running = tuple(range(CONTROLLER, CONTROLLER + controllers))
    return Viewer(ControllerLogs(nodes), nodes, WorkloadPlan(topic="foo"))  # type: ignore[arg-type]


def active(node: int, epoch: int) -> str:
    logger = f"org.apache.kafka.controller.QuorumController [QuorumController id={node}]"
    return f"{TIME} INFO {logger} Becoming the active controller at epoch {epoch}, next write offset 1."


def starts(node: int) -> str:
    return f"{TIME} INFO kafka.server.ControllerServer [ControllerServer id={node}] Starting controller"


def test_a_controller_is_active_only_when_it_says_so_again_after_its_restart(tmp_path: Path) -> None:
    log, viewer = tmp_path / "node-100.log", viewer_of(tmp_path, 1)
    shown = []
    for line in (starts(100), active(100, 1), starts(100), active(100, 2)):
        with log.open("a") as file:
            file.write(f"{line}\n")
        shown.append(viewer.view().controller_active)
    assert shown == [False, True, False, True]


def test_a_controller_that_was_dead_is_not_active_before_its_log_goes_on(tmp_path: Path) -> None:
    log, viewer = tmp_path / "node-100.log", viewer_of(tmp_path, 1)
    log.write_text(f"{starts(100)}\n{active(100, 1)}\n")
    shown = [viewer.view().controller_active]
    for running in ((), (100,)):
        viewer._nodes.running = running
        shown.append(viewer.view().controller_active)
    with log.open("a") as file:
        file.write(f"{starts(100)}\n{active(100, 2)}\n")
    assert [*shown, viewer.view().controller_active] == [True, False, False, True]


def test_a_quorum_has_an_active_controller_while_its_former_one_starts_again(tmp_path: Path) -> None:
    viewer = viewer_of(tmp_path, 3)
    (tmp_path / "node-100.log").write_text("\n".join([starts(100), active(100, 1), starts(100), ""]))
    assert not viewer.view().controller_active
    (tmp_path / "node-102.log").write_text("\n".join([starts(102), active(102, 2), ""]))
    assert viewer.view().controller_active
    assert viewer.view().controllers == (102, 100, 101)


FIRST = change("leader: 1 -> 2, leaderEpoch: 0 -> 1, partitionEpoch: 0 -> 1")
SECOND = change("leader: 2 -> 0, leaderEpoch: 1 -> 2, partitionEpoch: 1 -> 2")


def test_the_newest_word_of_several_controllers_counts(tmp_path: Path) -> None:
    viewer = viewer_of(tmp_path, 3)
    (tmp_path / "node-102.log").write_text("\n".join([active(102, 7), CREATED, FIRST, SECOND, ""]))
    (tmp_path / "node-100.log").write_text("\n".join([active(100, 3), CREATED, FIRST, ""]))
    assert viewer.image().partitions["foo-0"].leader == 0
    assert viewer.view().controllers == (102, 100, 101)


def test_a_controller_that_tells_everything_again_after_its_restart_does_not_turn_back_the_view(tmp_path: Path) -> None:
    log, viewer = tmp_path / "node-100.log", viewer_of(tmp_path, 1)
    log.write_text(f"{CREATED}\n{FIRST}\n{SECOND}\n")
    assert viewer.image().partitions["foo-0"].leader == 0
    with log.open("a") as file:
        file.write(f"{CREATED}\n{FIRST}\n")
    assert viewer.image().partitions["foo-0"].leader == 0


def test_a_change_is_told_once_however_many_controllers_tell_it(tmp_path: Path) -> None:
    shown = f"{CREATED}\n{FIRST}\n{SECOND}\n"
    logs = {node: tmp_path / f"node-{node}.log" for node in (100, 101)}
    for log in logs.values():
        log.write_text(shown * 2)
    seen = [observation.fact for observation in observations_in(logs, WALL_US)]
    assert [fact.leader for fact in seen if isinstance(fact, LeaderElected)] == [1, 2, 0]
    assert len(seen) == 3


def test_the_view_follows_the_controllers_log(tmp_path: Path) -> None:
    log = tmp_path / "node-100.log"

    viewer = viewer_of(tmp_path, 1)
    assert viewer.image().partitions == {}
    granted = f"{TIME} INFO {BEATS} The request from broker 1 to unfence has been granted because it has caught up."
    log.write_text(f"{granted}\n{CREATED}\n")
    assert not viewer.image().brokers[1].fenced
    assert viewer.image().partitions["foo-0"].isr == (1, 2, 0)
    with log.open("a") as file:
        file.write(
            change("isr: [1, 2, 0] -> [2, 0], leader: 1 -> 2, leaderEpoch: 0 -> 1, partitionEpoch: 0 -> 1") + "\n"
        )
    state = viewer.image().partitions["foo-0"]
    assert (state.leader, state.leader_epoch, state.isr, state.replicas) == (2, 1, (2, 0), (1, 2, 0))
    for words, fenced in (
        ("Unfenced broker 1 has requested and been granted an immediate shutdown.", True),
        ("The request from broker 1 to unfence has been granted because it has caught up.", False),
        ("The request from broker 1 to shut down has been granted since the lowest active offset is greater.", True),
    ):
        with log.open("a") as file:
            file.write(f"{TIME} INFO {BEATS} {words}\n")
        assert viewer.image().brokers[1].fenced is fenced


def heard(leader: int, epoch: int, version: int, isr: str = "1, 2, 0") -> str:
    return (
        f"{TIME} TRACE state.change.logger [Broker id=2] Cached leader info UpdateMetadataPartitionState("
        f"topicName='foo', partitionIndex=0, controllerEpoch=1, leader={leader}, leaderEpoch={epoch}, isr=[{isr}], "
        f"zkVersion={version}, replicas=[1, 2, 0], offlineReplicas=[]) for partition foo-0 in response to "
        "UpdateMetadata request sent by controller 1 epoch 1 with correlation id 3"
    )


def test_brokers_tell_the_controllers_word_where_zookeeper_keeps_it(tmp_path: Path) -> None:
    class Nodes:
        brokers = (0, 1)

        def log(self, node: int) -> Path:
            return tmp_path / f"node-{node}.log"

    viewer = BrokerLogs(Nodes())  # type: ignore[arg-type]
    started = f"{TIME} INFO kafka.server.KafkaServer [KafkaServer id=0] started"
    (tmp_path / "node-0.log").write_text(f"{started}\n{heard(2, 4, 9)}\n")
    (tmp_path / "node-1.log").write_text(f"{heard(1, 3, 7)}\n")
    state = viewer.image().partitions["foo-0"]
    assert (state.leader, state.leader_epoch, state.isr, state.replicas) == (2, 4, (1, 2, 0), (1, 2, 0))
    assert not viewer.image().brokers[0].fenced
    with (tmp_path / "node-1.log").open("a") as file:
        file.write(IN_SYNC.replace("version updated to 3", "version updated to 10") + "\n")
    assert viewer.image().partitions["foo-0"].isr == (2, 1)
    assert viewer.image().partitions["foo-0"].leader == 2


def test_an_election_that_brokers_heard_of_is_told_once_as_the_controllers(tmp_path: Path) -> None:
    logs = {node: tmp_path / f"node-{node}.log" for node in (0, 1)}
    for log in logs.values():
        log.write_text("\n".join([heard(1, 3, 7), heard(1, 3, 8, isr="1"), heard(-1, 4, 9), ""]))
    seen = observations_in(logs, WALL_US)
    assert [
        (observation.node, observation.fact.leader)
        for observation in seen
        if isinstance(observation.fact, LeaderElected)
    ] == [
        (CONTROLLER, 1),
        (CONTROLLER, -1),
    ]
    assert len(seen) == 2
