"""The socket of a cluster that is up, and the commands that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.ground.errors import EXIT_HELD, EXIT_PLAN, NamedWronglyError, PlanError
from harness.runs.cluster import ClusterAnswer, ClusterRequest, ask, planned, running_cluster, served
from nemesis.cluster import ClusterView, PartitionView
from nemesis.receipts import Receipt

VIEW = ClusterView({"t-0": PartitionView(leader=1, leader_epoch=4, isr=(1, 2), replicas=(0, 1, 2))}, (1, 2), (0, 1, 2))
KILLED = Receipt(
    mark="begin", sequence=0, group=0, family="cluster", story="by hand", fault="kill", role="", targets=(0,),
    begun_us=1_500_000, begin_evidence={"0": {"exit": "signal 9"}}, took_effect=True,
)  # fmt: skip


def at_once(callback: Callable[[], None]) -> None:
    callback()


def answer(request: ClusterRequest) -> ClusterAnswer:
    if request.node == "7":
        raise PlanError("broker 7 does not exist now")
    return ClusterAnswer(receipts=[KILLED] if request.op == "break" else [], view=VIEW)


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cluster that is up below results, in a directory whose path is too long for a Unix socket."""
    monkeypatch.chdir(tmp_path)
    directory = Path("results") / ("c" * 120)
    directory.mkdir(parents=True)
    with served(directory, at_once, answer):
        yield directory


def test_a_request_is_answered_and_a_refusal_is_an_error(up: Path) -> None:
    assert ask(up, ClusterRequest(op="break", fault="kill")).receipts == [KILLED]
    assert ask(up, ClusterRequest(op="show")).view == VIEW
    with pytest.raises(PlanError, match="broker 7 does not exist now"):
        ask(up, ClusterRequest(op="break", fault="kill", node="7"))


def test_the_one_cluster_that_is_up_is_found(up: Path) -> None:
    (up.parent / "before").mkdir()
    (up.parent / "before" / "cluster.sock").touch()
    assert running_cluster(Path("results")) == up


def test_nobody_is_asked_where_no_cluster_is_up(tmp_path: Path) -> None:
    with pytest.raises(NamedWronglyError, match=r"no cluster is up below .*; start one with `ackproof cluster up`"):
        running_cluster(tmp_path)
    with pytest.raises(NamedWronglyError, match=r"up in .* \(No such file or directory\); start one with "):
        ask(tmp_path, ClusterRequest(op="show"))


def test_where_several_clusters_are_up_nobody_is_told_to_start_another(up: Path) -> None:
    (up.parent / "second").mkdir()
    with served(up.parent / "second", at_once, answer), pytest.raises(NamedWronglyError) as refused:
        running_cluster(Path("results"))
    assert str(refused.value).startswith("2 clusters are up below results: results/")
    assert str(refused.value).endswith("; name one of them with --in")


def test_a_cluster_that_ended_leaves_no_socket_and_one_that_was_killed_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "cluster.sock").touch()
    with served(tmp_path, at_once, answer):
        assert ask(tmp_path, ClusterRequest(op="show")).view == VIEW
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        (["break", "kill"], EXIT_HELD, '1.500 s  kill of broker 0: done  {"0":{"exit":"signal 9"}}'),
        (
            ["show"],
            EXIT_HELD,
            "t-0: broker 1 leads, leader epoch 4, in sync 1 2 of 3\nrunning: broker 1, broker 2, controller 100",
        ),
        (["heal"], EXIT_HELD, ""),
        (["break", "kill", "--node", "7"], EXIT_PLAN, ""),
        (["break", "kil"], EXIT_PLAN, ""),
        (["show", "--in", "elsewhere"], EXIT_PLAN, ""),
    ],
)
@pytest.mark.usefixtures("up")
def test_a_command_prints_what_came_of_it(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, printed: str
) -> None:
    assert exit_code_of(["cluster", *arguments]) == code
    assert capsys.readouterr().out.strip() == printed


def test_what_a_cluster_is_asked_to_be_is_checked_as_a_plan_is() -> None:
    spec = planned("kafka", settings={"min.insync.replicas": 2}, version="4.3.1", host="namespaces", topic="t")
    assert (spec.world.name, spec.chosen().min_insync_replicas, spec.workload.topic) == ("kafka", 2, "t")
    for settings, options, sentence in (
        ({"min.insnc.replicas": 2}, {}, "min.insync.replicas"),
        ({}, {"topic": 'a" b'}, "cannot name a topic"),
        ({}, {"version": "4"}, "is not a version of Apache Kafka"),
        ({}, {"families": ("powr",)}, "power"),
    ):
        with pytest.raises(PlanError, match=sentence):
            planned("kafka", settings=settings, **options)  # type: ignore[arg-type]
