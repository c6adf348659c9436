"""Three nights of the files that `ackproof init ci` writes, whose one defect is accepted after the first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.records.accepted_file import read_accepted
from tests.packaging.conftest import ROOT

LIMIT_S = 600.0
PROGRAM = f"""#!{sys.executable}
import sys
from harness.cli import main
if __name__ == "__main__":
    sys.exit(main())
"""


def night() -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ACKPROOF_FOR": "3s", "PYTHONPATH": str(ROOT)}
    words = ["bash", "ackproof/run.sh", "nightly"]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def planting(plan: Path, bug: str) -> None:
    plan.write_text(re.sub(r'planted\.bug = ".*"', f'planted.bug = "{bug}"', plan.read_text()))


@pytest.mark.system
def test_nights_of_one_bug_are_green_once_the_line_under_it_was_pasted_and_a_second_bug_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(["init", "ci"]) == 0
    program = Path(".ackproof-venv/bin/ackproof")
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    plan = Path("ackproof/nightly.toml")
    text = re.sub(r"families = .*", 'families = ["kill", "kill+partition"]', plan.read_text())
    text = text.replace("[settings]\n", '[settings]\nplanted.bug = "none"\n')
    # In virtual time alone: a night of a few seconds has runs of every cell.
    plan.write_text(re.sub(r"\[worlds\.processes\].*?(?=\[\[expected)", "", text, flags=re.DOTALL))
    planting(plan, "acknowledge-after-append")

    first = night()
    assert first.returncode == 1, first.stderr
    (line,) = (line for line in first.stdout.splitlines() if line.startswith("  ackproof accept "))
    assert exit_code_of(line.split()[1:]) == 0
    (entry,) = read_accepted(Path("ackproof"))
    assert (entry.anomaly, len(entry.cells)) == ("lost-write", 2)
    for _ in range(2):
        green = night()
        assert green.returncode == 0, green.stdout
        assert "ackproof accept" not in green.stdout
        assert "apart from accepted findings in 2 of 2 cells." in green.stdout
    planting(plan, "truncate-to-high-watermark")
    red = night()
    assert red.returncode == 1, red.stdout
    assert "  ackproof accept " in red.stdout
