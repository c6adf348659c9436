"""What is asked of the log, and what was seen of it: settings, workloads, the contract of clients, operations.

This is the door: nobody outside imports past it, nor past that of :mod:`workloads.history`, which stores operations.
"""

from workloads.client import (
    Batches,
    ClientCapability,
    Clients,
    Clock,
    Commits,
    Consumer,
    Fetched,
    Offsets,
    PollOutcome,
    Positions,
    Producer,
    SendOutcome,
    Subscription,
    Unsent,
)
from workloads.driver import Workload, partition_names
from workloads.errors import CLIENT_CLOSED, CLIENT_CRASHED, NEVER_SENT, TIME_LIMIT, classify
from workloads.final_read import Drain
from workloads.generators import WORKLOADS
from workloads.operations import (
    HARNESS,
    NEMESIS,
    NO_INSTANCE,
    Defect,
    Event,
    EventType,
    Function,
    MicroOperation,
    Poll,
    Record,
    Recorder,
    Send,
)
from workloads.plan import WorkloadPlan
from workloads.producers import OUTSTANDING_MAX, SendCounts
from workloads.settings import ACKS_ALL, NEVER, Settings, SettingsError, Truncation, unknown_name
from workloads.values import decode, encode, join, split

__all__ = [
    "ACKS_ALL", "CLIENT_CLOSED", "CLIENT_CRASHED", "HARNESS", "NEMESIS", "NEVER", "NEVER_SENT", "NO_INSTANCE",
    "OUTSTANDING_MAX", "TIME_LIMIT", "WORKLOADS", "Batches", "ClientCapability", "Clients", "Clock", "Commits",
    "Consumer", "Defect", "Drain", "Event", "EventType", "Fetched", "Function", "MicroOperation", "Offsets",
    "Poll", "PollOutcome", "Positions", "Producer", "Record", "Recorder", "Send", "SendCounts", "SendOutcome",
    "Settings", "SettingsError", "Subscription", "Truncation", "Unsent", "Workload", "WorkloadPlan", "classify",
    "decode", "encode", "join", "partition_names", "split", "unknown_name",
]  # fmt: skip
