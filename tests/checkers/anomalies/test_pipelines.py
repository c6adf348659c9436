"""Anomalies of pipelines: planted one at a time, and by chance against the slow judge."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.verdicts.judgement import judge
from checkers.verdicts.promises import promise
from checkers.verdicts.verdict import Verdict
from tests.checkers.in_memory import judge_events
from tests.checkers.judge.comparison import checked
from tests.checkers.judge.verdict import by_the_judge
from tests.checkers.scenes import FAIL, INFO, INVOKE, OK, Scene
from tests.workloads.history.event_strategies import examples
from workloads.operations import Event, EventType, Function, GroupMember, Poll, Reached, Record, Send, TransactionEnd
from workloads.settings import Settings

IN, OUT = "t-0", "t-out-0"
#: Members: each has its consumer's process, one for offsets after it, and its producer's after that.
A, B, ASKER, READER = 10, 20, 30, 40
SETTINGS = Settings(min_insync_replicas=2, isolation_level="read_committed")


class PipelineScene(Scene):
    """A scene whose input has six records; what is made of the record at an offset has a value of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = 0
        self.value = 1_000
        for offset in range(6):
            self.send(offset + 100, offset)

    def of_group(self, process: int, kind: EventType, function: Function, **rest: Any) -> int:
        detail = msgspec.json.encode(GroupMember(group="g")).decode()
        return self.event(process, kind, function, instance=process // 10 * 10, detail=detail, **rest)

    def deal(self, member: int, *keys: str) -> int:
        return self.of_group(member, OK, Function.REBALANCE, partitions=keys)

    def read(self, member: int, since: int, offset: int) -> None:
        """Read and process the records of the input from ``since`` on."""
        records = tuple(Record(number, number + 100) for number in range(since, offset))
        self.event(member, INVOKE, Function.POLL, micro=(Poll(),), instance=member)
        self.event(member, OK, Function.POLL, micro=(Poll({IN: records}),), instance=member)
        self.of_group(member, OK, Function.PROCESS, micro=(Reached(IN, offset, since),))

    def begin(self, member: int, since: int, offset: int) -> Open:
        sends = []
        for _ in range(since, offset):
            self.value += 1
            sends.append(Send(OUT, self.value))
        opened = Open(self, member, tuple(sends), Reached(IN, offset, since))
        self.event(member + 2, INVOKE, Function.TXN, micro=(*opened.sends, opened.reached), instance=member + 2)
        return opened

    def work(self, member: int, since: int, offset: int, kind: EventType = OK, **facts: Any) -> Open:
        self.read(member, since, offset)
        opened = self.begin(member, since, offset)
        opened.hand_over()
        opened.end(kind, **facts)
        return opened

    def committed(self, offset: int) -> int:
        self.of_group(ASKER, INVOKE, Function.COMMITTED, partitions=(IN,))
        return self.of_group(ASKER, OK, Function.COMMITTED, micro=(Reached(IN, offset),))

    def see(self, *opened: Open) -> None:
        """Read what these transactions wrote, in the order of the log."""
        written = sorted((send.offset or 0, send.value) for transaction in opened for send in transaction.written)
        self.poll(*written, key=OUT, process=READER)
        self.drain(self.offset, key=OUT, process=READER)


class Open:
    """A transaction that is open; its writes are in the log, one after the other."""

    def __init__(self, made: PipelineScene, member: int, sends: tuple[Send, ...], reached: Reached) -> None:
        self.made, self.member, self.sends, self.reached = made, member, sends, reached
        self.handed_us: int | None = None
        self.written = self.sends

    def hand_over(self, kind: EventType = OK) -> int:
        asked = (Reached(self.reached.partition, self.reached.offset),)
        self.made.of_group(self.member + 1, INVOKE, Function.OFFSETS, micro=asked)
        answered = self.made.of_group(self.member + 1, kind, Function.OFFSETS, micro=asked)
        if kind == OK:
            self.handed_us = self.made.events[-1].time_us
        return answered

    def end(self, kind: EventType = OK, asked: str | None = "commit") -> int:
        made = self.made
        self.written = tuple(Send(OUT, send.value, made.offset + n) for n, send in enumerate(self.sends))
        made.offset += len(self.sends) + 1
        facts = TransactionEnd(
            transactional_id=f"t-{self.member}",
            number=0,
            asked=asked,  # type: ignore[arg-type]
            ending_us=None if asked is None else made.events[-1].time_us + 5,
            group="g",
            handed_us=self.handed_us,
            sources={IN: tuple(range(self.reached.since or 0, self.reached.offset))},
        )
        return made.event(
            self.member + 2,
            kind,
            Function.TXN,
            micro=(*self.written, self.reached),
            instance=self.member + 2,
            detail=msgspec.json.encode(facts).decode(),
        )


def judged(made: Scene) -> Verdict:
    return judge_events(made.events, shown=None)


def forbidden(made: Scene) -> list[str]:
    """The findings that are permitted nowhere, without writes that nobody read: scenes are short."""
    strict = promise(SETTINGS, ())
    return [name for name in judged(made).counts if name != "unseen" and not strict.about(name).permitted]


def healthy() -> PipelineScene:
    made = PipelineScene()
    made.deal(A, IN)
    first = made.work(A, 0, 2)
    made.deal(A)
    made.deal(B, IN)
    aborted = made.work(B, 2, 4, FAIL, asked="abort")
    made.deal(B)
    made.deal(B, IN)
    second = made.work(B, 2, 6)
    assert aborted.handed_us is not None
    made.committed(6)
    made.see(first, second)
    return made


def test_a_healthy_pipeline_has_no_anomaly() -> None:
    assert forbidden(healthy()) == []


def test_records_of_an_aborted_transaction_that_are_not_done_again_miss_their_effect() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    first = made.work(A, 0, 2)
    made.work(A, 2, 4, FAIL, asked="abort")
    second = made.work(A, 4, 6)
    made.see(first, second)
    assert forbidden(made) == ["missing-effect"]
    effects = [(f.offset, f.value, f.committed) for f in judged(made).anomalies["missing-effect"]]
    assert effects == [(2, 102, 6), (3, 103, 6)]


def test_records_behind_the_last_commit_are_still_to_be_done() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    first = made.work(A, 0, 2)
    made.work(A, 2, 4, FAIL, asked="abort")
    made.committed(2)
    made.see(first)
    assert forbidden(made) == []


@pytest.mark.parametrize("drained", [True, False])
def test_of_an_uncertain_transaction_it_is_decided_where_its_outputs_were_read_to_their_end(drained: bool) -> None:
    made = PipelineScene()
    made.deal(A, IN)
    made.work(A, 0, 2, INFO)
    first = made.work(A, 2, 6)
    if drained:
        made.see(first)
    assert forbidden(made) == (["missing-effect"] if drained else [])


def test_an_uncertain_transaction_that_was_read_was_committed() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    first = made.work(A, 0, 2, INFO)
    second = made.work(A, 2, 6)
    made.see(first, second)
    assert forbidden(made) == []


def test_a_record_that_two_members_did_has_two_effects() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    opened = made.begin(A, 0, 2)
    opened.hand_over()
    made.deal(B, IN)
    opened.end()
    again = made.work(B, 0, 1)
    made.see(opened, again)
    assert forbidden(made) == ["doubled-effect"]
    (finding,) = judged(made).anomalies["doubled-effect"]
    values = [opened.sends[0].value, again.sends[0].value]
    assert (finding.key, finding.source, finding.offset, finding.values) == (OUT, IN, 0, values)


def test_a_record_that_is_done_again_after_an_abort_has_one_effect() -> None:
    made = healthy()
    assert "doubled-effect" not in judged(made).counts


def test_a_group_that_has_the_offset_of_an_aborted_transaction() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    first = made.work(A, 0, 2)
    made.see(first)
    aborted = made.begin(A, 2, 4)
    aborted.hand_over()
    transaction = aborted.end(FAIL, asked="abort")
    asked = made.committed(4)
    (finding,) = judged(made).anomalies["aborted-commit"]
    assert (finding.group, finding.offset, finding.op.op_pos, finding.transaction.op_pos) == (
        "g",
        4,
        asked,
        transaction,
    )
    assert forbidden(made) == ["aborted-commit"]


def test_an_offset_that_another_commit_may_have_brought_is_no_aborted_one() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    made.work(A, 0, 2, FAIL, asked="abort")
    again = made.begin(A, 0, 2)
    again.hand_over()
    made.committed(2)
    again.end(INFO)
    assert "aborted-commit" not in judged(made).counts


def test_a_transaction_that_was_closed_before_its_end_was_aborted() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    made.work(A, 0, 2, INFO, asked=None)
    made.committed(2)
    assert judged(made).counts["aborted-commit"] == 1


def test_an_offset_that_is_named_while_a_transaction_with_another_one_is_open() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    first = made.work(A, 0, 2)
    opened = made.begin(A, 2, 4)
    opened.hand_over()
    asked = made.committed(2)
    transaction = opened.end()
    made.see(first, opened)
    assert forbidden(made) == ["unstable-offset"]
    (finding,) = judged(made).anomalies["unstable-offset"]
    assert (finding.offset, finding.pending, finding.op.op_pos) == (2, 4, asked)
    assert finding.transaction.op_pos == transaction


@pytest.mark.parametrize(("kind", "asked"), [(FAIL, "abort"), (INFO, "commit")])
def test_an_open_transaction_that_is_not_certainly_committed_is_no_reason_to_wait(kind: EventType, asked: str) -> None:
    made = PipelineScene()
    made.deal(A, IN)
    opened = made.begin(A, 0, 2)
    opened.hand_over()
    made.committed(-1)
    opened.end(kind, asked=asked)
    assert "unstable-offset" not in judged(made).counts


def test_offsets_that_the_group_takes_of_a_superseded_member_make_two_owners() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    made.read(A, 0, 2)
    stale = made.begin(A, 0, 2)
    made.deal(B, IN)
    first = made.work(B, 0, 2)
    handed = stale.hand_over()
    stale.end(FAIL, asked="abort")
    made.see(first)
    assert forbidden(made) == ["two-owners"]
    (finding,) = judged(made).anomalies["two-owners"]
    assert finding.op.op_pos == handed


def test_offsets_that_were_handed_over_before_the_rebalance_count() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    made.read(A, 0, 2)
    opened = made.begin(A, 0, 2)
    opened.hand_over()
    made.deal(A)
    made.deal(B, IN)
    opened.end()
    second = made.work(B, 2, 6)
    made.committed(6)
    made.see(opened, second)
    assert forbidden(made) == []
    assert judged(made).groups.rebalanced_over_commits == 1


def test_offsets_that_the_group_refuses_of_a_superseded_member_are_counted() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    made.read(A, 0, 2)
    stale = made.begin(A, 0, 2)
    made.deal(B, IN)
    first = made.work(B, 0, 6)
    stale.hand_over(FAIL)
    stale.end(FAIL, asked="abort")
    made.committed(6)
    made.see(first)
    assert forbidden(made) == []
    counts = judged(made).transactions
    assert (counts.effects, counts.offsets_aborted, counts.offsets_refused) == (6, 0, 1)


def test_counts_say_what_was_put_to_the_test() -> None:
    counts = judged(healthy()).transactions
    assert (counts.effects, counts.offsets_aborted, counts.offsets_refused) == (6, 1, 0)


def test_silence_without_an_aborted_transaction_that_had_offsets_is_no_evidence() -> None:
    made = PipelineScene()
    made.deal(A, IN)
    made.see(made.work(A, 0, 6))
    made.committed(6)
    made.drain(6)
    assert "no transaction was aborted after a group had taken its offsets" in judge(SETTINGS, judged(made)).lacks


@pytest.mark.parametrize("name", ["doubled-effect", "unstable-offset"])
def test_readers_of_uncommitted_records_are_promised_no_single_effect(name: str) -> None:
    assert not promise(SETTINGS, ()).about(name).permitted
    assert promise(Settings(min_insync_replicas=2), ()).about(name).permitted


# --- by chance ---


@st.composite
def pipeline_histories(draw: st.DrawFn) -> list[Event]:
    """Two members that read, begin, hand over and end transactions at random, and a reader that sees some of it."""
    made = PipelineScene()
    open_now: dict[int, Open] = {}
    ended: list[Open] = []
    for _ in range(draw(st.integers(1, 16))):
        member = draw(st.sampled_from((A, B)))
        since = draw(st.integers(0, 4))
        offset = draw(st.integers(since + 1, 6))
        match draw(st.sampled_from(("deal", "read", "begin", "begin", "hand", "end", "end", "ask", "ask", "see"))):
            case "deal":
                made.deal(member, IN)
            case "read":
                made.read(member, since, offset)
            case "begin" if member not in open_now:
                open_now[member] = made.begin(member, since, offset)
            case "hand" if member in open_now:
                open_now[member].hand_over(draw(st.sampled_from((OK, OK, FAIL, INFO))))
            case "end" if member in open_now:
                ending = draw(
                    st.sampled_from(((OK, "commit"), (OK, "commit"), (FAIL, "abort"), (INFO, "commit"), (INFO, None)))
                )
                open_now[member].end(*ending)
                ended.append(open_now.pop(member))
            case "ask":
                made.committed(draw(st.integers(-1, 6)))
            case "see" if ended:
                seen = draw(st.lists(st.sampled_from(ended), min_size=1, unique_by=id))
                written = sorted((send.offset or 0, send.value) for transaction in seen for send in transaction.written)
                made.poll(*written, key=OUT, process=READER)
                if draw(st.booleans()):
                    made.drain(made.offset, key=OUT, process=READER)
            case _:
                pass
    return made.events


@given(pipeline_histories())
@examples(400)
def test_every_kernel_agrees_with_the_judge(history: list[Event]) -> None:
    assert checked(judge_events(history, shown=None)) == by_the_judge(history)
