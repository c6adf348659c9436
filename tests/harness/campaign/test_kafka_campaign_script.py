"""`make kafka` without Kafka: green only where it cannot be had, red where getting it failed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.errors import EXIT_HARNESS, EXIT_NOT_REACHABLE, EXIT_PLAN

SCRIPT = Path(__file__).parents[3] / "scripts" / "kafka-campaign.sh"
#: Every other command than the installation ends like a campaign with a broken promise.
ACKPROOF = '#!/bin/sh\n[ "$1" = kafka ] && exit {code}\nexit 1\n'


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("user", "installing", "code", "tested"),
    [
        (0, 0, 1, True),
        (0, EXIT_NOT_REACHABLE, 0, False),
        (0, EXIT_HARNESS, EXIT_HARNESS, True),
        (0, EXIT_PLAN, EXIT_PLAN, True),
        (1000, 0, 0, False),
    ],
)
def test_only_what_cannot_be_had_is_no_failure(
    tmp_path: Path, user: int, installing: int, code: int, *, tested: bool
) -> None:
    program(tmp_path / ".venv" / "bin" / "ackproof", ACKPROOF.format(code=installing))
    program(tmp_path / ".venv" / "bin" / "python", "#!/bin/sh\nexit 0\n")  # finds what it expects
    program(tmp_path / "bin" / "id", f"#!/bin/sh\necho {user}\n")
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(SCRIPT, tmp_path / "scripts")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(["bash", script], env={"PATH": path}, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == code
    assert ("REAL KAFKA WAS NOT TESTED" not in done.stdout) is tested
