"""This call of the program, as records and reports write it: the time, and a command line."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime


def utc_now() -> str:
    """Now in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def command(*words: str) -> str:
    """A command of ackproof as a shell takes it."""
    return shlex.join(["ackproof", *words])


def this_command() -> str:
    """The command line of this process."""
    return command(*sys.argv[1:])
