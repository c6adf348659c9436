"""The copy of the source that `make compiled` compiles is the same program. (Compiling it takes minutes.)"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
#: Prints what became of a run with a planted bug, and what an exhaustive search has seen.
RUN = """
import msgspec
from harness.explore import exhaust, scope_named
from harness.plan import parse_plan
from harness.search import run_in_memory
plan = '''
families = ["kill+partition"]
settings = { acks = "all", "planted.bug" = "keep-follower-progress" }
[worlds.simulated]
runs = 1
workload = { duration_ms = 6_000, writes_per_second = 20.0 }
'''
judged = run_in_memory(parse_plan(plan, "p.toml").runs()[0])
print(msgspec.json.encode([judged.recording, judged.verdict, judged.receipts, judged.broken], enc_hook=str).decode())
result = exhaust(scope_named("calm-2"))
print(result.states, result.transitions, result.depth, result.core_steps)
"""


def script() -> Any:
    spec = importlib.util.spec_from_file_location("compile_script", ROOT / "scripts" / "compile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed_in(directory: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(directory)}
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_copy_that_is_compiled_does_what_the_source_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    modules = script().copy_to(tmp_path / "copy")
    assert all("mypyc_attr" in (tmp_path / "copy" / module).read_text() for module in modules)
    assert printed_in(tmp_path / "copy") == printed_in(ROOT)
