"""Fetching jars with Maven: a generated project that needs them, and one goal that copies them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from harness.errors import HostError, NotReachableError, PlanError
from harness.worlds.kafka.releases import Artifact

#: A hundred megabytes; slow lines get a quarter of an hour.
LIMIT_S: Final = 900.0
#: Named with its version, so that the same thing happens on every machine.
_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_OTHERWISE: Final = "or give a downloaded release: ackproof kafka install --from kafka_2.13-VERSION.tgz"
_WORDS_MAX: Final = 160
#: Kafka of long ago asks for log4j 1 itself and its binding. Reload4j, which is asked for besides, stands in for both;
#: and what the oldest of them asks for in turn is in no repository any more.
_EXCLUSIONS: Final = "<exclusions>{}</exclusions>".format(
    "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>"
        for group, name in (("log4j", "log4j"), ("org.slf4j", "slf4j-log4j12"))
    )
)
#: What Maven says, in words of Java and of its transports, of a repository from which no answer came.
_SILENCE: Final = re.compile(
    r"unknown ?host|name resolution|connection (?:refused|timed out|reset)|connect timed out|no route to host"
    r"|network is unreachable|tunnel through proxy|in offline mode",
    re.IGNORECASE,
)


def fetch(wanted: Sequence[Artifact], directory: Path) -> None:
    """Copy ``wanted`` and all that they need at run time into ``directory``, which must exist; jars go to ``libs``.

    Raises:
        PlanError: there is no such release.
        NotReachableError: Maven is missing, or nobody answered it.
        HostError: it failed for another reason.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise NotReachableError(f"no Maven on this machine: install the package maven, {_OTHERWISE}")
    (directory / "pom.xml").write_text(project(wanted), encoding="utf-8")
    command = [maven, "-B", "-q", _GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={directory / 'libs'}"]
    try:
        done = subprocess.run(  # noqa: S603 - Maven with fixed words
            command, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"Maven did not do its work ({error}): try again later, {_OTHERWISE}") from error
    if done.returncode:
        raise _trouble(wanted[0], done.stdout + done.stderr)


def project(wanted: Sequence[Artifact]) -> str:
    """The text of a ``pom.xml`` that depends on ``wanted``."""
    dependencies = "\n".join(
        f"    <dependency><groupId>{escape(one.group)}</groupId><artifactId>{escape(one.name)}</artifactId>"
        f"<version>{escape(one.version)}</version>{_EXCLUSIONS}</dependency>"
        for one in wanted
    )
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>ackproof</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


def _trouble(main: Artifact, output: str) -> HostError | PlanError:
    """Maven says "was not found" of what a repository that answered does not have, and no such thing of silence."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    name = f"{main.group}:{main.name}:"
    missing = re.search(r"(?:Could not find artifact|was not found in)", plain)
    if missing and name in plain:
        return PlanError(f"there is no release {main.version} of Apache Kafka in Maven's repository; choose another")
    kind = NotReachableError if _SILENCE.search(plain) else HostError
    return kind(f"Maven could not fetch Apache Kafka ({_cause(plain)}): see to its network or mirror, {_OTHERWISE}")


def _cause(output: str) -> str:
    """The end of Maven's first complaint: it names the cause after all that came of it, each after a colon."""
    errors = (line.removeprefix("[ERROR]").strip() for line in output.splitlines() if line.startswith("[ERROR]"))
    complaint = next(filter(None, errors), "it gave no reason").partition(" -> [Help")[0]
    first, *causes = complaint.split(": ")
    kept: list[str] = []
    for cause in reversed(causes):
        if len(": ".join([cause, *kept])) > _WORDS_MAX:
            break
        kept.insert(0, cause)
    return ": ".join(kept) if kept else first[:_WORDS_MAX]
