"""The model of the consumer, against answers given by hand."""

from msgspec.structs import replace

from harness.broker.core.types import ErrorCode
from harness.worlds.simulated.consumer import CORRUPT
from tests.harness.worlds.simulated.consumer_session import AT, OTHER, Session, batch
from workloads.client import Offsets


def test_a_poll_ends_with_the_records_of_the_fetch_and_the_next_goes_on_behind_them() -> None:
    session = Session()
    session.poll()
    session.answer_fetch(batch(0, "a", "b"))
    session.poll()
    assert session.polls == [[(0, "a"), (1, "b")]]
    assert session.wanted() == [(0, [(0, 2)])]


def test_a_batch_that_begins_before_the_position_is_read_from_the_position_on() -> None:
    session = Session()
    session.earliest = 3
    session.poll()
    assert session.wanted() == [(0, [(0, 3)])]
    session.answer_fetch(batch(2, "before", "here"))
    assert session.polls == [[(3, "here")]]


def test_an_idle_poll_ends_empty_and_leaves_its_long_poll_standing() -> None:
    session = Session()
    session.poll(max_wait_ms=100)
    session.wait(100)
    session.poll(max_wait_ms=100)
    assert session.polls == [[]]
    assert len(session.fetches) == 1
    session.answer_fetch(batch(0, "late"))
    assert session.polls == [[], [(0, "late")]]


def test_an_offset_out_of_range_is_reset_to_the_earliest() -> None:
    session = Session()
    session.poll(max_wait_ms=1_000)
    session.earliest = 40
    session.answer_fetch(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    session.wait(200)
    assert session.wanted() == [(0, [(0, 40)])]


def test_a_batch_whose_checksum_is_wrong_ends_every_poll_with_an_error_at_the_same_place() -> None:
    session = Session()
    session.poll()
    session.answer_fetch(batch(0, "a"), replace(batch(1, "b"), intact=False), batch(2, "c"))
    assert session.polls == [[(0, "a")]]
    session.poll()
    session.wait(200)
    session.poll()
    session.answer_fetch(replace(batch(1, "b"), intact=False))
    assert session.errors == [None, CORRUPT, CORRUPT]


def test_a_refused_fetch_is_repeated_after_the_backoff() -> None:
    session = Session()
    session.poll(max_wait_ms=1_000)
    session.answer_fetch(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert session.fetches == []
    session.wait(150)
    assert session.wanted() == [(0, [(0, 0)])]


def test_each_leader_is_asked_for_its_own_partitions() -> None:
    session = Session(AT, OTHER)
    session.poll()
    assert session.wanted() == [(0, [(0, 0)]), (1, [(1, 0)])]


def test_assigning_again_keeps_the_position_unless_it_says_from_start() -> None:
    session = Session()
    session.poll()
    session.answer_fetch(batch(0, "a"))
    session.model.assign([AT], from_start=False)
    session.poll()
    assert session.wanted() == [(0, [(0, 1)])]
    session.model.assign([AT], from_start=True)
    session.answer_fetch()
    assert session.wanted() == [(0, [(0, 0)])]


def test_end_offsets_ask_every_leader_and_insist() -> None:
    session = Session()
    session.ask_ends(AT, OTHER)
    session.answer_end(5)
    session.answer_end(-1, ErrorCode.OFFSET_NOT_AVAILABLE)
    assert session.ends == []
    session.wait(200)
    session.answer_end(6)
    assert session.ends == [Offsets({"t-0": 5, "t-1": 6})]


def test_end_offsets_that_nobody_tells_end_with_an_error() -> None:
    session = Session()
    session.ask_ends(AT, OTHER)
    session.answer_end(5)
    session.wait(10_000)
    assert session.ends == [Offsets({"t-0": 5}, "KafkaTimeoutError")]


def test_closing_ends_a_poll_and_a_question() -> None:
    session = Session()
    session.poll()
    session.ask_ends(AT)
    session.close()
    assert session.polls == [[]]
    assert session.ends == [Offsets({}, "ClientClosed")]
