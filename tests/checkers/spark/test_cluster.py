"""The same job on a real Spark cluster: a standalone master and two workers on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import msgspec
import pyspark
import pytest

from checkers.local import check_one
from checkers.spark.session import SHIPPED
from checkers.verdicts.judgement import VerdictLine
from harness.ground.errors import EXIT_BROKEN, EXIT_HELD
from harness.ground.machine.spread import Workers
from harness.lab.search import PORTFOLIOS
from harness.lab.search.hunting import runs
from harness.plan import parse_plan
from harness.records.run_record import read_record
from harness.runs.run import perform_run
from harness.worlds.hosts import Ports
from scripts.spark_archive import ARCHIVE, options
from tests.checkers.conformance import BY_NAME, cases, write_history
from tests.harness.campaigns.campaign.test_spread_runs import PLAN

HOST = "127.0.0.1"
#: Two seconds on an idle machine; three JVMs that start on a busy one have taken over a minute.
START_LIMIT_S = 600.0
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
ROOT = str(Path(__file__).parents[3])
SPARK_SUBMIT = SPARK_CLASS.with_name("spark-submit")
#: Options of JVMs that live for seconds; half of their work would be the second compiler's.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -Xshare:auto -XX:+UseSerialGC"
if ARCHIVE.is_file():
    JAVA_OPTIONS += " " + options(ARCHIVE)
HUNT = ["hunt", "join-by-high-watermark", "--portfolio", "moves", "--seed", "3", "--seconds", "900", "--json"]
STORIES = ["stories", "S01", "T01", "--json"]
PACKAGES = (*SHIPPED, "harness")
#: The program that a user gives to spark-submit.
PROGRAM = "from harness.cli import main; main()"
#: Performs commands in one process, so with one driver and one set of executors; says how they ended and what they
#: printed, and then from where a worker imports each package. With short waves a hunt has many, and few runs after the
#: one that is found. The last command comes after that: a campaign judges with a Spark of its own.
TOGETHER = f"""
import json, sys
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from checkers import spark_context
from harness.cli.app import exit_code_of
from harness.ground.machine import spread
spread.BLOCKS_A_CORE = 1
master, *commands, last = json.loads(sys.argv[1])
def ended(command):
    with redirect_stdout(StringIO()) as printed:
        return exit_code_of(command), printed.getvalue()
ends = [*map(ended, commands)]
packages = spark_context(master).parallelize({PACKAGES}, 1)
imported = packages.map(lambda name: import_module(name).__file__).collect()
print(json.dumps(([*ends, ended(last)], imported)))
"""

#: Performs runs of a hunt in short waves, and says each as soon as it is there.
HUNTED = """
import json, sys
from harness.ground.machine import spread
from tests.checkers.spark.test_cluster import hunted
spread.BLOCKS_A_CORE = 1
for run in hunted(sys.argv[1]):
    print(json.dumps(run), flush=True)
"""
#: Runs of that hunt, in waves of eight.
RUNS = 32


class SparkCluster(NamedTuple):
    """The addresses of a master and of its page, and the workers by their ports."""

    master: str
    page: str
    workers: dict[int, subprocess.Popen[bytes]]


class Together(NamedTuple):
    """The results of commands of one process: verdicts, exit codes and words of a hunt and of stories, files of
    imported packages, and the directory of a campaign with its exit code.
    """

    verdicts: list[dict[str, object]]
    hunted: tuple[int, str]
    told: tuple[int, str]
    imported: list[str]
    campaign: Path
    campaign_code: int


@contextmanager
def daemon(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Spark daemon that ends with the block."""
    environment = {**os.environ, "SPARK_LOCAL_IP": HOST, "SPARK_NO_DAEMONIZE": "1", "SPARK_DAEMON_MEMORY": "256m"}
    environment["JAVA_TOOL_OPTIONS"] = JAVA_OPTIONS  # of the executors that a worker starts, too
    with log.open("wb") as output:
        process = subprocess.Popen([str(SPARK_CLASS), *arguments], env=environment, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)


@contextmanager
def cluster(scratch: Path) -> Iterator[SparkCluster]:
    """A master with two workers, one core each."""
    deploy = "org.apache.spark.deploy"
    with Ports() as ports, ExitStack() as stack:
        port, web = ports.take(HOST).port, ports.take(HOST).port
        master = f"spark://{HOST}:{port}"
        stack.enter_context(daemon(scratch / "master.log", f"{deploy}.master.Master", *listening(port, web)))
        workers = {}
        for number in range(2):
            directory, port = scratch / f"work-{number}", ports.take(HOST).port
            own = listening(port, ports.take(HOST).port)
            options = (*own, "--cores", "1", "--memory", "1g", "-d", str(directory))
            started = daemon(scratch / f"worker-{number}.log", f"{deploy}.worker.Worker", *options, master)
            workers[port] = stack.enter_context(started)
        started_cluster = SparkCluster(master, f"http://{HOST}:{web}/json/", workers)
        wait_for_workers(started_cluster.page, 2)
        yield started_cluster


def listening(port: int, web: int) -> tuple[str, ...]:
    """The options of a daemon with these ports."""
    return ("--host", HOST, "--port", str(port), "--webui-port", str(web))


def wait_for_workers(url: str, number: int) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    alive = 0
    while time.monotonic() < deadline:
        try:
            alive = seen_on(url)["aliveworkers"]
        except (OSError, ValueError):  # it does not listen yet, or answers without a word
            alive = 0
        if alive == number:
            return
        time.sleep(0.2)
    raise TimeoutError(f"{alive} workers are alive after {START_LIMIT_S:.0f} s, and not {number}")


def seen_on(url: str) -> Any:
    """The master's page, as data."""
    with urlopen(url, timeout=60) as answer:  # noqa: S310 - our own loopback address
        return json.load(answer)


def hunted(workers: Workers) -> Iterator[list[object]]:
    """The runs of a hunt for a planted bug, by number, with their alarms."""
    portfolios = [portfolio for portfolio in PORTFOLIOS if portfolio.name == "stories"]
    every = runs({"planted.bug": "keep-fenced-out"}, seed=7, workers=workers, portfolios=portfolios)
    for run in islice(every, RUNS):
        yield [run.number, run.spec.seed, [alarm.text for alarm in run.alarms]]


def kill_with_its_children(pid: int) -> None:
    """Let a process and all that it has started die at once, as where a machine loses its power."""
    os.kill(pid, signal.SIGSTOP)  # It starts nothing meanwhile.
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in listed.read_text().split():
            kill_with_its_children(int(child))
    os.kill(pid, signal.SIGKILL)


def of_a_driver() -> dict[str, str]:
    """The environment of a process with a driver."""
    own = {"SPARK_LOCAL_IP": HOST, "PYTHONPATH": ROOT, "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **own, "JAVA_TOOL_OPTIONS": JAVA_OPTIONS}


def performed(command: list[str], code: int) -> str:
    """The output of a command that ends with this exit code."""
    done = subprocess.run(command, env=of_a_driver(), capture_output=True, timeout=1_500, check=False, text=True)
    assert done.returncode == code, done.stderr[-2000:]
    return done.stdout


def verdicts_in(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def master(spark_cluster: SparkCluster) -> str:
    return spark_cluster.master


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("histories")
    for name in cases("analysis"):
        write_history(BY_NAME[name], directory / (name.replace("/", "_") + ".jsonl"))
    return directory


@pytest.fixture(scope="module")
def together(master: str, histories: Path, tmp_path_factory: pytest.TempPathFactory) -> Together:
    """A hunt, stories, a check and a campaign on the cluster: what they import comes from what each of them sends."""
    directory = tmp_path_factory.mktemp("together")
    out, plan, campaign = (directory / name for name in ("verdicts.jsonl", "plan.toml", "campaign"))
    plan.write_text(PLAN)
    check = ["check", str(histories), "--out", str(out)]
    commands = (HUNT, STORIES, check, ["campaign", str(plan), "--out", str(campaign), "--json"])
    words = json.dumps([master, *([*command, "--master", master] for command in commands)])
    ended, imported = json.loads(performed([sys.executable, "-c", TOGETHER, words], 0))
    hunted, told, checked, performed_campaign = map(tuple, ended)
    assert checked[0] == EXIT_BROKEN
    return Together(verdicts_in(out), hunted, told, imported, campaign, performed_campaign[0])


@pytest.mark.system
@pytest.mark.timeout(1_800)
def test_a_cluster_gives_the_verdicts_of_the_plain_kernels(
    master: str, histories: Path, together: Together, tmp_path: Path
) -> None:
    program, out = tmp_path / "program.py", tmp_path / "verdicts.jsonl"
    program.write_text(PROGRAM)
    # One worker is enough here; the job of the others has both.
    submit = [str(SPARK_SUBMIT), "--master", master, "--conf", "spark.cores.max=1", str(program)]
    performed([*submit, "check", str(histories), "--out", str(out)], EXIT_BROKEN)
    paths = sorted(histories.iterdir())
    plain = [json.loads(msgspec.json.encode(VerdictLine.of(check_one(path)))) for path in paths]
    assert together.verdicts == plain
    assert verdicts_in(out) == plain


@pytest.mark.system
@pytest.mark.timeout(1_800)
def test_workers_import_what_the_driver_sends(together: Together) -> None:
    """They would find these packages where they are installed, too; what was sent comes first."""
    assert [Path(file).parent.name for file in together.imported] == [*PACKAGES]
    assert [Path(file).parents[1].suffix for file in together.imported] == [".zip"] * len(PACKAGES)
    assert {Path(file).suffix for file in together.imported} == {".pyc"}, "nobody compiles it again"


@pytest.mark.system
@pytest.mark.timeout(1_800)
def test_a_hunt_on_a_cluster_finds_what_one_here_finds(together: Together) -> None:
    here = json.loads(performed([sys.executable, "-c", PROGRAM, *HUNT, "--workers", "1"], EXIT_HELD))
    code, printed = together.hunted
    assert code == EXIT_HELD
    on_cluster = json.loads(printed)
    assert here["schedules"] > 16, "more than two waves of two blocks"
    for result in (on_cluster, here):
        result["seconds"] = result["found"]["seconds"] = 0.0
    assert on_cluster == here


@pytest.mark.system
@pytest.mark.timeout(1_800)
def test_stories_on_a_cluster_have_the_cells_of_one_here(together: Together) -> None:
    code, printed = together.told
    assert code == EXIT_HELD
    assert printed == performed([sys.executable, "-c", PROGRAM, *STORIES, "--workers", "1"], EXIT_HELD)


@pytest.mark.system
@pytest.mark.timeout(1_800)
def test_a_campaign_on_a_cluster_leaves_the_histories_of_one_here(together: Together, tmp_path: Path) -> None:
    """And has them judged, by the Spark of this machine."""
    runs = parse_plan(PLAN, "plan.toml").runs()
    for number, spec in enumerate(runs):
        here, on_cluster = tmp_path / str(number), together.campaign / spec.directory()
        assert perform_run(spec, here).status == read_record(on_cluster).ended.status == "completed"
        (history,) = here.glob("history/*.parquet")
        assert (on_cluster / "history" / history.name).read_bytes() == history.read_bytes()
    assert together.campaign_code == EXIT_HELD
    assert len(verdicts_in(together.campaign / "verdicts.jsonl")) == len(runs)
    assert (together.campaign / "report.html").is_file()


@pytest.mark.system
@pytest.mark.timeout(1_800)
def test_a_hunt_whose_worker_dies_has_the_runs_of_one_here(spark_cluster: SparkCluster) -> None:
    """The last test of this file: afterwards the cluster has one worker."""
    command = [sys.executable, "-c", HUNTED, spark_cluster.master]
    with subprocess.Popen(command, env=of_a_driver(), stdout=subprocess.PIPE, text=True) as hunting:
        assert hunting.stdout is not None
        first = hunting.stdout.readline()
        busy = [worker for worker in seen_on(spark_cluster.page)["workers"] if worker["coresused"]]
        assert len(busy) == 2, "both perform runs"
        kill_with_its_children(spark_cluster.workers[busy[0]["port"]].pid)
        printed = [first, *hunting.stdout]
    assert hunting.returncode == 0
    wait_for_workers(spark_cluster.page, 1)
    on_cluster = [json.loads(line) for line in printed]
    assert on_cluster == [*hunted(1)]
    assert len({*map(str, (texts for _, _, texts in on_cluster))}) > 1, "they differ, so their order shows"
