"""Runs in virtual time in which calls of transactional producers end with an error of each class, and what follows."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from harness.plan import parse_plan
from harness.records.files import HISTORY
from harness.runs.run.performing import perform_run
from workloads import ErrorClass, EventType, Function, TransactionEnd
from workloads.history import read_events

PLAN = """
seed = 1
families = ["partition"]
[settings]
min.insync.replicas = 2
delivery.timeout.ms = 500
request.timeout.ms = 400
{settings}
[workload]
{workload}
[worlds.simulated]
runs = 1
workload = {{ writes_per_second = 30.0, duration_ms = 4_000, drain_limit_ms = 60_000 }}
"""
#: Requests of this kind, and their answers, are lost for three seconds; a call takes two at most.
LOST = """
[[schedule]]
begin_ms = 500
end_ms = 3_500
fault = "dropmessages"
shape = "from-clients"
api = "{api}"
broker = {broker}
group = {broker}
"""
TRANSACTIONS = 'name = "transactions"\nsends_per_transaction = 4\naborts_percent = 25\ntakeover_every_ms = 1_000'
PIPELINE = 'name = "consume-transform-produce"\nmember_change_ms = 0'
#: A transaction may be open for as long as three tries take.
PATIENT = 'transaction.timeout.ms = 30_000\nsession.timeout.ms = 15_000\ngroup.protocol = "consumer"'


@pytest.mark.parametrize(
    ("error_class", "kind", "goes_on", "chosen"),
    [
        (ErrorClass.FATAL, "fail", False, (TRANSACTIONS, "", "EndTxn")),
        (ErrorClass.UNKNOWN, "info", False, (TRANSACTIONS, "", "EndTxn")),
        (ErrorClass.ABORTABLE, "fail", True, (TRANSACTIONS, "", "Produce")),
        (ErrorClass.RETRIABLE, "ok", True, (PIPELINE, PATIENT, "TxnOffsetCommit")),
    ],
    ids=list(ErrorClass),
)
def test_an_error_of_each_class_is_followed_by_what_the_table_says(
    error_class: ErrorClass, kind: str, goes_on: bool, chosen: tuple[str, str, str], tmp_path: Path
) -> None:
    workload, settings, lost = chosen
    plan = PLAN.format(workload=workload, settings=settings)
    plan += "".join(LOST.format(api=lost, broker=broker) for broker in range(3))
    (spec,) = parse_plan(plan, "p.toml").runs()
    assert perform_run(spec, tmp_path / "run").status == "completed"
    after: Counter[int] = Counter()
    followed = list[bool]()
    for event in reversed(list(read_events(tmp_path / "run" / HISTORY))):
        if event.function is not Function.TXN or event.type is EventType.INVOKE:
            continue
        end = msgspec.json.decode(event.detail or "", type=TransactionEnd)
        if (end.asked, event.type, end.error_class) == ("commit", kind, error_class):
            followed.append(after[event.process] > 0)
        after[event.process] += 1
    assert followed
    assert any(followed) == goes_on
