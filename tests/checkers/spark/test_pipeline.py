"""PySpark and the plain judgement agree, and one bad history spoils none of the others."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.committed_transactions import CommittedBlock
from bench.synthetic import write_synthetic
from checkers.columns.loading import Unit, load_each
from checkers.histories.discovery import Source
from checkers.local import check_one
from checkers.spark import pipeline, planning
from checkers.spark.planning import batches_of, tasks_of, units_of
from checkers.verdicts.verdict import Verdict
from tests.checkers.conformance import BY_NAME, cases, write_history
from tests.checkers.history_strategies import histories
from tests.checkers.scenes import Scene
from tests.workloads.history.event_strategies import examples, record_all
from workloads.history import HistoryWriter, LiveHistoryWriter, clustering, importing
from workloads.operations import Event, EventType, Function, Send

#: Named, so that Spark is used however little there is to do.
check = partial(pipeline.check, master="local[2]")
#: Drawn histories that go through one job: a job for each would be mostly Spark's own work.
TOGETHER = 5


def conformance_directory(tmp_path: Path) -> Path:
    target = tmp_path / "histories"
    target.mkdir()
    for name in [*cases("analysis"), *cases("version-orders")]:
        write_history(BY_NAME[name], target / (name.replace("/", "_") + ".jsonl"))
    return target


def nameless(verdict: Verdict) -> dict[str, object]:
    return {name: getattr(verdict, name) for name in verdict.__struct_fields__ if name != "history"}


@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_spark_and_plain_kernels_give_equal_verdicts(tmp_path: Path) -> None:
    directory = conformance_directory(tmp_path)
    through_spark = check([directory])
    paths = sorted(directory.iterdir())
    assert [verdict.history for verdict in through_spark] == [str(path) for path in paths]
    for path, verdict in zip(paths, through_spark, strict=True):
        assert nameless(verdict) == nameless(check_one(path)), path


def test_one_small_history_is_judged_here_as_the_job_would_and_two_start_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str | None) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(pipeline, "spark_context", refuse)
    monkeypatch.setattr(pipeline, "is_wanted", lambda master: master is not None)
    history, other, *_ = sorted(conformance_directory(tmp_path).iterdir())
    steps: list[tuple[int, int]] = []
    (verdict,) = pipeline.check([history], progress=lambda done, tasks: steps.append((done, tasks)))
    assert nameless(verdict) == nameless(check_one(history))
    assert steps == [(1, 1)]
    with pytest.raises(AssertionError):
        pipeline.check([history], master="local[2]")
    with pytest.raises(AssertionError):
        pipeline.check([history, other])


@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_json_lines_in_splits_through_spark_get_the_verdict_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write_history(BY_NAME[name], tmp_path / f"{n}.jsonl") for n, name in enumerate(cases("analysis")[:12])]
    bad = tmp_path / "bad.jsonl"
    bad.write_text(paths[0].read_text() + "\nnonsense\n")
    whole = [nameless(check_one(path)) for path in paths]
    monkeypatch.setattr(importing, "SPLIT_BYTES", 300)
    (of_bad,) = check([bad])
    assert f"{bad}, line {bad.read_text().count(chr(10))}: not valid JSON (JSON is malformed" in (of_bad.reason or "")
    assert [nameless(verdict) for verdict in check(paths)] == whole


@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_a_bad_history_is_named_and_the_others_are_judged(tmp_path: Path) -> None:
    good = write_history(BY_NAME["nonmonotonic-poll/intermediate-subscribe-y"], tmp_path / "good.jsonl")
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps({"type": "ok"}) + "\n")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "clustered.parquet").write_bytes(b"PAR1 but no more")
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    reported = []
    verdicts = check([bad, good, broken, nothing], progress=lambda done, tasks: reported.append((done, tasks)))
    assert [verdict.valid for verdict in verdicts] == ["unknown", True, "unknown", "unknown"]
    assert f'{bad}, line 1: the operation has no "f"' in (verdicts[0].reason or "")
    assert "not a readable Parquet file" in (verdicts[2].reason or "")
    assert "holds no history" in (verdicts[3].reason or "")
    assert reported[-1] == (1, 1)


@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_a_history_of_a_killed_harness_is_judged(tmp_path: Path) -> None:
    writer = LiveHistoryWriter(tmp_path / "history", "run", flush_seconds=60)
    scene = Scene()
    scene.send(0, 0)
    scene.send(1, 0, process=2)
    scene.poll((0, 1))
    record_all(writer, scene.events)
    writer.flush()
    (verdict,) = check([tmp_path])
    writer._ended.set()
    assert verdict.valid is False
    assert [f.value for f in verdict.anomalies["lost-write"]] == [0]


@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_a_history_cut_into_many_row_groups_gets_the_verdict_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    scene.phase("break")
    scene.fault("begin")
    for key in range(20):
        for value in range(5):
            scene.send(value, value if value < 4 else 3, key=f"t-{key}")
        scene.poll(*((offset, offset) for offset in range(3)), (3, 4), key=f"t-{key}", process=9)
        scene.drain(4, key=f"t-{key}")
    monkeypatch.setattr(clustering, "ROWS_A_GROUP", 30)
    monkeypatch.setattr(clustering.groups, "__defaults__", (30,))
    with HistoryWriter(tmp_path / "history", "run") as writer:
        record_all(writer, scene.events)
    whole = check_one(tmp_path, shown=None)
    monkeypatch.setattr(planning, "WHOLE_BYTES", 0)
    monkeypatch.setattr(planning, "BATCH_BYTES", 1)
    units, _ = units_of(0, Source("run", tmp_path / "history" / "clustered.parquet"))
    assert len(units) > 5
    (cut,) = check([tmp_path], shown=None)
    assert cut.counts == whole.counts == {"lost-write": 20, "unseen": 20, "inconsistent-offsets": 20}
    assert cut.exercise == whole.exercise
    assert cut.exercise.acknowledged_in_fault == 100


@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_four_hundred_small_histories_are_few_tasks_and_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task or a pass for each would take minutes."""
    planned: list[planning.UnitPlan] = []
    monkeypatch.setattr(pipeline, "plan", lambda *given: planned.append(planning.plan(*given)) or planned[0])
    for number in range(400):
        with HistoryWriter(tmp_path / str(number) / "history", "run") as writer:
            for value in range(20):
                micro = (Send("t-0", value, value),)
                writer.record(Event(time_us=value, process=0, type=EventType.OK, function=Function.SEND, micro=micro))
    assert len(check([tmp_path])) == 400
    tasks = tasks_of(planned[0].units)
    assert sum(len(task) for task in tasks) == 400
    assert [len(list(batches_of(task))) for task in tasks] == [2, 1]


def test_what_the_whole_proves_is_known_without_details(tmp_path: Path) -> None:
    """Details of transactions are read once, where they are judged."""
    write_synthetic(tmp_path, 10_000, planted=0, builder=CommittedBlock)
    (file,) = tmp_path.rglob("*.parquet")
    units = [msgspec.structs.astuple(Unit(0, str(file)))]
    ((_, bare),) = pipeline._prove_task(units)
    (batch,) = load_each(units)
    assert batch.log.transactions is not None
    assert bare.tolist() == batch.log.proofs.tolist()
    assert len(bare) > 1_000


def test_tasks_are_filled_in_order_and_never_empty() -> None:
    units = [Unit(number, "f", None, size) for number, size in enumerate([10, 20 << 20, 5, 5])]
    tasks = tasks_of(units)
    assert [unit.history for task in tasks for unit in task] == [0, 1, 2, 3]
    assert all(tasks)
    assert len(tasks) == 3


@given(st.lists(histories(operations_max=60), min_size=TOGETHER, max_size=TOGETHER), st.booleans())
@examples(8)
@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_histories_cut_to_pieces_get_the_verdicts_of_the_whole(drawn: list[list[Event]], ww_deps: bool) -> None:
    """One row group a log partition, each judged by itself: proofs are broadcast, dependencies shuffled."""
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patched:
        patched.setattr(clustering.groups, "__defaults__", (1,))
        places = [Path(scratch) / str(number) for number in range(TOGETHER)]
        for directory, history in zip(places, drawn, strict=True):
            with HistoryWriter(directory, "run") as writer:
                record_all(writer, history)
        wholes = [check_one(directory, ww_deps=ww_deps, shown=None) for directory in places]
        patched.setattr(planning, "WHOLE_BYTES", 0)
        patched.setattr(planning, "BATCH_BYTES", 1)
        cuts = check(places, ww_deps=ww_deps, shown=None)
    for whole, cut in zip(wholes, cuts, strict=True):
        assert cut.counts == whole.counts
        assert cut.valid == whole.valid
        for name, findings in whole.anomalies.items():
            assert sorted(map(repr, cut.anomalies[name])) == sorted(map(repr, findings)), name
