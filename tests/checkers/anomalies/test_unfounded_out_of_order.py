"""An error that tells of a loss, where nothing is lost, is a finding about a client or a broker, not about the log."""

from __future__ import annotations

import msgspec
import pytest

from checkers.anomalies.unfounded_out_of_order import UnfoundedError
from checkers.verdicts.judgement import judge
from checkers.verdicts.verdict import Verdict
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import INFO, INVOKE, OK, Scene
from workloads import Function, Send, Settings
from workloads.errors import Refusal, refusal

IDEMPOTENT = Settings(enable_idempotence=True, min_insync_replicas=2)


def refused(scene: Scene, value: int, error: str = "OutOfOrderSequenceNumberError: 2") -> int:
    """A write of producer 0 that ends with this error."""
    micro = (Send("t-0", value),)
    scene.event(0, INVOKE, Function.SEND, micro=micro, instance=0)
    return scene.event(0, INFO, Function.SEND, micro=micro, instance=0, error=error)


def told(
    *read: int, error: str = "OutOfOrderSequenceNumberError: 2", expired: bool = False, drained: bool = True
) -> Verdict:
    """Writes 0 and 1 are acknowledged, 2 is refused, and a final reader reads these values."""
    scene = Scene()
    for value in (0, 1):
        micro = (Send("t-0", value, value),)
        scene.event(0, INVOKE, Function.SEND, micro=(Send("t-0", value),), instance=0)
        scene.event(0, OK, Function.SEND, micro=micro, instance=0)
    if expired:
        refused(scene, 7, "KafkaTimeoutError: expired")
    refused(scene, 2, error)
    scene.poll(*((value, value) for value in read), process=9)
    if drained:
        scene.drain(2)
    return judge_events(scene.events, shown=None)


def findings(verdict: Verdict) -> list[UnfoundedError]:
    return verdict.findings(UnfoundedError)


@pytest.mark.parametrize(
    "error",
    [
        "OutOfOrderSequenceNumberError: words of a broker",
        "OutOfOrderSequenceException",
        "OUT_OF_ORDER_SEQUENCE_NUMBER: Broker: Out of order sequence number",
    ],
)
def test_the_error_of_each_library_is_a_finding_where_the_log_has_everything(error: str) -> None:
    assert refusal(error) is Refusal.OUT_OF_ORDER
    (finding,) = findings(told(0, 1, error=error))
    assert (finding.key, finding.value, finding.instance, finding.unanswered) == ("t-0", 2, 0, 0)


def test_where_an_acknowledged_write_is_lost_the_error_is_right() -> None:
    verdict = told(0)
    assert "lost-write" in verdict.counts
    assert findings(verdict) == []


def test_where_the_log_was_not_read_to_its_end_nothing_is_known() -> None:
    assert findings(told(0, 1, drained=False)) == []


def test_another_error_is_no_finding() -> None:
    assert findings(told(0, 1, error="NotEnoughReplicasError")) == []


def test_a_batch_that_was_given_up_before_is_counted() -> None:
    (finding,) = findings(told(0, 1, expired=True))
    assert finding.unanswered == 1


def test_it_breaks_no_promise_and_makes_no_history_invalid() -> None:
    verdict = told(0, 1)
    assert verdict.valid is True
    judgement = judge(IDEMPOTENT, verdict)
    assert (judgement.broken, judgement.permitted, judgement.lost) == ({}, {"unfounded-out-of-order": 1}, 0)


def test_a_record_that_may_be_gone_by_age_excuses_the_error() -> None:
    scene = Scene()
    scene.keyed(0, 0, 5)
    scene.keyed(1, 1, 5)
    refused(scene, 2)
    scene.poll((1, 1), process=9)
    scene.drain(2)
    assert findings(judge_events(scene.events, shown=None)) == []


def test_it_counts_as_no_refusal_for_want_of_replicas() -> None:
    scene = Scene()
    scene.fault("begin")
    refused(scene, 0)
    scene.fault("end")
    verdict = judge_events(scene.events, shown=None)
    assert [met.refused for met in verdict.fault_exercise or ()] == [0]
    assert msgspec.structs.asdict(verdict.exercise)["unknown"] == 1
