"""A loss of power in words: the disk that came back without the write, and nobody else's."""

from harness.report.telling import tell
from harness.report.timeline import Timeline, Write
from harness.worlds.contract import Observation
from nemesis.receipts import Receipt
from workloads.values import join

POWER = Receipt(
    mark="end",
    sequence=0,
    group=0,
    family="power",
    story="last-in-sync",
    fault="powerloss",
    role="the leader of partition 0",
    targets=(0,),
    begun_us=2_000_000,
    ended_us=3_000_000,
    took_effect=True,
)
WRITE = Write(value=join(2, 41), invoked_us=1_000_000, acknowledged_us=1_003_000, offset=41, node=0, process=2)


def returned(node: int, end_offset: int) -> Observation:
    return Observation(3_500_000, node, "recovered", "t-0", {"end_offset": end_offset, "high_watermark": 0})


def story(*cluster: Observation) -> list[str]:
    timeline = Timeline(
        partition="t-0",
        write=WRITE,
        begin_us=0,
        end_us=5_000_000,
        faults=(POWER,),
        points=(),
        successor=None,
        reader_us=None,
        successor_write=None,
        end_offset=12,
        cluster=cluster,
    )
    return tell(timeline)


def test_a_disk_that_lost_the_write_is_named() -> None:
    words = "At 3.500 s broker 0 had its power again; its disk held the log up to offset 12, without the write."
    assert words in story(returned(0, 12))


def test_a_disk_that_kept_it_and_a_broker_that_only_died_are_not() -> None:
    assert not [sentence for sentence in story(returned(0, 42), returned(1, 12)) if "power again" in sentence]
