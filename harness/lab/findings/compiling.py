"""Makes a patch directory from a cure: a unified diff against the source of a release, or of a client library.

A cure of Kafka names files of its repository: ``metadata/src/main/java/org/...``. The source of each is in the jar of
sources of its module, from Maven, or in a tree of the user's. Only the files of the diff are compiled, against the jars
of the installed release.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from checkers import Scratch, ScratchKind
from harness.ground.errors import HostError, PlanError
from harness.ground.machine.java import java_program
from harness.worlds.hosts import attempt
from harness.worlds.kafka.installation import LIMIT_S, Installation, fetch, fetch_sources
from harness.worlds.kafka.patches import LIBRDKAFKA, MADE_FOR, PACKAGE
from harness.worlds.kafka.releases import Artifact
from workloads import reason_of

#: The cures of this project's findings, by the findings' numbers.
CURES: Final = Path(__file__).parent / "cures"
#: Modules of Kafka's repository that do not give their artifact its name.
_ARTIFACTS: Final[Mapping[str, str]] = {"core": "kafka_2.13"}
_FILES: Final = re.compile(r"^\+\+\+ b/(\S+)", re.MULTILINE)
_MAIN: Final = re.compile(r"[\w-]+(?:/[\w-]+)?/src/main/(?:java|scala)/.+")
#: The last words of a program that failed.
_WORDS_MAX: Final = 300


def make_patch(cure: Path, release: Installation, out: Path, source: Path | None = None) -> Sequence[str]:
    """Compile the diff ``cure`` into the new directory ``out``; the files that it changes.

    ``source`` is a tree of the source; librdkafka needs one, Kafka only where Maven has no jar of its sources.

    Raises:
        PlanError: it is no diff, or does not fit this source; there is no such source; ``out`` exists.
        HostError: a compiler is missing, or fails.
    """
    if out.exists():
        raise PlanError(f"{out} exists already; name a new directory with --out")
    files = _FILES.findall(cure.read_text(encoding="utf-8")) if cure.is_file() else []
    if not files:
        raise PlanError(
            f"{cure} is not a unified diff that names files as b/PATH; write one with: diff -u, or git diff"
        )
    with Scratch(ScratchKind.RELEASE) as scratch:
        if all(_MAIN.fullmatch(name) for name in files):
            made_for = f"kafka {release.version}"
            _compile_kafka(cure, files, release, source, scratch.path)
        elif all(name.startswith(f"{PACKAGE}/") for name in files):
            made_for = f"kafka-python {metadata.version('kafka-python')}"
            _copy_package(cure, source, scratch.path)
        elif source is not None:
            made_for = ""
            _build_librdkafka(cure, source, scratch.path)
        else:
            raise PlanError(f"{cure} changes {files[0]}, which is no file of Kafka or kafka-python; add --source DIR")
        shutil.copytree(scratch.path / "out", out)
    if made_for:
        (out / MADE_FOR).write_text(f"{made_for}\n", encoding="utf-8")
    return files


def _compile_kafka(cure: Path, files: Sequence[str], release: Installation, source: Path | None, work: Path) -> None:
    tree, out = work / "tree", work / "out"
    out.mkdir()
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if source is None:
            (tree / name).write_bytes(_from_maven(name, release, work))
        elif (source / name).is_file():
            shutil.copyfile(source / name, tree / name)
        else:
            raise PlanError(f"{source} has no {name}; name a tree of the source of Apache Kafka {release.version}")
    _apply(cure, tree)
    jars = ":".join(map(str, release.jars))
    java = [str(tree / name) for name in files if name.endswith(".java")]
    scala = [str(tree / name) for name in files if name.endswith(".scala")]
    if java:
        compiler = shutil.which("javac")
        if compiler is None:
            raise HostError("no javac on this machine: install a JDK, of the version of its Java or older")
        _run([compiler, "-proc:none", "-nowarn", "-cp", jars, "-d", str(out), *java], work)
    if scala:
        (library,) = (jar for jar in release.jars if jar.name.startswith("scala-library-"))
        version = library.stem.removeprefix("scala-library-")
        fetch([Artifact("org.scala-lang", "scala-compiler", version)], work)
        compiler_path = ":".join(map(str, sorted((work / "libs").glob("*.jar"))))
        main = [java_program(), "-Xss8m", "-cp", compiler_path, "scala.tools.nsc.Main", "-nowarn"]
        _run([*main, "-cp", f"{out}:{jars}", "-d", str(out), *scala], work)


def _from_maven(name: str, release: Installation, work: Path) -> bytes:
    """The text of a file of Kafka's repository, from the jar of its module's sources."""
    module, path = re.split("/src/main/(?:java|scala)/", name)
    artifact = _ARTIFACTS.get(module, f"kafka-{module.replace('/', '-')}")
    jar = work / f"{artifact}-{release.version}-sources.jar"
    if not jar.is_file():
        try:
            fetch_sources(Artifact("org.apache.kafka", artifact, str(release.version)), work)
        except PlanError as error:
            raise PlanError(
                f"Maven has no sources of {artifact} {release.version}; give a tree of them: --source DIR"
            ) from error
    with ZipFile(jar) as archive:
        if path not in archive.namelist():
            raise PlanError(
                f"the source of {artifact} {release.version} has no {path}; the cure is for another release"
            )
        return archive.read(path)


def _copy_package(cure: Path, source: Path | None, work: Path) -> None:
    """A copy of kafka-python, the installed one or that in ``source``, with the cure."""
    spec = util.find_spec(PACKAGE)
    installed = Path(spec.origin).parent if spec is not None and spec.origin else Path(PACKAGE)
    shutil.copytree(source / PACKAGE if source else installed, work / "out" / PACKAGE)
    _apply(cure, work / "out")


def _build_librdkafka(cure: Path, source: Path, work: Path) -> None:
    if not (source / "src" / "rdkafka.h").is_file():
        raise PlanError(f"{source} has no src/rdkafka.h; name a tree of the source of librdkafka")
    tree = work / "tree"
    shutil.copytree(source, tree)
    _apply(cure, tree)
    _run(["./configure", "--disable-gssapi", "--disable-curl"], tree)
    _run(["make", "-C", "src", LIBRDKAFKA], tree)
    (work / "out").mkdir()
    shutil.copyfile(tree / "src" / LIBRDKAFKA, work / "out" / LIBRDKAFKA)


def _apply(cure: Path, tree: Path) -> None:
    program = shutil.which("patch")
    if program is None:
        raise HostError("no program patch on this machine: install the package patch")
    done = attempt([program, "-p1", "--batch", "--no-backup-if-mismatch", "-i", str(cure.absolute())], cwd=tree)
    if done.returncode:
        raise PlanError(f"{cure} does not fit this source ({_last_words(done.stdout)}); it is for another release")


def _run(command: Sequence[str], directory: Path) -> None:
    try:
        done = attempt(command, limit_s=LIMIT_S, cwd=directory)
    except (OSError, subprocess.TimeoutExpired) as error:
        name = Path(command[0]).name
        raise HostError(
            f"{name} did not work ({reason_of(error)}); install it, or try again on a quiet machine"
        ) from error
    if done.returncode:
        raise HostError(f"{Path(command[0]).name} failed: {_last_words(done.stdout + done.stderr)}; correct the cure")


def _last_words(output: str) -> str:
    return " ".join(output.split())[-_WORDS_MAX:]
