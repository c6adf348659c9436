"""Finding 013: what a producer with one request in flight, and without idempotence, sends after a refused batch."""

from __future__ import annotations

from functools import partial
from typing import Final

from harness.lab.findings.batches import REFUSED, BatchesSeen, batch_script
from harness.lab.findings.playable import PlayableFinding, Played, Way, expects_always
from harness.lab.findings.senders import RECORDS
from harness.lab.findings.stage import FindingStage

#: The time in which a library can make its next request ready.
_READY_US: Final = 1_000_000
#: A busy machine may need longer to make a request ready, or have the leader refuse another one. Each further try has
#: twice the time.
TRIES: Final = 3


def play(stage: FindingStage, *, reference: bool = False) -> Played:
    """Refuse the first batch, and have the next request arrive when the leader takes acks=all again."""
    with batch_script(stage, reference=reference, in_flight=1, idempotent=False) as script:
        for doubling in range(TRIES):
            seen = script.refuse_the_first(_READY_US << doubling)
            if changed_order(seen):
                break
    return played(seen)


def changed_order(seen: BatchesSeen) -> bool:
    """True if all records were reported as delivered, and the log has another order than that of the sends."""
    return len(seen.delivered) == RECORDS and seen.order != sorted(seen.order)


def played(seen: BatchesSeen) -> Played:
    """It shows where the order changed."""
    # Without idempotence batches have no sequences.
    answers = ", ".join("refused" if answer.error == REFUSED else "appended" for answer in seen.answers)
    *_, reports, log = seen.sentences()
    return Played.of(
        ["records 0 to 3 were sent in this order", f"answers of the leader in their order: {answers}", reports, log],
        shown=changed_order(seen),
    )


FINDING: Final = PlayableFinding(
    "013",
    {
        "refused": Way("the first batch is refused", play),
        "reference": Way(
            "the same on the reference broker",
            partial(play, reference=True),
            expects_always,
            ("confluent-kafka",),
            False,
        ),
    },
    clients=("confluent-kafka", "java"),
)
