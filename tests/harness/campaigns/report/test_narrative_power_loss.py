"""Faults on disks in words: the disk that came back without the write, and nobody else's."""

from msgspec.structs import replace

from harness.campaigns.report.client_side import AcknowledgedWrite
from harness.campaigns.report.narrative import narrate
from harness.campaigns.report.timeline import Timeline
from harness.ground.observations import Observation, ReplicaRecovered
from tests.nemesis.receipt_factory import a_receipt
from workloads.values import join

POWER = a_receipt(family="power", story="last-in-sync", fault="powerloss", begun_us=2_000_000, ended_us=3_000_000)
WRITE = AcknowledgedWrite(value=join(2, 41), invoked_us=1_000_000, acknowledged_us=1_003_000, offset=41, node=0)


def returned(node: int, end_offset: int) -> Observation:
    return Observation(3_500_000, node, ReplicaRecovered(partition="t-0", end_offset=end_offset, high_watermark=0))


def story(*cluster: Observation, fault=POWER) -> list[str]:
    timeline = Timeline(
        partition="t-0",
        write=WRITE,
        begin_us=0,
        end_us=5_000_000,
        faults=(fault,),
        end_offset=12,
        observations=cluster,
    )
    return narrate(timeline)


def test_a_disk_that_lost_the_write_is_named() -> None:
    words = "At 3.500 s broker 0 had its power again; its disk held the log up to offset 12, without the write."
    assert words in story(returned(0, 12))


def test_a_disk_that_kept_it_and_a_broker_that_only_died_are_not() -> None:
    assert not [sentence for sentence in story(returned(0, 42), returned(1, 12)) if "power again" in sentence]


def test_a_log_that_ends_before_a_damaged_record_is_named() -> None:
    reported = story(returned(0, 12), returned(1, 12), fault=replace(POWER, fault="corruptrecord"))
    end = "ended it before the damaged record, at offset 12, without the write."
    assert [sentence for sentence in reported if "damaged" in sentence] == [
        f"At 3.500 s broker 0 read its log again and {end}"
    ]


def test_an_emptied_disk_is_named_also_where_the_broker_says_nothing_of_it() -> None:
    words = "At 3.000 s broker 0 was started again, its disk emptied."
    assert words in story(fault=replace(POWER, fault="wipedisk"))
    assert words not in story(fault=replace(POWER, fault="wipedisk", took_effect=False))
    assert words not in story(fault=replace(POWER, fault="wipedisk", begun_us=500_000))
    assert words in story(fault=replace(POWER, fault="awaywiped"))
    assert words not in story(fault=replace(POWER, fault="awaywiped", degraded_to="away"))
