"""`make kafka` without Kafka: green only where it cannot be had, red where getting it failed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.ground.errors import EXIT_HARNESS, EXIT_NOT_REACHABLE, EXIT_PLAN

SCRIPT = Path(__file__).parents[4] / "scripts" / "kafka-campaign.sh"
#: Every other command than the installation is the campaign.
ACKPROOF = '#!/bin/sh\n[ "$1" = kafka ] && exit {installing}\nexit {campaign}\n'
#: The program that says whether the campaign showed what was expected.
PYTHON = "#!/bin/sh\nexit {unexpected}\n"


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def outcome_of(
    directory: Path, *, user: int = 0, installing: int = 0, campaign: int = 0, unexpected: int = 0, needed: str = ""
) -> tuple[int, bool]:
    """The script's exit code, and whether Kafka was tested, with programs that end like this."""
    program(directory / ".venv" / "bin" / "ackproof", ACKPROOF.format(installing=installing, campaign=campaign))
    program(directory / ".venv" / "bin" / "python", PYTHON.format(unexpected=unexpected))
    program(directory / "bin" / "id", f"#!/bin/sh\necho {user}\n")
    (directory / "scripts").mkdir()
    script = shutil.copy(SCRIPT, directory / "scripts")
    environment = {"PATH": f"{directory / 'bin'}:{os.environ['PATH']}", "ACKPROOF_NEEDS_KAFKA": needed}
    done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, "REAL KAFKA WAS NOT TESTED" not in done.stdout


@pytest.mark.parametrize(
    ("user", "installing", "code", "tested"),
    [
        (0, 0, 0, True),
        (0, EXIT_NOT_REACHABLE, 0, False),
        (0, EXIT_HARNESS, EXIT_HARNESS, True),
        (0, EXIT_PLAN, EXIT_PLAN, True),
        (1000, 0, 0, False),
    ],
)
def test_only_what_cannot_be_had_is_no_failure(
    tmp_path: Path, user: int, installing: int, code: int, *, tested: bool
) -> None:
    assert outcome_of(tmp_path, user=user, installing=installing) == (code, tested)


@pytest.mark.parametrize("lacking", [{"user": 1000}, {"installing": EXIT_NOT_REACHABLE}])
def test_kafka_that_cannot_be_had_is_a_failure_where_it_must_be(tmp_path: Path, lacking: dict[str, int]) -> None:
    assert outcome_of(tmp_path, **lacking, needed="1") == (1, False)


@pytest.mark.parametrize("ends", [{"campaign": 1}, {"campaign": 2}, {"campaign": EXIT_HARNESS}, {"unexpected": 1}])
def test_a_campaign_that_went_wrong_or_showed_something_else_is_a_failure(tmp_path: Path, ends: dict[str, int]) -> None:
    assert outcome_of(tmp_path, **ends) == (max(ends.values()), True)
