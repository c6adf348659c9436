"""Reading of the nodes' words: views, observations, configurations, last lines."""

import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from harness.broker.core.types import BrokerConfig, BrokerState, Image, PartitionState, TopicConfig, TopicState
from harness.broker.server import describe_image
from harness.broker.server.config import read_config
from harness.ground.errors import HarnessError
from harness.ground.observations import BecameLeader
from harness.plan import Processes, RunSpec
from harness.worlds import processes
from harness.worlds.processes import ControlSocketMetadata, image_in, module_path
from harness.worlds.real.observation_times import traced, with_crashes
from harness.worlds.real.topic import topic_configs
from harness.worlds.real.view import Viewer, partitions_of
from harness.worlds.reference_settings import broker_config
from nemesis.cluster import CONTROLLER, PartitionView
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

LED = PartitionState(replicas=(0, 1), isr=(1,), leader=1, leader_epoch=4, partition_epoch=9)
LEADERLESS = PartitionState(replicas=(1, 0), isr=(0,), leader=-1, leader_epoch=5, partition_epoch=9)


def status(image: Image) -> dict[str, object]:
    """An answer as it comes over the control socket."""
    return dict(msgspec.json.decode(msgspec.json.encode({"ok": True, "image": describe_image(image)})))


def test_the_controllers_status_becomes_the_view_of_the_runs_topic() -> None:
    topics = {name: TopicState(TopicConfig(), (LED, LEADERLESS)) for name in ("ackproof", "other-topic")}
    image = image_in(status(Image(7, {0: BrokerState(3, False)}, topics)))
    assert image is not None
    assert not image.brokers[0].fenced
    assert partitions_of(image, "ackproof") == {
        "ackproof-0": PartitionView(1, 4, (1,), (0, 1), partition_epoch=9),
        "ackproof-1": PartitionView(None, 5, (0,), (1, 0), partition_epoch=9),
    }


@pytest.mark.parametrize("answer", [{}, {"ok": False, "error": "stopping"}, {"image": {"partitions": {"a-0": {}}}}])
def test_an_answer_without_a_readable_image_is_no_view(answer: dict[str, object]) -> None:
    assert image_in(answer) is None


def test_a_controller_that_gives_no_answer_is_not_active_and_the_last_view_stands(monkeypatch) -> None:
    answers = [status(Image(7, {0: BrokerState(3, False)}, {"t": TopicState(TopicConfig(), (LED,))})), {}]
    host = SimpleNamespace(ask=lambda nodes, *_: {nodes[0]: answers.pop(0)})
    nodes = SimpleNamespace(host=host, brokers=(0,), controllers=(CONTROLLER,), in_state=lambda _, asked: tuple(asked))
    monkeypatch.setattr(processes, "FRESH_S", 0.0)
    viewer = Viewer(ControlSocketMetadata(nodes), nodes, WorkloadPlan(topic="t"))  # type: ignore[arg-type]
    first, second = viewer.view(), viewer.view()
    assert (first.controller_active, second.controller_active) == (True, False)
    assert first.partitions == second.partitions


def test_traces_are_merged_in_order_of_time_and_torn_lines_passed_over(tmp_path: Path) -> None:
    lines = b'{"time_us": %d, "node": %d, "fact": {"what": "leader", "partition": "t-0", "leader_epoch": 1}}\n'
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "trace-0.jsonl").write_bytes(lines % (1_050, 0) + b'{"time_us": 99, "no')
    (tmp_path / "logs" / "trace-1.jsonl").write_bytes(lines % (1_020, 1) + lines % (1_090, 1))
    seen = with_crashes(traced(tmp_path, wall_begin_us=1_000), [])
    assert traced(tmp_path / "nowhere", 0) == []
    assert [(observation.time_us, observation.node) for observation in seen] == [(20, 1), (50, 0), (90, 1)]
    assert seen[0].fact == BecameLeader(partition="t-0", leader_epoch=1)


def test_every_broker_setting_reaches_the_broker_under_its_name() -> None:
    settings = Settings(replica_lag_time_max_ms=777, truncation="kip-101", strict_min_isr=False)
    assert broker_config(settings) == BrokerConfig(
        replica_lag_time_max_ms=777, truncation="kip-101", strict_min_isr=False
    )


def test_brokers_make_the_log_of_groups_with_the_settings_of_the_run(tmp_path: Path) -> None:
    settings = Settings(min_insync_replicas=2, unclean_leader_election_enable=True)
    common = {"settings": settings.to_mapping(), "workload": WorkloadPlan(), "faults": FaultPlan(), "seed": 1}
    distribution = processes.ReferenceDistribution(RunSpec(world=Processes(), cell="c", family="kill", **common))
    address, links = SimpleNamespace(host="h", port=1), SimpleNamespace(enforced_by=lambda _: ())
    host = SimpleNamespace(address=lambda _: address, control_path=str, links=links)
    (tmp_path / "data").mkdir()
    own = tmp_path.joinpath
    nodes = SimpleNamespace(
        host=host, directory=tmp_path, data=lambda node: own(str(node)), log=lambda node: own("log")
    )
    file = distribution.launch(nodes, 1).command[-1]  # type: ignore[arg-type]
    defaults = read_config(Path(file)).topics
    assert (defaults.min_insync_replicas, defaults.unclean_leader_election_enable) == (2, True)


def test_a_node_finds_what_the_harness_was_pointed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    home, *others = module_path().split(os.pathsep)
    assert (Path(home) / "harness" / "broker").is_dir()
    assert others == ["/elsewhere"]


def test_every_topic_setting_is_spelled_as_kafka_spells_it() -> None:
    assert topic_configs(Settings(min_insync_replicas=2, flush_messages=1)) == {
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
        "flush.messages": "1",
        "flush.ms": str(2**63 - 1),
    }


def test_a_world_that_was_not_opened_has_seen_nothing_and_has_no_cluster(tmp_path: Path) -> None:
    spec = RunSpec(
        world=Processes(), cell="c", family="kill", settings={}, workload=WorkloadPlan(), faults=FaultPlan(), seed=1
    )
    world = processes.processes_world(spec, tmp_path)
    assert list(world.observations()) == []
    with pytest.raises(HarnessError, match=r"call open\(\) first"):
        _ = world.target
    world.close()
