"""Types of the replication protocol: identifiers, configuration, error codes, the cluster's metadata.

Nodes are numbers: brokers count from 0, the controller is 100, clients are 1000 and above.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Final, Literal, NamedTuple, NewType, TypeVar

import msgspec

#: The number of a node. Exhaustive search renames brokers by this type, so a field that holds one is declared so.
NodeId = NewType("NodeId", int)

T = TypeVar("T")
#: A field that says nothing of a node's state between two steps: a setting, a function, or a part of the present step.
Outside = Annotated[T, "outside"]
#: A field with a collection whose order means nothing.
AnyOrder = Annotated[T, "any order"]
#: A field whose content the core never looks at.
Opaque = Annotated[T, "opaque"]

CONTROLLER: Final = NodeId(100)
#: No such number: ``producer_id`` of a plain batch, an epoch that is not known, an offset that was not assigned.
NONE: Final = -1
#: No such node: ``replica_id`` of a consumer, leader of a leaderless partition.
NO_NODE: Final = NodeId(NONE)
ACKS_ALL: Final = -1
#: Kafka's name of the topic in which transaction coordinators keep what they have decided.
TRANSACTIONS_TOPIC: Final = "__transaction_state"
#: Kafka's name of the topic in which group coordinators keep members and the offsets that groups have committed.
OFFSETS_TOPIC: Final = "__consumer_offsets"

Truncation = Literal["high-watermark", "kip-101", "kip-279", "kip-320", "on-fetch"]
#: The way in which a leader of a new leader epoch treats the log ends that its followers had in an earlier one (rule
#: 30).
MissedEpoch = Literal["forget", "kafka"]
ProducersAfterRestart = Literal["all-batches", "last-batch"]
#: The protocol of transactions: with 2 each end raises the producer epoch (rule 39, KIP-890).
TransactionVersion = Literal[1, 2]
#: The rule by which a record is committed (rules 7 and 28), unless quorum.required.acks says how many (rule 27).
CommitRuleName = Literal["isr", "majority"]
#: The replicas that may lead: an in-sync replica (rule 13), or the live one with the largest log (rules 27, 28).
LeaderElection = Literal["isr", "largest-log-end", "largest-epoch-and-log-end"]
#: The way in which records go in time: all stay, or a cleaner keeps the last one of each key (rule 31).
CleanupPolicy = Literal["delete", "compact", "compact,delete"]


class TopicPartition(NamedTuple):
    """One log partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def serving_partition(name: str, partitions: int) -> int:
    """The partition of OFFSETS_TOPIC or TRANSACTIONS_TOPIC that serves a group, or a transactional id, of this name.

    It is the hash of Java's String, without its sign, so it is Kafka's choice for a name in ASCII.
    """
    code = 0
    for letter in name.encode():
        code = (31 * code + letter) % 2**32
    return min(code, 2**32 - code) % 2**31 % partitions


class ErrorCode(IntEnum):
    """Kafka's error codes, those that this broker uses."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    INVALID_UPDATE_VERSION = 95
    BROKER_ID_NOT_REGISTERED = 102
    DUPLICATE_BROKER_REGISTRATION = 101
    TRANSACTIONAL_ID_NOT_FOUND = 105
    INELIGIBLE_REPLICA = 107
    FENCED_MEMBER_EPOCH = 110
    STALE_MEMBER_EPOCH = 113


#: In most answers. Looked up once: a member of an enumeration is found by a search before Python 3.12.
NO_ERROR: Final = ErrorCode.NONE


class TopicConfig(msgspec.Struct, frozen=True):
    """Settings of a topic, under Kafka's names and with Kafka's defaults: nothing is flushed but by the system.

    ``retention_ms`` NONE lets records stay at any age: Kafka's seven days are longer than any run.
    """

    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    flush_messages: int = 2**63 - 1
    flush_ms: int = 2**63 - 1
    cleanup_policy: CleanupPolicy = "delete"
    segment_ms: int = 604_800_000
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    retention_ms: int = NONE

    @property
    def compacted(self) -> bool:
        """A cleaner keeps the last record of each key, and removes others."""
        return "compact" in self.cleanup_policy

    @property
    def expires(self) -> bool:
        """Records go when they are older than retention.ms (rule 47)."""
        return "delete" in self.cleanup_policy and self.retention_ms != NONE


class BrokerConfig(msgspec.Struct, frozen=True):
    """Settings of a broker, under Kafka's names, and the rules that changed with time (docs/reference/settings.md).

    ``immediate_high_watermark``: a follower's parked fetch ends when the high watermark moves (Kafka 2.4 and 2.5 only,
    KAFKA-9952); without it the follower learns of the move with its next data or after replica.fetch.wait.max.ms.
    ``quorum_required_acks`` NONE is off; KIP-250 has it per topic, here it is the cluster's. ``session_timeout_ms`` is
    Kafka's group.consumer.session.timeout.ms (rule 43); ``tombstones_wait_for_replicas`` is no rule of its (rule 32).
    """

    replica_lag_time_max_ms: int = 1_500
    replica_lag_max_messages: int = 2**63 - 1
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_backoff_ms: int = 100
    replica_fetch_max_bytes: int = 1_048_576
    replica_socket_timeout_ms: int = 2_000
    broker_session_timeout_ms: int = 1_500
    broker_heartbeat_interval_ms: int = 300
    unclean_leader_election_interval_ms: int = 2_000
    log_cleaner_backoff_ms: int = 500
    log_retention_check_interval_ms: int = 500
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    truncation: Truncation = "on-fetch"
    strict_min_isr: bool = True
    isr_join_epoch_rule: bool = True
    fetch_fencing: bool = True
    broker_epochs: bool = True
    unclean_elections: bool = True
    eligible_leader_replicas: bool = False
    immediate_high_watermark: bool = False
    follower_fetching: bool = False
    missed_epoch: MissedEpoch = "forget"
    producers_after_restart: ProducersAfterRestart = "all-batches"
    commit_rule: CommitRuleName = "isr"
    quorum_required_acks: int = NONE
    leader_election: LeaderElection = "isr"
    transaction_version: TransactionVersion = 2
    transaction_abort_check_ms: int = 10_000
    session_timeout_ms: int = 6_000
    offsets_retention_minutes: int = 10_080
    tombstones_wait_for_replicas: bool = False
    #: A rule in a wrong form, by its name in harness.broker.core.planted.
    planted_bug: str = "none"


class PartitionState(msgspec.Struct, frozen=True):
    """The controller's committed state of a partition. ``leader`` is NONE while no replica leads.

    ``recovering`` is set by an unclean election and cleared by the new leader's first ISR change (KIP-704). ``elr`` are
    the eligible leader replicas, in the order of assignment, and ``last_known_leader`` led when the ISR became empty
    (rule 15, see controller.py); both are empty while the cluster keeps no such lists. ``offline`` are the replicas
    whose log directory has failed (rule 29): they may neither lead nor be in sync until their broker is started again.
    """

    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: int
    partition_epoch: int
    recovering: bool = False
    elr: tuple[NodeId, ...] = ()
    last_known_leader: NodeId = NO_NODE
    offline: tuple[NodeId, ...] = ()


class BrokerState(msgspec.Struct, frozen=True):
    """The controller's state of a broker. Epoch = metadata version at which this incarnation registered.

    ``rack`` is its broker.rack, "" where it has none.
    ``leaving``: it is shutting down in order (KIP-841), until its next incarnation registers.
    """

    broker_epoch: int
    fenced: bool
    host: str = ""
    port: int = 0
    rack: str = ""
    leaving: bool = False


class TopicState(msgspec.Struct, frozen=True):
    """A topic: its settings and its partitions, by number.

    ``identity`` is the image version that created it: a topic made again under an old name is another topic.
    """

    config: Outside[TopicConfig]
    partitions: tuple[PartitionState, ...]
    identity: int = 0


class Image(msgspec.Struct, frozen=True):
    """The whole cluster's metadata at one version, the larger the newer. Replaced whole, never changed in place."""

    version: int = 0
    brokers: dict[NodeId, BrokerState] = {}
    topics: dict[str, TopicState] = {}

    def partition(self, partition: TopicPartition) -> PartitionState | None:
        """The state of one partition, or None where it does not exist."""
        name, number = partition
        topic = self.topics.get(name)
        if topic is None or not 0 <= number < len(topic.partitions):
            return None
        return topic.partitions[number]
