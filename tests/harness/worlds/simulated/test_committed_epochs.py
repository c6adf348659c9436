"""A member begins where its group is only in a log that has what the group has read (KIP-320)."""

import pytest

from harness.broker.core import messages
from harness.broker.core.messages import EpochEnd
from harness.broker.core.types import NONE, OFFSETS_TOPIC, ErrorCode
from tests.harness.worlds.simulated.client_session import image_of
from tests.harness.worlds.simulated.consumer_session import AT, batch
from tests.harness.worlds.simulated.group_session import GroupSession, reached
from workloads.settings import Settings


def begun(session: GroupSession, offset: int, epoch: int) -> None:
    """Be assigned the first log partition, of which the group has read this much."""
    session.poll(max_wait_ms=60_000)
    session.answer(member_epoch=1, assigned=(AT,))
    session.asked.sort(key=lambda each: isinstance(each, messages.ConsumerGroupHeartbeat))
    session.answer(offsets=reached(offset, epoch))
    session.asked.clear()


def test_a_commit_carries_the_leader_epoch_of_the_record_before_it() -> None:
    session = GroupSession()
    begun(session, 0, NONE)
    session.answer_fetch(batch(0, "a", "b", epoch=2), batch(2, "c", epoch=5))
    for offset, epoch in ((3, 5), (2, 2), (1, 2)):
        session.commit(offset)
        assert session.answer().offsets == reached(offset, epoch)


def test_what_a_commit_of_an_unread_position_carries_is_what_the_group_knew() -> None:
    session = GroupSession()
    begun(session, 7, 0)
    session.answer_end_of_epoch(EpochEnd(0, 9))
    session.commit(7)
    assert session.answer().offsets == reached(7, 0)


def test_a_leader_of_an_older_epoch_than_the_group_has_read_is_not_asked() -> None:
    session = GroupSession()
    begun(session, 7, epoch=3)
    session.wait(5 * Settings().retry_backoff_ms)
    assert (session.fetches, session.epochs_asked) == ([], [])
    session.image = image_of({"t": (1, 1), OFFSETS_TOPIC: (2,)}, epoch=3)
    session.wait(2 * Settings().retry_backoff_ms)
    ((broker, asked),) = session.epochs_asked
    assert (broker, asked.leader_epoch, asked.current_leader_epoch) == (1, 3, 3)


@pytest.mark.parametrize(
    ("end", "wanted"),
    [
        (EpochEnd(0, 12), 7),
        (EpochEnd(0, 5), 5),
        (EpochEnd(NONE, NONE), 2),
    ],
)
def test_reading_goes_on_where_the_logs_diverge_and_from_the_start_where_that_is_not_known(
    end: EpochEnd, wanted: int
) -> None:
    session = GroupSession()
    session.earliest = 2
    begun(session, 7, 0)
    assert session.fetches == []
    session.answer_end_of_epoch(end)
    assert session.wanted() == [(0, [(0, wanted)])]


def test_a_question_about_the_epoch_is_repeated_until_it_is_answered() -> None:
    session = GroupSession()
    begun(session, 7, 0)
    session.answer_end_of_epoch(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    session.wait(2 * Settings().retry_backoff_ms)
    session.disconnect(0)
    session.epochs_asked.clear()
    session.wait(2 * Settings().retry_backoff_ms)
    session.answer_end_of_epoch(EpochEnd(0, 7))
    assert session.wanted() == [(0, [(0, 7)])]


def test_an_offset_without_an_epoch_is_not_validated() -> None:
    session = GroupSession()
    begun(session, 7, NONE)
    assert session.wanted() == [(0, [(0, 7)])]
