"""Histories in object stores and shared file systems are found, read and judged like local ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.fs as arrow_fs
import pytest

from checkers.columns.loading import Unit
from checkers.errors import CheckError
from checkers.histories import stores
from checkers.histories.discovery import Sources, find_histories
from checkers.histories.stores import StorePath, files_at, place_of
from checkers.local import check_one, judge_each
from tests.checkers.conformance import BY_NAME, write_history
from tests.checkers.scenes import Scene
from tests.workloads.history.event_strategies import record_all
from workloads.history import HistoryError, HistoryWriter, LiveHistoryWriter


def scene_with_a_loss() -> Scene:
    scene = Scene()
    scene.send(0, 0)
    scene.send(1, 0, process=2)
    scene.poll((0, 1))
    return scene


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The local directory that stands for every bucket."""
    directory = tmp_path / "bucket"
    directory.mkdir()

    def system(_: str) -> tuple[Any, str]:
        return arrow_fs.SubTreeFileSystem(str(tmp_path), arrow_fs.LocalFileSystem()), "bucket"

    monkeypatch.setattr(stores, "_system", system)
    return directory


@pytest.mark.parametrize("text", ["s3://b/campaign/run", "s3a://b", "gs://b/x", "hdfs://name:8020/data/x"])
def test_a_store_keeps_its_uri_whatever_is_done_to_its_path(text: str) -> None:
    path = place_of(text)
    assert isinstance(path, StorePath)
    assert str(path) == text
    assert str(path / "a" / "b") == f"{text}/a/b"
    assert (path / "a").parent == path
    assert str((path / "a" / "b").relative_to(path)) == "a/b"
    assert place_of(str(path / "a")) == path / "a"


def test_a_path_and_a_file_uri_are_the_same_local_path(tmp_path: Path) -> None:
    assert place_of(str(tmp_path)) == place_of(tmp_path.as_uri()) == tmp_path


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("http://host/x", "name a path or one of s3, s3a, gs, hdfs and file"),
        ("s3a:///key", "names no bucket or host; write s3a://NAME/path"),
        ("hdfs://", "names no bucket or host"),
    ],
)
def test_a_uri_that_cannot_be_read_says_what_to_write(text: str, reported: str) -> None:
    with pytest.raises(CheckError, match=reported):
        place_of(text)


def test_s3a_is_read_as_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(stores, "_system", lambda root: asked.append(root) or (arrow_fs.LocalFileSystem(), "b"))
    assert stores._located(StorePath("s3a://b/x/y"))[1] == "b/x/y"
    assert asked == ["s3://b"]


def test_a_stored_history_gets_the_verdict_that_it_has_locally(bucket: Path) -> None:
    with HistoryWriter(bucket / "run" / "history", "run") as writer:
        record_all(writer, scene_with_a_loss().events)
    assert files_at(StorePath("s3://b")) == [StorePath("s3://b/run/history/clustered.parquet")]
    local = check_one(bucket / "run", name="s3://b/run")
    assert check_one(place_of("s3://b/run")) == local
    assert [finding.value for finding in local.anomalies["lost-write"]] == [0]


def test_json_lines_in_a_store_are_judged_and_a_bad_line_is_named_there(bucket: Path) -> None:
    case = BY_NAME["nonmonotonic-poll/intermediate-subscribe-y"]
    local = check_one(write_history(case, bucket / "good.jsonl"), name="gs://b/good.jsonl")
    assert check_one(place_of("gs://b/good.jsonl")) == local
    (bucket / "bad.jsonl").write_text("{\n")
    (bucket / "verdicts.jsonl").write_text("{}\n")
    with Sources(find_histories([place_of("gs://b")])) as sources:
        problems = {source.name: source.problem for source in sources.ready}
    assert list(problems) == ["gs://b/bad.jsonl", "gs://b/good.jsonl"]
    assert (problems["gs://b/bad.jsonl"] or "").startswith("gs://b/bad.jsonl, line 1: ")


def test_a_history_in_a_store_that_was_cut_off_is_judged(bucket: Path) -> None:
    writer = LiveHistoryWriter(bucket / "run" / "history", "run", flush_seconds=60)
    record_all(writer, scene_with_a_loss().events)
    writer.flush()
    verdict = check_one(place_of("s3://b/run"))
    writer._ended.set()
    assert verdict.counts["lost-write"] == 1
    assert [file.name for file in (bucket / "run" / "history").iterdir()] == ["live-00000.parquet"]


def test_what_is_no_history_in_a_store_says_so(bucket: Path) -> None:
    (bucket / "x.parquet").write_bytes(b"PAR1 but no more")
    for name, reported in (("absent", "holds no history"), ("x.parquet", "is not a readable Parquet file")):
        with pytest.raises((CheckError, HistoryError), match=f"s3://b/{name} {reported}"):
            check_one(place_of(f"s3://b/{name}"))


def test_a_worker_that_does_not_share_the_directory_says_what_to_name(tmp_path: Path) -> None:
    (part,) = judge_each([Unit(0, str(tmp_path / "gone.parquet"))], None, {})
    assert "the workers of a cluster must share the directory" in (part.problem or "")
    assert "--scratch or ACKPROOF_SCRATCH" in (part.problem or "")


def test_json_lines_are_stored_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_history(BY_NAME["nonmonotonic-poll/intermediate-subscribe-y"], tmp_path / "good.jsonl")
    for name in ("named", "from-environment"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("ACKPROOF_SCRATCH", str(tmp_path / "from-environment"))
    for scratch, where in ((tmp_path / "named", "named"), (None, "from-environment")):
        with Sources(find_histories([file]), scratch) as sources:
            assert str(sources.ready[0].file).startswith(str(tmp_path / where))
        assert list((tmp_path / where).iterdir()) == []
    with pytest.raises(CheckError, match="name a directory to write in with --scratch"):
        Sources(find_histories([file]), tmp_path / "absent")
