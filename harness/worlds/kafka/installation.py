"""Releases of Apache Kafka on this machine, side by side in the user's cache directory.

::

    ~/.cache/ackproof/kafka/4.3.1/libs/*.jar           what Maven fetched, or what was in a release
    ~/.cache/ackproof/kafka/4.3.1/made/...             made from it once, by the modules formatting and class_archive

A release is fetched into a directory beside its place and renamed, so that it is there whole or not at all.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from harness.errors import HostError, NotReachableError, PlanError
from harness.hosts import attempt
from harness.machine.versions import user_cache
from harness.worlds.kafka.releases import VERSION, Artifact, Version, artifacts, parse_version
from workloads import reason_of

#: A hundred megabytes; slow lines get a quarter of an hour.
LIMIT_S: Final = 900.0
#: Named with its version, so that the same thing happens on every machine.
_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_OTHERWISE: Final = "or give a downloaded release: ackproof kafka install --from kafka_2.13-VERSION.tgz"
_WORDS_MAX: Final = 160
#: Kafka of long ago asks for log4j 1 itself and its binding. Reload4j, which is asked for besides, replaces both;
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


class Installation(NamedTuple):
    """A release that is there. ``home`` holds ``libs``."""

    version: Version
    home: Path

    @property
    def jars(self) -> list[Path]:
        """The class path, in an order that never changes (class-data archives depend on it)."""
        return sorted((self.home / "libs").glob("*.jar"))

    @property
    def made(self) -> Path:
        """The directory of what was made from the jars; may not exist yet."""
        return self.home / "made"

    def require_startable(self) -> None:
        """Refuse a release that misses what Java no longer has, as a downloaded one of long ago does.

        Raises:
            HostError: what is missing, and how to get it.
        """
        names = [jar.name for jar in self.jars]
        for needed in artifacts(self.version):
            if needed.supplies and f"{needed.name}-{needed.version}.jar" not in names:
                raise HostError(
                    f"Apache Kafka {self.version} as it is in {self.home} does not start on today's Java, which "
                    f"{needed.supplies}; remove that directory, and get the release with Maven: ackproof kafka install "
                    f"{self.version}"
                )


def cache_directory() -> Path:
    """The directory of all releases, in the user's cache."""
    return user_cache() / "kafka"


def installed() -> list[Installation]:
    """Every release that is there, oldest first."""
    places = [path.parent.parent for path in cache_directory().glob("*/libs/kafka_*.jar")]
    found = {path.name: path for path in places if VERSION.fullmatch(path.name)}
    return sorted(Installation(parse_version(name), path) for name, path in found.items())


def find(version: str) -> Installation:
    """The release of this version.

    Raises:
        HostError: it is not there; the text says how to get it.
        PlanError: ``version`` is none.
    """
    wanted = parse_version(version)
    here = installed()
    for one in here:
        if one.version == wanted:
            return one
    others = f" (there: {', '.join(str(one.version) for one in here)})" if here else ""
    raise HostError(
        f"Apache Kafka {version} is not in {cache_directory()}{others}; get it with: ackproof kafka install {version}"
    )


def install(version: str) -> Installation:
    """Fetch a release with Maven; nothing if it is there already.

    Raises:
        PlanError: there is no such release.
        NotReachableError: it is out of this machine's reach.
        HostError: it could not be fetched for another reason.
    """
    wanted = parse_version(version)
    if (place := cache_directory() / str(wanted)).is_dir():
        return Installation(wanted, place)
    with _beside(place) as directory:
        fetch(artifacts(wanted), directory)
    return Installation(wanted, place)


def install_from(source: Path) -> Installation:
    """Take over a release that somebody downloaded: its ``.tgz``, or the directory it was unpacked to.

    Raises:
        PlanError: it is no release of Apache Kafka.
        HostError: it cannot be read or copied.
    """
    with _unpacked(source) as libs:
        version = _version_in(libs, source)
        place = cache_directory() / str(version)
        if not place.is_dir():
            with _beside(place) as directory:
                shutil.copytree(libs, directory / "libs", ignore=shutil.ignore_patterns("*.asc"))
    return Installation(version, place)


def _version_in(libs: Path, source: Path) -> Version:
    names = [re.fullmatch(rf"kafka_[\d.]+-({VERSION.pattern})\.jar", path.name) for path in libs.glob("kafka_*.jar")]
    versions = {name[1] for name in names if name}
    if len(versions) != 1:
        raise PlanError(f"{source} is no release of Apache Kafka: there is no libs/kafka_SCALA-VERSION.jar in it")
    return parse_version(versions.pop())


@contextmanager
def _unpacked(source: Path) -> Iterator[Path]:
    """The directory of a release's jars."""
    if source.is_dir():
        yield source / "libs"
        return
    with tempfile.TemporaryDirectory(prefix="ackproof-kafka-") as directory:
        try:
            with tarfile.open(source) as archive:
                _take_jars(archive, Path(directory))
        except OSError as error:
            raise PlanError(f"{source} cannot be read as a release of Apache Kafka: {reason_of(error)}") from error
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise PlanError(
                f"{source} is no release of Apache Kafka: it is no archive, or was not read whole"
            ) from error
        yield Path(directory)


def _take_jars(archive: tarfile.TarFile, directory: Path) -> None:
    """The files below ``libs``, by their bare names: nothing else that an archive may hold has an effect."""
    for member in archive:
        if member.isfile() and re.fullmatch(r"[^/]+/libs/[^/]+\.jar", member.name):
            content = archive.extractfile(member)
            if content is not None:
                with content, (directory / Path(member.name).name).open("wb") as jar:
                    shutil.copyfileobj(content, jar)


@contextmanager
def _beside(place: Path) -> Iterator[Path]:
    """A new directory that becomes ``place`` when the block ends well, and nothing otherwise."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as error:
        raise HostError(
            f"{place.parent} cannot be written ({reason_of(error)}); set XDG_CACHE_HOME to where there is room"
        ) from error
    try:
        yield directory
        directory.chmod(0o755)
        try:
            directory.rename(place)
        except OSError:
            if not place.is_dir():  # somebody else was faster, which is as good
                raise
    except OSError as error:
        raise HostError(
            f"{place} cannot be made ({reason_of(error)}); make room, or set XDG_CACHE_HOME elsewhere"
        ) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


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
    # By itself Maven only warns of a file that has not its checksum, and -q hides the warning.
    quietly = [maven, "-B", "-q", "--strict-checksums"]
    command = [*quietly, _GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={directory / 'libs'}"]
    try:
        done = attempt(command, limit_s=LIMIT_S, cwd=directory)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"Maven did not do its work ({reason_of(error)}): try again later, {_OTHERWISE}") from error
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
