"""A program that plays a finding once, where a patched client library comes before the installed one.

Arguments: number, way, version, client, version of the client, the patch, and the directory for files. It prints what
was observed as JSON. Its environment is that of :class:`harness.worlds.kafka.patches.Patch`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from harness.ground.progress import Progress
from harness.lab.findings.playing import asked_for, played_here
from harness.lab.findings.register import FINDINGS


def main() -> None:
    """Play the finding that the arguments name, and print what was observed."""
    os.environ.pop("LD_PRELOAD", None)  # it is loaded, and is not for brokers
    number, way, version, client, client_version, patch, directory = sys.argv[1:]
    asked = asked_for(FINDINGS[number], way, version, f"{client}:{client_version}".rstrip(":"), Path(patch))
    sys.stdout.write(msgspec.json.encode(played_here(asked, Path(directory), Progress())).decode())
