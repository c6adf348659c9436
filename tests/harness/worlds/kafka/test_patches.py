"""A patch comes before the release that it was made for, in brokers and the Java client; anything else is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from harness.ground.errors import PlanError
from harness.plan import Kafka, Processes
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import LogFiles, archive_command, archive_path, client_command, node_command
from harness.worlds.kafka.patches import Patch, patched, read_patch
from harness.worlds.kafka.releases import DEFAULT_VERSION, parse_version
from nemesis.cluster import CONTROLLER

CLASS = "org/apache/kafka/metadata/KRaftMetadataCache.class"


@pytest.fixture
def release(tmp_path: Path) -> Installation:
    """A release with two jars, and an archive of class data."""
    libs = tmp_path / "release" / "libs"
    libs.mkdir(parents=True)
    for name in ("kafka-metadata.jar", "a.jar"):
        with ZipFile(libs / name, "w") as jar:
            jar.writestr(CLASS if name.startswith("kafka") else "a/A.class", b"")
    installation = Installation(parse_version("4.3.1"), tmp_path / "release")
    installation.made.mkdir()
    archive_path(installation).touch()
    return installation


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    """A directory with a class of that release."""
    directory = tmp_path / "patch"
    (directory / CLASS).parent.mkdir(parents=True)
    (directory / CLASS).touch()
    return directory


def _class_path(command: tuple[str, ...]) -> list[str]:
    return command[command.index("-cp") + 1].split(":")


@pytest.mark.parametrize("node", [0, CONTROLLER])
def test_classes_of_a_patch_come_first_in_nodes_and_clients(
    node: int, release: Installation, patch: Path, tmp_path: Path
) -> None:
    first = release._replace(patch=patch)
    files = LogFiles(tmp_path / "log", tmp_path / "gc")
    jars = [str(release.home / "libs" / name) for name in ("a.jar", "kafka-metadata.jar")]
    more = tmp_path / "janino.jar"
    node_words = node_command(first, node, tmp_path / "properties", files)
    client_words = client_command(first, [more], files, ["Main"])
    assert _class_path(node_words) == [str(patch), *jars]
    assert _class_path(client_words) == [str(patch), *jars, str(more)]
    assert _class_path(node_command(release, node, tmp_path / "properties", files)) == jars


def test_the_archive_of_class_data_is_that_of_the_release_alone(
    release: Installation, patch: Path, tmp_path: Path
) -> None:
    files = LogFiles(tmp_path / "log", tmp_path / "gc")
    first = release._replace(patch=patch)
    assert str(patch) not in _class_path(archive_command(first, tmp_path / "properties", files, tmp_path / "archive"))
    option = f"-XX:SharedArchiveFile={archive_path(release)}"
    assert option in node_command(release, 0, tmp_path / "properties", files)
    assert option not in node_command(first, 0, tmp_path / "properties", files)


@pytest.mark.parametrize(
    ("world", "is_patched"),
    [
        (Kafka(version="4.3.1", patch="DIR"), True),
        (Kafka(version="4.3.1"), False),
        (Kafka(version="4.2.1", patch="DIR"), False),
        (Processes(), False),
    ],
)
def test_a_patch_is_for_the_release_of_the_brokers_alone(
    world: Kafka | Processes, *, is_patched: bool, release: Installation
) -> None:
    assert patched(release, world) == (release._replace(patch=Path("DIR")) if is_patched else release)


def test_a_world_that_names_no_release_has_the_patch_before_the_default_one(tmp_path: Path) -> None:
    installation = Installation(parse_version(DEFAULT_VERSION), tmp_path)
    assert patched(installation, Kafka(patch="DIR")).patch == Path("DIR")


def test_a_directory_with_a_class_of_the_release_is_a_patch(release: Installation, patch: Path) -> None:
    read = read_patch(patch, release)
    assert (read.has_classes, read.apart) == (True, False)
    (patch / "made-for").write_text("kafka 4.3.1\n")
    assert read_patch(patch, release) == read


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("none", "is not a directory; make one with: ackproof cure 008 --out "),
        ("empty", "has no classes, no librdkafka.so.1 and no package kafka; name the directory"),
        ("other release", "was made for kafka 4.2.1, and this is 4.3.1; make it again"),
        ("other package", "was made for kafka-python 1.0.0, and this is "),
        ("foreign", "no class in .* is one of Apache Kafka 4.3.1, so nothing would change; name the directory"),
        ("too deep", "no class in .* is one of Apache Kafka 4.3.1"),
    ],
)
def test_what_is_no_patch_of_the_release_is_refused_with_a_sentence(
    made: str, words: str, release: Installation, patch: Path
) -> None:
    directory = patch
    match made:
        case "none":
            directory = patch / CLASS
        case "empty":
            (patch / CLASS).unlink()
        case "other release":
            (patch / "made-for").write_text("kafka 4.2.1\n")
        case "other package":
            (patch / "made-for").write_text("kafka-python 1.0.0\n")
        case "foreign":
            (patch / CLASS).rename(patch / "Other.class")
        case _:
            directory = patch.parent
    with pytest.raises(PlanError, match=words):
        read_patch(directory, release)


def test_a_package_of_a_patch_is_imported_instead_of_the_installed_one(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "__init__.py").write_text("print('patched')")
    patch = Patch(tmp_path)
    assert patch.apart
    command = (sys.executable, "-c", "import kafka")
    done = subprocess.run(command, env=patch.environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "patched\n"


def test_a_library_of_a_patch_is_preloaded(tmp_path: Path) -> None:
    assert "LD_PRELOAD" not in Patch(tmp_path).environment()
    (tmp_path / "librdkafka.so.1").touch()
    patch = Patch(tmp_path)
    assert patch.apart
    assert patch.environment()["LD_PRELOAD"] == str(tmp_path / "librdkafka.so.1")


def test_a_library_with_which_the_binding_does_not_work_is_refused(release: Installation, tmp_path: Path) -> None:
    patch = tmp_path / "library"
    (patch / "confluent_kafka").mkdir(parents=True)
    (patch / "confluent_kafka" / "__init__.py").write_text("raise RuntimeError('requires librdkafka v2.16.0')")
    (patch / "librdkafka.so.1").touch()
    with pytest.raises(PlanError, match=r"confluent-kafka \(RuntimeError: requires .*==RELEASE"):
        read_patch(patch, release)
    (patch / "confluent_kafka" / "__init__.py").write_text("Producer = dict")
    assert read_patch(patch, release).has_library
