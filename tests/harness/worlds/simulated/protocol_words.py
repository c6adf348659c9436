"""The words of the coverage: every answer, branch and state at risk that a simulated run may reach in the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_HOSTING: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR", "NOT_LEADER_OR_FOLLOWER")
_FENCING: Final = ("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH")
#: The answers to each request: names of error codes, and what else tells answers apart.
ANSWERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Produce": (
        "NONE",
        *_HOSTING,
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "REQUEST_TIMED_OUT",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "INVALID_PRODUCER_EPOCH",
    ),
    "Fetch": ("NONE", "diverging", *_HOSTING, *_FENCING, "OFFSET_OUT_OF_RANGE"),
    "consumer's Fetch": ("NONE", "read replica", *_HOSTING, *_FENCING, "OFFSET_OUT_OF_RANGE"),
    "ListOffsets": ("NONE", *_HOSTING, *_FENCING, "OFFSET_NOT_AVAILABLE"),
    "OffsetForLeaderEpoch": ("NONE", *_HOSTING, *_FENCING),
    "AlterPartition": (
        "NONE",
        "STALE_BROKER_EPOCH",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "FENCED_LEADER_EPOCH",
        "INVALID_REQUEST",
        "INVALID_UPDATE_VERSION",
        "INELIGIBLE_REPLICA",
    ),
    "RegisterBroker": ("NONE", "DUPLICATE_BROKER_REGISTRATION"),
    "Heartbeat": ("NONE", "STALE_BROKER_EPOCH"),
    "InitProducerId": ("NONE", "COORDINATOR_LOAD_IN_PROGRESS"),
    "AllocateProducerIds": ("NONE", "STALE_BROKER_EPOCH"),
    "MoveLeader": ("NONE", "INELIGIBLE_REPLICA"),
}
#: Branches and states at risk, by what happened, each with how it is recognised.
STATES: Final[Mapping[str, Mapping[str, str]]] = {
    "proposed": {
        "a smaller ISR": "rule 10",
        "a larger ISR": "rule 11",
        "again": "a copy of a proposal, because nobody answered the first",
    },
    "ISR": {
        "shrank": "and no election was part of it",
        "grew": "a follower joined",
        "grew below the leader's log end": "by a follower that is not at the leader's end when it is accepted",
        "shrank to min ISR with writes in flight": "the leader has records above its high watermark",
        "is below min ISR": "rule 3 refuses, rule 7 freezes",
        "is below min ISR with writes in flight": "rule 4, rule 7",
        "is empty": "rule 15: the ELR has everything",
        "is one broker": "its disk is the only one that must have everything",
    },
    "elected": {
        "clean": "a member of the ISR, after its leader could not lead any more",
        "moved": "a member of the ISR, while the old leader stays in it",
        "from the ELR": "rule 15",
        "last known leader": "rule 15, both lists empty",
        "unclean": "rule 14",
        "by log": "rules 27 and 28",
        "nobody": "the log partition has no leader",
        "with a shorter log than the old leader": "the old leader's process runs and has more",
        "with an old high watermark": "below what was acknowledged",
        "without acknowledged records": "its log ends below what was acknowledged",
    },
    "leader changed": {
        "with writes in flight": "the old leader's process runs, and waits for its high watermark",
        "and two lead": "the old leader has not heard of it",
        "again before all knew": "a replica leads a second epoch without having followed in between (rule 30)",
    },
    "acknowledged": {
        "by a deposed leader": "the controller is in a later leader epoch",
        "with an ISR of one": "nobody else needs to have it",
        "at min ISR": "one more loss, and writes are refused",
        "during a proposal": "the leader waits for its answer",
        "by the leader alone": "no follower has fetched it (acks=1, or an ISR of one)",
        "in page caches only": "no disk of a member of the ISR has it for certain",
    },
    "retried": {
        "in the same epoch": "a leader got a batch a second time",
        "in a later epoch": "a leader got a batch that an earlier leader epoch had got",
        "and recognised": "the batch was in the log (rule 21)",
        "and appended again": "without idempotence, or because the first copy is not in this log",
    },
    "truncated": {
        "by a diverging fetch": "KIP-595",
        "by an epoch's end": "KIP-101 to KIP-320",
        "out of range": "rule 18",
        "to the high watermark": "rule 16",
        "below a fetched batch": "another history ended inside a batch (rule 18)",
        "acknowledged records": "what was acknowledged is gone from this log",
    },
    "broker": {
        "fenced": "rule 13",
        "unfenced": "it has caught up with the image",
        "leaving": "controlled shutdown",
        "registered anew": "a new incarnation of a known broker",
        "registered anew unfenced": "a quick restart that went unnoticed (KAFKA-7235)",
    },
}
#: All words.
WORDS: Final = frozenset(
    [f"{request} {answer}" for request, answers in ANSWERS.items() for answer in answers]
    + [f"{what}: {how}" for what, kinds in STATES.items() for how in kinds]
)
