"""Small client programs that keep to the protocol, or do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from harness.worlds.clients import ClientProcess

_BEGINNING: Final = """
import json, os, sys, time

def say(**message):
    print(json.dumps(message), flush=True)

def hello(**more):
    say(**{"hello": 1, "name": "fake", "version": "1.0"} | more)

def calls():
    for line in sys.stdin:
        yield json.loads(line)

"""


def fake_program(directory: Path, text: str) -> ClientProcess:
    """A program of this text, which may use the functions above; not yet started."""
    file = directory / "fake.py"
    file.write_text(_BEGINNING + text)
    return ClientProcess("the client program fake", [sys.executable, "-S", "-E", str(file)])
