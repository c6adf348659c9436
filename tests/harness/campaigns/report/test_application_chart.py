"""The chart of an application: what became of its inputs over time, and what happened to its instances."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from checkers import ApplicationCounts, Verdict
from checkers.measures.application_counts import InstanceEnd
from harness.campaigns.campaign.witnesses import choose_witnesses
from harness.campaigns.report import write
from harness.campaigns.report.application_chart import application_chart
from harness.records.verdict_lines import write_matrix
from nemesis.receipts import Receipt
from tests.harness.campaigns.report.conftest import kill_receipt
from workloads import InputProgress
from workloads.settings import Settings

POINTS = (InputProgress(1_000_000, 0, 0, 0), InputProgress(2_000_000, 40, 30, 20), InputProgress(9_000_000, 80, 79, 78))


def counts(**more: Any) -> ApplicationCounts:
    return ApplicationCounts(
        promise="at-least-once", inputs=80, once=79, pending=1, instances=2, progress=POINTS, **more
    )


def titles(drawing: str) -> list[str]:
    return re.findall(r"<title>(.*?)</title>", drawing)


def instance_killed(instance: int) -> Receipt:
    return msgspec.structs.replace(
        kill_receipt(),
        fault="instancekill",
        role="an instance of the application",
        targets=(1000,),
        begin_evidence={"1000": {"instance": instance, "exit": "signal 9"}},
    )


def test_it_says_how_many_inputs_had_an_effect_and_were_committed_in_the_end() -> None:
    said = titles(application_chart(counts(), []))
    assert said == ["inputs: 80", "with an effect: 79", "committed: 78"]
    assert "with an effect: 79" not in titles(application_chart(counts(blind=True), []))
    assert application_chart(ApplicationCounts(), []) == ""


def test_a_fault_of_an_instance_is_in_its_track_and_so_is_an_end_that_nobody_asked_for() -> None:
    drawing = application_chart(counts(ends=(InstanceEnd(1, 4_000_000, "status 3"),)), [instance_killed(1)])
    assert titles(drawing).count("instancekill [an instance of the application]") == 2, "a band, and in the track"
    assert "instance 1 ended by itself at 4.0 s: status 3" in titles(drawing)
    assert len(titles(application_chart(counts(), [instance_killed(7)]))) == 4, "only a band: it is none of the plan's"


def test_the_page_has_the_sentence_and_the_chart_of_each_cell(
    campaign: tuple[Path, Callable[..., Verdict]],
) -> None:
    directory, make = campaign
    make(Settings(), cell="instance-kill", application=counts())
    make(Settings(), cell="instance-stop", application=counts(topics=("own",)))
    write_matrix(directory)
    choose_witnesses(directory)
    page = write(directory).read_text(encoding="utf-8")
    assert "Of 80 inputs, 79 had their effect once, 1 were still to be done." in page
    assert "It made the topics own by itself." in page
    assert page.count("The application over the whole run") == 2
