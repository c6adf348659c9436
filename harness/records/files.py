"""The files of campaigns and runs: their names, how they are written, and errors of the disk in the user's words."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

import checkers
from harness.ground.errors import NamedWronglyError, ResultsError
from workloads import SettingsError

Content = TypeVar("Content")

# Of a run.
RUN_FILE: Final = checkers.RUN_FILE
HISTORY: Final = checkers.HISTORY
CLUSTER_FILE: Final = "cluster.jsonl"
CHOICES_FILE: Final = "choices.json"
#: The course of a scripted story, step by step.
STORY_FILE: Final = "story.json"
#: Says when a run's clock was at 0, so that nodes' files can be read with it also after the harness was killed.
CLOCK_FILE: Final = "clock.json"

# Of a campaign.
CAMPAIGN_FILE: Final = "campaign.json"
PLAN_FILE: Final = "plan.toml"
VERDICTS_FILE: Final = checkers.VERDICTS_FILE
#: The turns of a soak and their results.
LEDGER_FILE: Final = "ledger.jsonl"
MATRIX_FILE: Final = "matrix.json"
WITNESSES_FILE: Final = "witnesses.json"
MATRIX_TEXT_FILE: Final = "matrix.md"
JUNIT_FILE: Final = "junit.xml"
REPORT_FILE: Final = "report.html"

#: Campaigns of one name in one directory.
NUMBERED_MAX: Final = 10_000


@contextlib.contextmanager
def files_of(directory: Path) -> Iterator[None]:
    """Turn an error of the file system into one that names ``directory`` and what to do.

    Raises:
        ResultsError: the block raised an OSError.
    """
    try:
        yield
    except OSError as error:
        raise ResultsError(f"{directory}: {advice_on(error)}") from error


def is_out_of_room(error: OSError) -> bool:
    """True of an error after which every later write would fail as this one did: no room, or a read-only disk."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def advice_on(error: OSError) -> str:
    """Say what happened and what to do, in words that fit commands without an option for a directory too."""
    if error.errno == errno.EROFS:
        return f"{error.strerror}; make this disk writable, or work in another directory"
    if is_out_of_room(error):
        return f"{error.strerror}; make room on this disk"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"{error.strerror} ({error.filename}); change its permissions, or work in a directory that you own"
    return f"{error.strerror or error} ({error.filename}); name another directory"


def new_campaign(results: Path, name: str) -> Path:
    """Make ``results/<name>``, or ``results/<name>-2`` and so on if that exists; nothing is ever overwritten.

    Raises:
        ResultsError: it cannot be made, or there are too many of that name.
    """
    with files_of(results):
        results.mkdir(parents=True, exist_ok=True)
        for number in itertools.chain([""], (f"-{n}" for n in range(2, NUMBERED_MAX))):
            with contextlib.suppress(FileExistsError):
                directory = results / f"{name}{number}"
                directory.mkdir()
                return directory
    raise ResultsError(f"{results} holds {NUMBERED_MAX} campaigns named {name}; move them away")


def exact_campaign(directory: Path) -> Path:
    """Make ``directory``, with those above it; one that exists must be empty.

    Raises:
        NamedWronglyError: something is in it, or nothing can be: it is a file, or below one.
        ResultsError: it cannot be made.
    """
    with files_of(directory):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
            raise NamedWronglyError(f"{directory}: {advice_on(error)}") from error
        if any(directory.iterdir()):
            raise NamedWronglyError(
                f"{directory} is not empty, and results are never overwritten; name another directory"
            )
    return directory


def write_file(path: Path, content: bytes) -> None:
    """Write ``content`` whole or not at all: a reader never sees half a file.

    Raises:
        ResultsError: it cannot be written.
    """
    with files_of(path.parent):
        # Not tempfile's: only the owner can read its files, and a report is for all whom the umask admits.
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            temporary.write_bytes(content)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def check_writable(option: str, path: Path) -> None:
    """Check that the file that ``option`` names can be written, before the work whose result it will have.

    Raises:
        NamedWronglyError: it is something else than a file, or its directory is missing or cannot be written to.
    """
    if path.is_dir():
        raise NamedWronglyError(f"{option} {path} is a directory; name a file")
    if path.exists() and not path.is_file():  # a file would take the place of /dev/null
        raise NamedWronglyError(f"{option} {path} is not a regular file; name a file")
    if not path.parent.is_dir():
        raise NamedWronglyError(
            f"{option} {path}: the directory {path.parent} does not exist; make it, or name another file"
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise NamedWronglyError(f"{option} {path}: you may not write into {path.parent}; name another file")


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as one indented JSON document, whole or not at all.

    Raises:
        ResultsError: it cannot be written.
    """
    write_file(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def read_file(path: Path, advice: str) -> bytes | None:
    """The content of a file, None where nothing has its name.

    Raises:
        ResultsError: it cannot be read, or is not a regular file: the reader of a pipe would wait for ever.
            ``advice`` says what to do.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ResultsError(f"{path} is not a regular file; {advice}")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ResultsError(f"{path} cannot be read ({error.strerror or error}); {advice}") from error


@contextlib.contextmanager
def understanding(what: object, advice: str) -> Iterator[None]:
    """Turn the errors of decoding ``what``, a file or a line of one, into one that names it and says what to do.

    Raises:
        ResultsError: the block met JSON, text, values or settings that cannot be read.
    """
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, SettingsError) as error:
        raise ResultsError(f"{what} cannot be read ({error}); {advice}") from error


def read_json(path: Path, kind: type[Content], advice: str) -> Content:
    """Read a file of JSON as a ``kind``.

    Raises:
        ResultsError: it is missing or cannot be read; ``advice`` says what to do.
    """
    content = read_file(path, advice)
    if content is None:
        raise ResultsError(f"{path.parent} holds no {path.name}; {advice}")
    with understanding(path, advice):
        return msgspec.json.decode(content, type=kind)


def run_directories(path: Path) -> list[Path]:
    """Every run at or below ``path``, sorted; a run directory is its own only run.

    Raises:
        NamedWronglyError: ``path`` is not a directory.
    """
    with files_of(path):
        if not path.is_dir():
            raise NamedWronglyError(f"{path} is not a directory; name a run or a campaign under results/")
        if (path / RUN_FILE).is_file():
            return [path]
        return sorted(file.parent for file in path.rglob(RUN_FILE))


@contextlib.contextmanager
def only_user_of(directory: Path) -> Iterator[None]:
    """Keep other processes that ask for the same out of ``directory`` while the block runs, or until this one dies.

    Raises:
        ResultsError: another process works in it.
    """
    with files_of(directory):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise ResultsError(f"another ackproof process works in {directory}; wait until it ends") from error
    finally:
        os.close(descriptor)
