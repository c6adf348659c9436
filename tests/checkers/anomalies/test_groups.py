"""Anomalies of consumer groups: planted one at a time, and by chance against their twins."""

import random
from collections import Counter
from typing import Any, ClassVar

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from checkers.verdicts.verdict import Verdict
from tests.checkers.findings import forbidden
from tests.checkers.in_memory import judge_events
from tests.checkers.judge.comparison import checked
from tests.checkers.judge.verdict import by_the_judge
from tests.checkers.scenes import FAIL, INFO, INVOKE, OK, Scene
from tests.workloads.history.event_strategies import examples
from workloads.operations import NOTHING, Event, Function, GroupMember, MicroOperation, Poll, Reached, Record

KEY = "t-0"
#: C is the only member of another group.
A, B, ASKER, C, OPERATOR, D = 10, 20, 30, 40, 50, 60


class GroupScene(Scene):
    """A scene with members, whose commits are of the process after their own."""

    #: By instance, its own name where it is a static member.
    static: ClassVar[dict[int, str]] = {}

    def of_member(
        self,
        member: int,
        kind: Any,
        function: Function,
        group: str = "",
        *,
        generation: int | None = None,
        **rest: Any,
    ) -> int:
        instance = member // 10 * 10
        named = GroupMember(
            group=group or ("h" if instance == C else "g"),
            instance_id=self.static.get(instance),
            generation=generation,
        )
        detail = msgspec.json.encode(named).decode()
        return self.event(member, kind, function, instance=instance, detail=detail, **rest)

    def deal(self, member: int, *keys: str, generation: int | None = None) -> int:
        return self.of_member(member, OK, Function.REBALANCE, partitions=keys, generation=generation)

    def read(self, member: int, *offsets: int, kind: Any = OK) -> int:
        records = tuple(Record(offset, offset + 100) for offset in offsets)
        instance = member // 10 * 10
        self.event(member, INVOKE, Function.POLL, micro=(Poll(),), instance=instance)
        return self.event(member, kind, Function.POLL, micro=(Poll({KEY: records}),), instance=instance)

    def process(self, member: int, since: int, offset: int) -> int:
        return self.of_member(member, OK, Function.PROCESS, micro=(Reached(KEY, offset, since),))

    def begin(self, member: int, offset: int) -> int:
        return self.of_member(member + 1, INVOKE, Function.COMMIT, micro=(Reached(KEY, offset),))

    def commit(self, member: int, offset: int, kind: Any = OK) -> int:
        self.begin(member, offset)
        return self.of_member(member + 1, kind, Function.COMMIT, micro=(Reached(KEY, offset),))

    def committed(self, offset: int, group: str = "g") -> int:
        self.of_member(ASKER, INVOKE, Function.COMMITTED, group, partitions=(KEY,))
        return self.of_member(ASKER, OK, Function.COMMITTED, group, micro=(Reached(KEY, offset),))

    def delete(self, kind: Any = OK, group: str = "g") -> int:
        for each in (INVOKE, kind):
            index = self.of_member(OPERATOR, each, Function.DELETE_GROUP, group, micro=(Reached(KEY, NOTHING),))
        return index

    def work(self, member: int, *offsets: int) -> int:
        self.read(member, *offsets)
        self.process(member, offsets[0], offsets[-1] + 1)
        return self.commit(member, offsets[-1] + 1)


def scene() -> GroupScene:
    made = GroupScene()
    for offset in range(6):
        made.send(offset + 100, offset)
    return made


def judged(made: GroupScene) -> Verdict:
    return judge_events(made.events)


def healthy() -> GroupScene:
    made = scene()
    made.deal(A, KEY)
    made.work(A, 0, 1)
    made.deal(A)
    made.deal(B, KEY)
    made.work(B, 2, 3, 4, 5)
    made.committed(6)
    return made


def test_a_healthy_group_has_no_anomaly() -> None:
    assert forbidden(judged(healthy())) == []


def test_a_group_that_commits_past_a_record_skips_it() -> None:
    made = scene()
    made.deal(A, KEY)
    made.work(A, 0, 1)
    made.deal(B, KEY)
    made.read(ASKER, 2)  # another reader saw it
    made.work(B, 3, 4, 5)
    (skipped,) = judged(made).anomalies["group-skip"]
    assert (skipped.key, skipped.group, skipped.value, skipped.offset, skipped.committed) == (KEY, "g", 102, 2, 6)


def test_a_record_that_a_member_read_and_never_processed_is_skipped() -> None:
    made = scene()
    made.deal(A, KEY)
    made.read(A, 0, 1)
    made.commit(A, 2)
    assert [f.value for f in judged(made).anomalies["group-skip"]] == [100, 101]


def test_records_behind_the_last_commit_are_not_skipped() -> None:
    made = healthy()
    made.send(106, 6)
    made.read(ASKER, 6)
    assert forbidden(judged(made)) == []


def test_a_group_that_forgets_an_acknowledged_commit_went_back() -> None:
    made = healthy()
    asked = made.committed(2)
    (older,) = judged(made).anomalies["group-went-back"]
    assert (older.group, older.offset, older.committed, older.op.op_pos) == ("g", 2, 6, asked)


def test_a_group_that_has_committed_nothing_any_more_went_back() -> None:
    made = healthy()
    made.committed(-1)
    assert [f.offset for f in judged(made).anomalies["group-went-back"]] == [-1]


def test_a_successor_that_begins_before_the_last_commit_shows_that_the_group_went_back() -> None:
    made = healthy()
    made.deal(B)
    made.deal(A, KEY)
    read = made.read(A, 1)
    (older,) = judged(made).anomalies["group-went-back"]
    assert (older.offset, older.committed, older.op.op_pos) == (1, 6, read)


def test_a_later_commit_of_a_lower_offset_is_where_the_group_is() -> None:
    made = healthy()
    made.commit(B, 3)
    made.committed(3)
    assert forbidden(judged(made)) == []


def test_a_commit_without_an_answer_may_take_effect_late() -> None:
    made = scene()
    made.deal(A, KEY)
    made.commit(A, 1, kind=INFO)
    made.work(A, 0, 1, 2)
    made.committed(1)
    assert "group-went-back" not in judged(made).counts


def test_a_refused_commit_does_not_take_effect_after_its_refusal() -> None:
    made = scene()
    made.deal(A, KEY)
    made.commit(A, 1, kind=FAIL)
    made.work(A, 0, 1, 2)
    made.committed(1)
    assert [f.offset for f in judged(made).anomalies["group-went-back"]] == [1]


def test_commits_that_overlap_may_take_effect_in_either_order() -> None:
    made = scene()
    made.deal(A, KEY)
    made.work(A, 0, 1)
    made.begin(A, 3)
    made.commit(B, 2)
    made.of_member(A + 1, OK, Function.COMMIT, micro=(Reached(KEY, 3),))
    made.committed(2)
    assert "group-went-back" not in judged(made).counts


def test_a_deleted_group_that_has_an_offset_again_is_back() -> None:
    made = healthy()
    deletion = made.delete()
    asked = made.committed(6)
    (back,) = judged(made).anomalies["returned-group"]
    assert (back.group, back.offset, back.op.op_pos, back.deletion.op_pos) == ("g", 6, asked, deletion)
    assert forbidden(judged(made)) == ["returned-group"]


def test_a_deleted_group_that_has_nothing_did_not_go_back() -> None:
    made = healthy()
    made.delete()
    made.committed(-1)
    assert forbidden(judged(made)) == []


def test_a_deleted_group_may_commit_again() -> None:
    made = healthy()
    made.delete()
    made.commit(B, 3)
    made.committed(3)
    assert forbidden(judged(made)) == []


def test_a_commit_under_way_while_the_group_is_deleted_may_take_effect_after_it() -> None:
    made = healthy()
    made.begin(B, 6)
    made.delete()
    made.committed(6)
    assert "returned-group" not in judged(made).counts


def test_a_group_is_not_back_where_its_deletion_was_refused_or_not_answered() -> None:
    for kind in (FAIL, INFO):
        made = healthy()
        made.delete(kind)
        made.committed(6)
        assert forbidden(judged(made)) == []


def test_the_group_of_another_name_was_not_deleted() -> None:
    made = healthy()
    made.commit(C, 4)
    made.delete(group="h")
    made.committed(6)
    assert "returned-group" not in judged(made).counts


def test_a_commit_of_a_superseded_member_that_is_taken_makes_two_owners() -> None:
    made = scene()
    made.deal(A, KEY)
    made.read(A, 0, 1)
    made.process(A, 0, 2)
    made.deal(B, KEY)
    successor = made.work(B, 0, 1, 2)
    stale = made.commit(A, 2)
    (finding,) = judged(made).anomalies["two-owners"]
    assert (finding.group, finding.offset, finding.op.op_pos, finding.successor.op_pos) == ("g", 2, stale, successor)


def test_a_commit_under_way_while_the_partition_changes_hands_is_no_second_owner() -> None:
    made = scene()
    made.deal(A, KEY)
    made.begin(A, 1)
    made.deal(B, KEY)
    made.commit(B, 1)
    made.of_member(A + 1, OK, Function.COMMIT, micro=(Reached(KEY, 1),))
    assert "two-owners" not in judged(made).counts


def test_a_member_that_got_the_partition_back_may_commit() -> None:
    made = healthy()
    made.deal(B)
    made.deal(A, KEY)
    made.commit(A, 6)
    assert forbidden(judged(made)) == []


def test_a_superseded_member_that_is_refused_is_no_second_owner() -> None:
    made = healthy()
    made.commit(A, 2, kind=FAIL)
    assert forbidden(judged(made)) == []


class StaticScene(GroupScene):
    """A scene whose members A, B and, in another group, C have one name."""

    static: ClassVar[dict[int, str]] = {A: "m", B: "m", C: "m"}

    def start(self, member: int) -> None:
        for kind in (INVOKE, OK):
            self.event(member, kind, Function.SUBSCRIBE, partitions=(KEY,), instance=member)


def taken_over() -> StaticScene:
    """A has the log partition and freezes; B starts with its name, and has it then."""
    made = StaticScene()
    for offset in range(6):
        made.send(offset + 100, offset)
    made.start(A)
    made.deal(A, KEY)
    made.read(A, 0, 1)
    made.process(A, 0, 2)
    made.start(B)
    return made


def test_a_commit_of_an_instance_whose_name_another_one_has_taken_over_is_not_fenced() -> None:
    made = taken_over()
    successor = made.deal(B, KEY)
    stale = made.commit(A, 2)
    (finding,) = judged(made).anomalies["unfenced-instance"]
    assert (finding.key, finding.group, finding.offset, finding.op.op_pos) == (KEY, "g", 2, stale)
    assert (finding.instance_id, finding.successor.op_pos) == ("m", successor)
    assert forbidden(judged(made)) == ["unseen", "unfenced-instance"], "nobody read the rest"


def test_a_commit_before_the_other_instance_was_assigned_anything_or_that_was_refused_is_in_order() -> None:
    for kind, begins_late in ((OK, False), (FAIL, True), (INFO, True)):
        made = taken_over()
        if begins_late:
            made.deal(B, KEY)
            made.commit(A, 2, kind)
        else:
            made.begin(A, 2)
            made.deal(B, KEY)
            made.of_member(A + 1, kind, Function.COMMIT, micro=(Reached(KEY, 2),))
        assert "unfenced-instance" not in judged(made).counts


def test_a_refused_successor_fences_nothing() -> None:
    """KIP-848: UNRELEASED_INSTANCE_ID, so it is assigned nothing."""
    made = taken_over()
    made.deal(B)
    made.commit(A, 2)
    assert forbidden(judged(made)) == ["unseen"]


def test_the_exemption_of_a_refused_successor_is_not_that_of_the_next_one() -> None:
    made = taken_over()
    made.deal(B)
    made.commit(A, 2)
    made.deal(B, KEY)
    stale = made.commit(A, 3)
    assert [finding.op.op_pos for finding in judged(made).anomalies["unfenced-instance"]] == [stale]


def test_an_instance_that_got_the_log_partition_back_may_commit_but_not_the_one_before() -> None:
    made = taken_over()
    made.deal(B, KEY)
    made.deal(A, KEY)
    made.commit(A, 2)
    assert "unfenced-instance" not in judged(made).counts
    made.static = {**made.static, ASKER: "m"}
    made.start(ASKER)
    made.deal(ASKER, KEY)
    made.commit(ASKER, 2)
    assert "unfenced-instance" not in judged(made).counts
    stale = [made.commit(A, 2), made.commit(B, 2)]
    assert [finding.op.op_pos for finding in judged(made).anomalies["unfenced-instance"]] == stale


def test_the_same_name_in_another_group_and_members_without_a_name_fence_nothing() -> None:
    made = taken_over()
    made.start(C)
    made.deal(C, KEY)
    made.commit(A, 2)
    assert "unfenced-instance" not in judged(made).counts
    dynamic = scene()
    dynamic.deal(A, KEY)
    dynamic.deal(B, KEY)
    dynamic.commit(A, 2)
    assert "unfenced-instance" not in judged(dynamic).counts


def test_polls_are_compared_within_an_assignment_only() -> None:
    made = scene()
    made.deal(A, KEY)
    made.read(A, 0, 1, 2)
    made.deal(A)
    made.deal(A, KEY)
    made.read(A, 0, 1)
    assert not {"nonmonotonic-poll", "poll-skip"} & judged(made).counts.keys()
    made.read(A, 1, 2)
    assert "nonmonotonic-poll" in judged(made).counts


# --- generations ---


def test_two_members_with_a_log_partition_in_one_generation_have_a_stale_one() -> None:
    made = scene()
    first = made.deal(A, KEY, generation=7)
    second = made.deal(B, KEY, generation=7)
    (finding,) = judged(made).anomalies["stale-generation"]
    assert (finding.key, finding.group, finding.generation, finding.earlier_generation) == (KEY, "g", 7, 7)
    assert (finding.earlier.op_pos, finding.op.op_pos) == (first, second)
    assert forbidden(judged(made)) == ["unseen", "stale-generation"], "nobody read"


def test_a_generation_that_goes_back_is_stale_for_the_same_member_and_for_one_that_began_later() -> None:
    for member in (A, B):
        made = scene()
        first = made.deal(A, KEY, generation=7)
        made.deal(A)
        later = made.deal(member, KEY, generation=5)
        (finding,) = judged(made).anomalies["stale-generation"]
        assert (finding.earlier.op_pos, finding.op.op_pos) == (first, later)
        assert (finding.earlier_generation, finding.generation) == (7, 5)


def test_generations_that_only_go_up_are_none_that_is_stale() -> None:
    made = scene()
    made.deal(A, KEY, generation=5)
    made.deal(A, KEY, generation=5)
    made.deal(B, KEY, generation=6)
    made.deal(A, KEY, generation=9)
    assert "stale-generation" not in judged(made).counts


def test_a_member_that_was_there_before_and_hears_late_of_its_generation_is_not_accused() -> None:
    made = scene()
    made.read(A, 0)
    made.deal(B, KEY, generation=6)
    made.deal(A, KEY, generation=5)
    assert "stale-generation" not in judged(made).counts


def test_a_member_is_there_from_the_begin_of_its_subscription() -> None:
    made = scene()
    made.event(B, INVOKE, Function.SUBSCRIBE, partitions=(KEY,), instance=B)
    made.deal(A, KEY, generation=6)
    made.event(B, OK, Function.SUBSCRIBE, partitions=(KEY,), instance=B)
    made.deal(B, KEY, generation=5)
    assert "stale-generation" not in judged(made).counts


def test_an_instance_of_a_static_member_has_the_generation_of_the_one_before() -> None:
    made = scene()
    made.static = {A: "m", B: "m", D: "n"}
    made.deal(A, KEY, generation=5)
    made.deal(B, KEY, generation=5)
    assert "stale-generation" not in judged(made).counts
    stale = made.deal(D, KEY, generation=5)
    assert [finding.op.op_pos for finding in judged(made).anomalies["stale-generation"]] == [stale]


def test_other_groups_and_groups_that_were_deleted_have_generations_of_their_own() -> None:
    made = scene()
    made.deal(A, KEY, generation=5)
    made.deal(C, KEY, generation=5)
    made.delete()
    made.deal(B, KEY, generation=1)
    assert "stale-generation" not in judged(made).counts


# --- by chance ---


def by_chance(seed: int, length: int, steps: tuple[str, ...]) -> list[Event]:
    """Members of two groups and a reader that take these steps at random, with commits that may be open.

    Some of them are static members, of one name or of two.
    """
    made, chosen = scene(), random.Random(seed)
    made.static = chosen.choice(({}, {A: "m", B: "m", C: "m"}, {A: "m", B: "n", D: "m", C: "m"}))
    open_commits: dict[int, int] = {}
    for _ in range(length):
        member = chosen.choice((A, B, A, B, D, C))
        offset = chosen.randint(0, 5)
        match chosen.choice(steps):
            case "deal":
                made.deal(member, KEY, generation=chosen.choice((None, 1, 2, 2, 3)))
            case "revoke":
                made.deal(member)
            case "read":
                reader = chosen.choice((member, ASKER))
                made.read(reader, *range(offset, chosen.randint(offset, 5) + 1))
            case "process":
                made.process(member, chosen.randint(0, offset), offset + 1)
            case "commit" if member not in open_commits:
                made.commit(member, offset, kind=chosen.choice((OK, OK, FAIL, INFO)))
            case "begin" if member not in open_commits:
                open_commits[member] = offset
                made.begin(member, offset)
            case "end" if member in open_commits:
                micro: tuple[MicroOperation, ...] = (Reached(KEY, open_commits.pop(member)),)
                made.of_member(member + 1, chosen.choice((OK, FAIL)), Function.COMMIT, micro=micro)
            case "delete":
                made.delete(chosen.choice((OK, OK, FAIL, INFO)), chosen.choice("gh"))
            case "ask":
                made.committed(chosen.randint(-1, 5), chosen.choice("ggh"))
            case _:
                pass
    return made.events


ANOMALIES = (
    "group-skip", "group-went-back", "returned-group", "two-owners", "unfenced-instance", "stale-generation",
)  # fmt: skip
EVERYTHING = ("deal", "deal", "revoke", "read", "read", "process", "commit", "begin", "end", "ask", "ask")
COMMITS = ("deal", "commit", "commit", "begin", "end")
DELETIONS = ("deal", "commit", "begin", "end", "delete", "delete", "ask", "ask")
OWNERS = ("deal", "commit")
STEPS = (EVERYTHING, COMMITS, DELETIONS, OWNERS)
LONGEST = 18


def compared(history: list[Event]) -> set[str]:
    """Compare the checkers with the slow judge; the anomalies of groups that both find."""
    places = checked(judge_events(history, shown=None))
    assert places == by_the_judge(history)
    return places.keys() & set(ANOMALIES)


@given(st.builds(by_chance, st.integers(0, 2**32), st.integers(1, LONGEST), st.sampled_from(STEPS)))
@examples(400)
def test_every_kernel_agrees_with_the_judge(history: list[Event]) -> None:
    compared(history)


def test_what_comes_by_chance_has_every_anomaly_several_times() -> None:
    shown = Counter(name for steps in STEPS for seed in range(40) for name in compared(by_chance(seed, LONGEST, steps)))
    assert min(shown[name] for name in ANOMALIES) > 3, shown
