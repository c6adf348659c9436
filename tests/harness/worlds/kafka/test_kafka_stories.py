"""The stories that show most on real Apache Kafka: what loses, what holds; all are in docs/guides/kafka-stories.md.

S01 and S09 are in test_kafka_run, S03 in test_kafka_leadership. Each run is one plan of plans/drawn, shortened to one
performance of its story.
"""

from pathlib import Path

import msgspec
import pytest

from checkers import Judgement
from harness.plan import RunSpec, read_plan
from tests.harness.needs import needs_root
from tests.harness.worlds.trials import SEEDS, lose_or_hold

pytestmark = [
    pytest.mark.system,
    pytest.mark.kafka,
    pytest.mark.root,
    pytest.mark.xdist_group("kafka-stories"),
    pytest.mark.usefixtures("real_kafka"),
]
on_namespaces = needs_root("ip", "nft", "nsenter", "mkfs.ext4")
STORIES = Path(__file__).parents[4] / "plans" / "drawn"
#: One performance of each fits, with time for the brokers to be well before.
DURATION_MS = {"S11": 13_000, "sole-member-stop": 10_000, "S22": 8_000}
HEALED_MS = 2_500


@on_namespaces
@pytest.mark.parametrize(
    ("story", "family", "settings", "loses"),
    [
        pytest.param("S11", "power", {"flush.messages": 2**63 - 1}, True, id="replication is no disk (S11)"),
        pytest.param(
            "sole-member-stop",
            "rolling",
            {"min.insync.replicas": 1},
            False,
            id="the last in-sync replica may be stopped",
        ),
    ],
)
def test_a_story_has_its_outcome(tmp_path: Path, story: str, family: str, settings: dict, *, loses: bool) -> None:
    run_spec = shortened(story, family, settings)
    # kafka-python is busy while brokers are away, and this is not about clients.
    run_spec = msgspec.structs.replace(
        run_spec, world=msgspec.structs.replace(run_spec.world, client="confluent-kafka")
    )
    lose_or_hold(run_spec, tmp_path, loses=loses, exercised=performed_in_full)


@on_namespaces
@pytest.mark.parametrize(("idempotence", "twice"), [(False, True), (True, False)])
def test_a_lost_reply_is_a_write_twice_without_idempotence_only(
    tmp_path: Path, *, idempotence: bool, twice: bool
) -> None:
    run_spec = shortened("S22", "partition", {"enable.idempotence": idempotence})

    def written_as_often_as_expected(run: Judgement) -> bool:
        return performed_in_full(run) and ("duplicate" in run.permitted) is twice

    lose_or_hold(run_spec, tmp_path, loses=False, exercised=written_as_often_as_expected)


def performed_in_full(run: Judgement) -> bool:
    """True if every fault of the story took effect: half of one shows nothing."""
    return bool(run.faults) and run.without_effect == 0


def shortened(story: str, family: str, settings: dict[str, object]) -> RunSpec:
    """A run in which the story is performed once."""
    run_spec = read_plan(STORIES / f"{story}.toml", settings).single(family, "kafka", SEEDS[0])
    return msgspec.structs.replace(
        run_spec,
        workload=msgspec.structs.replace(run_spec.workload, duration_ms=DURATION_MS[story]),
        faults=msgspec.structs.replace(run_spec.faults, count=1, healed_ms_min=HEALED_MS),
    )
