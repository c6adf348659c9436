"""The same job on a real Spark cluster: a standalone master and two workers on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import msgspec
import pyspark
import pytest

from checkers.local import check_one
from checkers.spark.session import SHIPPED
from checkers.verdicts.judgement import VerdictLine
from harness.hosts import Ports
from tests.checkers.conformance import BY_NAME, cases, write_history

HOST = "127.0.0.1"
#: Two seconds on an idle machine; three JVMs that start on a busy one have taken over a minute.
START_LIMIT_S = 180.0
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
ROOT = str(Path(__file__).parents[3])
SPARK_SUBMIT = SPARK_CLASS.with_name("spark-submit")
#: Of JVMs that live for seconds; half of their work would be the second compiler's.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -Xshare:auto -XX:+UseSerialGC"
HUNT = ("hunt", "join-by-high-watermark", "--portfolio", "moves", "--seed", "3", "--json")
PACKAGES = (*SHIPPED, "harness")
#: Says where a worker imports each package from.
SENT = f"""
import json, sys
from importlib import import_module
from checkers import ship, spark_context
context = spark_context(sys.argv[1])
ship(context, "harness")
print(json.dumps(context.parallelize({PACKAGES}, 1).map(lambda name: import_module(name).__file__).collect()))
"""
#: What a user gives to spark-submit.
PROGRAM = "from harness.cli import main; main()"


@contextmanager
def daemon(log: Path, *arguments: str) -> Iterator[None]:
    """A Spark daemon that ends with the block."""
    environment = {**os.environ, "SPARK_LOCAL_IP": HOST, "SPARK_NO_DAEMONIZE": "1", "SPARK_DAEMON_MEMORY": "256m"}
    environment["JAVA_TOOL_OPTIONS"] = JAVA_OPTIONS  # of the executors that a worker starts, too
    with log.open("wb") as output:
        process = subprocess.Popen([str(SPARK_CLASS), *arguments], env=environment, stdout=output, stderr=output)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)


@contextmanager
def cluster(scratch: Path) -> Iterator[str]:
    """A master with two workers, one core each; its address."""
    deploy = "org.apache.spark.deploy"
    with Ports() as ports, ExitStack() as stack:
        port, web = ports.take(HOST).port, ports.take(HOST).port
        master = f"spark://{HOST}:{port}"
        stack.enter_context(daemon(scratch / "master.log", f"{deploy}.master.Master", *listening(port, web)))
        for number in range(2):
            directory = scratch / f"work-{number}"
            own = listening(ports.take(HOST).port, ports.take(HOST).port)
            options = (*own, "--cores", "1", "--memory", "1g", "-d", str(directory))
            stack.enter_context(daemon(scratch / f"worker-{number}.log", f"{deploy}.worker.Worker", *options, master))
        wait_for_workers(f"http://{HOST}:{web}/json/", 2)
        yield master


def listening(port: int, web: int) -> tuple[str, ...]:
    """The options of a daemon with these ports."""
    return ("--host", HOST, "--port", str(port), "--webui-port", str(web))


def wait_for_workers(url: str, number: int) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    alive = 0
    while time.monotonic() < deadline:
        try:
            with urlopen(url, timeout=5) as answer:  # noqa: S310 - our own loopback address
                alive = json.load(answer)["aliveworkers"]
        except (OSError, ValueError):  # it does not listen yet, or answers without a word
            alive = 0
        if alive >= number:
            return
        time.sleep(0.2)
    raise TimeoutError(f"{alive} of {number} workers came up within {START_LIMIT_S:.0f} s")


def verdicts_of(command: list[str], directory: Path, out: Path, *options: str) -> list[dict[str, object]]:
    """What `ackproof check`, begun by ``command``, says of the histories in ``directory``."""
    environment = {**os.environ, "SPARK_LOCAL_IP": HOST, "PYTHONPATH": ROOT, "PYSPARK_PYTHON": sys.executable}
    environment["JAVA_TOOL_OPTIONS"] = JAVA_OPTIONS
    whole = [*command, "check", str(directory), "--out", str(out), *options]
    done = subprocess.run(whole, env=environment, capture_output=True, timeout=600, check=False)
    assert done.returncode == 1, done.stderr.decode()[-2000:]
    return [json.loads(line) for line in out.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.mark.system
@pytest.mark.timeout(600)
def test_a_cluster_gives_the_verdicts_of_the_plain_kernels(master: str, tmp_path: Path) -> None:
    directory = tmp_path / "histories"
    directory.mkdir()
    for name in cases("analysis"):
        write_history(BY_NAME[name], directory / (name.replace("/", "_") + ".jsonl"))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # One worker is enough here; the job below has both.
    submit = [str(SPARK_SUBMIT), "--master", master, "--conf", "spark.cores.max=1", str(program)]
    submitted = verdicts_of(submit, directory, tmp_path / "s.jsonl")
    through_cluster = verdicts_of([sys.executable, str(program)], directory, tmp_path / "c.jsonl", "--master", master)
    paths = sorted(directory.iterdir())
    plain = [json.loads(msgspec.json.encode(VerdictLine.of(check_one(path)))) for path in paths]
    assert through_cluster == plain
    assert submitted == plain


@pytest.mark.system
@pytest.mark.timeout(600)
def test_workers_import_what_the_driver_sends(master: str) -> None:
    """They would find these packages where they are installed, too; what was sent comes first."""
    environment = {**os.environ, "SPARK_LOCAL_IP": HOST, "JAVA_TOOL_OPTIONS": JAVA_OPTIONS}
    environment["PYSPARK_SUBMIT_ARGS"] = "--conf spark.cores.max=1 pyspark-shell"  # one worker imports them
    command = [sys.executable, "-c", SENT, master]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=300, check=False, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    imported = json.loads(done.stdout)
    assert [Path(file).parent.name for file in imported] == [*PACKAGES]
    assert [Path(file).parents[1].suffix for file in imported] == [".zip"] * len(PACKAGES)


@pytest.mark.system
@pytest.mark.timeout(600)
def test_a_hunt_on_a_cluster_finds_what_one_here_finds(master: str) -> None:
    environment = {**os.environ, "SPARK_LOCAL_IP": HOST, "JAVA_TOOL_OPTIONS": JAVA_OPTIONS}
    command = [sys.executable, "-c", PROGRAM, *HUNT]
    found = [
        subprocess.run([*command, *where], cwd=ROOT, env=environment, capture_output=True, timeout=300, check=False)
        for where in (("--master", master), ("--workers", "1"))
    ]
    there, here = (json.loads(done.stdout) for done in found)
    assert [done.returncode for done in found] == [0, 0]
    assert here["schedules"] > 4, "more than one block"
    for result in (there, here):
        result["seconds"] = result["found"]["seconds"] = 0.0
    assert there == here
