"""Reports, plans and histories of somebody else's execute nothing and lead nowhere else; no secret is written down."""

from __future__ import annotations

import ast
import contextlib
import json
import logging
import lzma
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from confluent_kafka import KafkaError

from harness.campaigns.campaign import Job, judge_all, trace_runs, witness, write_plan
from harness.campaigns.campaign.judging_thread import Checking
from harness.campaigns.soak import SoakRequest, perform_soak, read_nights
from harness.campaigns.soak.resuming import perform_turn
from harness.cli.app import exit_code_of
from harness.ground.errors import PlanError, ResultsError
from harness.ground.progress import Progress
from harness.plan import RunSpec, Security, Simulated, parse_plan
from harness.records.files import RUN_FILE
from harness.records.run_record import Ended, read_record
from harness.runs.run.performing import perform_run
from harness.worlds.clients import confluent, credentials, kafka_python, without_secrets
from harness.worlds.clients.credentials import password_of
from harness.worlds.factory import world_for
from harness.worlds.real.world import logs_diverted
from tests.harness.campaigns.comparison.conftest import STRONG, run_lines, write_campaign

SECRET = "correct-horse-4711"  # noqa: S105
SOURCE = Path(__file__).parents[2]
#: A function of PyYAML with its arguments, and the forms that make no object but texts.
YAML_CALL = re.compile(r"yaml\.(?:[a-z_]*(?:load|dump|construct)\w*|compose\w*)\([^)]*\)?")
SAFE_YAML_CALLS = {
    "yaml.compose(text, Loader=yaml.SafeLoader)",
    "yaml.compose_all(text, Loader=yaml.SafeLoader)",
}
#: In memory, of this process's own objects: states of nodes in exhaustive search.
PICKLES = {"harness/lab/explore/kept_nodes.py"}
PLAN = """
name = "one"
families = ["kill"]
[settings]
acks = "all"
[workload]
duration_ms = 4_000
[worlds.simulated]
runs = 1
"""

#: Beside virtual time a cluster of somebody else's, whose password is in the environment.
SECURED = """
name = "s"
families = ["kill"]
[settings]
acks = 1
[worlds.simulated]
parallel = 1
workload = { writes_per_second = 20.0, duration_ms = 8_000 }
[worlds.kafka]
host = "existing"
bootstrap = ["localhost:9092"]
security = { protocol = "SASL_PLAINTEXT", mechanism = "PLAIN", username = "alice", password_env = "AK_TEST_PASSWORD" }
"""


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """A password that is in the environment, and was read."""
    monkeypatch.setattr(credentials, "_READ", set())  # not what other tests have read
    monkeypatch.setenv("AK_TEST_PASSWORD", SECRET)
    way_in = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "alice", "password_env": "AK_TEST_PASSWORD"}
    return password_of(msgspec.convert(way_in, Security))


def test_a_password_that_begins_another_leaves_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_READ", {"open", "open-sesame"})
    assert credentials.without_secrets("open-sesame, open") == "(password), (password)"


def _calls_and_imports(tree: ast.AST) -> tuple[set[str], set[str]]:
    calls, imports = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            calls.add(node.func.id)
        elif isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imports.add(node.module or "")
    return calls, imports


def test_nothing_that_is_read_can_become_code() -> None:
    for package in ("harness", "checkers", "nemesis", "workloads"):
        for path in (SOURCE / package).rglob("*.py"):
            name, text = path.relative_to(SOURCE).as_posix(), path.read_text()
            calls, imports = _calls_and_imports(ast.parse(text))
            assert {"eval", "exec", "compile"}.isdisjoint(calls), name
            assert {"marshal", "shelve", "dill", "cloudpickle"}.isdisjoint(imports), name
            # Nodes are texts with places: no loader makes objects of them.
            assert set(YAML_CALL.findall(text)) <= SAFE_YAML_CALLS, name
            assert "from yaml" not in text, name
            assert "import yaml as" not in text, name
            assert "pickle" not in imports or name in PICKLES, name
            assert "shell=True" not in text, name


def test_a_run_whose_cell_leads_elsewhere_is_no_run(tmp_path: Path) -> None:
    (spec,) = parse_plan(PLAN, Path("p.toml")).runs()
    perform_run(spec, tmp_path / "run")
    file = tmp_path / "run" / RUN_FILE
    record = json.loads(file.read_bytes())
    for cell in ("../../../evil", "/tmp/evil", "acks=1/../../../../evil"):  # noqa: S108 - never written
        file.write_text(json.dumps(record | {"cell": cell}))
        with pytest.raises(ResultsError, match="a path that leads elsewhere"):
            read_record(tmp_path / "run")


def test_verdicts_that_name_a_run_outside_of_their_campaign_do_not_write_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write_campaign(tmp_path / "campaign", run_lines(STRONG, runs=1, losing=1, history="../outside/run"))
    assert exit_code_of(["schema", "--out", str(tmp_path / "outside" / "run")]) == 0
    from harness.records.verdict_lines import write_matrix  # noqa: PLC0415

    write_matrix(directory)
    traced: list[Path] = []
    monkeypatch.setattr("harness.campaigns.campaign.witnesses.trace_missing", traced.append)
    witness(directory, Progress())
    assert traced == []
    trace_runs([directory / "runs"], Progress())
    assert traced == [directory / "runs"]


@pytest.mark.parametrize("story", ["../story.toml", "/etc/story.toml", "a/../../story.toml"])
def test_a_plan_names_no_story_outside_of_its_directory(story: str) -> None:
    with pytest.raises(PlanError):
        parse_plan(f'story = "{story}"\n[workload]\npartitions = 1\n[worlds.simulated]\n', Path("p.toml"))


@pytest.mark.parametrize("name", ["../up", "/etc", "a/b", "..", "a\\u0000b"])
def test_a_plan_names_no_directory_but_one_below_its_results(name: str) -> None:
    with pytest.raises(PlanError):
        parse_plan(f'name = "{name}"\n[worlds.simulated]\n', Path("p.toml"))


def test_names_and_errors_command_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "c\x1b]0;owned\x07[/bold]\x9b2J/kill"
    clean = write_campaign(tmp_path / "a", run_lines(STRONG, cell=evil))
    lossy = write_campaign(tmp_path / "b", run_lines(STRONG, cell=evil, losing=1))
    assert exit_code_of(["compare", str(clean), str(lossy)]) == 1
    assert exit_code_of(["report", str(lossy)]) == 1
    shown = "".join(capsys.readouterr())
    assert "owned" in shown
    assert {"\x1b", "\x07", "\x9b"}.isdisjoint(shown)


def test_what_brokers_and_libraries_say_is_written_without_passwords(secret: str, tmp_path: Path) -> None:
    words = f"SASL authentication of alice with {secret} failed"
    reported = [
        kafka_python.named(RuntimeError(words)),
        confluent.named(KafkaError(KafkaError._AUTHENTICATION, words)),
        without_secrets(words),
    ]
    with logs_diverted(tmp_path / "logs" / "clients.log"):
        logging.getLogger("kafka.conn").error(words)
    reported.append((tmp_path / "logs" / "clients.log").read_text())
    for text in reported:
        assert secret not in text
        assert "with (password) failed" in text


def test_a_run_that_fails_over_a_password_does_not_write_it_down(
    secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"the broker does not like {secret}")

    monkeypatch.setattr("harness.runs.run.performing.world_for", refuse)
    (spec,) = parse_plan(PLAN, Path("p.toml")).runs()
    ended = perform_run(spec, tmp_path / "run")
    assert ended.reason == "unexpected RuntimeError: the broker does not like (password)"
    assert holding(secret, tmp_path) == []


def test_a_plan_with_a_password_is_refused_without_repeating_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    security = f'[worlds.kafka.security]\nprotocol = "SASL_SSL"\nusername = "a"\npassword = "{SECRET}"\n'
    (tmp_path / "p.toml").write_text(f'[worlds.kafka]\nhost = "existing"\nbootstrap = ["h:1"]\n{security}')
    assert exit_code_of(["campaign", str(tmp_path / "p.toml"), "--out", str(tmp_path / "out")]) == 64
    assert SECRET not in "".join(capsys.readouterr())
    assert not (tmp_path / "out").exists()


def holding(secret: str, directory: Path) -> list[Path]:
    """Files below ``directory`` in which the secret is, packed ones too."""

    def content(path: Path) -> bytes:
        if path.suffix == ".parquet":
            return str(pq.read_table(path).to_pydict()).encode() + path.read_bytes()
        return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()

    return [path for path in directory.rglob("*") if path.is_file() and os.fsencode(secret) in content(path)]


class HereRuns:
    """Runs that this process performs, as a worker of a soak would."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._jobs: list[Job] = []
        self.performed = 0

    @property
    def busy(self) -> int:
        return len(self._jobs)

    def perform_job(self, job: Job, limit_s: float) -> None:
        self._jobs.append(job)

    def wait(self, patience_s: float | None = None) -> list[tuple[Job, Ended]]:
        job = self._jobs.pop(0)
        self.performed += 1
        return [(job, perform_turn(self._directory, job.spec, job.directory))]

    def close(self) -> None:
        self._jobs.clear()


def test_no_artefact_of_a_soak_has_what_brokers_say_or_what_is_in_the_environment(
    secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{secret}-aws")
    monkeypatch.setattr(credentials, "_READ", set())

    def world(spec: RunSpec, *given: Any, **more: Any) -> Any:
        if isinstance(spec.world, Simulated):
            return world_for(spec, *given, **more)
        raise RuntimeError(f"SASL authentication of alice with {password_of(spec.world.security)} failed")

    monkeypatch.setattr("harness.runs.run.performing.world_for", world)
    plan = parse_plan(SECURED, tmp_path / "p.toml")
    earlier = []
    for name in ("1", "2"):
        directory = tmp_path / name
        directory.mkdir()
        write_plan(plan, directory)
        asked = SoakRequest(name=name, seed=int(name), began=name, command="ackproof soak", for_s=12.0)
        checks = Checking(lambda places: [judge_all([run], Progress())[0] for run in places])
        runs = HereRuns(directory)
        ending = perform_soak(
            directory,
            plan,
            asked,
            Progress(),
            earlier=earlier,
            runs=runs,
            checks=checks,
            clock=lambda: float(runs.performed),  # noqa: B023 - asked while it soaks
        )
        earlier = read_nights([str(directory)], tmp_path)
        assert ending.exit_code == 70
        assert secret not in "".join(ending.sentences)
        assert "alice with (password) failed" in "".join(ending.sentences)
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {
        *("ledger.jsonl", "soak.json", "heartbeat.json", "night.json", "nights.html", "verdicts.jsonl", "junit.xml"),
        *("matrix.json", "matrix.md", "report.html", "campaign.json", "plan.toml", "run.json"),
    } <= written
    assert holding(secret, tmp_path) == []
    assert secret not in "".join(capsys.readouterr())


def test_a_place_of_nights_with_a_password_is_refused_without_repeating_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nights = f"s3://alice:{SECRET}@bucket/nights"
    plan = str(SOURCE / "plans" / "smoke.toml")
    for command in (
        ["soak", plan, "--for", "1s", "--out", str(tmp_path / "out"), "--nights", nights],
        ["check", nights],
    ):
        assert exit_code_of(command) == 64
    assert SECRET not in "".join(capsys.readouterr())
    assert not (tmp_path / "out").exists()


@pytest.mark.system
def test_no_artefact_of_a_run_has_what_was_in_the_environment(
    secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{secret}-aws")
    (tmp_path / "one.toml").write_text(PLAN)
    with contextlib.chdir(tmp_path):
        assert exit_code_of(["campaign", "one.toml", "--out", "out"]) in {0, 2}
        assert exit_code_of(["check", "out", "--junit", "j.xml", "--summary", "s.md"]) in {0, 2}
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {"report.html", "junit.xml", "j.xml", "run.json", "campaign.json"} <= written
    assert holding(secret, tmp_path) == []
    assert secret not in "".join(capsys.readouterr())
