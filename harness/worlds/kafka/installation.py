"""Releases of Apache Kafka on this machine, side by side in the user's cache directory.

::

    ~/.cache/ackproof/kafka/4.3.1/libs/*.jar           from Maven, or from a downloaded release
    ~/.cache/ackproof/kafka/4.3.1/made/...             made from it once, by the modules formatting and class_archive

A release is fetched into a directory beside its own and renamed, so that it exists as a whole or not at all. Then it
is started once, if it starts without ZooKeeper: where it stays, because classes are archived by their path. Until then
a mark says that it is not installed, and ``ackproof kafka install`` goes on from there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from checkers import Scratch, ScratchKind
from harness.ground.errors import HostError, NotReachableError, PlanError
from harness.ground.machine.versions import user_cache
from harness.worlds.hosts import attempt
from harness.worlds.kafka.releases import VERSION, Artifact, Version, artifacts, parse_version
from workloads import reason_of

#: A hundred megabytes; slow lines get a quarter of an hour.
LIMIT_S: Final = 900.0
#: Named with its version, so that the same thing happens on every machine.
MAVEN_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_OTHERWISE: Final = "or give a downloaded release: ackproof kafka install --from kafka_2.13-VERSION.tgz"
_WORDS_MAX: Final = 160
#: The file in a release's directory that says that it has not started yet.
_UNPROVEN: Final = "not-started-yet"
#: Old releases depend on log4j 1 and its binding. Reload4j, an artifact of its own, replaces both; and the oldest
#: log4j depends on artifacts that no repository has any more.
_EXCLUSIONS: Final = "<exclusions>{}</exclusions>".format(
    "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>"
        for group, name in (("log4j", "log4j"), ("org.slf4j", "slf4j-log4j12"))
    )
)
#: Maven's words for a repository that did not answer: those of Java and of its transports.
_SILENCE: Final = re.compile(
    r"unknown ?host|name resolution|connection (?:refused|timed out|reset)|connect timed out|no route to host"
    r"|network is unreachable|tunnel through proxy|in offline mode",
    re.IGNORECASE,
)


class Installation(NamedTuple):
    """An installed release. ``home`` holds ``libs``; classes in the directory ``patch`` come before its own."""

    version: Version
    home: Path
    patch: Path | None = None

    @property
    def jars(self) -> list[Path]:
        """Its own class path, in an order that never changes (class-data archives depend on it)."""
        return sorted((self.home / "libs").glob("*.jar"))

    @property
    def class_path(self) -> list[Path]:
        """The patch, if there is one, then the jars."""
        return [*([self.patch] if self.patch else []), *self.jars]

    @property
    def made(self) -> Path:
        """The directory of the files that are made from the jars; may not exist yet."""
        return self.home / "made"

    def require_startable(self) -> None:
        """Refuse a release without the artifacts that today's Java makes necessary, as old downloads are.

        Raises:
            HostError: one is missing; the text says how to get it.
        """
        names = [jar.name for jar in self.jars]
        for needed in artifacts(self.version):
            if needed.supplies and f"{needed.name}-{needed.version}.jar" not in names:
                raise HostError(
                    f"Apache Kafka {self.version} in {self.home} does not start on today's Java, which "
                    f"{needed.supplies}; remove that directory, and get the release with Maven: ackproof kafka install "
                    f"{self.version}"
                )


def cache_directory() -> Path:
    """The directory of all releases, in the user's cache."""
    return user_cache() / "kafka"


def installed() -> list[Installation]:
    """Every installed release, oldest first."""
    homes = {jar.parent.parent for jar in cache_directory().glob("*/libs/kafka_*.jar")}
    proven = [home for home in homes if VERSION.fullmatch(home.name) and not (home / _UNPROVEN).exists()]
    return sorted(Installation(parse_version(home.name), home) for home in proven)


def find(version: str) -> Installation:
    """The release of this version.

    Raises:
        HostError: it is not installed; the text says how to get it.
        PlanError: ``version`` is not a version.
    """
    wanted = parse_version(version)
    releases = installed()
    for installation in releases:
        if installation.version == wanted:
            return installation
    others = f", which has {', '.join(str(release.version) for release in releases)}" if releases else ""
    raise HostError(
        f"Apache Kafka {version} is not in {cache_directory()}{others}; get it with: ackproof kafka install {version}"
    )


def install(version: str, start: Callable[[Installation], None]) -> Installation:
    """Fetch a release with Maven, and ``start`` it once; only the second if it was fetched before.

    Raises:
        PlanError: this release does not exist.
        NotReachableError: this machine cannot reach it.
        HostError: it could not be fetched for another reason, or did not start: then it is not installed.
    """
    wanted = parse_version(version)
    home = cache_directory() / str(wanted)
    if not home.is_dir():
        with _beside(home) as directory:
            fetch(artifacts(wanted), directory)
    return _started(Installation(wanted, home), start)


def install_from(source: Path, start: Callable[[Installation], None]) -> Installation:
    """Install a downloaded release, its ``.tgz`` or the directory it was unpacked to, and ``start`` it once.

    Raises:
        PlanError: it is not a release of Apache Kafka.
        HostError: it cannot be read or copied, or did not start: then it is not installed.
    """
    with _unpacked(source) as libs:
        version = _version_in(libs, source)
        home = cache_directory() / str(version)
        if not home.is_dir():
            with _beside(home) as directory:
                shutil.copytree(libs, directory / "libs", ignore=shutil.ignore_patterns("*.asc"))
    return _started(Installation(version, home), start)


def _started(release: Installation, start: Callable[[Installation], None]) -> Installation:
    start(release)
    (release.home / _UNPROVEN).unlink(missing_ok=True)
    return release


def _version_in(libs: Path, source: Path) -> Version:
    names = [re.fullmatch(rf"kafka_[\d.]+-({VERSION.pattern})\.jar", path.name) for path in libs.glob("kafka_*.jar")]
    versions = {name[1] for name in names if name}
    if len(versions) != 1:
        raise PlanError(
            f"{source} is not a release of Apache Kafka: it has no libs/kafka_SCALA-VERSION.jar; name another"
        )
    return parse_version(versions.pop())


@contextmanager
def _unpacked(source: Path) -> Iterator[Path]:
    """The directory of a release's jars."""
    if source.is_dir():
        yield source / "libs"
        return
    with Scratch(ScratchKind.RELEASE) as scratch:
        try:
            with tarfile.open(source) as archive:
                _take_jars(archive, scratch.path)
        except OSError as error:
            raise PlanError(
                f"{source} cannot be read as a release of Apache Kafka ({reason_of(error)}); name a downloaded .tgz"
            ) from error
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise PlanError(
                f"{source} is not a release of Apache Kafka: it is not a whole archive; download it again"
            ) from error
        yield scratch.path


def _take_jars(archive: tarfile.TarFile, directory: Path) -> None:
    """The files below ``libs``, by their bare names: nothing else that an archive may hold has an effect."""
    for member in archive:
        if member.isfile() and re.fullmatch(r"[^/]+/libs/[^/]+\.jar", member.name):
            content = archive.extractfile(member)
            if content is not None:
                with content, (directory / Path(member.name).name).open("wb") as jar:
                    shutil.copyfileobj(content, jar)


@contextmanager
def _beside(home: Path) -> Iterator[Path]:
    """A new directory that becomes ``home`` when the block ends well, unproven, and is removed otherwise."""
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.parent))
    except OSError as error:
        raise HostError(
            f"{home.parent} cannot be written ({reason_of(error)}); set XDG_CACHE_HOME to a directory with room"
        ) from error
    try:
        yield directory
        (directory / _UNPROVEN).touch()
        directory.chmod(0o755)
        try:
            directory.rename(home)
        except OSError:
            if not home.is_dir():  # another process was faster, which is as good
                raise
    except OSError as error:
        raise HostError(
            f"{home} cannot be made ({reason_of(error)}); make room, or set XDG_CACHE_HOME to another directory"
        ) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def fetch(wanted: Sequence[Artifact], directory: Path) -> None:
    """Copy ``wanted`` and all that they need at run time into ``directory``, which must exist; jars go to ``libs``.

    Raises:
        PlanError: this release does not exist.
        NotReachableError: Maven is missing, or its repository did not answer.
        HostError: Maven failed for another reason.
    """
    (directory / "pom.xml").write_text(project(wanted), encoding="utf-8")
    _maven(wanted[0], directory, f"{MAVEN_PLUGIN}:copy-dependencies", "-DincludeScope=runtime", directory / "libs")


def fetch_sources(wanted: Artifact, directory: Path) -> None:
    """Copy the jar of an artifact's sources into ``directory``; raises as :func:`fetch`."""
    name = f"{wanted.group}:{wanted.name}:{wanted.version}:jar:sources"
    _maven(wanted, directory, f"{MAVEN_PLUGIN}:copy", f"-Dartifact={name}", directory)


def _maven(wanted: Artifact, directory: Path, goal: str, option: str, out: Path) -> None:
    # By itself Maven only warns of a wrong checksum, and -q hides the warning.
    words = ["--strict-checksums", goal, option, f"-DoutputDirectory={out}"]
    done = run_maven(words, directory, LIMIT_S, f", {_OTHERWISE}")
    if done.returncode:
        raise _trouble(wanted, done.stdout + done.stderr)


def run_maven(
    words: Sequence[str], directory: Path, limit_s: float, otherwise: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run Maven in ``directory``; it may fail. What is advised to those who cannot use it, ``otherwise`` says.

    Raises:
        NotReachableError: Maven is missing.
        HostError: it did not end within the limit.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise NotReachableError(f"no Maven on this machine: install the package maven{otherwise}")
    try:
        return attempt([maven, "-B", "-q", *words], limit_s=limit_s, cwd=directory)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"Maven did not end ({reason_of(error)}): try again later{otherwise}") from error


def project(wanted: Sequence[Artifact]) -> str:
    """The text of a ``pom.xml`` that depends on ``wanted``."""
    dependencies = "\n".join(
        f"    <dependency><groupId>{escape(artifact.group)}</groupId><artifactId>{escape(artifact.name)}</artifactId>"
        f"<version>{escape(artifact.version)}</version>{_EXCLUSIONS}</dependency>"
        for artifact in wanted
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
    """The error of a failed Maven, which says "was not found" only where a repository answered."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    name = f"{main.group}:{main.name}:"
    missing = re.search(r"(?:Could not find artifact|was not found in)", plain)
    if missing and name in plain:
        return PlanError(f"Maven's repository has no Apache Kafka {main.version}; choose another version")
    kind = NotReachableError if _SILENCE.search(plain) else HostError
    return kind(f"Maven could not fetch Apache Kafka ({_cause(plain)}): check its network or mirror, {_OTHERWISE}")


def _cause(output: str) -> str:
    """The end of Maven's first complaint, which names the cause after its consequences, each after a colon."""
    errors = (line.removeprefix("[ERROR]").strip() for line in output.splitlines() if line.startswith("[ERROR]"))
    complaint = next(filter(None, errors), "it gave no reason").partition(" -> [Help")[0]
    first, *causes = complaint.split(": ")
    kept: list[str] = []
    for cause in reversed(causes):
        if len(": ".join([cause, *kept])) > _WORDS_MAX:
            break
        kept.insert(0, cause)
    return ": ".join(kept) if kept else first[:_WORDS_MAX]
