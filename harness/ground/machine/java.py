"""Finds a Java that PySpark can use: version 17 or later with the module jdk.incubator.vector."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from harness.ground.errors import JavaError
from workloads import reason_of

#: The oldest Java that Spark 4 runs on.
VERSION_MIN: Final = 17
#: Spark 4 starts its JVM with --add-modules=jdk.incubator.vector; a Java without it does not start.
MODULE: Final = "jdk.incubator.vector"
HOW: Final = "install openjdk-17-jre-headless (or openjdk-21-jre-headless), or point JAVA_HOME at such a Java"
#: A JVM answers in well under a second; a machine that swaps needs longer.
ANSWER_LIMIT_S: Final = 30.0


def usable_java() -> str:
    """The path and version of the Java that Spark will start.

    Raises:
        JavaError: this machine has no Java, it is too old, or it lacks the module.
    """
    return _asked(java_program())


@cache
def _asked(java: str) -> str:
    """Ask ``java`` itself, once: a start of Java takes a third of a second, and a command asks more than once."""
    try:
        listed = subprocess.run(  # noqa: S603
            [java, "--list-modules"], capture_output=True, text=True, timeout=ANSWER_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        late = f"{java} did not answer within {ANSWER_LIMIT_S:g} s"
        raise JavaError(f"{late}: try again when this machine has less to do") from error
    except OSError as error:
        raise JavaError(f"{java} cannot be started ({reason_of(error)}): {HOW}") from error
    version = re.search(r"^java\.base@(\d+)\S*", listed.stdout, re.MULTILINE)
    if version is None or int(version[1]) < VERSION_MIN:
        installed = version[0].removeprefix("java.base@") if version else "8 or older"
        raise JavaError(f"{java} is Java {installed}, and PySpark needs {VERSION_MIN} or later: {HOW}")
    if f"{MODULE}@" not in listed.stdout:
        raise JavaError(f"{java} lacks the module {MODULE}: {HOW}")
    return f"{java}, version {version[0].removeprefix('java.base@')}"


def java_program() -> str:
    """The path of the Java that JAVA_HOME or the search path names; its version was not looked at.

    Raises:
        JavaError: this machine has no Java.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise JavaError(f"no Java at {java}: {HOW}" if java else f"no Java on this machine: {HOW}")
    return java
