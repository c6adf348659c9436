"""Readers of committed and of uncommitted records in one history of another tool: each is held to its own level."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from checkers.verdicts.verdict import Verdict
from tests.checkers.in_memory import judge_events
from workloads.operations import Event, EventType, Function, Poll, Record, Send
from workloads.settings import IsolationLevel

OK, FAIL, INFO, INVOKE = EventType.OK, EventType.FAIL, EventType.INFO, EventType.INVOKE
C: IsolationLevel = "read_committed"
U: IsolationLevel = "read_uncommitted"
KEY = "t-0"


class Told:
    """A history of another tool that grows operation by operation."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def _add(self, process: int, kind: EventType, function: Function, *micro: Send | Poll, **more: object) -> None:
        fields = {"time_us": len(self.events), "process": process, "type": kind, "function": function, "micro": micro}
        self.events.append(Event(**fields | more))  # type: ignore[arg-type]

    def write(self, kind: EventType, *values: tuple[int, int | None], function: Function = Function.TXN) -> Told:
        """Values with their offsets, sent in one operation that ends so."""
        self._add(0, INVOKE, function, *(Send(KEY, value) for value, _ in values))
        self._add(0, kind, function, *(Send(KEY, value, offset) for value, offset in values))
        return self

    def read(self, process: int, level: IsolationLevel | None, *polls: Sequence[tuple[int, int]]) -> Told:
        """Polls of (offset, value)."""
        for records in polls:
            poll = Poll({KEY: tuple(Record(*record) for record in records)})
            self._add(process, INVOKE, Function.POLL, Poll(), isolation=level)
            self._add(process, OK, Function.POLL, poll, isolation=level)
        return self

    @property
    def verdict(self) -> Verdict:
        return judge_events(self.events, shown=None)

    @property
    def counts(self) -> dict[str, int]:
        return {name: count for name, count in self.verdict.counts.items() if count}


def with_an_aborted_one() -> Told:
    """1 and 2 are committed at 0 and 1, 3 and 4 aborted at 3 and 4, 5 is committed at 6."""
    return Told().write(OK, (1, 0), (2, 1)).write(FAIL, (3, None), (4, None)).write(OK, (5, 6))


COMMITTED_POLLS = ([(0, 1), (1, 2)], [(6, 5)])
ALL_POLLS = ([(0, 1), (1, 2), (3, 3)], [(4, 4), (6, 5)])


@pytest.mark.parametrize("levels", [(C, U), (U, C), (None, U), (U, None), (U, U), (C, C), (None, None), (C, None)])
def test_each_reader_may_see_what_its_level_sees(levels: tuple[IsolationLevel | None, IsolationLevel | None]) -> None:
    told = with_an_aborted_one()
    for process, level in enumerate(levels, 1):
        told.read(process, level, *(ALL_POLLS if level == U else COMMITTED_POLLS))
    assert told.verdict.valid is True
    assert told.counts == {}


@pytest.mark.parametrize("level", [C, None])
@pytest.mark.parametrize("first", [True, False])
def test_a_reader_of_committed_records_that_sees_an_aborted_one_is_accused(
    level: IsolationLevel | None, first: bool
) -> None:
    told = with_an_aborted_one()
    readers = [(1, U, ALL_POLLS), (2, level, ([(0, 1), (1, 2), (3, 3)], [(6, 5)]))]
    for process, of_reader, polls in readers if first else readers[::-1]:
        told.read(process, of_reader, *polls)
    assert told.verdict.valid is False
    assert told.counts == {"G1a": 1}


def test_a_send_that_failed_leaves_no_record_for_any_reader() -> None:
    for level in (C, U, None):
        told = Told().write(OK, (1, 0)).write(FAIL, (2, None), function=Function.SEND)
        assert told.read(1, level, [(0, 1), (1, 2)]).counts == {"G1a": 1}


@pytest.mark.parametrize("levels", [(C, U), (U, C)])
def test_a_reader_of_either_level_that_passes_over_a_committed_record_is_accused(
    levels: tuple[IsolationLevel, IsolationLevel],
) -> None:
    for late in (1, 2):
        told = with_an_aborted_one()
        for process, level in enumerate(levels, 1):
            polls = ALL_POLLS if level == U else COMMITTED_POLLS
            cut = [[record for record in poll if record != (1, 2)] for poll in polls]
            told.read(process, level, *(cut if process == late else polls))
        assert set(told.counts) == {"poll-skip" if levels[late - 1] == C else "int-poll-skip"}, late


def test_a_reader_of_uncommitted_records_that_passes_over_an_aborted_one_is_accused() -> None:
    told = with_an_aborted_one().read(1, C, *COMMITTED_POLLS).read(2, U, *ALL_POLLS)
    assert told.read(3, U, [(0, 1), (1, 2)], [(4, 4), (6, 5)]).counts == {"poll-skip": 1}


def test_a_reader_goes_back_whatever_its_level_and_whoever_read_first() -> None:
    for levels in ((C, U), (U, C)):
        for late, other in (levels, levels[::-1]):
            told = with_an_aborted_one()
            for level in levels:
                polls = ALL_POLLS if level == U else COMMITTED_POLLS
                told.read(1 if level == late else 2, level, *polls, *([polls[0]] if level == late else []))
            assert told.counts == {"nonmonotonic-poll": 1}, (levels, late, other)


def test_an_uncertain_transaction_is_not_proved_by_readers_of_uncommitted_records() -> None:
    """Its other value is at a known offset below what was read, and was never written for good."""
    told = Told().write(OK, (1, 0)).write(INFO, (2, 1), (3, 2)).write(OK, (4, 5))
    assert told.read(1, U, [(0, 1), (1, 2), (5, 4)]).counts == {}
    sends = Told().write(OK, (1, 0)).write(INFO, (2, 1), (3, 2), function=Function.SEND).write(OK, (4, 5))
    assert sends.read(1, U, [(0, 1), (1, 2), (5, 4)]).counts == {"lost-write": 1, "int-poll-skip": 1}
    proved = Told().write(OK, (1, 0)).write(INFO, (2, 1), (3, 2)).write(OK, (4, 5))
    assert proved.read(1, C, [(0, 1), (1, 2), (5, 4)]).counts == {"lost-write": 1, "int-poll-skip": 1}


@pytest.mark.parametrize("levels", [(C, U), (U, C)])
def test_what_a_reader_of_any_level_read_is_neither_lost_nor_unseen(
    levels: tuple[IsolationLevel, IsolationLevel],
) -> None:
    told = Told().write(OK, (1, 0), (2, 1), (3, 2))
    assert told.read(1, levels[0], [(2, 3)]).read(2, levels[1], [(0, 1), (1, 2), (2, 3)]).counts == {}


def test_the_level_that_a_process_tells_once_is_its_level_everywhere() -> None:
    told = with_an_aborted_one().read(1, C, *COMMITTED_POLLS)
    assert told.read(2, U, ALL_POLLS[0]).read(2, None, ALL_POLLS[1]).counts == {}


def test_what_a_process_sends_in_an_operation_with_a_level_is_sent_all_the_same() -> None:
    """As a tool does whose transactions both poll and send."""
    told = Told().read(1, C, [])
    told._add(2, INVOKE, Function.TXN, Send(KEY, 7), isolation=U)
    told._add(2, OK, Function.TXN, Send(KEY, 7, 0), isolation=U)
    assert told.read(1, C, [(0, 7)]).counts == {}
