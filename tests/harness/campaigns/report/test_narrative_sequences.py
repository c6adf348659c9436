"""An account says what a broker refused because its log lacks batches of a producer, and whether clients were told."""

from __future__ import annotations

import re
import shlex
from html import unescape
from pathlib import Path

import pytest

from harness.campaigns.report.narrative import narrate
from harness.campaigns.report.timeline import Subject, Timeline, read_timeline
from harness.cli.app import exit_code_of
from harness.ground.observations import Observation, Seen, SequenceRefused
from harness.records.cluster_file import write_observations
from harness.records.files import HISTORY
from tests.harness.campaigns.report.test_narrative import LEADER_0, WRITE
from workloads.history import HistoryWriter
from workloads.operations import Event, EventType, Function, Send
from workloads.values import join

REFUSED = SequenceRefused(partition="t-0", producer_id=7, sequence=12, last_sequence=8)


def told(*refusals: Seen[SequenceRefused], out_of_order: int = 0) -> list[str]:
    timeline = Timeline(
        partition="t-0", write=WRITE, begin_us=0, end_us=9_000_000, refusals=refusals, out_of_order=out_of_order
    )
    return [sentence for sentence in narrate(timeline) if "OUT_OF_ORDER" in sentence or "that error" in sentence]


@pytest.mark.parametrize(
    ("out_of_order", "last"),
    [
        (
            0,
            "No write ended with that error: the library restarted its sequence numbers, and told no application.",
        ),
        (3, "3 writes to t-0 ended with that error: their clients were told."),
    ],
)
def test_a_log_that_lacks_batches_of_a_producer_says_so_and_whether_clients_were_told(
    out_of_order: int, last: str
) -> None:
    assert told(Seen(2_500_000, 1, REFUSED), out_of_order=out_of_order) == [
        (
            "At 2.500 s broker 1 refused a batch of producer id 7 that began with sequence 12: its log had it up to 8 "
            "(OUT_OF_ORDER_SEQUENCE_NUMBER)."
        ),
        last,
    ]


@pytest.mark.parametrize(("last_sequence", "log"), [(-1, ": its log had nothing of it"), (None, "")])
def test_what_a_log_has_of_a_producer_is_said_only_where_its_broker_said_so(
    last_sequence: int | None, log: str
) -> None:
    refused = SequenceRefused(partition="t-0", producer_id=7, sequence=12, last_sequence=last_sequence)
    assert told(Seen(2_500_000, 1, refused))[0] == (
        f"At 2.500 s broker 1 refused a batch of producer id 7 that began with sequence 12{log} "
        "(OUT_OF_ORDER_SEQUENCE_NUMBER)."
    )


def test_a_batch_that_the_log_had_already_is_no_news_of_a_loss_to_a_client() -> None:
    late = SequenceRefused(partition="t-0", producer_id=7, sequence=92, last_sequence=168)
    sentence = (
        "At 2.500 s broker 1 refused a batch of producer id 7 that began with sequence 92: its log had it up to 168 "
        "already (OUT_OF_ORDER_SEQUENCE_NUMBER)."
    )
    assert told(Seen(2_500_000, 1, late), out_of_order=1) == [sentence]
    assert told(Seen(2_500_000, 1, late), Seen(2_600_000, 1, REFUSED))[-1].startswith("No write ended with that error")


def test_a_loss_that_no_broker_noticed_says_nothing_of_sequences() -> None:
    assert told() == []


def test_a_batch_that_is_refused_again_and_again_is_told_once(tmp_path: Path) -> None:
    history = HistoryWriter(tmp_path / HISTORY, "run")
    send = {"process": 2, "function": Function.SEND}
    history.record(Event(time_us=1_000_000, type=EventType.INVOKE, micro=(Send("t-0", WRITE.value),), **send))
    history.record(Event(time_us=1_003_000, type=EventType.OK, micro=(Send("t-0", WRITE.value, 41),), node=0, **send))
    late = {"time_us": 2_900_000, "type": EventType.INFO, "error": "OutOfOrderSequenceNumberError: 12"}
    for partition in ("t-0", "t-1"):
        history.record(Event(process=3, function=Function.SEND, micro=(Send(partition, join(3, 1)),), **late))
    history.close()
    times_us = (500_000, 2_500_000, 2_600_000)
    write_observations(tmp_path, [LEADER_0, *(Observation(at_us, 1, REFUSED) for at_us in times_us)])
    timeline = read_timeline(tmp_path, Subject("lost-write", "t-0", [WRITE.value]), (), frozenset([WRITE.value]))
    assert timeline is not None
    assert timeline.refusals == (Seen(2_500_000, 1, REFUSED),)
    assert timeline.out_of_order == 1


@pytest.mark.system
def test_the_command_in_the_plan_of_delivery_shows_the_refusal_by_which_a_loss_is_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Path(__file__).parents[4] / "plans" / "delivery.toml"
    written = plan.read_text(encoding="utf-8").replace("\n#     ", " ")
    (command,) = re.findall(r"^#   ackproof (run .*)$", written, re.MULTILINE)
    asked = command.replace("plans/delivery.toml", str(plan))
    assert exit_code_of([*shlex.split(asked), "--out", str(tmp_path / "out")]) == 0
    assert "as permitted: " in capsys.readouterr().out
    page = unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    refused = re.findall(r"At ([.\d]+) s broker \d refused a batch of producer id \d+ that began with", page)
    gone = re.findall(r"At ([.\d]+) s broker \d began to lead in epoch \d+; .*, without the write", page)
    assert gone
    assert refused
    assert min(map(float, gone)) < min(map(float, refused))
