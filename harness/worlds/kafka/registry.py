"""The releases that Maven's repository has, asked with Maven: its mirror and settings are those of installs.

Maven keeps the repository's list of a release's versions beside what it fetched, in a directory of its own here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.ground.errors import HostError, NotReachableError
from harness.ground.machine.versions import user_cache
from harness.records.files import files_of
from harness.worlds.kafka.installation import MAVEN_PLUGIN, run_maven
from harness.worlds.kafka.releases import VERSION, Version, parse_version

#: An artifact that every release since 2.4 has.
_ARTIFACT: Final = ("org.apache.kafka", "kafka_2.13")
_LIMIT_S: Final = 300.0


def published() -> list[Version]:
    """Every release since 2.4 that the repository has, oldest first.

    Raises:
        NotReachableError: Maven is missing, or its repository did not answer.
        HostError: Maven gave no list.
    """
    kept = user_cache() / "registry"
    wanted = f"-Dartifact={':'.join(_ARTIFACT)}:LATEST:pom"
    words = ["-U", f"-Dmaven.repo.local={kept}", f"{MAVEN_PLUGIN}:get", wanted, "-Dtransitive=false"]
    with files_of(kept):
        kept.mkdir(parents=True, exist_ok=True)
    done = run_maven(words, kept, _LIMIT_S)
    if done.returncode:
        raise NotReachableError("Maven's repository did not name its releases: check its network or mirror")
    return versions_in(lists_in(kept))


def lists_in(kept: Path) -> list[str]:
    """The lists of versions that Maven keeps in its directory, one for each repository that it asked."""
    group, name = _ARTIFACT
    files = (kept / Path(*group.split(".")) / name).glob("maven-metadata-*.xml")
    return [file.read_text(encoding="utf-8") for file in sorted(files)]


def versions_in(lists: Sequence[str]) -> list[Version]:
    """The releases in these lists, oldest first; candidates for a release are left out.

    Raises:
        HostError: they name no release.
    """
    texts = {text for each in lists for text in re.findall(r"<version>([^<]*)</version>", each)}
    if versions := sorted(parse_version(text) for text in texts if VERSION.fullmatch(text)):
        return versions
    raise HostError("Maven's repository named no release of Apache Kafka: check its mirror")


def before(release: Version, others: Sequence[Version]) -> Version | None:
    """The newest release of the line before: 4.3.1 before 4.4.0, 4.2.2 before 4.3.1."""
    return max((other for other in others if other[:2] < release[:2]), default=None)
