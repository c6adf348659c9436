"""Scripts and story files: what they mean, and what is said of those that mean nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.ground.errors import PlanError
from harness.runs.stories import known_stories, parse_story, state_forms, step_forms
from harness.runs.stories.script.language import lines_of, parse_script
from harness.runs.stories.stage.names import BrokerRole
from harness.runs.stories.steps import STATES, STEPS, VERBS, Step, transactions, waits, writes
from harness.runs.stories.steps.faults import (
    Begin,
    MoveCoordinator,
)
from harness.runs.stories.steps.reads import ReadAs
from nemesis.cluster import CLIENTS, CONTROLLER, Link
from nemesis.faults import CorruptRecord, DropMessages, HoldMessages, Kill, MoveLeader, Partition

#: The lines before the one in question.
BEFORE = ("write x to 0", "write y to 0 as p", "init p", "begin t by p", "join m")


def step_of(text):
    *_, step = parse_script("\n".join([*BEFORE, text]), "my.toml")
    return step


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("write z to 0", writes.WriteRecord, {"record": "z", "to": 0, "acks": None, "producer": None}),
        ("write z to leader acks=1 as p", writes.WriteRecord, {"to": BrokerRole.LEADER, "acks": 1, "producer": "p"}),
        ("send z to the former leader acks=all", writes.SendRecord, {"to": BrokerRole.FORMER_LEADER, "acks": -1}),
        ("wait 3 s   # a comment", waits.Wait, {"ms": 3_000, "text": "wait 3 s"}),
        ("kill 0 leader", Begin, {"fault": Kill, "nodes": (0, BrokerRole.LEADER)}),
        ("corrupt x on 1", Begin, {"fault": CorruptRecord, "record": "x", "nodes": (1,)}),
        ("cut 0-1 2>controller", Begin, {"fault": Partition, "links": (Link(0, 1), Link(1, 0), Link(2, CONTROLLER))}),
        ("drop Fetch 0>1", Begin, {"fault": DropMessages, "api": "Fetch", "links": (Link(0, 1),)}),
        ("hold 0>clients", Begin, {"fault": HoldMessages, "api": "", "links": (Link(0, CLIENTS),)}),
        (
            "kill the former leader the other follower",
            Begin,
            {"nodes": (BrokerRole.FORMER_LEADER, BrokerRole.OTHER_FOLLOWER)},
        ),
        ("write z to 0 as acks", writes.WriteRecord, {"acks": None, "producer": "acks"}),
        ("read committed finds base y", ReadAs, {"isolation": "read_committed", "records": ("base", "y")}),
        ("read uncommitted finds nothing", ReadAs, {"isolation": "read_uncommitted", "records": ()}),
        ("write z in t over y", transactions.WriteInTransaction, {"record": "z", "transaction": "t", "over": "y"}),
        ("send z to 0 over x acks=1", writes.SendRecord, {"record": "z", "over": "x", "acks": 1}),
        ("move coordinator to leader", MoveCoordinator, {"broker": BrokerRole.LEADER}),
        (
            "wait until p is ready and t is refused and last stable offset of 0 misses x",
            waits.WaitUntil,
            {
                "states": (
                    transactions.IsReady("p"),
                    transactions.EndRefused("t"),
                    transactions.StableEndMisses(0, "x"),
                )
            },
        ),
        ("try move leader to 2", Begin, {"fault": MoveLeader, "nodes": (2,), "tried": True}),
        (
            "wait until isr is 0 1 and 1 has x and 2 lacks y",
            waits.WaitUntil,
            {"states": (waits.IsrIs((0, 1)), writes.Has(1, "x"), writes.Lacks(2, "y"))},
        ),
        (
            "try wait until 1 is not fenced and 1 is not in the isr and x is answered",
            waits.WaitUntil,
            {
                "tried": True,
                "states": (
                    waits.IsFenced(1, expected=False),
                    waits.InIsr(1, expected=False),
                    writes.IsAnswered("x"),
                ),
            },
        ),
        ("try in a0 all/2*: kill 0", Begin, {"fault": Kill, "tried": True, "tried_in": ("a0", "all/2*")}),
        (
            "wait until the former leader is fenced and high watermark of leader misses y",
            waits.WaitUntil,
            {"states": (waits.IsFenced(BrokerRole.FORMER_LEADER), writes.Misses(BrokerRole.LEADER, "y"))},
        ),
    ],
)
def test_a_line_is_the_step_that_it_says(text, kind, fields):
    step = step_of(text)
    assert type(step) is kind
    assert {name: getattr(step, name) for name in fields} == fields
    assert step.line == len(BEFORE) + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wrte z to 0", 'did you mean "write"?'),
        (
            "write z 0",
            'unexpected "0"; expected "in" or "to"; the form is: write RECORD to BROKER [over RECORD] [acks=',
        ),
        (
            "write z to",
            (
                "the step ends where a broker (0, 1, 2, leader, the former leader, the other follower, the "
                "coordinator) is expected"
            ),
        ),
        ("write", "the step ends where the name of a record is expected"),
        ("try", "the step ends where a verb is expected"),
        ("write x to 0", "is written already"),
        ("write Z to 0", '"Z" cannot be the name of a record; write a letter, then letters and digits'),
        ("write z to 3", "broker 3 does not exist; the brokers are 0 to 2"),
        ("write z to leadr", 'did you mean "leader"?'),
        ("write z to the former lead", 'did you mean "the former leader"?'),
        ("write z to 0 acks=2", "acks=0, acks=1, acks=all"),
        ("write z to 0 ack=1", 'unexpected "ack=1" at the end of the step; did you mean "acks=1"?'),
        (
            "write z to 0 quickly",
            'unexpected "quickly" at the end of the step; expected acks=0, acks=1, acks=all, "as"',
        ),
        ("write z to 0 as p acks=1", 'unexpected "acks=1" at the end of the step; the form is: write'),
        ("kill all 0", 'unexpected "0" at the end of the step; the form is: kill BROKER...'),
        (
            "read it",
            'unexpected "it" at the end of the step; expected committed or uncommitted, "finds" or nothing more; ',
        ),
        ("read committed finds", "the step ends where a record (base, x, y) is expected"),
        ("write nothing to 0", '"nothing" has another meaning here'),
        ("init p", '"p" is a producer already; choose another name'),
        ("init", "the step ends where the name of a producer is expected"),
        ("init q after r", 'no line before this one has "init r"'),
        ("write z in u", 'no line before this one has "begin u by ..."'),
        ("wait until t is comitted", 'did you mean "committed"?'),
        ("move coordinator 1", 'unexpected "1"; expected "to"'),
        (
            "release first",
            "the step ends where a link in one direction (0>controller) is expected; the form is: release",
        ),
        ("release first 0-1", 'unexpected "0-1"; expected a link in one direction (0>controller)'),
        ("retry z to 0", 'no line before this one writes "z"'),
        ("wait", 'the step ends where a time (500 ms, 3 s), "until" or "up" is expected'),
        ("wait 5 minutes", 'unexpected "minutes"; expected "ms" or "s"'),
        ("wait until 0 led", 'did you mean "leads"?'),
        ("wait until x is refused with NotEnoughReplicas", 'did you mean "NotEnoughReplicasError"?'),
        ("wait until leader epoch is large", 'unexpected "large"; expected a number'),
        ("try in a0 kill 0", 'there are columns and a colon: "try in a0 all/2*: kill 0"'),
        ("wait until 0 led", "a STATE is one of: BROKER leads, somebody leads"),
        ("wait until 0 has z", 'no line before this one writes "z"; there are base, x, y'),
        ("wait until 0 is no fenced", 'unexpected "no"; did you mean "not"? (expected "fenced", "in" or "not")'),
        ("wait until 0 leads x is answered", 'unexpected "x" at the end of the step; expected "and" or nothing more'),
        ("wait until 0 leads and", "the step ends where a broker (0, "),
        ("wait up to 5 s till 0 leads", 'did you mean "until"?'),
        ("kill", "the step ends where a broker (0, "),
        ("cut 0", 'unexpected "0"; expected a link (0-1 both ways, 0>1 one way, 0-controller)'),
        ("cut 0-0", '"0-0" is not a link: its two ends are one'),
        ("wait 601 s", "601 s is too long; the most is 600 s"),
        ("cut 0-controler", 'did you mean "controller"?'),
        ("drop Fetsch 0>1", 'did you mean "Fetch"?'),
        ("bump q", 'no line before this one has "write ... as q"'),
        ("join m", '"m" is a member already; choose another name'),
        ("never 0", 'unexpected "0"; expected "start"'),
    ],
)
def test_a_wrong_line_is_named_with_its_place_and_what_was_expected(text, message):
    with pytest.raises(PlanError) as caught:
        step_of(text)
    assert str(caught.value).startswith(f'my.toml, line {len(BEFORE) + 1}: "{text}"')
    assert message in str(caught.value)


WORDS = (*VERBS, "x", "y", "0", "1", "the", "leader", "to", "until", "is", "isr", "and", "0-1", "5", "ms", "Fetch")


def meaning(text):
    try:
        return step_of(text)
    except PlanError as error:
        return str(error)


@given(st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_words_are_a_step_or_one_sentence(text):
    outcome = meaning(text)
    assert isinstance(outcome, Step) or "\n" not in outcome


WRITTEN = {
    "ACKS": "acks=all",
    "API": "Fetch",
    "ISOLATION": "uncommitted",
    "BROKER": "leader",
    "LAST": "x",
    "LINK": "0>controller",
    "LINKS": "0-1 2>clients",
    "MEMBER": "m",
    "NAME": "p",
    "NEW": "z",
    "ERROR": "NotEnoughReplicasError",
    "NEWMEMBER": "n",
    "NEWPRODUCER": "q",
    "NEWTRANSACTION": "u",
    "NODE": "1",
    "NODES": "0 the other follower",
    "NOT": "not",
    "NUMBER": "3",
    "PRODUCER": "p",
    "RECORD": "x",
    "RECORDS": "x y",
    "STATES": "nobody leads and x is answered",
    "TIME": "3 s",
    "TRANSACTION": "t",
    "WRITER": "p",
}


def lines_of_form(pattern):
    """The form with every slot written, with and without what may be left out."""
    written = re.sub(r"([A-Z]+):\w+", lambda slot: WRITTEN[slot[1]], pattern)
    return {re.sub(r"[][]", "", written), " ".join(re.sub(r"\[.*?\]", "", written).split())}


@pytest.mark.parametrize("form", STEPS, ids=lambda form: form.pattern)
def test_every_step_is_read_by_its_form(form):
    for line in lines_of_form(form.pattern):
        step = step_of(line)
        assert type(step) is form.makes
        assert {name: getattr(step, name) for name in form.fixed} == form.fixed


@pytest.mark.parametrize("form", STATES, ids=lambda form: form.pattern)
def test_every_state_is_read_by_its_form(form):
    for line in lines_of_form(form.pattern):
        (state,) = step_of(f"wait until {line}").states
        assert type(state) is form.makes
        assert {name: getattr(state, name) for name in form.fixed} == form.fixed


def test_a_fault_is_written_as_it_is_read():
    assert lines_of(Kill, [1, 2]) == (["kill 1 2"], ["start 1 2"])
    assert lines_of(MoveLeader, [2]) == (["move leader to 2"], [])
    assert lines_of(Partition, links=[Link(0, 1), Link(1, 0), Link(2, CONTROLLER)])[0] == ["cut 0-1 2>controller"]
    assert lines_of(DropMessages, links=[Link(0, 1)], api="Fetch") == (["drop Fetch 0>1"], ["release 0>1"])
    assert lines_of(DropMessages, links=[Link(0, 1)])[0] == ["drop 0>1"]
    assert lines_of(CorruptRecord, [1]) is None
    assert lines_of(Kill, [3]) is None


def test_rows_of_the_reference_say_what_is_written_what_it_means_and_where_it_is_lacking():
    rows = {row.form: row for row in [*step_forms(), *state_forms()]}
    assert len(rows) == len(STEPS) + len(STATES)
    assert [form for form, row in rows.items() if not row.meaning] == [], "a fault says it as in_a_script"
    assert [cell for row in rows.values() for cell in (row.form, row.meaning) if len(cell) > 120] == []
    limits = {form: row.limits for form, row in rows.items() if row.limits}
    assert limits["release first LINK"] == limits["fail BROKER..."] == "virtual time only"
    assert limits["fill BROKER..."] == limits["free BROKER..."] == "real nodes only"
    assert limits["cut LINK..."] == limits["isolate BROKER..."] == "Kafka only in namespaces"
    assert limits["slow LINK..."] == "real nodes only in namespaces"
    assert limits["high watermark of BROKER misses RECORD"] == "not on Kafka"
    assert "high watermark of BROKER covers RECORD" not in limits
    of_transactions = ("commit TRANSACTION", "BROKER coordinates")
    of_groups = ("join MEMBER", "ask group [finds nothing|RECORD]", "MEMBER is done", "group is empty")
    not_on_processes = (*of_transactions, *of_groups, "delete RECORD by RECORD to BROKER [acks=0|1|all]")
    assert {limits[form] for form in not_on_processes} == {"not on processes"}
    assert "kill BROKER..." not in limits


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
        (("write x", "try in b*: write x"), 'unknown column "b*"'),
        (('x = ["a*"', 'z = ["a*"'), 'line 10: unknown record "z"; there are base, x'),
        (("duplicate =", "dublicate ="), 'line 13: unknown sign "dublicate"; did you mean "duplicate"?'),
        (("number =", "number"), "my.toml: "),
        (('title = "A story"', "title = 5"), 'my.toml, line 3: "title" must be a string'),
        (('number = "S99"', ""), 'my.toml, line 1: "number" is missing; a story file has number, title and steps'),
        (('["a*", "!a0"]', '"a*"'), """line 9: "lost" must be a table of lists of columns, such as x = ["a0", "a1"]"""),
        (("[also]", '[settings]\n"acks" = 1\n[also]'), "line 12: [settings]: acks is chosen by the columns"),
        (("[also]", '[settings]\n"min.insync.replicas" = 1\n[also]'), "min.insync.replicas is chosen by the columns"),
        (("[also]", '[settings]\n"request.timeout.ms" = "5"\n[also]'), "[settings]: request.timeout.ms takes"),
        (("[also]", '[real_time]\n"acks" = 1\n[also]'), "line 12: [real_time]: acks is chosen by the columns"),
        (('title = "A', 'real_time = 5\ntitle = "A'), '"real_time" must be a table of settings under Kafka'),
        (("write x to 0\nkill 0", "# write x to 0"), "my.toml, line 4: the script has no step"),
    ],
)
def test_a_wrong_file_is_named_with_the_line_and_the_nearest_word(wrong, message):
    with pytest.raises(PlanError) as caught:
        parse_story(FILE.format(line="kill 0").replace(*wrong), "my.toml")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        '[settings]\n"replication.factor" = 4\n"request.timeout.ms" = 900',
        "[settings]\nreplication.factor = 4\nrequest.timeout.ms = 900",
        "[settings]\nrequest = { timeout.ms = 900 }\nreplication = { factor = 4 }",
        "[settings.replication]\nfactor = 4\n[settings.request.timeout]\nms = 900",
    ],
)
def test_settings_may_have_dotted_keys_as_in_a_plan(settings):
    story = parse_story(FILE.format(line="kill 0").replace("[also]", f"{settings}\n[also]"), "my.toml")
    assert story.settings == {"replication.factor": 4, "request.timeout.ms": 900}


def test_settings_may_be_dotted_keys_of_the_file_itself_and_a_wrong_one_is_named_with_its_line():
    text = 'number = "M1"\ntitle = "A story"\nsettings.replication.factor = {}\nsteps = "write x to 0"\n'
    assert parse_story(text.format(4), "my.toml").settings == {"replication.factor": 4}
    for wrong, said in (('"4"', "replication.factor takes a whole number"), ("{}", "replication.factor takes")):
        with pytest.raises(PlanError, match=f"my.toml, line 3: .settings.: {said}"):
            parse_story(text.format(wrong), "my.toml")
    with pytest.raises(PlanError, match=r'line 3: .settings.: unknown setting "replication.faktor"; did you mean'):
        parse_story(text.format(4).replace("factor", "faktor"), "my.toml")


def test_every_story_of_the_package_has_its_own_number():
    stories = known_stories()
    assert all(number == story.number for number, story in stories.items())
    assert {"S01", "S04", "S18"} <= stories.keys()
