"""Questions to the log and its answers: settings, workloads, the contract of clients, operations.

This is the door, and no module outside imports past it. Stored histories (:mod:`workloads.history`), the driver of a
workload (:mod:`workloads.driver`) and payloads (:mod:`workloads.values`) have doors of their own: they need libraries
that the workers of a cluster, which import this one, do not have.
"""

from workloads.application_facts import ApplicationFacts, InputProgress, InstanceExit
from workloads.application_ids import ID_WORD, finder, key_of, number_of
from workloads.application_plan import ApplicationPlan, ApplicationPromise
from workloads.client import (
    PAYLOAD_HEADER,
    Assignment,
    ClientCapability,
    Clients,
    Clock,
    Commits,
    Consumer,
    Epochs,
    Fetched,
    Membership,
    MemberToken,
    Offsets,
    OwnCommit,
    OwnCommits,
    PollOutcome,
    Producer,
    SendOutcome,
    Subscription,
    Tombstones,
    Transactions,
    failures,
)
from workloads.eras import NO_ERA, NOT_BY_RELEASE, PRESETS
from workloads.errors import (
    CLIENT_CLOSED,
    CLIENT_CRASHED,
    FOR_WANT_OF_REPLICAS,
    GAVE_UP,
    NEVER_SENT,
    TIME_LIMIT,
    Refusal,
    classify,
    refusal,
)
from workloads.generators import WORKLOADS, WorkloadKind, kind_of, topics_of
from workloads.log_partition import LogPartition
from workloads.operations import (
    NEMESIS,
    NOTHING,
    BrokenInvariant,
    CleanerTimes,
    Effect,
    Event,
    EventType,
    FreshWrites,
    Function,
    GroupMember,
    MicroOperation,
    PayloadDefect,
    Poll,
    ProducerEpoch,
    Reached,
    Record,
    Recorder,
    RefusedAttempts,
    Retirement,
    Send,
    StableOffset,
    TransactionEnd,
)
from workloads.plan import LISTED, CountsIn, PlannedWrite, WorkloadPlan
from workloads.planted_bugs import PlantedBug
from workloads.quoting import in_toml, reason_of, shown, spelled, unknown_name
from workloads.served_time import ServedTime
from workloads.settings import (
    ACKS_ALL,
    IDEMPOTENCE,
    KAFKA_DEFECTS,
    NEVER,
    GroupProtocol,
    ImpossibleValueError,
    IsolationLevel,
    Settings,
    SettingsError,
    SettingValue,
    Truncation,
)
from workloads.transaction_errors import Call, ErrorClass, class_of

__all__ = [
    "ACKS_ALL", "CLIENT_CLOSED", "CLIENT_CRASHED", "FOR_WANT_OF_REPLICAS", "GAVE_UP", "IDEMPOTENCE", "ID_WORD",
    "KAFKA_DEFECTS", "LISTED", "NEMESIS", "NEVER", "NEVER_SENT", "NOTHING", "NOT_BY_RELEASE", "NO_ERA",
    "PAYLOAD_HEADER", "PRESETS", "TIME_LIMIT", "WORKLOADS", "ApplicationFacts", "ApplicationPlan",
    "ApplicationPromise", "Assignment", "BrokenInvariant", "Call", "CleanerTimes", "ClientCapability", "Clients",
    "Clock", "Commits", "Consumer", "CountsIn", "Effect", "Epochs", "ErrorClass", "Event", "EventType", "Fetched",
    "FreshWrites", "Function", "GroupMember", "GroupProtocol", "ImpossibleValueError", "InputProgress",
    "InstanceExit", "IsolationLevel", "LogPartition", "MemberToken", "Membership", "MicroOperation", "Offsets",
    "OwnCommit", "OwnCommits", "PayloadDefect", "PlannedWrite", "PlantedBug", "Poll", "PollOutcome", "Producer",
    "ProducerEpoch", "Reached", "Record", "Recorder", "Refusal", "RefusedAttempts", "Retirement", "Send",
    "SendOutcome", "ServedTime", "SettingValue", "Settings", "SettingsError", "StableOffset", "Subscription",
    "Tombstones", "TransactionEnd", "Transactions", "Truncation", "WorkloadKind", "WorkloadPlan", "class_of",
    "classify", "failures", "finder", "in_toml", "key_of", "kind_of", "number_of", "reason_of", "refusal", "shown",
    "spelled", "topics_of", "unknown_name",
]  # fmt: skip
