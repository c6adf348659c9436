"""The page of one cell: what happened stands in its diagram, what was lost is marked, and nothing needs the network."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from harness.broker.core.messages import Fetch, FetchPartition, Heartbeat, Produce, RecordBatch
from harness.broker.core.types import ACKS_ALL, TopicPartition
from harness.runs.stories import known_stories
from harness.runs.stories.shown.diagram import WIDTH, Diagram, diagram_of
from harness.runs.stories.shown.explanation import explained
from harness.runs.stories.shown.messages import MessageWords
from harness.runs.stories.table.cells import perform_cell
from harness.worlds.simulated.watching import SeenMessage, Watching

S09 = known_stories()["S09"]
AT = TopicPartition("story", 0)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {column: explained(S09, column)[1] for column in ("all/2", "all/2/E")}


@pytest.fixture(scope="module")
def diagram() -> Diagram:
    watched = Watching(str(AT))
    cell = perform_cell(S09, "all/2", watched)
    return diagram_of(cell.trace, cell.lost, S09.steps, watched, AT)


def test_watching_a_story_changes_nothing_in_it() -> None:
    assert explained(S09, "all/2")[0] == perform_cell(S09, "all/2")


def test_the_page_loads_nothing_and_its_drawing_is_well_formed(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert "default-src 'none'" in page
        assert not re.search(r"https?://|src=|@import|<script", page)
        drawing = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])  # noqa: S314 - our own
        assert drawing.get("width") == str(WIDTH)
        assert "prefers-color-scheme: dark" in page


def test_what_was_lost_is_marked_on_its_whole_way_and_nothing_where_nothing_was(pages: dict[str, str]) -> None:
    marked = re.findall(r'<text class="[^"]*is-lost"[^>]*>([^<]*)<', pages["all/2"])
    assert {"Produce w, acks=all", "w, high watermark 1", "+ w: log ends at 2", "− w: log ends at 1"} <= set(marked)
    assert "is-lost" not in pages["all/2/E"].partition("<svg")[2]


def test_every_step_of_the_script_and_every_replica_stands_in_the_text(pages: dict[str, str]) -> None:
    text = pages["all/2"].partition("<pre>")[2]
    assert "power 0" in text
    assert "0 is dead: log end offset" in text
    assert "high watermark 2, leader epoch 0, ISR 0 1 2, log: base/0 w/0" in text


def test_messages_go_down_from_one_column_to_another(diagram: Diagram) -> None:
    columns = {lane.x for lane in diagram.lanes}
    assert [lane.name for lane in diagram.lanes] == ["the clients", "broker 0", "broker 1", "broker 2", "controller"]
    assert all(arrow.y1 < arrow.y2 and {arrow.x1, arrow.x2} <= columns for arrow in diagram.arrows)
    assert {"AlterPartition: ISR 0", "accepted: ISR 0", "Fetch from 2"} <= {arrow.text for arrow in diagram.arrows}


def test_rows_are_in_the_order_of_time_and_nothing_is_outside(diagram: Diagram) -> None:
    rows = [y for y, _ in diagram.moments]
    assert rows == sorted(set(rows))
    assert max(*rows, *(label.y for label in diagram.labels), *(band.y2 for band in diagram.bands)) <= diagram.height
    assert diagram.silences


def test_a_broker_without_power_is_dead_until_it_is_started_and_its_links_are_cut_until_they_are_healed(
    diagram: Diagram,
) -> None:
    dead = {lane.name: lane.dead for lane in diagram.lanes if lane.dead}
    assert list(dead) == ["broker 0"]
    assert len(dead["broker 0"]) == 1
    assert {span.text for span in diagram.spans} >= {"cut 0-1", "cut 0-2"}
    assert all(span.y1 < dead["broker 0"][0][0] < span.y2 for span in diagram.spans)


def test_what_comes_to_a_cut_on_its_way_does_not_arrive() -> None:
    watched = Watching(str(AT))
    cell = perform_cell(known_stories()["S04"], "all/2", watched)
    cut, healed = (
        next(entry.ended_us for entry in cell.trace.entries if entry.text == text)
        for text in ("isolate 0", "(all links are healed)")
    )
    while_cut = [message for message in watched.messages if cut < message.time_us < healed]
    assert while_cut
    assert not [
        message
        for message in while_cut
        if 0 in (message.source, message.target) and max(message.source, message.target) <= 100
    ]


def fetch(offset: int) -> SeenMessage:
    return SeenMessage(1, 1, 0, Fetch(0, 1, 500, (FetchPartition(AT, offset),)))


def test_what_repeats_what_was_sent_before_is_left_out() -> None:
    words = MessageWords(AT, {})
    message = [words.of(fetch(offset)) for offset in (3, 3, 4)]
    assert [None if described is None else described.text for described in message] == [
        "Fetch from 3",
        None,
        "Fetch from 4",
    ]
    assert words.of(SeenMessage(1, 1, 100, Heartbeat(1, 0, 0))) is None


def test_a_message_of_another_log_partition_says_nothing() -> None:
    other = FetchPartition(TopicPartition("other", 0), 3)
    assert MessageWords(AT, {}).of(SeenMessage(1, 1, 0, Fetch(0, 1, 500, (other,)))) is None


def test_a_message_names_the_records_that_it_carries() -> None:
    batch = RecordBatch(1, 8, ((b"", b"unreadable"),))
    words = MessageWords(AT, {}).of(SeenMessage(1, 1000, 0, Produce(0, AT, ACKS_ALL, 100, batch)))
    assert words is not None
    assert words.records == ("(fresh)",)
