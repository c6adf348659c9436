"""Finding 001: what clients report of batches that a leader refused before it took a later one of the same producer.

A new producer sends four batches; the leader, alone in sync, refuses three of them; the network delivers the fourth
once a follower is back in sync, and the leader takes it.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from harness.lab.findings.batches import DELIVERY_MS, REFUSED, BatchesSeen, batch_script
from harness.lab.findings.playable import PlayableFinding, Played, Way, expects_always, expects_nothing
from harness.lab.findings.senders import RECORDS
from harness.lab.findings.stage import FindingStage, NotObservedError

#: Longer than the script takes, and waited for: only then Java's client gives up what cannot succeed.
_JAVA_DELIVERY_MS: Final = 15_000
#: A busy machine may break the late batch's connection, so that those before it are sent again ahead of it, and taken.
#: Each further try has twice the time.
TRIES: Final = 3
_LAST: Final = RECORDS - 1


def came_first(seen: BatchesSeen) -> bool:
    """True if the leader refused the first three batches, and nothing else, before it took the fourth."""
    answers = [(answer.batch.sequence, answer.error) for answer in seen.answers]
    taken = (_LAST, "NoError")
    before = set(answers[: answers.index(taken)]) if taken in answers else set()
    return before == {(sequence, REFUSED) for sequence in range(_LAST)}


def play(stage: FindingStage, *, reference: bool = False) -> Played:
    """Have the fourth batch taken after the first three were refused, with five requests in flight."""
    usual_ms = _JAVA_DELIVERY_MS if stage.client == "java" else DELIVERY_MS
    # kafka-python has one batch of a log partition under way.
    under_way = 1 if stage.client == "kafka-python" else RECORDS
    with batch_script(stage, reference=reference) as script:
        for doubling in range(TRIES):
            seen = script.refuse_all_but_the_last(usual_ms << doubling, under_way)
            if under_way == 1 or came_first(seen):
                return played(seen)
    raise NotObservedError(f"in none of {TRIES} tries the leader took the fourth batch first")


def play_one_in_flight(stage: FindingStage) -> Played:
    """The same with one request in flight."""
    with batch_script(stage, in_flight=1) as script:
        return played(script.refuse_all_but_the_last(DELIVERY_MS, 1))


def played(seen: BatchesSeen) -> Played:
    """It shows where a record was reported as delivered and is not in the log."""
    lost = ", ".join(map(str, seen.nowhere)) or "none"
    return Played.of(
        [*seen.sentences(), f"records that were reported as delivered and are in no log: {lost}"],
        shown=bool(seen.nowhere),
    )


FINDING: Final = PlayableFinding(
    "001",
    {
        "refused": Way("three batches are refused before the fourth is taken", play),
        "one-in-flight": Way(
            "the same with one request in flight", play_one_in_flight, expects_nothing, ("confluent-kafka",)
        ),
        "reference": Way(
            "the same on the reference broker",
            partial(play, reference=True),
            expects_always,
            ("confluent-kafka",),
            False,
        ),
    },
    clients=("confluent-kafka", "java", "kafka-python"),
)
