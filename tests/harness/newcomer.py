"""A copy of a package to which a newcomer added something, and what it answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]


def answers_of(directory: Path, asked: str, *arguments: str) -> Any:
    """The last line that the program ``asked`` prints, as JSON, with the packages that are in ``directory``."""
    done = subprocess.run(
        [sys.executable, "-c", asked, *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(directory), str(ROOT)])},
        capture_output=True,
        timeout=600,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
