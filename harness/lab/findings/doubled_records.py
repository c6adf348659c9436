"""Finding 003: a producer of librdkafka begins a new epoch, and sends what is in the log again.

Either one batch is refused after its answer was lost, or the delivery time of the first record is over while answers
are kept back.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from harness.lab.findings.batches import BatchesSeen, batch_script
from harness.lab.findings.playable import PlayableFinding, Played, Way, expects_always
from harness.lab.findings.stage import FindingStage


def play_refused(stage: FindingStage) -> Played:
    """Lose the answer to the first batch, and refuse it when it is sent again."""
    with batch_script(stage) as script:
        return played(script.lose_an_answer())


def play_expired(stage: FindingStage, *, reference: bool = False) -> Played:
    """Keep answers back until the delivery time of the first record is over."""
    with batch_script(stage, reference=reference) as script:
        return played(script.withhold_answers())


def played(seen: BatchesSeen) -> Played:
    """It shows where a record that was reported as delivered is in the log twice."""
    doubled = [number for number in seen.doubled if number in seen.delivered]
    twice = ", ".join(map(str, doubled)) or "none"
    return Played.of(
        [*seen.sentences(), f"records that were reported as delivered and are in the log twice: {twice}"],
        shown=bool(doubled),
    )


FINDING: Final = PlayableFinding(
    "003",
    {
        "refused": Way("a batch whose answer was lost is refused", play_refused),
        "expired": Way("the delivery time of a record is over", play_expired),
        "reference": Way(
            "as expired, on the reference broker",
            partial(play_expired, reference=True),
            expects_always,
            ("confluent-kafka",),
            False,
        ),
    },
    clients=("confluent-kafka", "java"),
)
