"""Finding 005: a broker that was started again knows one batch of a producer, and leads while four are in flight."""

from __future__ import annotations

from functools import partial
from typing import Final

from harness.lab.findings.batches import BatchesSeen, batch_script
from harness.lab.findings.playable import PlayableFinding, Played, Way, expects_nothing
from harness.lab.findings.stage import FindingStage


def play(stage: FindingStage, *, killed: bool, reference: bool = False) -> Played:
    """Start the next leader again while answers are kept back, and break the connection to the former one."""
    with batch_script(stage, reference=reference) as script:
        return played(script.forget(killed=killed))


def played(seen: BatchesSeen) -> Played:
    """It shows where records are in the log twice, or where one that is in the log was reported as failed."""
    failed = sorted(set(seen.order) - set(seen.delivered))
    facts = [
        f"records that are in the log twice: {', '.join(map(str, seen.doubled)) or 'none'}",
        f"records that are in the log and were reported as failed: {', '.join(map(str, failed)) or 'none'}",
    ]
    return Played.of([*seen.sentences(), *facts], shown=bool(seen.doubled or failed))


FINDING: Final = PlayableFinding(
    "005",
    {
        "shutdown": Way("the next leader was shut down and started", partial(play, killed=False)),
        "kill": Way("the next leader was killed and started", partial(play, killed=True)),
        "reference": Way(
            "as shutdown, on the reference broker, which rebuilds all batches",
            partial(play, killed=False, reference=True),
            expects_nothing,
            ("java",),
            False,
        ),
    },
    clients=("java", "confluent-kafka"),
    minutes=2,
)
