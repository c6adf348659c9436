"""Formatted directories, in the forms of Kafka 4.3 and 4.4. A script stands in for Kafka's tool."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from harness.ground.errors import HostError
from harness.worlds.hosts import Address
from harness.worlds.kafka.distribution import kraft
from harness.worlds.kafka.formatting import FirstFeatures, directory_id, first_files, new_id
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.releases import Version
from harness.worlds.real.nodes import Nodes
from tests.harness.worlds.kafka.stand_in_tool import stand_in_tool
from workloads.settings import Settings

CONTROLLERS = (100, 101)
LOG = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
LEVELS = "--feature eligible.leader.replicas.version=1 --feature transaction.version=1"
SETTINGS = Settings(eligible_leader_replicas=True, transaction_version=1)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    return stand_in_tool(tmp_path / "java", monkeypatch)


@pytest.fixture
def release(tmp_path: Path) -> Installation:
    return Installation(Version(4, 4, 0), tmp_path / "release")


@pytest.fixture
def nodes(release: Installation, tmp_path: Path) -> Nodes:
    release.home.mkdir()
    host = SimpleNamespace(address=lambda node: Address("10.0.0.1", node))
    return cast(Nodes, SimpleNamespace(host=host, controllers=CONTROLLERS, data=lambda node: tmp_path / str(node)))


def files_in(data: Path) -> dict[str, str]:
    paths = [path for path in data.rglob("*") if path.is_file() and path.name != "meta.properties"]
    return {str(path.relative_to(data)): path.read_text() for path in paths}


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("4.3", ({"bootstrap.checkpoint": f"features {LEVELS}"}, {"bootstrap.checkpoint": f"features {LEVELS}"})),
        ("4.4", ({LOG: f"all {LEVELS}"}, {})),
    ],
)
def test_nodes_have_the_first_records_where_their_release_reads_them(
    tool, release: Installation, nodes: Nodes, form: str, wanted: tuple[dict[str, str], dict[str, str]]
) -> None:
    tool(form)
    mode, (of_controller, of_broker) = kraft(SETTINGS, release, 3), wanted
    for node, files in ((100, of_controller), (101, of_controller), (0, of_broker)):
        formatted = mode.format(nodes, node)
        assert files_in(nodes.data(node)) == files
        assert set(formatted) == {nodes.data(node) / name for name in ("meta.properties", *files)}
        lines = (nodes.data(node) / "meta.properties").read_text().splitlines()
        assert (lines[0], lines[2]) == ("version=1", f"node.id={node}")
        assert mode.format(nodes, node) == ()


@pytest.mark.parametrize("form", ["4.3", "4.4"])
def test_the_first_controllers_of_a_quorum_know_each_other_and_a_later_one_joins(
    tool, release: Installation, nodes: Nodes, form: str
) -> None:
    tool(form)
    mode = kraft(SETTINGS, release, 3, dynamic=True)
    for node in (*CONTROLLERS, 0):
        mode.format(nodes, node)
    first, second = (files_in(nodes.data(node)) for node in CONTROLLERS)
    assert first == second
    named = [first[LOG].partition(f"{node}@10.0.0.1:{node}:")[2][:22] for node in CONTROLLERS]
    directories = [directory_id(nodes.data(node)) for node in CONTROLLERS]
    for node, name in zip(CONTROLLERS, named, strict=True):
        assert f"directory.id={name}\n" in (nodes.data(node) / "meta.properties").read_text()
    assert LOG not in files_in(nodes.data(0))
    (nodes.data(100) / "meta.properties").unlink()
    for name in first:
        (nodes.data(100) / name).unlink()
    mode.format(nodes, 100)
    assert directory_id(nodes.data(100)) not in directories
    words = f"--no-initial-controllers {LEVELS}"
    assert files_in(nodes.data(100)) == (
        {"bootstrap.checkpoint": f"features {words}"} if form == "4.3" else {LOG: f"all {words}"}
    )


def test_what_the_tool_wrote_is_kept_and_copied_without_a_jvm(tool, release: Installation, nodes: Nodes) -> None:
    tool("4.4")
    written = first_files(release, FirstFeatures())
    tool("no room")
    assert first_files(release, FirstFeatures()) == written
    with pytest.raises(HostError, match="No space left on device; check that there is room"):
        first_files(release, FirstFeatures(elr=True))
    assert [path.name for path in release.made.iterdir()] == ["first-eligible-0-transaction-2"]


@pytest.mark.parametrize("wrote", ["bootstrap.snapshot", "meta.json", "quorum-state"])
def test_another_form_is_refused_with_what_was_written_and_nothing_is_kept(
    tool, release: Installation, nodes: Nodes, wrote: str
) -> None:
    tool(wrote)
    with pytest.raises(
        HostError, match=rf"4\.4\.0 formats .* wrote {'.*'.join(sorted(['meta.properties', wrote]))}, where"
    ):
        first_files(release, FirstFeatures())
    assert list(release.made.iterdir()) == []


def test_ids_are_as_kafka_writes_them_and_never_look_like_an_option() -> None:
    ids = {new_id() for _ in range(500)}
    assert len(ids) == 500
    assert {len(new_id) for new_id in ids} == {22}
    assert not [new_id for new_id in ids if new_id.startswith("-")]
