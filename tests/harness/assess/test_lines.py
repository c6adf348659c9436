"""The words of an assessment: verdicts first, a table, each concern once, in lines, in Markdown and on the page."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from harness.assess import (
    Assessed,
    Assessment,
    Concern,
    Promised,
    Requirement,
    ShownStory,
    as_markdown,
    as_page,
    lines_of,
)
from harness.assess.prices import measured_of
from harness.assess.sentences import (
    AnswerRow,
    begun,
    clean_words,
    gathered,
    heading,
    measured_words,
    ordered,
    story_words,
    table_of,
)
from harness.ground.known_defects import every_defect
from harness.records.assessment_file import Figures, MeasuredPrice

SHOWN = ShownStory(story="S06", title="t", harm="acknowledged and lost", records=("x",), families=("kill",), link="l")
ACKS = Concern(
    kind="weakness", name="acks", sentence="s", shown=(SHOWN, SHOWN), command="again", change="acks=all", price="p"
)
RACKS = Concern(kind="risk", name="racks", sentence="s", change="a rack", price="p")
DEFECT = Concern(kind="defect", name="finding-002", sentence="s", change="none", price="p", link="docs/findings/2.md")
FLUSH = Concern(kind="weakness", name="left-to-flush", sentence="s", shown=(SHOWN,), change="flush", price="p")
CHANCE = Concern(kind="weakness", name="left-to-chance", sentence="s", shown=(SHOWN,), change="", price="")
KEPT = (Promised(families=("kill",), kept=True, sentence="kept"),)


def group(
    *topics: str, concerns: tuple[Concern, ...] = (), left: tuple[Concern, ...] = (FLUSH, CHANCE), producer: str = "p"
) -> Assessed:
    return Assessed(
        topics=topics,
        partitions=1,
        replicas=3,
        racks=None,
        settings={"acks": "1"},
        producer=producer,
        promised=KEPT,
        concerns=concerns,
        left=left,
        performed=48,
    )


def assessment(*groups: Assessed) -> Assessment:
    return Assessment(source="files", groups=groups, limits=("a limit",))


FOUR = assessment(
    group("a", "b", concerns=(ACKS, RACKS, DEFECT)),
    group("c", concerns=(ACKS, DEFECT)),
    group("d", concerns=(DEFECT,)),
    group("e"),
)


def test_what_is_about_some_topics_comes_before_what_is_about_every_topic_and_is_marked() -> None:
    """On some releases no topic is without a known defect, so only its own tell one from another."""
    own = msgspec.structs.replace(DEFECT, name="finding-006", change="its own")
    both = assessment(group("clean", concerns=(DEFECT,)), group("keyed", concerns=(DEFECT, own)))
    assert table_of(both) == [
        AnswerRow("clean", "p", "known defects", "none"),
        AnswerRow("keyed", "p", "known defects, 1 of its own", "its own (1 more)"),
    ]
    assert [said.concern.name for said in gathered(both, ("defect",), left=False)] == ["finding-006", "finding-002"]
    for text in ("\n".join(lines_of(both)), as_markdown(both), as_page(both)):
        assert "known defects, 1 of its own" in text
        assert text.index("finding-006") < text.index("finding-002")


def test_every_concern_is_said_once_below_a_table_with_the_verdicts_first() -> None:
    required = (Requirement(text="no disorder", met=True), Requirement(text="no risk", met=False, reasons=("why",)))
    lines = list(lines_of(msgspec.structs.replace(FOUR, requirements=required, new=("a: risk racks",))))
    assert lines[:6] == ["NOT MET: no risk", "  why", "met: no disorder", "new: a: risk racks", "", heading(FOUR)]
    assert lines[7:12] == [
        "topics  answer         first change",
        "a, b    weak           acks=all (2 more)",
        "c       weak           acks=all (1 more)",
        "d       known defects  none",
        "e       clean          -",
    ]
    titles = [line.split(": s")[0] for line in lines[12:] if line.endswith(": s")]
    assert titles == [
        "Weak: acks (a, b, c)",
        "Risky: racks (a, b)",
        "Known defect: finding-002 (a, b, c and 1 more)",
        "At a higher price: left-to-flush (every topic)",
        "Whatever is set: left-to-chance (every topic)",
    ]
    assert sum("again:" in line for line in lines) == 1
    assert lines[13] == "Promised (every topic): kept Under: kill."


def test_the_worst_answers_come_first_and_reasons_are_few() -> None:
    reasons = tuple(f"reason {number}" for number in range(5))
    required = (Requirement(text="no risk", met=False, reasons=reasons),)
    backwards = Assessment(source="files", groups=FOUR.groups[::-1], requirements=required)
    lines = list(lines_of(backwards))
    assert lines[1:5] == ["  reason 0", "  reason 1", "  reason 2", "  and 2 more reasons"]
    assert [line[0] for line in lines[9:13]] == ["c", "a", "d", "e"]
    assert "  reason 4" in list(lines_of(backwards, details=True))


def test_details_add_promises_settings_and_every_story_of_each_group() -> None:
    short, long = list(lines_of(FOUR)), list(lines_of(FOUR, details=True))
    assert sum("S06" in line for line in short) == 3
    assert sum("S06" in line for line in long) == 6, "two of each weak group, and what is left once"
    assert "  Promised under kill: kept" in long
    assert "  Promised under kill: kept" not in short
    assert "  Said below: finding-002; at a higher price: left-to-flush; whatever is set: left-to-chance" in long


def test_the_answers_of_two_producers_are_told_apart() -> None:
    lines = list(lines_of(assessment(group("a", concerns=(ACKS,), producer="one"), group("a", producer="two"))))
    assert [line.split() for line in lines[2:5]] == [
        ["topics", "producer", "answer", "first", "change"],
        ["a", "one", "weak", "acks=all"],
        ["a", "two", "clean", "-"],
    ]
    assert "Weak: acks (a; producer one): s" in lines


def test_the_heading_counts_known_defects_and_stories_that_tell_nothing() -> None:
    assert heading(FOUR) == (
        "5 topics with 4 answers: 3 with a weakness or a risk, 1 with known defects only, 1 without a known problem."
    )
    unknown = msgspec.structs.replace(FOUR.groups[3], unknown=("S70: why; step by step: a command",))
    untold = msgspec.structs.replace(FOUR, groups=(*FOUR.groups[:3], unknown))
    assert heading(untold).endswith(" 1 story gives no answer, see below.")
    assert "not known: S70: why; step by step: a command (e)" in list(lines_of(untold))
    assert "S70: why" in as_page(untold)
    assert "S70: why" in as_markdown(untold)


def test_a_group_with_defects_is_not_said_to_have_nothing_the_matter() -> None:
    assert clean_words(group("d", concerns=(DEFECT,))).startswith("1 known defect, but no known weakness or risk")
    assert clean_words(group("e")).startswith("No known problem: of 48 stories")


def test_old_rules_without_a_promise_are_not_called_clean() -> None:
    lost = (Promised(families=("kill",), kept=False, sentence="lost"),)
    old = assessment(msgspec.structs.replace(group("a"), promised=lost))
    assert "1 with a weakness or a risk" in heading(old)
    assert "a       not promised  -" in list(lines_of(old))


@pytest.mark.parametrize(
    ("records", "together", "said"),
    [
        (("x",), (), "S06 t: a record (x) acknowledged and lost"),
        (("base", "x"), (), "S06 t: records (base, x) acknowledged and lost"),
        (("a record",), ("acks",), "S06 t: a record acknowledged and lost (to prevent it, change acks, too)"),
        (("x",), ("acks", "b"), "S06 t: a record (x) acknowledged and lost (to prevent it, change acks and b, too)"),
    ],
)
def test_a_story_names_its_records(records: tuple[str, ...], together: tuple[str, ...], said: str) -> None:
    assert story_words(msgspec.structs.replace(SHOWN, records=records, together=together)) == said


def test_reasons_of_a_promise_begin_with_a_capital() -> None:
    said = "May be lost: acks=1: why (rule 2). a copy was destroyed (KIP-966). unclean.leader=true: why (rule 3)."
    assert begun(said) == said.replace("a copy", "A copy")


def test_defects_are_in_the_order_of_their_numbers() -> None:
    names = ("finding-005", "KAFKA-9254", "finding-002", "KAFKA-15489")
    defects = [msgspec.structs.replace(DEFECT, name=name) for name in names]
    assert [each.name for each in ordered([*defects, RACKS, ACKS])] == [
        "acks", "racks", "KAFKA-9254", "KAFKA-15489", "finding-002", "finding-005",
    ]  # fmt: skip


def test_the_page_has_a_list_with_links_and_what_is_common_once() -> None:
    public = msgspec.structs.replace(DEFECT, name="KAFKA-1", link="https://kafka.example/1")
    reasons = tuple(f"reason {number}" for number in range(5))
    full = msgspec.structs.replace(
        assessment(*FOUR.groups, group("f", concerns=(public,))),
        requirements=(Requirement(text="no risk", met=False, reasons=reasons),),
    )
    page = as_page(full)
    for number in range(1, 6):
        assert f'href="#group-{number}"' in page
        assert f'id="group-{number}"' in page
    assert '<a href="https://kafka.example/1">' in page
    assert "<code>docs/findings/2.md</code>" in page
    assert page.count("finding-002") == 1
    assert "2 more reasons" in page
    assert as_markdown(full).count("finding-002") == 1


PRICE: Final = MeasuredPrice(
    source=("kafka-prices-java",),
    client="Java 4.3.1",
    day="2026-11-29",
    cores=2,
    runs=5,
    before=Figures(release="4.3.1", settings={"acks": "1"}, p50_us=2_000, p99_us=None),
    after=Figures(release="4.3.1", settings={"acks": "all"}, p50_us=4_000, p99_us=None),
)


def test_a_price_has_the_figures_that_were_measured_and_says_no_more_where_there_are_none() -> None:
    said = assessment(group("a", concerns=(msgspec.structs.replace(ACKS, measured=(PRICE,)), RACKS)))
    lines = list(lines_of(said))
    assert "  change: acks=all; price: p" in lines
    assert "  change: a rack; price: p" in lines
    assert [line for line in lines if "measured: " in line] == [f"  measured: {measured_words(PRICE)}"]
    for text in (as_page(said), as_markdown(said)):
        assert measured_words(PRICE) in text
        assert "not measured" not in text


def test_the_words_of_a_measured_price_have_the_latencies_that_set_both_apart() -> None:
    head = "on 4.3.1 with Java 4.3.1, from acks=1 to acks=all (2026-11-29, 5 runs each, without a fault): "
    assert measured_words(PRICE) == f"{head}p50 of a write 4 ms instead of 2 ms"
    busy = msgspec.structs.replace(PRICE, load="3")
    assert "5 runs each, load 3 on 2 cores, without a fault" in measured_words(busy)


def test_the_figures_of_a_client_are_those_of_its_library() -> None:
    for library in ("java", "librdkafka"):
        assert all(price.client.lower().startswith(library) for price in measured_of(["one-in-flight"], library))
    named = {defect.name for defect in every_defect() if defect.measured}
    assert {"finding-001", "finding-003", "finding-004", "finding-005"} <= named
