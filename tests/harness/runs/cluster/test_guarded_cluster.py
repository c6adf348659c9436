"""`ackproof cluster up --tls --sasl` on Kafka: the files that it names let tools and ackproof in, and nobody else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import tool_command
from harness.worlds.kafka.releases import DEFAULT_VERSION
from tests.sessions import begun, printed

pytestmark = [pytest.mark.system, pytest.mark.kafka, pytest.mark.xdist_group("kafka-guarded")]
LIMIT_S = 600.0
MAIN = ("-c", "from harness.cli import main; main()")
UP = ("cluster", "up", "--world", "kafka", "--version", DEFAULT_VERSION, "--json")


def done(words: list[str], directory: Path) -> tuple[int, str, str]:
    process = begun([*MAIN, *words], directory, os.environ)
    out, err = printed(process, LIMIT_S)
    return process.returncode, out, err


@pytest.fixture(params=["--tls", "--sasl", "--tls --sasl"])
def up(request: pytest.FixtureRequest, tmp_path: Path, real_kafka: Installation) -> Iterator[dict[str, Any]]:
    """Start a cluster with these flags, and give its own words about itself; nothing of it is left at the end."""
    process = begun([*MAIN, *UP, *request.param.split()], tmp_path, os.environ)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline()) | {"flags": request.param}
        process.send_signal(signal.SIGINT)
        assert (printed(process, LIMIT_S)[1], process.returncode) == ("ended\n", 0)
    finally:
        process.kill()
        process.communicate()
        done(["heal", "results/cluster"], tmp_path)


def test_its_files_let_tools_and_ackproof_in_and_nobody_comes_in_without(
    up: dict[str, Any], tmp_path: Path, real_kafka: Installation
) -> None:
    servers = ",".join(up["bootstrap"])
    words = ["org.apache.kafka.tools.TopicCommand", "--bootstrap-server", servers, "--list"]
    listing = tool_command(real_kafka, [*words, "--command-config", up["properties"]])
    listed = subprocess.run(listing, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert listed.stdout.split() == ["playground"]
    code, out, _ = done(["assess", "--access", up["plan"], "--json"], tmp_path)
    assert code == 0
    assert [group["topics"] for group in json.loads(out)["groups"]] == [["playground"]]
    code, _, err = done(["assess", "--bootstrap", servers], tmp_path)
    assert code in {64, 69}
    assert "refuses this client" in err or "does it need TLS or SASL" in err
    if up["flags"] == "--tls --sasl":
        plan = Path(up["plan"])
        plan.write_text(re.sub(r"(?m)^duration_ms = .*$", "duration_ms = 4_000", plan.read_text()))
        code, _, err = done(["campaign", str(plan)], tmp_path)
        assert code in {0, 2}, err
        cells = json.loads((tmp_path / "results" / "existing" / "matrix.json").read_text())["cells"]
        assert [cell["runs_judged"] for cell in cells] == [1, 1, 1, 1], cells
