"""Finding 004: more than five batches of one producer are in flight to two leaders.

Five are appended by the leader and not answered; the leadership moves; two reach the next leader, and are answered;
then the connection to the former leader breaks.
"""

from __future__ import annotations

from typing import Final

from harness.lab.findings.batches import UNDER_WAY, batch_script
from harness.lab.findings.doubled_records import played
from harness.lab.findings.playable import PlayableFinding, Played, Way
from harness.lab.findings.stage import FindingStage, NotObservedError

#: The most age of the client's knowledge of leaders. It asks over the connection that gives no answers if not all
#: five are under way by then; a record's time is over after four times that.
_METADATA_MS: Final = 3_500
#: Each further try has twice the time, for a machine that does not keep up.
TRIES: Final = 3
_EXPIRED: Final = "TimeoutException"


def play(stage: FindingStage) -> Played:
    """Have two records reach the next leader while five are under way, and the second of these have time left.

    Where its time is over too, the rest are known again: nothing is refused any more, and nothing written again.
    """
    with batch_script(stage) as script:
        for doubling in range(TRIES):
            metadata_ms = _METADATA_MS << doubling
            seen = script.overtake(4 * metadata_ms, metadata_ms)
            in_order = [batch.sequence for batch in seen.sent[: UNDER_WAY + 2]] == list(range(UNDER_WAY + 2))
            if in_order and seen.reports[1] != _EXPIRED:
                return played(seen)
    raise NotObservedError(
        f"in none of {TRIES} tries seven batches were under way before the first one's time was over"
    )


FINDING: Final = PlayableFinding(
    "004", {"overtaken": Way("five batches are in flight to one leader, two to the next", play)}, clients=("java",)
)
