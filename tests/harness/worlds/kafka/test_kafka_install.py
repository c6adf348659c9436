"""Releases in the user's cache: whole or not at all, and a clear sentence if they cannot be had. Maven is a script."""

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.ground.errors import EXIT_HARNESS, EXIT_NOT_REACHABLE, HostError, NotReachableError, PlanError
from harness.plan import Kafka
from harness.worlds.kafka import release_for
from harness.worlds.kafka.class_archive import lacks_archive
from harness.worlds.kafka.installation import Installation, find, install, install_from, installed
from harness.worlds.kafka.jvm import archive_path
from tests.harness.worlds.kafka.stand_in_tool import stand_in_tool
from workloads.settings import Settings

FETCHES = """#!/bin/sh
for word in "$@"; do case "$word" in -DoutputDirectory=*) out="${word#*=}";; esac; done
mkdir -p "$out" && touch "$out/kafka_2.13-4.1.1.jar" "$out/zstd.jar"
"""
KNOWS_NO_SUCH_RELEASE = """#!/bin/sh
echo "[ERROR] Failed to execute goal: Could not find artifact org.apache.kafka:kafka_2.13:jar:4.1.1 in central"
exit 1
"""
IS_OFFLINE = """#!/bin/sh
mkdir -p libs && touch libs/kafka_2.13-4.1.1.jar
echo "[ERROR] Could not transfer artifact from central: connection refused"
exit 1
"""
IS_REFUSED = """#!/bin/sh
echo "[ERROR] Could not transfer artifact from central: status code: 500, reason phrase: Server Error (500)"
exit 1
"""
#: As Maven says it, shortened.
HAS_NO_NETWORK = """#!/bin/sh
printf '\\033[0m[ERROR] Failed: Failed to read a:b:jar:1: Could not transfer artifact a:b:pom:1 '
echo 'from/to central (https://repo/): transfer failed for https://repo/a.pom: Unknown host repo: No name -> [Help 1]'
echo '[ERROR] To see the full stack trace, re-run Maven with the -e switch.'
exit 1
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ackproof" / "kafka"


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a script in the place of Maven."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def becomes(script: str) -> None:
        (programs / "mvn").write_text(script)
        (programs / "mvn").chmod(0o755)

    return becomes


def starts(_: Installation) -> None:
    """A release that starts where it is installed."""


def release(directory: Path, version: str = "4.1.1") -> Path:
    libs = directory / f"kafka_2.13-{version}" / "libs"
    libs.mkdir(parents=True)
    for name in (f"kafka_2.13-{version}.jar", f"kafka_2.13-{version}.jar.asc", "zstd.jar"):
        (libs / name).touch()
    return libs.parent


def test_a_fetched_release_is_found_and_listed(maven, cache: Path) -> None:
    maven(FETCHES)
    home = install("4.1.1", starts).home
    assert home == cache / "4.1.1"
    assert [jar.name for jar in find("4.1.1").jars] == ["kafka_2.13-4.1.1.jar", "zstd.jar"]
    assert [str(installation.version) for installation in installed()] == ["4.1.1"]


def test_maven_is_asked_to_refuse_files_with_other_checksums(maven, cache: Path) -> None:
    shebang, _, rest = FETCHES.partition("\n")
    maven(f'{shebang}\ncase " $* " in *" --strict-checksums "*) ;; *) exit 1 ;; esac\n{rest}')
    assert install("4.1.1", starts).home == cache / "4.1.1"


def test_a_release_that_is_there_is_not_fetched_again(maven) -> None:
    maven(FETCHES)
    install("4.1.1", starts)
    maven(IS_OFFLINE)
    assert str(install("4.1.1", starts).version) == "4.1.1"


def test_the_command_says_that_a_release_is_there_and_that_nothing_is_fetched(
    maven, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.cli.kafka.lacks_archive", lambda installation: False)
    monkeypatch.setattr("harness.cli.kafka.make_archive", lambda installation: None)
    maven(FETCHES)
    sentence = "Apache Kafka 4.1.1 is installed already; nothing is fetched"
    assert exit_code_of(["kafka", "install", "4.1.1"]) == 0
    assert capsys.readouterr().err.splitlines() == ["getting Apache Kafka 4.1.1"]
    maven(IS_OFFLINE)
    assert exit_code_of(["kafka", "install", "4.1.1"]) == 0
    assert capsys.readouterr().err.splitlines() == [sentence]
    assert exit_code_of(["kafka", "install", "--from", str(release(tmp_path))]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == sentence


def does_not_start(_: Installation) -> None:
    raise HostError("it does not start here")


def test_a_release_that_did_not_start_is_not_installed_until_it_does(maven, tmp_path: Path) -> None:
    maven(FETCHES)
    with pytest.raises(HostError, match="it does not start here"):
        install("4.1.1", does_not_start)
    with pytest.raises(HostError, match="it does not start here"):
        install_from(release(tmp_path, "3.9.1"), does_not_start)
    assert installed() == []
    with pytest.raises(HostError, match=r"get it with: ackproof kafka install 4\.1\.1"):
        find("4.1.1")
    maven(IS_OFFLINE)
    home = install("4.1.1", starts).home  # what was fetched is still there
    assert [installation.home for installation in installed()] == [home]


@pytest.mark.system
def test_a_release_whose_installer_was_killed_is_not_installed(maven, cache: Path) -> None:
    maven(FETCHES)
    dies = "install('4.1.1', lambda release: os.kill(os.getpid(), signal.SIGKILL))"
    program = f"import os, signal; from harness.worlds.kafka.installation import install; {dies}"
    done = subprocess.run([sys.executable, "-c", program], check=False, cwd=Path(__file__).parents[4])
    assert done.returncode == -signal.SIGKILL
    assert (cache / "4.1.1" / "libs" / "kafka_2.13-4.1.1.jar").is_file()
    assert installed() == []


def test_a_release_with_an_unknown_form_is_told_from_a_lack_of_room_and_is_not_listed(
    maven, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    maven(FETCHES)
    java = stand_in_tool(tmp_path / "java", monkeypatch)
    told = {}
    for form in ("news.checkpoint", "no room"):
        java(form)
        assert exit_code_of(["kafka", "install", "4.1.1"]) == EXIT_HARNESS
        told[form] = capsys.readouterr().err.splitlines()[-1]
        assert exit_code_of(["kafka", "list", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == []
    assert "wrote meta.properties, news.checkpoint, where" in told["news.checkpoint"]
    assert told["news.checkpoint"].endswith("choose an older release, or install a newer ackproof")
    assert "room" not in told["news.checkpoint"]
    assert re.search("No space left on device; check that there is room, and that Java works", told["no room"])


def test_only_a_release_without_an_archive_is_started_for_one(maven) -> None:
    maven(FETCHES)
    installation = install("4.1.1", starts)
    assert lacks_archive(installation)
    installation.made.mkdir()
    archive_path(installation).touch()
    assert not lacks_archive(installation)


@pytest.mark.parametrize(
    ("script", "error", "says"),
    [
        (KNOWS_NO_SUCH_RELEASE, PlanError, "has no Apache Kafka 4.1.1; choose another"),
        (IS_REFUSED, HostError, "Server Error.*--from"),
        (IS_OFFLINE, NotReachableError, "connection refused.*--from"),
        (
            HAS_NO_NETWORK,
            NotReachableError,
            r": Unknown host repo: No name\): check its network or mirror, or .*--from",
        ),
    ],
)
def test_a_failed_fetch_says_why_and_leaves_nothing(maven, cache: Path, script, error, says) -> None:
    maven(script)
    with pytest.raises(error, match=says) as raised:
        install("4.1.1", starts)
    assert raised.type is error
    assert list(cache.iterdir()) == []
    assert installed() == []


@pytest.mark.parametrize(
    ("script", "code"), [(HAS_NO_NETWORK, EXIT_NOT_REACHABLE), (IS_REFUSED, EXIT_HARNESS), ("exit 1", EXIT_HARNESS)]
)
def test_the_exit_code_tells_a_silent_repository_from_every_other_failure(maven, script: str, code: int) -> None:
    maven(script)
    assert exit_code_of(["kafka", "install", "4.1.1"]) == code


def test_without_maven_the_sentence_names_the_package_and_the_way_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotReachableError, match=r"install the package maven, or .*--from"):
        install("4.1.1", starts)


@pytest.mark.parametrize(
    "version", ["4", "4.1", "newest", "4.1.1-rc1", "../4.1.1", "", "4.1.1.0", "0.11.0", "04.1.1", "0.8.0.0"]
)
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(PlanError, match="write three numbers"):
        install(version, starts)


@pytest.mark.parametrize("version", ["0.8.0", "0.8.1.1", "0.10.2.2", "2.4.1", "3.2.3"])
def test_releases_of_every_age_are_installed_and_found(tmp_path: Path, version: str) -> None:
    install_from(release(tmp_path, version), starts)
    assert str(find(version).version) == version


@pytest.mark.parametrize(
    ("version", "says"),
    [("0.11.0.3", r"lacks javax\.xml\.bind; .*kafka install 0\.11\.0\.3"), ("2.0.1", "ZOOKEEPER-3779.*kafka install")],
)
def test_a_downloaded_release_that_todays_java_cannot_start_is_refused(tmp_path: Path, version: str, says: str) -> None:
    installation = install_from(release(tmp_path, version), starts)
    with pytest.raises(HostError, match=says):
        installation.require_startable()
    for mended in ("jaxb-api-2.3.1.jar", "zookeeper-3.4.12.jar"):
        (installation.home / "libs" / mended).touch()
    installation.require_startable()


def test_the_list_says_in_which_modes_a_release_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version in ("0.8.2.2", "2.8.2", "3.9.1", "4.1.1"):
        install_from(release(tmp_path, version), starts)
    assert exit_code_of(["kafka", "list"]) == 0
    shown = [line.split("  ", 2)[2] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["too old to be started", "zookeeper", "kraft or zookeeper", "kraft"]


def test_an_unpacked_release_is_taken_over_without_signatures(tmp_path: Path) -> None:
    home = install_from(release(tmp_path), starts).home
    assert sorted(path.name for path in (home / "libs").iterdir()) == ["kafka_2.13-4.1.1.jar", "zstd.jar"]


def test_a_tarball_is_taken_over(tmp_path: Path) -> None:
    directory = release(tmp_path, "3.9.1")
    with tarfile.open(tmp_path / "kafka.tgz", "w:gz") as archive:
        archive.add(directory, directory.name)
    assert str(install_from(tmp_path / "kafka.tgz", starts).version) == "3.9.1"
    assert [str(installation.version) for installation in installed()] == ["3.9.1"]


def test_something_else_is_no_release(tmp_path: Path) -> None:
    (tmp_path / "notes.tgz").write_text("not an archive")
    for source in (tmp_path, tmp_path / "notes.tgz"):
        with pytest.raises(PlanError, match="release of Apache Kafka"):
            install_from(source, starts)


def test_half_a_tarball_is_no_release(tmp_path: Path) -> None:
    directory, archive = release(tmp_path, "3.9.1"), tmp_path / "kafka.tgz"
    (directory / "libs" / "big.jar").write_bytes(os.urandom(200_000))
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(directory, directory.name)
    archive.write_bytes(archive.read_bytes()[:90_000])
    with pytest.raises(PlanError, match="is not a release of Apache Kafka: it is not a whole archive"):
        install_from(archive, starts)
    assert installed() == []


def test_several_releases_stand_side_by_side_and_a_missing_one_names_them(tmp_path: Path) -> None:
    for version in ("4.10.0", "4.9.1", "3.9.1"):
        install_from(release(tmp_path, version), starts)
    assert [str(installation.version) for installation in installed()] == ["3.9.1", "4.9.1", "4.10.0"]
    with pytest.raises(HostError, match=r"which has 3\.9\.1, 4\.9\.1, 4\.10\.0.*ackproof kafka install 4\.1\.1"):
        find("4.1.1")


def test_what_a_release_cannot_do_is_said_before_it_is_asked_for(cache: Path) -> None:
    with pytest.raises(PlanError, match=r"strict\.min\.isr=true is not how Apache Kafka 3\.5\.2 works"):
        release_for(Kafka(version="3.5.2"), Settings())
    with pytest.raises(HostError, match=rf"Apache Kafka 4\.1\.1 is not in {cache}"):
        release_for(Kafka(version="4.1.1"), Settings())
