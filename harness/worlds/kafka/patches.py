"""A patch: a directory with what comes before a release's own classes, or before an installed client library.

::

    DIR/org/apache/kafka/metadata/KRaftMetadataCache.class   classes, by their packages
    DIR/librdkafka.so.1                                      a build of librdkafka
    DIR/confluent_kafka/__init__.py                          its binding, where that has to be of the same release
    DIR/kafka/__init__.py                                    kafka-python as a package
    DIR/made-for                                             "kafka 4.3.1": what it was made for; need not be there
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from zipfile import ZipFile

from harness.ground.errors import PlanError
from harness.ground.machine.versions import versions
from harness.plan import Kafka, RealTime
from harness.worlds.hosts import attempt
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.releases import DEFAULT_VERSION

#: The file that says what a patch was made for.
MADE_FOR: Final = "made-for"
LIBRDKAFKA: Final = "librdkafka.so.1"
#: The package of kafka-python.
PACKAGE: Final = "kafka"


class Patch(NamedTuple):
    """A directory with at least one of the three parts."""

    directory: Path

    @property
    def has_classes(self) -> bool:
        """True if classes are put before those of a release."""
        return next(self.directory.rglob("*.class"), None) is not None

    @property
    def has_package(self) -> bool:
        """True if it has kafka-python."""
        return (self.directory / PACKAGE / "__init__.py").is_file()

    @property
    def has_library(self) -> bool:
        """True if it has librdkafka."""
        return (self.directory / LIBRDKAFKA).is_file()

    @property
    def apart(self) -> bool:
        """True if a client library of Python has to be loaded before the installed one: in a process of its own."""
        return self.has_package or self.has_library

    def environment(self) -> Mapping[str, str]:
        """The environment of such a process."""
        paths = [str(self.directory), *filter(None, [os.environ.get("PYTHONPATH")])]
        before = {"LD_PRELOAD": str(self.directory / LIBRDKAFKA)} if self.has_library else {}
        return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **before}

    def library_version(self) -> str:
        """The release of its librdkafka, by its own word."""
        library = ctypes.CDLL(str(self.directory / LIBRDKAFKA))
        library.rd_kafka_version_str.restype = ctypes.c_char_p
        told: bytes = library.rd_kafka_version_str()
        return told.decode()


def read_patch(directory: Path, release: Installation) -> Patch:
    """The patch in a directory, for this release of Kafka and the installed client libraries.

    Raises:
        PlanError: it is no directory, has nothing that could come first, or was made for another release.
    """
    if not directory.is_dir():
        raise PlanError(f"{directory} is not a directory; make one with: ackproof cure 008 --out {directory}")
    patch = Patch(directory.absolute())
    if not (patch.has_classes or patch.apart):
        raise PlanError(
            f"{directory} has no classes, no {LIBRDKAFKA} and no package {PACKAGE}; name the directory that the "
            "compiler wrote to, or make one: see `ackproof cure --help`"
        )
    made_for = directory / MADE_FOR
    if made_for.is_file():
        product, _, version = made_for.read_text(encoding="utf-8").strip().partition(" ")
        here = str(release.version) if product == "kafka" else versions().get(product, "")
        if version != here:
            raise PlanError(f"{directory} was made for {product} {version}, and this is {here}; make it again for that")
    if patch.has_classes and not _replaces(patch.directory, release):
        raise PlanError(
            f"no class in {directory} is one of Apache Kafka {release.version}, so nothing would change; name the "
            "directory that holds org or kafka"
        )
    if patch.has_library:
        _require_binding(patch)
    return patch


def _require_binding(patch: Patch) -> None:
    """Refuse a librdkafka that is older than its Python binding asks for, which no producer would say in time."""
    command = (sys.executable, "-c", "import confluent_kafka; confluent_kafka.Producer({})")
    done = attempt(command, env=patch.environment())
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise PlanError(
            f"{patch.directory / LIBRDKAFKA} does not work with confluent-kafka ({' '.join(last)}); add the binding of "
            f"its release: pip install --no-deps --target {patch.directory} confluent-kafka==RELEASE"
        )


def _replaces(directory: Path, release: Installation) -> bool:
    """True if the release has a class of the same name."""
    names = {path.relative_to(directory).as_posix() for path in directory.rglob("*.class")}
    for jar in release.jars:
        with ZipFile(jar) as archive:
            if not names.isdisjoint(archive.namelist()):
                return True
    return False


def patched(installation: Installation, world: RealTime) -> Installation:
    """The release with the patch of ``world`` before it, if it is the one that the patch is for."""
    if isinstance(world, Kafka) and world.patch and str(installation.version) == (world.version or DEFAULT_VERSION):
        return installation._replace(patch=Path(world.patch))
    return installation
