"""`ackproof check`: what its options do, where verdicts go, histories that cannot be read, histories in a store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import boto3
import pytest
from moto.server import ThreadedMotoServer

from checkers import SHOWN, Exercise, FoundHistory, Verdict
from checkers.measures.recovery import Recovery
from checkers.measures.writes_met import FaultExercise
from harness.campaigns.campaign import judged_histories
from harness.cli.app import exit_code_of
from harness.plan import parse_plan
from harness.records.run_record import Ended, write_record
from harness.worlds.hosts import Ports
from tests.checkers.conformance import BY_NAME, write_history
from tests.checkers.scenes import Scene
from tests.nemesis.receipt_factory import a_receipt
from tests.workloads.history.event_strategies import record_all
from workloads.history import HistoryWriter

HOST = "127.0.0.1"
PLAN = parse_plan('[settings]\nacks = "all"\n[worlds.simulated]\nruns = 1', "p.toml")
#: More lost writes than a report lists.
LOST = SHOWN + 8
#: The findings in a run that a kill met while it wrote.
HELD = {
    "valid": True,
    "exercise": Exercise(drained=True, acknowledged=9, acknowledged_in_fault=5),
    "faults": [a_receipt(targets=(1,))],
    "fault_exercise": [FaultExercise(sequence=0, acknowledged=5)],
    "recovery": Recovery(tried=True),
}


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The requests to the checkers; files named bad cannot be read, all else holds. The working directory is new."""
    reported: dict[str, Any] = {}

    def check(histories: list[FoundHistory], **options: Any) -> list[Verdict]:
        paths = [history.path for history in histories]
        reported.update(options, paths=paths)
        unreadable = {"valid": "unknown", "reason": 'line 1: the operation has no "f"'}
        readable = {"valid": True, "exercise": Exercise(attempted=1)}
        message = {"bad.jsonl": unreadable, "run": HELD}
        return [Verdict(history=str(path), **message.get(path.name, readable)) for path in paths]

    monkeypatch.setattr(judged_histories, "check", check)
    monkeypatch.chdir(tmp_path)
    for name in ("good.jsonl", "bad.jsonl"):
        Path(name).touch()
    return reported


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        (".", "--out . is a directory; name a file"),
        ("none/v.jsonl", "--out none/v.jsonl: the directory none does not exist; make it, or name another file"),
    ],
)
def test_a_file_that_cannot_be_made_is_refused_before_anything_is_checked(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str], out: str, sentence: str
) -> None:
    assert exit_code_of(["check", "good.jsonl", "--out", out]) == 64
    assert capsys.readouterr().err == f"ackproof: {sentence}\n"
    assert asked == {}


def test_a_pipe_is_no_file_for_verdicts(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    assert exit_code_of(["check", "good.jsonl", "--out", "pipe"]) == 64
    assert capsys.readouterr().err == "ackproof: --out pipe is not a regular file; name a file\n"
    assert asked == {}


def test_continuous_integration_gets_a_case_and_a_row_for_each_history(asked: dict[str, Any]) -> None:
    options = ["--out", "v.jsonl", "--junit", "junit.xml", "--summary", "summary.md"]
    assert exit_code_of(["check", "good.jsonl", "bad.jsonl", *options]) == 2
    root = Xml.parse("junit.xml").getroot()  # noqa: S314 - our own
    assert [(case.get("name"), case[0].tag) for case in root.iter("testcase")] == [
        ("good.jsonl", "system-out"),
        ("bad.jsonl", "error"),
    ]
    summary = Path("summary.md").read_text()
    assert summary.startswith("**1 unknown, 1 held**\n")
    assert '| unknown | bad.jsonl | line 1: the operation has no "f" |' in summary


def test_a_soak_whose_clean_runs_are_deleted_keeps_its_verdicts(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("night").mkdir()
    Path("night/ledger.jsonl").touch()
    assert exit_code_of(["check", "night"]) == 64
    assert "night is a soak, which judged its runs before it deleted most of them" in capsys.readouterr().err
    assert asked == {}


@pytest.mark.parametrize(("command", "verdicts"), [("report", None), ("report", "torn"), ("compare", "torn")])
def test_what_is_advised_for_a_soak_without_readable_verdicts_is_possible(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str], command: str, verdicts: str | None
) -> None:
    Path("night/runs").mkdir(parents=True)
    Path("night/ledger.jsonl").touch()
    if verdicts is not None:
        Path("night/verdicts.jsonl").write_text(verdicts)
    assert exit_code_of([command, "night", *(["other"] if command == "compare" else [])]) == 70
    advice = "ackproof check night --out FILE"
    assert advice in " ".join(capsys.readouterr().err.split())
    Path("night/good.jsonl").touch()
    assert exit_code_of(advice.replace("FILE", "left.jsonl").split()[1:]) == 0


def test_options_reach_the_checkers(asked: dict[str, Any]) -> None:
    options = ["--ww-deps", "--master", "spark://h:7077", "--all", "--scratch", "shared", "--out", "v.jsonl"]
    assert exit_code_of(["check", "good.jsonl", *options]) == 0
    asked.pop("progress")
    assert asked == {
        "paths": [Path("good.jsonl")],
        "ww_deps": True,
        "master": "spark://h:7077",
        "shown": None,
        "scratch": Path("shared"),
    }


def test_without_options_the_history_decides(asked: dict[str, Any]) -> None:
    exit_code_of(["check", "good.jsonl"])
    assert (asked["ww_deps"], asked["master"], asked["shown"]) == (None, None, SHOWN)
    exit_code_of(["check", "good.jsonl", "--no-ww-deps"])
    assert asked["ww_deps"] is False


def test_verdicts_go_to_the_directory_named_and_others_here(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("more").mkdir()
    Path("more/a.jsonl").touch()
    assert exit_code_of(["check", "more", "good.jsonl"]) == 0
    assert [line["history"] for line in lines_of(Path("more/verdicts.jsonl"))] == ["a.jsonl"]
    assert [line["history"] for line in lines_of(Path("verdicts.jsonl"))] == ["good.jsonl"]
    assert capsys.readouterr().out.splitlines()[-1] == "2 histories: 2 held; see more/verdicts.jsonl verdicts.jsonl"


def test_out_is_the_one_file_for_all_verdicts(asked: dict[str, Any]) -> None:
    Path("more").mkdir()
    Path("more/a.jsonl").touch()
    assert exit_code_of(["check", "more", "good.jsonl", "--out", "all.jsonl"]) == 0
    assert [line["history"] for line in lines_of(Path("all.jsonl"))] == ["more/a.jsonl", "good.jsonl"]
    assert not Path("more/verdicts.jsonl").exists()
    assert not Path("verdicts.jsonl").exists()


def test_a_cell_that_lacks_something_is_named_where_all_its_runs_are_held(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run alone is held; two of them are too few for the plan, and the exit code of 2 has to be explained."""
    (spec,) = PLAN.runs()
    for name in ("1", "2"):
        run = Path("campaign", name, "run")
        (run / "history").mkdir(parents=True)
        (run / "history" / "clustered.parquet").touch()
        write_record(run, spec, Ended(status="completed"))
    assert exit_code_of(["check", "campaign"]) == 2
    *_, cell, summary = capsys.readouterr().out.splitlines()
    lacks = (
        "not exercised: kill: 2 of at least 3 faults met writes, 2 took effect; raise count and duration_ms, or runs"
    )
    assert cell.startswith(f"acks=all,isr=1,unclean=false/kill (simulated) {lacks}")
    assert summary == "2 histories: 2 held; see campaign/verdicts.jsonl"
    assert exit_code_of(["check", "campaign/1/run"]) == 0
    assert "not exercised" not in capsys.readouterr().out


@pytest.mark.parametrize("names", [["bad.jsonl"], ["bad.jsonl", "good.jsonl"]])
def test_what_is_no_history_is_unknown(asked: dict[str, Any], names: list[str]) -> None:
    assert exit_code_of(["check", *names]) == 2
    reported = {line["history"]: line.get("reason") for line in lines_of(Path("verdicts.jsonl"))}
    assert reported["bad.jsonl"] == 'line 1: the operation has no "f"'


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (os.devnull, "/dev/null cannot be read: it is not a regular file; name runs, a campaign, or files"),
        ("empty", "empty is no history that can be read"),
        ("empty.jsonl", "nothing was sent or read: an empty history proves nothing"),
        ("words.jsonl", "not valid JSON"),
        ("folder", "holds no history; name runs, a campaign, or files of JSON lines"),
    ],
)
def test_a_place_without_a_history_ends_with_2_and_words(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("empty").touch()
    Path("empty.jsonl").touch()
    Path("words.jsonl").write_text("not a history\n")
    assert exit_code_of(["check", name]) == 2
    out, err = capsys.readouterr()
    assert said in out + err
    assert exit_code_of(["check", "absent.jsonl"]) == 64
    assert "absent.jsonl does not exist" in capsys.readouterr().err


def test_a_uri_of_no_known_store_is_a_wrong_command(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["check", "ftp://host/history.jsonl"]) == 64
    assert "ftp://host/history.jsonl cannot be read; name a path or one of s3, s3a" in capsys.readouterr().err
    assert "paths" not in asked


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, ports: Ports) -> Iterator[Any]:
    """An empty bucket named histories in an S3 of our own, which the environment names."""
    host, port = ports.take(HOST)
    server = ThreadedMotoServer(ip_address=host, port=port, verbose=False)
    server.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name, value in {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": HOST,
    }.items():
        monkeypatch.setenv(name, value)
    try:
        bucket = boto3.resource("s3").create_bucket(Bucket="histories")
        yield bucket
    finally:
        server.stop()


def upload(bucket: Any, directory: Path, prefix: str) -> None:
    for file in directory.rglob("*"):
        if file.is_file():
            bucket.upload_file(str(file), f"{prefix}/{file.relative_to(directory).as_posix()}")


def run_with_a_loss(directory: Path) -> Path:
    """A run that acknowledged :data:`LOST` writes under acks=all, of which a drained log has none."""
    directory.mkdir(parents=True)
    (spec,) = PLAN.runs()
    write_record(directory, spec, Ended(status="completed"))
    scene = Scene()
    for value in range(LOST):
        scene.send(value, value)
    scene.send(LOST, LOST)
    scene.poll((LOST, LOST), process=9)
    scene.drain(LOST + 1)
    with HistoryWriter(directory / "history", "run") as writer:
        record_all(writer, scene.events)
    return directory


@pytest.mark.system
@pytest.mark.xdist_group("spark")
def test_histories_in_a_store_and_here_are_judged_in_one_job(tmp_path: Path, store: Any) -> None:
    upload(store, run_with_a_loss(tmp_path / "run"), "campaign/runs/7")
    write_history(BY_NAME["nonmonotonic-poll/intermediate-subscribe-y"], tmp_path / "good.jsonl")
    store.upload_file(str(tmp_path / "good.jsonl"), "foreign/good.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"type": "ok"}\n')
    named = ["s3a://histories/campaign", "s3://histories/foreign", (tmp_path / "good.jsonl").as_uri(), "bad.jsonl"]
    command = [sys.executable, "-c", "from harness.cli import main; main()", "check", *named, "--out", "v.jsonl"]
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1_000, check=False
    )
    assert done.returncode == 1, done.stderr
    verdicts = {line["history"]: line for line in lines_of(tmp_path / "v.jsonl")}
    lost = verdicts["s3a://histories/campaign/runs/7"]
    assert lost["valid"] is False
    assert lost["counts"]["lost-write"] == LOST
    assert len(lost["anomalies"]["lost-write"]) == SHOWN
    assert verdicts["s3://histories/foreign/good.jsonl"]["valid"] is True
    assert verdicts[str(tmp_path / "good.jsonl")]["valid"] is True
    reason = 'bad.jsonl, line 1: the operation has no "f"; write an object with type, f and value'
    assert verdicts["bad.jsonl"]["reason"] == reason
    assert len(verdicts) == 4
    assert "4 histories: 1 broken promise" in done.stdout
