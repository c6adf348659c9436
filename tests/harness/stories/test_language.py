"""Scripts and story files: what they mean, and what is said of those that mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import PlanError
from harness.stories import known_stories, parse_story
from harness.stories import steps as s
from harness.stories.language import parse_script
from nemesis.cluster import CLIENTS, CONTROLLER, Link
from nemesis.faults import CorruptRecord, DropMessages, HoldMessages, Kill, MoveLeader, Partition, PowerLoss
from nemesis.repairs import HEAL, RELEASE, START


def one(text):
    *_, step = parse_script(f"write x to 0\nwrite y to 0\n{text}", "my.toml")
    return step


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("write z to 0", s.Write, {"record": "z", "to": 0, "acks": None, "producer": None}),
        ("write z to leader acks=1 as p", s.Write, {"to": s.Role.LEADER, "acks": 1, "producer": "p"}),
        ("send z to the former leader acks=all", s.Send, {"to": s.Role.FORMER_LEADER, "acks": -1}),
        ("retry x to the other follower", s.Retry, {"record": "x", "to": s.Role.OTHER_FOLLOWER}),
        ("wait 50 ms", s.Wait, {"ms": 50}),
        ("wait 3 s   # a comment", s.Wait, {"ms": 3_000, "text": "wait 3 s"}),
        ("kill 0 leader", s.Begin, {"fault": Kill, "nodes": (0, s.Role.LEADER)}),
        ("power all", s.Begin, {"fault": PowerLoss, "nodes": (0, 1, 2)}),
        ("start 0", s.Undo, {"repair": START, "nodes": (0,)}),
        ("flush 0 1", s.Flush, {"nodes": (0, 1)}),
        ("never start 0", s.Abandon, {"nodes": (0,)}),
        ("corrupt x on 1", s.Begin, {"fault": CorruptRecord, "record": "x", "nodes": (1,)}),
        ("cut 0-1 2>controller", s.Begin, {"fault": Partition, "links": (Link(0, 1), Link(1, 0), Link(2, CONTROLLER))}),
        ("heal", s.Undo, {"repair": HEAL, "links": ()}),
        ("drop Fetch 0>1", s.Begin, {"fault": DropMessages, "api": "Fetch", "links": (Link(0, 1),)}),
        ("release 0>1", s.Undo, {"repair": RELEASE, "links": (Link(0, 1),)}),
        ("release last 0>controller", s.ReleaseOne, {"link": Link(0, CONTROLLER), "newest": True}),
        ("hold 0>clients", s.Begin, {"fault": HoldMessages, "api": "", "links": (Link(0, CLIENTS),)}),
        ("withhold metadata from 1", s.Withhold, {"nodes": (1,)}),
        ("move leader to 2", s.Begin, {"fault": MoveLeader, "nodes": (2,)}),
        ("try move leader to 2", s.Begin, {"fault": MoveLeader, "nodes": (2,), "tried": True}),
        ("wait until 0 leads", s.WaitUntil, {"states": (s.Leads(0),), "limit_ms": None}),
        ("wait up to 5 s until nobody leads", s.WaitUntil, {"states": (s.NobodyLeads(),), "limit_ms": 5_000}),
        (
            "wait until isr is 0 1 and 1 has x and 2 lacks y",
            s.WaitUntil,
            {"states": (s.IsrIs((0, 1)), s.Has(1, "x", expected=True), s.Has(2, "y", expected=False))},
        ),
        (
            "try wait until 1 is not fenced and 1 is not in the isr and x is answered",
            s.WaitUntil,
            {
                "tried": True,
                "states": (
                    s.IsFenced(1, expected=False),
                    s.InIsr(1, expected=False),
                    s.Answered("x", acknowledged=False),
                ),
            },
        ),
        (
            "wait until high watermark of 0 covers x and all are in sync",
            s.WaitUntil,
            {"states": (s.Covers(0, "x", expected=True), s.InSync())},
        ),
    ],
)
def test_a_line_is_the_step_that_it_says(text, kind, fields):
    step = one(text)
    assert type(step) is kind
    assert {name: getattr(step, name) for name in fields} == fields
    assert step.line == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wrte z to 0", 'did you mean "write"?'),
        ("write z 0", '"0" stands where "to" should'),
        ("write z to", "it ends where a broker should stand"),
        ("write x to 0", "is written already"),
        ("write all to 0", "cannot be the name of a record"),
        ("write z to 3", "there is no broker 3; they are 0 to 2"),
        ("write z to leadr", 'did you mean "leader"?'),
        ("write z to the former lead", 'did you mean "the former leader"?'),
        ("write z to 0 acks=2", "acks=0, acks=1, acks=all"),
        ("write z to 0 quickly", '"quickly" is too much'),
        ("release first", "it names no link"),
        ("release first 0-1", "it is about one link in one direction, such as 0>controller"),
        ("retry z to 0", 'no line before this one writes "z"'),
        ("wait", "it ends where a number should stand"),
        ("wait 5 minutes", '"minutes" is not a unit; there are ms, s'),
        ("wait until 0 led", 'did you mean "leads"?'),
        ("wait until nobdy leads", 'did you mean "nobody"?'),
        ("wait until 0 led", "a STATE is one of: BROKER leads, somebody leads"),
        ("wait until done", "a STATE is one of: BROKER leads, somebody leads"),
        ("wait until x is acked", "acknowledged"),
        ("kill", "it ends where a broker should stand"),
        ("cut 0", '"0" is not a link'),
        ("cut 0-0", '"0-0" is not a link: its two ends are one'),
        ("drop Fetch controller>controller", "its two ends are one"),
        ("wait 601 s", "that is too long; the most is 600 s"),
        ("wait up to 600001 ms until 0 leads", "that is too long; the most is 600 s"),
        ("cut 0-controler", 'did you mean "controller"?'),
        ("drop Fetsch 0>1", 'did you mean "Fetch"?'),
        ("drop Fetch", "it names no link"),
        ("never 0", '"0" stands where "start" should'),
    ],
)
def test_a_wrong_line_is_named_with_its_place_and_what_was_expected(text, message):
    with pytest.raises(PlanError) as caught:
        one(text)
    assert str(caught.value).startswith(f'my.toml, line 3: "{text}"')
    assert message in str(caught.value)


WORDS = (*s.VERBS, "x", "y", "0", "1", "the", "leader", "to", "until", "is", "isr", "and", "0-1", "5", "ms", "Fetch")


def meaning(text):
    try:
        return one(text)
    except PlanError as error:
        return str(error)


@given(st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_words_are_a_step_or_one_sentence(text):
    found = meaning(text)
    assert isinstance(found, s.Step) or "\n" not in found


FILE = """
number = "S99"
title = "A story"
steps = '''
write x to 0
{line}
'''

[lost]
x = ["a*", "!a0"]

[also]
duplicate = ["all/2/NI"]
"""


def test_a_file_says_what_is_expected_in_each_column():
    story = parse_story(FILE.format(line="kill 0"), "my.toml")
    assert story.expected("a1").lost == {"x"}
    assert story.expected("a0").lost == frozenset()
    assert story.expected("a0").acknowledged == {"base", "x"}
    assert [str(sign) for sign in story.expected("all/2/NI").signs] == ["duplicate"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("kill 0", "kil 0"), 'my.toml, line 6: "kil 0"'),
        (("[lost]", "[lots]"), 'unknown key "lots"; did you mean "lost"?'),
        (('"a*"', '"b*"'), 'line 10: unknown column "b*"'),
        (('x = ["a*"', 'z = ["a*"'), 'line 10: unknown record "z"; there are base, x'),
        (("duplicate =", "dublicate ="), 'line 13: unknown sign "dublicate"; did you mean "duplicate"?'),
        (("number =", "number"), "my.toml: "),
        (('title = "A story"', "title = 5"), 'my.toml, line 3: "title" must be a string'),
        (('number = "S99"', ""), 'my.toml, line 1: there is no "number"; a story file has number, title and steps'),
        (('["a*", "!a0"]', '"a*"'), """line 9: "lost" must be a table of lists of columns, such as x = ["a0", "a1"]"""),
        (("[also]", '[settings]\n"acks" = 1\n[also]'), "line 12: [settings]: acks is chosen by the columns"),
        (("[also]", '[settings]\n"min.insync.replicas" = 1\n[also]'), "min.insync.replicas is chosen by the columns"),
        (("[also]", '[settings]\n"request.timeout.ms" = "5"\n[also]'), "[settings]: request.timeout.ms takes"),
        (("write x to 0\nkill 0", "# write x to 0"), "my.toml, line 4: the script has no step"),
    ],
)
def test_a_wrong_file_is_named_with_the_line_and_the_nearest_word(wrong, message):
    with pytest.raises(PlanError) as caught:
        parse_story(FILE.format(line="kill 0").replace(*wrong), "my.toml")
    assert message in str(caught.value)


def test_every_story_of_the_package_has_its_own_number():
    stories = known_stories()
    assert all(number == story.number for number, story in stories.items())
    assert {"S01", "S04", "S18"} <= stories.keys()
