"""Spark that cannot start: one sentence says what to install."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipimport import zipimporter

import psutil
import pytest
from py4j.clientserver import ClientServerConnection

from checkers.errors import SparkError
from checkers.spark.session import cause_of, leave_out_ended_calls, ship, spark_context

START = """
from checkers.errors import JavaMissingError
from checkers.spark.session import spark_context
try:
    spark_context()
except JavaMissingError as error:
    print(error)
"""
ON_ONE_CORE = """
import os, time
from checkers.spark.session import spark_context
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
context = spark_context()
context.parallelize([1]).count()
print(context.defaultParallelism, flush=True)
time.sleep(600)
"""


@pytest.mark.system
def test_without_java_one_sentence_says_what_to_install() -> None:
    environment = {**os.environ, "JAVA_HOME": "/nonexistent"}
    command = [sys.executable, "-c", START]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    (sentence,) = done.stdout.splitlines()
    assert "install openjdk-17-jre-headless" in sentence
    assert "/nonexistent" in sentence, "it names the Java that was tried"
    assert done.stderr == ""


@pytest.mark.system
def test_no_java_is_left_behind_by_ctrl_c_while_it_starts() -> None:
    command = [sys.executable, "-c", "from checkers.spark.session import spark_context; spark_context()"]
    python = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 240
        while not (java := _java_below(python.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert java
        os.killpg(python.pid, signal.SIGINT)
        python.wait(240)
        _, left = psutil.wait_procs(java, timeout=240)
    finally:
        python.kill()
        python.wait(240)
    for process in left:
        process.kill()
    assert not left


def test_a_call_that_ctrl_c_ends_prints_no_traceback(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("root", "py4j.clientserver"):
        monkeypatch.setattr(logging.getLogger(name), "filters", [])
    leave_out_ended_calls()
    connection: Any = SimpleNamespace(is_connected=True, socket=_Closed(), stream=_Closed())
    ClientServerConnection.shutdown_socket(connection, 1, 2)
    logging.getLogger().error("KeyboardInterrupt while sending command.")
    logging.getLogger("py4j.clientserver").error("anything else")
    assert caplog.messages == ["anything else"]


class _Closed:
    """A socket whose other end is gone."""

    def sendall(self, _: bytes) -> None:
        raise BrokenPipeError

    def close(self) -> None:
        """Close it, which does nothing."""


@pytest.mark.system
def test_what_a_process_that_is_killed_with_its_java_leaves_is_healed(tmp_path: Path) -> None:
    variables = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", ON_ONE_CORE]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, env=variables, start_new_session=True)
    assert killed.stdout is not None
    assert killed.stdout.readline() == b"1\n", "a thread for each processor that it may use"
    java = _java_below(killed.pid)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(240)
    for process in java:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert not psutil.wait_procs(java, timeout=240)[1]
    (left,) = tmp_path.iterdir()
    assert left.name.startswith("ackproof-spark-")
    assert any(left.glob("spark-*")), "what Spark makes is in there"
    (tmp_path / "campaign").mkdir()
    heal = [sys.executable, "-c", "from harness.cli.app import main; main()", "heal", str(tmp_path / "campaign")]
    told = subprocess.run(heal, env=variables, check=True, capture_output=True, text=True).stdout.splitlines()
    assert told == [f"healed: directory {left}", "1 thing was left behind and is undone"]
    again = subprocess.run(heal, env=variables, check=True, capture_output=True, text=True).stdout
    assert again == "nothing was left behind\n"
    assert [path.name for path in tmp_path.iterdir()] == ["campaign"]


def _java_below(pid: int) -> list[psutil.Process]:
    below = psutil.Process(pid).children(recursive=True) if psutil.pid_exists(pid) else []
    return [process for process in below if process.name() == "java"]


@pytest.mark.parametrize("same_python", [True, False])
def test_a_worker_imports_the_compiled_module_and_with_another_python_its_source(
    same_python: bool, tmp_path: Path
) -> None:
    sent: list[str] = []
    ship(SimpleNamespace(master="spark://host:7077", addPyFile=sent.append), "nemesis")
    with zipfile.ZipFile(sent[0]) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    assert {name for name in content if name.endswith(".pyc")} == {f"{name}c" for name in content if name[-1] == "y"}
    received = tmp_path / "received.zip"
    with zipfile.ZipFile(received, "w") as archive:
        for name, data in content.items():
            changed = data if same_python or name[-1] == "y" else b"else" + data[4:]
            archive.writestr(name, changed)
    code = zipimporter(str(received)).get_code("nemesis")
    assert code is not None
    assert (str(received) in code.co_filename) is not same_python, "Python names the archive where it compiled"


def test_what_is_no_master_is_said_before_java_is_started() -> None:
    with pytest.raises(SparkError, match='"hosts:7077" is not a Spark master; write spark://HOST:7077, or leave'):
        spark_context("hosts:7077")


def test_a_master_that_is_not_there_is_told_without_what_the_jvm_says() -> None:
    message = (
        "An error occurred while calling o1.addFile.\n: java.lang.IllegalStateException: stopped SparkContext.\n at x"
    )
    assert cause_of(ValueError(message)) == "the master does not answer; start it, or name another with --master"
    trips = ': java.lang.NullPointerException: Cannot invoke "org.apache.spark.SparkEnv.driverTmpDir()" because'
    assert cause_of(ValueError(trips)) == "the master does not answer; start it, or name another with --master"
    assert cause_of(ValueError("at x\njava.io.IOException: no room\n at y")) == "java.io.IOException: no room"
    assert cause_of(ValueError()) == "ValueError"


@pytest.mark.parametrize(("master", "sent"), [("spark://host:7077", ["ackproof-harness.zip"]), ("local[2]", [])])
def test_a_cluster_is_sent_modules_with_the_data_that_they_read_and_local_workers_nothing(
    master: str, sent: list[str]
) -> None:
    files: list[str] = []
    context = SimpleNamespace(master=master, addPyFile=files.append)
    for _ in range(2):
        ship(context, "harness")
    assert [Path(file).name for file in files] == 2 * sent
    for file in files:
        with zipfile.ZipFile(file) as archive:
            assert "harness/runs/stories/data/S01.toml" in archive.namelist()
