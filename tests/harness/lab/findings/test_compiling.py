"""Cures are small diffs; a cure that fits is compiled into a new directory, and anything else is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.ground.errors import AckproofError, HostError, PlanError
from harness.lab.findings import CURES, FINDINGS, compiling, make_patch
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.releases import parse_version

PATH = "metadata/src/main/java/demo/Answer.java"
DIFF = """--- a/{path}
+++ b/{path}
@@ -1 +1 @@
-old
+new
"""
#: A compiler that copies its source.
JAVAC = """#!/bin/sh
while [ "$1" != -d ]; do shift; done
mkdir -p "$2/demo"
cp "$3" "$2/demo/Answer.class"
"""


@pytest.mark.parametrize("cure", sorted(CURES.glob("*.patch")), ids=lambda path: path.stem)
def test_a_cure_is_for_a_finding_and_changes_at_most_twenty_lines(cure: Path) -> None:
    assert cure.stem in FINDINGS
    changed = re.findall(r"^[+-](?![+-]{2} )", cure.read_text(encoding="utf-8"), re.MULTILINE)
    assert 0 < len(changed) <= 20


def test_six_findings_have_cures() -> None:
    assert {path.stem for path in CURES.glob("*.patch")} == {"002", "007", "008", "010", "014", "015"}


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A release without jars, and a compiler in place of Java's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "javac").write_text(JAVAC)
    (programs / "javac").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return Installation(parse_version("4.3.1"), tmp_path / "release")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A tree of a source."""
    tree = tmp_path / "source"
    (tree / PATH).parent.mkdir(parents=True)
    (tree / PATH).write_text("old\n")
    return tree


def _diff(tmp_path: Path, text: str = DIFF.format(path=PATH)) -> Path:
    path = tmp_path / "cure.patch"
    path.write_text(text)
    return path


def test_the_files_of_a_cure_are_compiled_with_it(release: Installation, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert make_patch(_diff(tmp_path), release, out, source) == [PATH]
    assert (out / "demo" / "Answer.class").read_text() == "new\n"
    assert (out / "made-for").read_text() == "kafka 4.3.1\n"
    assert (source / PATH).read_text() == "old\n"


def test_sources_come_from_the_jar_of_their_module(
    release: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def fetch_sources(wanted: compiling.Artifact, directory: Path) -> None:
        asked.append(wanted.name)
        with compiling.ZipFile(directory / f"{wanted.name}-4.3.1-sources.jar", "w") as jar:
            jar.writestr("demo/Answer.java", "old\n")

    monkeypatch.setattr(compiling, "fetch_sources", fetch_sources)
    make_patch(_diff(tmp_path), release, tmp_path / "out")
    assert asked == ["kafka-metadata"]
    other = _diff(tmp_path, DIFF.format(path="core/src/main/scala/demo/Other.scala"))
    with pytest.raises(
        PlanError, match=r"kafka_2\.13 4\.3\.1 has no demo/Other\.scala; the cure is for another release"
    ):
        make_patch(other, release, tmp_path / "other")


def test_kafka_python_is_copied_with_the_cure(release: Installation, tmp_path: Path) -> None:
    package = tmp_path / "source" / "kafka"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("old\n")
    (package / "other.py").touch()
    out = tmp_path / "out"
    make_patch(_diff(tmp_path, DIFF.format(path="kafka/__init__.py")), release, out, tmp_path / "source")
    assert (out / "kafka" / "__init__.py").read_text() == "new\n"
    assert (out / "kafka" / "other.py").is_file()
    assert (out / "made-for").read_text().startswith("kafka-python ")


@pytest.mark.parametrize(
    ("text", "given", "error", "words"),
    [
        ("no diff", True, PlanError, "is not a unified diff that names files as b/PATH"),
        (
            DIFF.format(path="src/rdkafka.c"),
            False,
            PlanError,
            "src/rdkafka.c, which is no file of Kafka or kafka-python",
        ),
        (DIFF.format(path="src/rdkafka.c"), True, PlanError, "has no src/rdkafka.h"),
        (DIFF.format(path="metadata/src/main/java/B.java"), True, PlanError, "has no metadata/src/main/java/B.java"),
        (DIFF.format(path=PATH).replace("old", "older"), True, PlanError, "does not fit this source .*another release"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_a_sentence_and_makes_nothing(
    *,
    text: str,
    given: bool,
    error: type[AckproofError],
    words: str,
    release: Installation,
    source: Path,
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=words):
        make_patch(_diff(tmp_path, text), release, tmp_path / "out", source if given else None)
    assert not (tmp_path / "out").exists()


def test_a_directory_that_exists_is_left_alone(release: Installation, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="exists already; name a new directory"):
        make_patch(_diff(tmp_path), release, tmp_path)


def test_a_compiler_that_fails_says_its_last_words(release: Installation, source: Path, tmp_path: Path) -> None:
    (tmp_path / "bin" / "javac").write_text("#!/bin/sh\necho 'cannot find symbol' >&2\nexit 1")
    with pytest.raises(HostError, match="javac failed: cannot find symbol; correct the cure"):
        make_patch(_diff(tmp_path), release, tmp_path / "out", source)


def test_the_command_names_the_findings_that_have_a_cure(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["cure", "011", "--out", "nowhere"]) == 64
    assert "finding 011 has no cure here; those of 002, 007, 008, 010, 014, 015 have" in capsys.readouterr().err
