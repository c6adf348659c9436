"""The files of campaigns and runs: where they are, how a run says how it ended, and errors in the user's words.

``run.json`` is the :class:`~harness.plan.RunSpec` with one more key, ``ended``. It is written before the run begins,
with the status ``running``, and again at its end; a run whose harness was killed keeps the first.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

import checkers
from harness.errors import NamedWronglyError, ResultsError
from harness.plan import AnyWorld, RunSpec
from workloads import SettingsError

RUN_FILE: Final = checkers.RUN_FILE
HISTORY: Final = checkers.HISTORY
CLUSTER_FILE: Final = "cluster.jsonl"
CHOICES_FILE: Final = "choices.json"
CAMPAIGN_FILE: Final = "campaign.json"
PLAN_FILE: Final = "plan.toml"
VERDICTS_FILE: Final = checkers.VERDICTS_FILE
MATRIX_FILE: Final = "matrix.json"
MATRIX_TEXT_FILE: Final = "matrix.md"
REPORT_FILE: Final = "report.html"

Part = TypeVar("Part")
Status = Literal["running", "completed", "harness-failed", "interrupted"]

#: Campaigns of one name beside each other; whoever has more should tidy up.
NUMBERED_MAX: Final = 10_000


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    ``reason`` is a sentence where it did not complete, ``wall_ms`` the machine's time, ``report`` the conductor's
    account (:class:`harness.run.RunReport`) where there is one. ``configuration`` is what clients and brokers really
    worked with, by role (:meth:`harness.worlds.contract.World.effective_configuration`), of a run that completed.
    """

    status: Status
    reason: str | None = None
    wall_ms: int = 0
    report: dict[str, Any] | None = None
    configuration: dict[str, dict[str, Any]] | None = None


class RunRecord(RunSpec, frozen=True, kw_only=True):
    """What ``run.json`` holds."""

    ended: Ended = Ended(status="running")

    @classmethod
    def of(cls, spec: RunSpec, ended: Ended) -> RunRecord:
        """``spec`` and how its run ended."""
        return cls(**msgspec.structs.asdict(spec) | {"ended": ended})

    def spec(self) -> RunSpec:
        """The run without its end."""
        return RunSpec(**{name: getattr(self, name) for name in RunSpec.__struct_fields__})


@contextlib.contextmanager
def files_of(directory: Path) -> Iterator[None]:
    """Turn an error of the file system into a :class:`ResultsError` that names ``directory`` and what to do."""
    try:
        yield
    except OSError as error:
        raise ResultsError(f"{directory}: {_advice(error)}") from error


def is_out_of_room(error: OSError) -> bool:
    """Whether every later write would fail as this one did."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def _advice(error: OSError) -> str:
    if is_out_of_room(error):
        return f"{error.strerror}; make room or name another directory with --out"
    return f"{error.strerror or error} ({error.filename}); name another directory"


def new_campaign(results: Path, name: str) -> Path:
    """Make ``results/<name>``, or ``results/<name>-2`` and so on if that exists; nothing is ever overwritten."""
    with files_of(results):
        results.mkdir(parents=True, exist_ok=True)
        for number in itertools.chain([""], (f"-{n}" for n in range(2, NUMBERED_MAX))):
            with contextlib.suppress(FileExistsError):
                directory = results / f"{name}{number}"
                directory.mkdir()
                return directory
    raise ResultsError(f"{results} holds {NUMBERED_MAX} campaigns named {name}; move them away")


def exact_campaign(directory: Path) -> Path:
    """Make ``directory``; one that exists must be empty."""
    with files_of(directory):
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise NamedWronglyError(
                f"{directory} is not empty, and results are never overwritten; name another directory"
            )
    return directory


def write_file(path: Path, content: bytes) -> None:
    """Write whole or not at all: a reader never sees half a file."""
    with files_of(path.parent):
        # Not tempfile's: its files are their owner's only, and a report is for everybody whom the umask admits.
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            temporary.write_bytes(content)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_record(directory: Path, spec: RunSpec, ended: Ended) -> None:
    """Write ``run.json`` of the run in ``directory``."""
    encoded = msgspec.json.encode(RunRecord.of(spec, ended))
    write_file(directory / RUN_FILE, msgspec.json.format(encoded, indent=2) + b"\n")


def read_record(directory: Path) -> RunRecord:
    """What ``run.json`` in ``directory`` says.

    Raises:
        ResultsError: it is missing or is no run, or has settings that this version does not know or refuses.
    """
    record = _read(directory, RunRecord)
    try:
        record.chosen()
    except SettingsError as error:
        raise ResultsError(f"{directory / RUN_FILE} cannot be read as a run: {error}") from error
    return record


def recorded_world(directory: Path) -> AnyWorld:
    """The world of the run in ``directory``, also where nothing else of ``run.json`` can be read.

    Raises:
        ResultsError: it is missing or names no world.
    """
    return _read(directory, _WorldOnly).world


class _WorldOnly(msgspec.Struct, frozen=True):
    world: AnyWorld


class _WorldAsWritten(msgspec.Struct, frozen=True):
    world: msgspec.Raw


def _read(directory: Path, kind: type[Part]) -> Part:
    path = directory / RUN_FILE
    with files_of(directory):
        if not path.is_file():
            raise NamedWronglyError(
                f"{directory} holds no {RUN_FILE}; name a run directory (results/.../runs/.../<seed>)"
            )
        content = path.read_bytes()
    try:
        if bytes(msgspec.json.decode(content, type=_WorldAsWritten).world).startswith(b'"'):
            return msgspec.convert(upgraded(msgspec.json.decode(content)), kind)
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise ResultsError(f"{path} cannot be read as a run: {error}") from error


def upgraded(fields: dict[str, Any]) -> dict[str, Any]:
    """What version 0.1.0 wrote into ``run.json``, as this version writes it.

    The world was a name, and each run had ``host``, ``client``, ``version``, ``mode``, ``controllers``, ``machines``,
    ``bootstrap`` and ``security`` beside it; which of them counted followed from the name and the host.
    """
    host = fields.get("host", "loopback")
    return fields | {
        "world": {
            **fields,
            "kind": host if host == "existing" else fields["world"],
            "host": {"kind": host, "machines": fields.get("machines", [])},
        }
    }


def run_directories(path: Path) -> list[Path]:
    """Every run at or below ``path``, sorted; a path that is a run directory stands for itself."""
    with files_of(path):
        if not path.is_dir():
            raise NamedWronglyError(f"{path} is no directory; name a run or a campaign under results/")
        if (path / RUN_FILE).is_file():
            return [path]
        return sorted(file.parent for file in path.rglob(RUN_FILE))
