"""The words in which two clusters, each with clients of its own, say the same."""

from __future__ import annotations

import pytest

from harness.lab.conform.shown import NO_ANSWER, shown
from harness.runs.stories import RecordEnd
from nemesis.cluster import PartitionView

VIEW = PartitionView(leader=0, leader_epoch=0, isr=(0,), replicas=(0,))


@pytest.mark.parametrize(
    ("of_a_library", "of_the_core", "word"),
    [
        (
            "INVALID_PRODUCER_EPOCH: Broker: Producer attempted an operation with an old epoch",
            "InvalidProducerEpochError",
            "InvalidProducerEpochError",
        ),
        ("_PURGE_QUEUE: Local: Purged in queue", "ProducerFencedError", NO_ANSWER),
        ("_FENCED: fenced by a newer producer instance", "ProducerFencedError", NO_ANSWER),
        ("InvalidProducerEpochException: an old epoch", "InvalidProducerEpochError", "InvalidProducerEpochError"),
        ("ProducerFencedException: a newer producer", "ProducerFencedError", NO_ANSWER),
    ],
)
def test_a_record_of_a_fenced_producer_has_one_answer_whichever_client_sent_it(
    of_a_library: str, of_the_core: str, word: str
) -> None:
    ends = [RecordEnd(value=1, outcome="unknown", error=error) for error in (of_a_library, of_the_core)]
    assert [shown(VIEW, (), (), {}, {"a": end}).answers["a"] for end in ends] == [word, word]
