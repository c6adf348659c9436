"""Performing of stories: what is written down of each step, and what is not let pass."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from checkers import ANOMALIES, NEVER, check_rows
from harness.ground.errors import HarnessError, PlanError
from harness.plan import read_plan
from harness.runs.stories import (
    WHOLE,
    Play,
    Sign,
    chosen_columns,
    column_named,
    explained,
    known_stories,
    parse_story,
    perform_cell,
    perform_script,
    perform_table,
    step_lines,
)
from harness.runs.stories.stage.patience import Patience
from harness.runs.stories.stage.script_faults import ScriptFaults
from harness.runs.stories.stage.story_world import StepError, StoryWorld
from harness.runs.stories.steps.faults import kept_everything
from harness.runs.stories.table import cells
from harness.runs.stories.table.story import OTHERS
from harness.worlds.contract import ReplicaState
from harness.worlds.simulated.leaders_and_messages import SimulatedLeadership
from harness.worlds.simulated.world import SimulatedWorld
from nemesis.cluster import PartitionView

PLAN = Path(__file__).parents[4] / "plans" / "stories" / "S40.toml"
FORM = """
number = "S99"
title = "A story"
steps = '''
{steps}
'''
{rest}
"""


def cell(steps, column="all/2", rest="[lost]"):
    return perform_cell(parse_story(FORM.format(steps=steps, rest=rest), "my.toml"), column)


def test_a_wait_that_never_comes_true_is_reported():
    performed = cell("wait up to 1 s until nobody leads")
    waited = 'line 5, "wait up to 1 s until nobody leads": waited 1000 ms without effect; nobody leads: no, 0 leads'
    assert performed.disagreements == (f"it did not play as written: {waited}",)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ("2 is fenced and all are in sync", "all are in sync: no, isr is 0 1, and 0 leads; log ends 0: 1, 1: 1"),
        ("1 is fenced", "1 is fenced: no, fenced: 2"),
        ("isr is 0 2 and 0 leads", "isr is 0 2: no, isr is 0 1, and 0 leads"),
        ("0 lacks base", "0 lacks base: no, broker 0 has base"),
        ("high watermark of 0 misses base", "no, the high watermark is 1, and base is at offset 0"),
        ("base is refused", "base is refused: no, it is acknowledged"),
        ("leader epoch is 9", "leader epoch is 9: no, the leader epoch is 0"),
        ("elections prefer 1 2 0", "elections prefer 1 2 0: no, elections prefer 0 1 2"),
    ],
)
def test_a_wait_in_vain_says_which_part_did_not_hold_and_what_is_so_instead(states, message):
    (sentence,) = cell(f"kill 2\nwait until 2 is fenced\nwait up to 1 s until {states}").disagreements
    assert "waited 1000 ms without effect; " in sentence
    assert sentence.endswith(message)
    assert "0 leads: no" not in sentence
    assert "2 is fenced: no" not in sentence


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("kill 0\nkill 0", "broker 0 is dead already"),
        ("kill 0\npower 0", "broker 0 is dead already"),
        ("start 0", "broker 0 runs already"),
        ("wipe 0", "broker 0 runs, and wipe changes nothing there"),
    ],
)
def test_what_does_not_fit_a_broker_is_said_in_the_words_of_the_script(steps, message):
    performed = cell(steps, rest="")
    assert [sentence.rpartition(": ")[2] for sentence in performed.disagreements] == [message]


def test_what_is_only_tried_may_be_in_vain():
    performed = cell("try wait up to 1 s until nobody leads\ntry start 0")
    assert performed.disagreements == ()
    assert [entry.play for entry in performed.trace.entries].count(Play.TRIED) == 2


@pytest.mark.parametrize(
    ("steps", "column", "rest", "said"),
    [
        ("drop Fetch 0>1 0>2\nwrite x to 0\nkill 0", "a1", "[lost]", "lost, and not expected to be: x"),
        ("write x to 0", "all/2", '[lost]\nx = ["*"]', "expected to be lost, and not: x"),
        ("drop Fetch 0>1 0>2\nwrite x to 0\nkill 0", "all/2", "[lost]", "expected to be acknowledged, and not: x"),
    ],
)
def test_what_is_otherwise_than_expected_is_a_disagreement(steps, column, rest, said):
    assert cell(steps, column, rest).disagreements == (said,)


@pytest.mark.parametrize("tried", [True, False])
def test_a_write_to_a_leader_that_is_not_there_is_not_sent_and_in_vain(tried):
    performed = cell(f"never start 0 1 2\nkill all\n{'try ' * tried}write x to leader", rest="")
    assert performed.trace.records.keys() == {"base"}
    assert "leaderless for good" in [str(sign) for sign in performed.signs]
    assert (performed.disagreements == ()) is tried
    assert tried or performed.disagreements[0].endswith('"write x to leader": not sent: no broker leads')


def test_a_wait_for_a_record_that_was_not_sent_is_in_vain_before_time_passes(monkeypatch):
    """A real world closes where what it waits for raises."""
    passing = SimulatedWorld.drive

    def drive(world, finished, limit_us):
        try:
            return passing(world, finished, limit_us)
        except StepError:
            pytest.fail("the condition raised while time passed")

    monkeypatch.setattr(SimulatedWorld, "drive", drive)
    performed = cell("never start 0 1 2\nkill all\ntry write x to leader\ntry wait until x is answered", rest="")
    assert performed.disagreements == ()


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("cut 0-1\ncut 0>1 1>0", "nothing to cut on broker 0 > broker 1, broker 1 > broker 0"),
        ("heal 0>1", "nothing to heal on broker 0 > broker 1"),
        ("cut 0-1\nheal\nheal", "no link is cut or slow, and no message is held or dropped"),
        ("release 0>clients", "nothing to release on broker 0 > the clients"),
        ("release", "nothing to release on any link"),
        ("hold Produce clients>0\nrelease first clients>0", "nothing to release on the clients > broker 0"),
        ("drop Fetch 0>1\nrelease\nrelease 0>1", "nothing to release on broker 0 > broker 1"),
    ],
)
def test_what_changes_nothing_on_links_is_in_vain(steps, problem):
    (sentence,) = cell(steps).disagreements
    assert sentence.endswith(problem)


@pytest.mark.parametrize(
    ("steps", "states"),
    [
        ("shrink 1 2\nwrite x to 0", "x is refused with NotEnoughReplicasError and x is refused"),
        ("kill 0", "leader epoch is 1 and elections prefer 0 1 2"),
    ],
)
def test_refusals_epochs_and_the_order_of_replicas_can_be_waited_for(steps, states):
    rest = "[lost]\n[acknowledged]\nx = []" if "x" in steps else "[lost]"
    assert cell(f"{steps}\nwait until {states}", rest=rest).disagreements == ()


def test_a_step_may_fail_in_the_columns_that_are_named_with_it_and_in_no_others():
    steps = "try in all/1 raft: wait up to 1 s until nobody leads"
    assert cell(steps, "all/1").disagreements == ()
    (sentence,) = cell(steps, "all/2").disagreements
    assert "waited 1000 ms without effect" in sentence


@pytest.mark.parametrize(("which", "arrived"), [("first", "2 has x and 2 lacks y"), ("last", "2 has y and 2 lacks x")])
def test_one_of_several_held_messages_is_delivered_and_the_others_stay_held(which, arrived):
    """Without idempotence, and where each write is a client of its own: nothing else orders them."""
    steps = f"hold Produce clients>0\nsend x to 0\nsend y to 0\nwait 10 ms\nrelease {which} clients>0"
    performed = cell(f"{steps}\nwait until {arrived}\nwait 100 ms\nwait until {arrived}", "all/2/NI", rest="")
    assert performed.disagreements == ()


def test_the_cluster_is_looked_at_while_an_answer_is_waited_for(perfect_world):
    """A fault that lasts has a receipt of what was seen of it, also in a step that asks for nothing of the cluster."""
    looks = []
    perfect_world.replicas = object()
    story_world = StoryWorld(perfect_world, "t-0", {}, grouped=False)
    story_world.look = lambda: looks.append(1)
    story_world.until(lambda: len(looks) > 2, 1_000)
    assert len(looks) == 3


def test_a_link_that_was_cut_by_itself_and_by_a_name_for_several_is_healed_once():
    assert cell("cut 0-1\nisolate 0\nheal 0-1\nheal").disagreements == ()


@pytest.fixture
def seen_as_well(monkeypatch):
    def altered(anomaly):
        def altered_check(*args, **kwargs):
            verdict = check_rows(*args, **kwargs)
            verdict.counts[anomaly] = 1
            return verdict

        monkeypatch.setattr(cells, "check_rows", altered_check)

    return altered


@pytest.mark.parametrize("anomaly", NEVER)
def test_what_no_settings_permit_is_a_disagreement_whatever_the_file_expects(seen_as_well, anomaly):
    seen_as_well(anomaly)
    for rest in ("", "[lost]"):
        assert cell("write x to 0", rest=rest).disagreements == (f"{anomaly} was seen, which must never happen",)


@pytest.mark.parametrize("anomaly", OTHERS)
def test_an_anomaly_that_the_file_does_not_name_is_a_disagreement(seen_as_well, anomaly):
    seen_as_well(anomaly)
    unnamed, named = (cell("write x to 0", rest=rest) for rest in ("[lost]", f'[also]\n{anomaly} = ["*"]'))
    assert unnamed.disagreements == (f"seen, and not expected to be: {anomaly}",)
    assert (named.disagreements, named.seen.letters) == ((), "+")
    assert cell("write x to 0", rest="").disagreements == ()


def test_every_anomaly_is_a_loss_a_skip_a_sign_named_by_a_file_or_never_expected():
    of_signs = [name for sign in Sign for name in sign.anomalies]
    assert sorted([*OTHERS, *of_signs, *NEVER, "lost-write", "group-skip"]) == sorted(ANOMALIES)


def test_a_log_that_was_not_read_to_its_end_is_a_disagreement(monkeypatch):
    monkeypatch.setattr(cells, "WORKLOAD", msgspec.structs.replace(cells.WORKLOAD, drain_limit_ms=1))
    unread = "the log was not read to its end, so its losses are not known"
    assert unread in cell("write x to 0", rest="").disagreements


def test_a_role_in_which_nobody_is_yet_does_not_hold_yet():
    """There is a former leader once another one leads."""
    assert cell("kill 0\nwait until the former leader is fenced").disagreements == ()
    (sentence,) = cell("wait up to 1 s until the former leader leads").disagreements
    assert sentence.endswith(
        "waited 1000 ms without effect; the former leader leads: no, no broker is the former leader now"
    )


def test_a_leader_is_waited_for_while_there_is_none():
    nobody = "kill all\nwait until 0 is fenced and nobody leads\nstart all\nwait until leader has base and leader leads"
    assert cell(nobody, rest="").disagreements == ()


def test_a_broker_that_never_returns_is_not_missed():
    performed = cell("kill 2\nnever start 2\nwrite x to 0")
    assert performed.disagreements == ()
    assert [state.running for state in performed.trace.entries[-1].replicas] == [True, True, False]


def test_roles_are_those_of_the_moment():
    performed = cell(
        "move leader to 2\nwait until 2 leads\nkill the former leader\npause the other follower\nwait 10 ms"
    )
    *_, last = [entry for entry in performed.trace.entries if entry.text == "wait 10 ms"]
    assert [state.running for state in last.replicas] == [False, True, True]


@pytest.mark.parametrize(("silent", "in_vain"), [(1, ""), (2, "refused: nobody answered")])
def test_a_move_that_nobody_confirms_is_asked_for_once_more(monkeypatch, silent, in_vain):
    answers, move = iter([{"unconfirmed": "nobody answered"}] * silent), SimulatedLeadership.move_leader
    monkeypatch.setattr(SimulatedLeadership, "move_leader", lambda *asked: next(answers, None) or move(*asked))
    disagreements = cell("move leader to 2\ntry wait up to 1 s until 2 leads").disagreements
    assert any(in_vain in sentence for sentence in disagreements) if in_vain else disagreements == ()


@pytest.mark.parametrize(("column", "offsets"), [("all/2", [1]), ("all/2/NI", [1, 2])])
def test_a_retry_is_known_as_such_where_producers_are_idempotent(column, offsets):
    performed = cell("drop Produce 0>clients\nwrite x to 0\nrelease\nretry x to 0", column)
    value = performed.trace.records["x"].value
    (leader,) = [state for state in performed.trace.entries[-1].replicas if state.node == 0]
    assert [record.offset for record in leader.records if record.value == value] == offsets


def test_an_acknowledged_record_is_not_sent_again():
    performed = cell("write x to 0\nretry x to 0", "all/2/NI")
    assert performed.signs == ()


def test_the_trace_shows_what_every_replica_had_at_each_step():
    performed = cell("drop Fetch 0>1\nwrite x to 0\nwait until 2 has x", "a1")
    (entry,) = [entry for entry in performed.trace.entries if entry.text == "wait until 2 has x"]
    assert (entry.view.leader, entry.view.leader_epoch, entry.view.isr) == (0, 0, (0, 1, 2))
    assert [(state.node, state.leading, state.log_end) for state in entry.replicas] == [
        (0, True, 2),
        (1, False, 1),
        (2, False, 2),
    ]


def test_a_story_has_the_same_cells_whatever_the_number_of_workers():
    stories, columns = [known_stories()["S01"]], [*map(column_named, ("a1", "all/2"))]
    alone = list(perform_table(stories, columns))
    assert [cell.column for cell in alone] == ["a1", "all/2"]
    assert list(perform_table(stories, columns, workers=2)) == alone


def test_a_worker_process_that_is_killed_is_told(monkeypatch):
    monkeypatch.setattr(cells, "perform_cell", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(HarnessError, match="a worker process of the stories was killed; see that there is memory"):
        list(perform_table([known_stories()["S01"]], [*map(column_named, ("a1", "all/2"))], workers=2))


@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_a_spark_cluster_fills_the_table_as_this_process_does():
    """More than one block: what changes between columns comes in their order."""
    stories = [known_stories()[number] for number in ("S01", "T01")]
    columns = [*map(column_named, chosen_columns(["*"]))]
    assert list(perform_table(stories, columns, workers="local[1]")) == list(perform_table(stories, columns))


def test_a_story_that_expects_nothing_is_held_to_its_script_only():
    assert cell("drop Fetch 0>1 0>2\nwrite x to 0\nkill 0", "a1", rest="").disagreements == ()
    assert cell("start 0", "a1", rest="").disagreements != ()


def test_a_broker_from_which_metadata_is_withheld_stays_registered_and_knows_nothing_new():
    performed = cell(
        "withhold metadata from 1\nmove leader to 2\nwait 3 s\nwait until 2 leads and 1 is not fenced", "a1"
    )
    assert performed.disagreements == ()
    (entry,) = [entry for entry in performed.trace.entries if entry.text == "wait 3 s"]
    assert [state.leader_epoch for state in entry.replicas] == [1, 0, 1]


def test_a_world_that_shows_no_replicas_is_refused(perfect_world, events):
    spec = read_plan(PLAN).single(None, "simulated", None)
    perfect_world.direct = perfect_world.replicas = None
    with pytest.raises(PlanError, match="no scripted story can be performed in it"):
        perform_script(known_stories()["S40"], spec, perfect_world, events)
    assert perfect_world.closed == 1


def test_a_torn_record_is_shown_as_such_and_is_not_one_that_a_broker_has():
    story = parse_story(
        FORM.format(steps="write a to 0\nwait 1 s\npower 2\nwait up to 1 s until 2 lacks a and 2 has base", rest=""),
        "my",
    )
    performed, page = explained(story, "all/2")
    assert performed.disagreements == ()
    assert "2 is dead: log end offset 2, log: base/0 a/0 (torn or damaged)" in "\n".join(step_lines(story, performed))
    assert ">torn or damaged: a<" in page


def test_a_dead_broker_with_an_empty_disk_is_in_the_trace_and_on_the_page():
    story = parse_story(FORM.format(steps="kill 2\nwipe 2\nwait 1 s\nstart 2", rest=""), "my")
    performed, page = explained(story, "all/2")
    (entry,) = [entry for entry in performed.trace.entries if entry.text == "wipe 2"]
    assert [(state.node, state.running) for state in entry.replicas] == [(0, True), (1, True), (2, False)]
    assert "2 is dead: nothing of the log is on its disk" in "\n".join(step_lines(story, performed))
    assert ">† dead<" in page
    assert ">started again<" in page


@pytest.mark.parametrize(("tried", "waited_ms"), [("try ", 1_000), ("", 2_000)])
def test_a_wait_that_may_be_in_vain_has_the_shorter_limit(monkeypatch, tried, waited_ms):
    usual = Patience.of

    def patience(spec):
        return msgspec.structs.replace(usual(spec), limit_ms=2_000, tried_ms=1_000)

    monkeypatch.setattr(Patience, "of", patience)
    performed = cell(f"{tried}wait until nobody leads", rest="")
    (entry,) = [entry for entry in performed.trace.entries if entry.text == f"{tried}wait until nobody leads"]
    assert entry.ended_us - entry.begun_us == waited_ms * 1_000
    assert entry.note.startswith(f"waited {waited_ms} ms without effect")


def test_nobody_waits_for_a_log_whose_only_copy_in_sync_never_returns():
    performed = perform_cell(known_stories()["S30"], "all/2")
    assert performed.disagreements == ()
    assert performed.trace.for_good
    (entry,) = [entry for entry in performed.trace.entries if entry.text == WHOLE]
    assert 4_000 <= (entry.ended_us - entry.begun_us) / 1_000 < 5_000, "not as long as for a log that may return"


@pytest.mark.parametrize("steps", ["kill all", "kill 2\nnever start 2\nwait until 2 is fenced\nkill 0 1"])
def test_a_log_whose_copies_return_is_waited_for_though_nobody_was_elected_in_time(monkeypatch, steps):
    usual = Patience.of
    monkeypatch.setattr(Patience, "of", lambda spec: msgspec.structs.replace(usual(spec), election_ms=0))
    performed = cell(steps)
    (entry,) = [entry for entry in performed.trace.entries if entry.text == WHOLE]
    assert performed.trace.for_good
    assert entry.note == ""
    assert entry.view.leader is not None


def test_a_log_of_which_nobody_is_known_to_be_eligible_is_not_given_up(monkeypatch):
    """A log that the controller does not show has an empty ISR, which is part of whatever never returns."""
    view_of, start_the_dead, forgotten = StoryWorld.view.fget, ScriptFaults.start_the_dead, []

    def start_and_forget(faults):
        start_the_dead(faults)
        forgotten.append(True)

    monkeypatch.setattr(ScriptFaults, "start_the_dead", start_and_forget)
    nothing = PartitionView(leader=None, leader_epoch=-1, isr=(), replicas=())
    monkeypatch.setattr(StoryWorld, "view", property(lambda seen: nothing if forgotten else view_of(seen)))
    performed = perform_cell(known_stories()["S30"], "all/2")
    (entry,) = [entry for entry in performed.trace.entries if entry.text == WHOLE]
    assert (entry.ended_us - entry.begun_us) / 1_000 > 10_000, "as long as for a log that may return"


@pytest.mark.parametrize(
    ("running", "told", "written", "expected"), [(True, 5, 3, 5), (True, None, 3, 3), (False, None, 3, None)]
)
def test_a_broker_that_does_not_tell_its_high_watermark_has_at_least_the_one_on_its_disk(
    running, told, written, expected
):
    state = ReplicaState(node=0, running=running, log_end=7, high_watermark=told, written_high_watermark=written)
    assert state.known_high_watermark == expected


@pytest.mark.parametrize(
    ("before", "note"), [("flush 2", "nothing was lost: the disk of 2 had everything"), ("wait 1 ms", "")]
)
def test_a_loss_of_power_that_takes_nothing_says_so(before, note):
    performed = cell(f"write a to 0\nwait 1 s\n{before}\npower 2")
    (entry,) = [entry for entry in performed.trace.entries if entry.text == "power 2"]
    assert (entry.play, entry.note) == (Play.PLAYED, note)


def test_bytes_of_log_segments_tell_it_where_records_are_not_counted():
    assert kept_everything({"log_bytes_before": 340, "log_bytes_after": 340})
    assert not kept_everything({"log_bytes_before": 340, "log_bytes_after": 275})
    assert not kept_everything({"exit": "signal 9"})


def test_a_change_of_leader_turns_dropped_fetches_round_and_the_step_says_so():
    performed = cell("drop Fetch 0>1\nmove leader to 2\nmove leader to 1\nwait 1 ms\nrelease\nmove leader to 0")
    told = {entry.text: entry.note for entry in performed.trace.entries if "Fetch" in entry.note}
    assert told == {"move leader to 1": "Fetch over 0>1 is now what 0 fetches from 1"}


def test_fetches_that_are_not_dropped_any_more_are_not_spoken_of():
    performed = cell("drop Fetch 0>1\nrelease\nmove leader to 1")
    assert [entry.note for entry in performed.trace.entries if "Fetch" in entry.note] == []


@pytest.mark.parametrize(
    ("finds", "play", "note"),
    [
        ("base a", Play.PLAYED, "base a"),
        ("base", Play.FAILED, "the reader finds base a"),
        ("a base", Play.FAILED, "the reader finds base a"),
        ("nothing", Play.FAILED, "the reader finds base a"),
    ],
)
def test_a_read_that_says_what_it_finds_must_get_just_that(finds, play, note):
    performed = cell(f"write a to 0\nwait 1 s\nread finds {finds}")
    (entry,) = [entry for entry in performed.trace.entries if entry.text.startswith("read")]
    assert (entry.play, entry.note) == (play, note)
    assert bool(performed.disagreements) == (play is Play.FAILED)
