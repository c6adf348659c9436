"""Where Spark cannot start, one sentence says what to install."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

START = """
from checkers.errors import JavaMissingError
from checkers.session import session
try:
    session()
except JavaMissingError as error:
    print(error)
"""


@pytest.mark.system
def test_without_java_one_sentence_says_what_to_install() -> None:
    environment = {**os.environ, "JAVA_HOME": "/nonexistent"}
    command = [sys.executable, "-c", START]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (sentence,) = done.stdout.splitlines()
    assert "install openjdk-17-jre-headless" in sentence
    assert "/nonexistent" in sentence, "it names the Java that was tried"
    assert done.stderr == ""
