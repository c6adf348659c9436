"""Anomalies of transactions: each planted alone, and against a slow twin over random histories."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.verdicts.exercised import exercised_by
from checkers.verdicts.judgement import judge
from tests.checkers.in_memory import judge_events
from tests.checkers.judge.comparison import checked
from tests.checkers.judge.verdict import by_the_judge
from tests.workloads.history.event_strategies import examples
from workloads import Settings
from workloads.operations import (
    HARNESS,
    Event,
    EventType,
    Function,
    Poll,
    ProducerEpoch,
    Reached,
    Record,
    Send,
    StableOffset,
    TransactionEnd,
)
from workloads.settings import IsolationLevel

INVOKE, OK, FAIL, INFO = EventType.INVOKE, EventType.OK, EventType.FAIL, EventType.INFO
OPEN_MS = 20_000


class Scene:
    """A history of transactions in the making; times are seconds."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, at_s: float, process: int, kind: EventType, function: Function, **others: Any) -> int:
        self.events.append(
            Event(
                index=len(self.events),
                time_us=int(at_s * 1_000_000),
                process=process,
                instance=process if process >= 0 else -1,
                type=kind,
                function=function,
                **others,
            )
        )
        return len(self.events) - 1

    def transaction(
        self,
        times_s: tuple[float, float],
        kind: EventType,
        *sends: Send,
        process: int = 0,
        meanwhile: Callable[[], object] = lambda: None,
        **facts: Any,
    ) -> int:
        """A transaction that asked for its commit half a second before its end, unless ``facts`` say otherwise."""
        begin_s, end_s = times_s
        asked = {"asked": "commit", "ending_us": int((end_s - 0.5) * 1_000_000)}
        end = TransactionEnd(**({"transactional_id": "t", "number": process} | asked | facts))
        begun = tuple(msgspec.structs.replace(send, offset=None) for send in sends)
        self.add(begin_s, process, INVOKE, Function.TXN, micro=begun)
        meanwhile()
        return self.add(end_s, process, kind, Function.TXN, micro=sends, detail=msgspec.json.encode(end).decode())

    def read(
        self,
        at_s: float,
        *records: tuple[int, int],
        key: str = "x-0",
        kind: EventType = OK,
        reader: int = 50,
        isolation: IsolationLevel | None = None,
    ) -> int:
        poll = Poll({key: tuple(Record(offset, value) for offset, value in records)})
        self.add(at_s, reader, INVOKE, Function.POLL, micro=(Poll(),), isolation=isolation)
        return self.add(at_s, reader, kind, Function.POLL, micro=(poll,), isolation=isolation)

    def final_read(self, at_s: float, isolation: IsolationLevel, *records: tuple[int, int], end: int) -> int:
        """A fresh reader reads `x-0` from its start to its end; the index of its poll."""
        fresh = {"partitions": ("x-0",), "isolation": isolation}
        reader = 100 + len(self.events)
        self.add(at_s, reader, OK, Function.ASSIGN, **fresh)
        read = self.read(at_s, *records, reader=reader, isolation=isolation)
        self.add(at_s, reader, OK, Function.DRAIN, offset=end, **fresh)
        return read

    def stable(self, at_s: float, stable: int, high: int) -> int:
        detail = msgspec.json.encode(StableOffset(high_watermark=high, open_ms=OPEN_MS)).decode()
        return self.add(at_s, HARNESS, OK, Function.STABLE, micro=(Reached("x-0", stable),), detail=detail)

    @property
    def anomalies(self) -> list[str]:
        """The findings that are not permitted, apart from writes that nobody read: scenes are short."""
        return self.broken("read_committed")

    def broken(self, isolation: IsolationLevel) -> list[str]:
        """The same in a run whose readers have this level."""
        broken = judge(Settings(min_insync_replicas=2, isolation_level=isolation), judge_events(self.events)).broken
        return [name for name in broken if name != "unseen"]

    def finding(self, name: str) -> dict[str, Any]:
        (finding,) = judge_events(self.events).anomalies[name]
        return msgspec.to_builtins(finding)


def committed() -> Scene:
    """Two committed transactions over two log partitions, read in order."""
    scene = Scene()
    scene.transaction((1, 2), OK, Send("x-0", 1, 0), Send("y-0", 2, 0))
    scene.transaction((3, 4), OK, Send("x-0", 3, 2), Send("y-0", 4, 2))
    scene.read(5, (0, 1), (2, 3))
    return scene


def test_transactions_that_are_read_after_their_commit_are_as_they_should_be() -> None:
    assert committed().anomalies == []


def test_a_value_of_an_aborted_transaction_that_is_read() -> None:
    scene = committed()
    writer = scene.transaction((6, 7), FAIL, Send("x-0", 5, 4), Send("y-0", 6, 4), asked="abort")
    reader = scene.read(8, (4, 5))
    assert scene.anomalies == ["aborted-read"]
    finding = scene.finding("aborted-read")
    assert (finding["key"], finding["value"], finding["writer"]["op_pos"], finding["reader"]["op_pos"]) == (
        "x-0", 5, writer, reader,
    )  # fmt: skip


def test_a_value_of_an_aborted_transaction_that_nobody_reads() -> None:
    scene = committed()
    scene.transaction((6, 7), FAIL, Send("x-0", 5, 4), asked="abort")
    scene.transaction((8, 9), OK, Send("x-0", 7, 6))
    scene.read(10, (6, 7))
    assert scene.anomalies == []


def test_a_value_that_is_read_before_its_commit_is_asked_for() -> None:
    scene = committed()
    scene.transaction((6, 7), OK, Send("x-0", 5, 4), meanwhile=lambda: scene.read(6.4, (4, 5)))
    assert scene.anomalies == ["early-read"]
    assert scene.finding("early-read")["early_us"] == 100_000


def test_a_value_whose_commit_was_never_asked_for() -> None:
    scene = committed()
    scene.transaction((6, 7), INFO, Send("x-0", 5, 4), asked=None, ending_us=None)
    scene.read(8, (4, 5))
    assert scene.anomalies == ["early-read"]
    assert "early_us" not in scene.finding("early-read")


@pytest.mark.parametrize("kind", [OK, INFO])
def test_a_value_that_is_read_while_its_commit_is_under_way(kind: EventType) -> None:
    scene = committed()
    scene.transaction((6, 7), kind, Send("x-0", 5, 4), meanwhile=lambda: scene.read(6.6, (4, 5)))
    assert scene.anomalies == []


def test_an_uncertain_transaction_of_which_one_value_is_read_has_to_be_there_as_a_whole() -> None:
    scene = committed()
    scene.transaction((5, 6), INFO, Send("x-0", 5, 4), Send("y-0", 6, 4))
    scene.transaction((6, 7), OK, Send("y-0", 9, 6), process=1)
    scene.read(8, (4, 5))
    scene.read(9, (6, 9), key="y-0")
    assert scene.anomalies == ["lost-write", "torn-transaction"]


def test_a_transaction_that_is_missing_as_a_whole_is_lost_and_not_torn() -> None:
    scene = committed()
    scene.transaction((5, 6), OK, Send("x-0", 5, 4), Send("x-0", 6, 5))
    scene.transaction((6.5, 7), OK, Send("x-0", 9, 7), process=1)
    scene.read(9, (7, 9))
    assert scene.anomalies == ["lost-write", "poll-skip"]


def test_a_send_that_failed_in_a_transaction_that_was_committed() -> None:
    scene = committed()
    scene.transaction((6, 7), OK, Send("x-0", 5, 4), Send("x-0", 6), failed={"6": "MSG_SIZE_TOO_LARGE"})
    scene.read(8, (4, 5))
    assert scene.anomalies == ["failed-send-committed"]
    assert (scene.finding("failed-send-committed")["value"], scene.finding("failed-send-committed")["error"]) == (
        6,
        "MSG_SIZE_TOO_LARGE",
    )


@pytest.mark.parametrize(
    ("kind", "error"), [(OK, "NeverSent: the queue is full"), (FAIL, "_FENCED"), (INFO, "_FENCED")]
)
def test_a_send_that_the_application_knows_of_or_that_failed_with_its_transaction(kind: EventType, error: str) -> None:
    scene = committed()
    scene.transaction((6, 7), kind, Send("x-0", 5, 4), Send("x-0", 6), failed={"6": error})
    assert scene.anomalies == []


def test_a_commit_of_a_producer_that_was_superseded() -> None:
    scene = committed()
    scene.transaction((6, 8), OK, Send("x-0", 5, 4), Send("x-0", 6, 6), superseded_us=7_000_000, late=(6,))
    scene.read(9, (4, 5), (6, 6))
    assert scene.anomalies == ["zombie"]
    assert all(
        "reader" not in msgspec.to_builtins(finding) for finding in judge_events(scene.events).anomalies["zombie"]
    )


@pytest.mark.parametrize("told", [{"producer_id": 4000, "producer_epoch": 3}, None])
def test_a_value_that_a_superseded_producer_sent(told: dict[str, int] | None) -> None:
    scene = committed()
    zombie: dict[str, Any] = {"superseded_us": 7_000_000, "late": (6,), "producer": told and ProducerEpoch(**told)}
    scene.transaction((6, 8), FAIL, Send("x-0", 5, 4), Send("x-0", 6, 6), **zombie)
    reader = scene.read(9, (6, 6))
    assert scene.anomalies == ["zombie"]
    assert scene.finding("zombie")["reader"]["op_pos"] == reader
    assert scene.finding("zombie").get("producer") == told


def test_the_first_half_of_a_superseded_producers_transaction_is_aborted() -> None:
    scene = committed()
    scene.transaction((6, 8), FAIL, Send("x-0", 5, 4), Send("x-0", 6), superseded_us=7_000_000, late=(6,))
    scene.read(9, (4, 5))
    assert scene.anomalies == ["aborted-read"]


def test_a_last_stable_offset_that_stands_still() -> None:
    scene = committed()
    scene.stable(4 + OPEN_MS / 1000, 2, 3)
    assert scene.anomalies == ["hanging-transaction"]
    assert scene.finding("hanging-transaction")["waited_us"] == OPEN_MS * 1000


def test_a_transaction_that_may_still_be_open_hangs_not_yet() -> None:
    scene = committed()
    scene.stable(3.9 + OPEN_MS / 1000, 2, 3)
    assert scene.anomalies == []


ALL: tuple[tuple[int, int], ...] = ((0, 1), (2, 3), (4, 5), (6, 7))
COMMITTED = ((0, 1), (2, 3), (6, 7))


def read_at_both_levels(
    first: IsolationLevel,
    seen: tuple[tuple[int, int], ...] = ALL,
    seen_committed: tuple[tuple[int, int], ...] = COMMITTED,
) -> Scene:
    """An aborted value 5 at offset 4 between committed ones, and final readers of both levels, the ``first`` first."""
    scene = Scene()
    scene.transaction((1, 2), OK, Send("x-0", 1, 0), Send("x-0", 3, 2))
    scene.transaction((6, 7), FAIL, Send("x-0", 5, 4), asked="abort")
    scene.transaction((8, 9), OK, Send("x-0", 7, 6))
    reads: dict[IsolationLevel, tuple[tuple[int, int], ...]] = {
        "read_uncommitted": seen,
        "read_committed": seen_committed,
    }
    for level in (first, *(reads.keys() - {first})):
        scene.final_read(10, level, *reads[level], end=8)
    return scene


LEVELS: tuple[IsolationLevel, ...] = ("read_uncommitted", "read_committed")
#: It says that a run of our own wrote the history.
OF_A_RUN = Event(time_us=0, process=HARNESS, type=INFO, function=Function.PHASE, detail='{"mark": "workload"}')


@pytest.mark.parametrize("begin", [[], [OF_A_RUN]])
@pytest.mark.parametrize("first", LEVELS)
def test_what_readers_of_uncommitted_records_see_is_nothing_to_those_of_committed_ones(
    first: IsolationLevel, begin: list[Event]
) -> None:
    told = judge_events([*begin, *read_at_both_levels(first).events])
    assert told.counts == {}
    assert (told.transactions.aborted_seen, told.transactions.aborted_passed) == (1, 1)


def lacks(events: list[Event], level: IsolationLevel) -> str:
    settings = Settings(min_insync_replicas=2, isolation_level=level)
    return exercised_by(judge_events(events), (), settings, judged=True).lacks(())


@pytest.mark.parametrize("first", LEVELS)
def test_a_level_that_is_not_read_to_the_end_puts_nothing_to_the_test(first: IsolationLevel) -> None:
    events = read_at_both_levels(first).events
    said = "1 log partition read to the end at one isolation level only"
    assert said not in lacks(events, first)
    assert said in lacks(events[:-1], first)


@pytest.mark.parametrize("first", LEVELS)
def test_readers_of_uncommitted_records_that_see_nothing_aborted_put_nothing_to_the_test(first: IsolationLevel) -> None:
    said = "as if they had the other level"
    assert said not in lacks(read_at_both_levels(first).events, first)
    assert said in lacks(read_at_both_levels(first, seen=COMMITTED).events, first)


@pytest.mark.parametrize("first", LEVELS)
def test_an_aborted_value_that_a_reader_of_committed_records_sees(first: IsolationLevel) -> None:
    assert read_at_both_levels(first, seen_committed=ALL).broken(first) == ["aborted-read"]


@pytest.mark.parametrize("first", LEVELS)
def test_a_committed_value_that_only_readers_of_uncommitted_records_see_is_lost(first: IsolationLevel) -> None:
    scene = read_at_both_levels(first, seen_committed=((0, 1), (2, 3)))
    assert scene.broken(first) == ["lost-write"]
    lost = scene.finding("lost-write")
    assert (lost["value"], lost["rule"], lost["log-end-offset"]) == (7, "drained", 8)
    assert ("other-read" in lost) is (first == "read_committed")


@pytest.mark.parametrize("first", LEVELS)
def test_a_committed_value_that_readers_of_uncommitted_records_do_not_see_is_lost(first: IsolationLevel) -> None:
    scene = read_at_both_levels(first, seen=ALL[:3])
    assert scene.broken(first) == ["lost-write"]
    assert scene.finding("lost-write")["value"] == 7


def test_a_reader_of_uncommitted_records_proves_no_commit() -> None:
    scene = Scene()
    scene.transaction((1, 2), INFO, Send("x-0", 1, 0), Send("x-0", 3, 2))
    scene.transaction((3, 4), OK, Send("x-0", 5, 4), process=1)
    scene.final_read(5, "read_committed", (4, 5), end=6)
    scene.final_read(5, "read_uncommitted", (0, 1), (4, 5), end=6)
    assert scene.anomalies == []


def test_counts_say_what_was_put_to_the_test() -> None:
    scene = committed()
    scene.transaction((6, 7), FAIL, Send("x-0", 5, 4), Send("y-0", 6, 4), asked="abort")
    scene.transaction((8, 9), FAIL, Send("x-0", 7, 6), Send("x-0", 8), superseded_us=8_500_000, late=(8,))
    scene.transaction((8, 9), INFO, Send("x-0", 9), process=1)
    scene.add(10, 60, OK, Function.DRAIN, partitions=("x-0",), offset=6)
    counts = judge_events(scene.events).transactions
    assert (counts.committed, counts.aborted, counts.unknown) == (2, 2, 1)
    assert (counts.superseded, counts.late, counts.aborted_passed) == (1, 1, 1)


@pytest.mark.parametrize(
    ("kind", "asked", "offset", "end", "passed"),
    [(FAIL, "abort", 3, 4, 1), (FAIL, "abort", 3, 3, 0), (FAIL, "abort", None, 4, 0), (OK, "commit", 3, 4, 0)],
)
def test_a_final_reader_came_past_an_aborted_write_only_below_its_end(
    kind: EventType, asked: str, offset: int | None, end: int, passed: int
) -> None:
    scene = Scene()
    scene.transaction((1, 2), kind, Send("x-0", 1, offset), asked=asked)
    scene.read(3, (2, 7))
    scene.add(4, 50, OK, Function.DRAIN, partitions=("x-0",), offset=end)
    assert judge_events(scene.events).transactions.aborted_passed == passed


@given(st.integers(0, 2**32))
@examples(200)
def test_every_kernel_agrees_with_the_judge(seed: int) -> None:
    events = random_history(random.Random(seed))
    assert checked(judge_events(events, shown=None)) == by_the_judge(events)


def random_history(chance: random.Random) -> list[Event]:
    """Transactions that end in any way, polls of any of their values at any time, and questions about the end."""
    scene, value = Scene(), 0
    partitions = ("x-0", "y-0", "z-0")
    moments: list[tuple[float, Callable[[float], object]]] = []
    for process in range(chance.randint(1, 3)):
        at_s = 1 + chance.random()
        for _ in range(chance.randint(1, 4)):
            sends = []
            for _ in range(chance.randint(1, 4)):
                value += 1
                sends.append(Send(chance.choice(partitions), value, chance.choice((None, value))))
            end_s = at_s + 0.6 + 2 * chance.random()
            moments.append((at_s, _transaction(scene, chance, (at_s, end_s), process, sends)))
            at_s = end_s + chance.random()
    polls, questions = range(chance.randint(0, 12)), range(chance.randint(0, 2))
    moments += [(1 + 10 * chance.random(), _poll(scene, chance, partitions, value)) for _ in polls]
    moments += [(10 + 25 * chance.random(), _question(scene, chance, partitions)) for _ in questions]
    levels = [chance.choice((None, *LEVELS)) for _ in range(chance.randint(0, 3))]
    moments += [(8 + 4 * chance.random(), _final_reader(scene, chance, partitions, value, level)) for level in levels]
    for at_s, add in sorted(moments, key=lambda moment: moment[0]):
        add(at_s)
    return [msgspec.structs.replace(event, index=index) for index, event in enumerate(scene.events)]


def _transaction(
    scene: Scene, chance: random.Random, times_s: tuple[float, float], process: int, sends: list[Send]
) -> Callable[[float], object]:
    end_s = times_s[1]
    kind = chance.choice((OK, FAIL, INFO))
    asked = chance.choice(("commit", "commit", "abort", None))
    values = [send.value for send in sends]
    facts: dict[str, Any] = {"asked": asked, "ending_us": None if asked is None else int((end_s - 0.5) * 1_000_000)}
    if chance.random() < 0.3:
        unlucky = chance.randrange(len(sends))
        sends[unlucky] = msgspec.structs.replace(sends[unlucky], offset=None)
        facts["failed"] = {str(values[unlucky]): chance.choice(("_FENCED", "NeverSent: full"))}
    if asked is not None and chance.random() < 0.3:
        facts |= {"superseded_us": int((end_s - 0.55) * 1_000_000), "late": tuple(values[len(values) // 2 :])}
    return lambda _: scene.transaction(times_s, kind, *sends, process=process, **facts)


def _poll(scene: Scene, chance: random.Random, partitions: tuple[str, ...], most: int) -> Callable[[float], object]:
    read = Poll(
        {
            key: tuple(Record(value, value) for value in sorted({chance.randint(1, most) for _ in range(3)}))
            for key in partitions
            if chance.random() < 0.6
        }
    )
    kind, level = chance.choice((OK, OK, OK, INFO)), chance.choice((None, *LEVELS))
    process = 50 if level is None else 51 + LEVELS.index(level)
    return lambda at_s: scene.add(at_s, process, kind, Function.POLL, micro=(read,), isolation=level)


def _final_reader(
    scene: Scene, chance: random.Random, partitions: tuple[str, ...], most: int, level: IsolationLevel | None
) -> Callable[[float], object]:
    """A reader that misses some records, and says of each log partition how far it read."""

    def add(at_s: float) -> None:
        reader = 100 + len(scene.events)
        for key in partitions:
            read = Poll({key: tuple(Record(value, value) for value in range(1, most + 1) if chance.random() < 0.8)})
            scene.add(at_s, reader, OK, Function.POLL, micro=(read,), isolation=level)
            end = {"partitions": (key,), "offset": chance.randint(0, most + 1)}
            scene.add(at_s, reader, chance.choice((OK, OK, INFO)), Function.DRAIN, isolation=level, **end)

    return add


def _question(scene: Scene, chance: random.Random, partitions: tuple[str, ...]) -> Callable[[float], object]:
    key, stable, high = chance.choice(partitions), chance.randint(0, 5), chance.randint(5, 6)
    detail = msgspec.json.encode(StableOffset(high_watermark=high, open_ms=OPEN_MS)).decode()
    return lambda at_s: scene.add(at_s, HARNESS, OK, Function.STABLE, micro=(Reached(key, stable),), detail=detail)
