"""``run.json``: the run as it was asked for, and how it ended.

It is the :class:`~harness.plan.RunSpec` with one more key, ``ended``. It is written before the run begins,
with the status ``running``, and again at its end; a run whose harness was killed keeps the first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from harness.ground.errors import NamedWronglyError, ResultsError
from harness.plan import AnyWorld, RunSpec
from harness.records.files import RUN_FILE, read_file, understanding, write_json

Part = TypeVar("Part")
#: Advice about a damaged ``run.json``.
_RESTORE: Final = "restore it, or have the run done again: ackproof campaign PLAN --out DIR --continue"


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run.

    ``reason`` is a sentence where it did not complete, ``wall_ms`` the machine's time, ``report`` the account of its
    phases (:class:`harness.runs.phases.RunReport`) where there is one. ``configuration`` is what clients and brokers of
    a run that completed really worked with, by role (:meth:`harness.worlds.contract.World.effective_configuration`).
    """

    status: Literal["running", "completed", "harness-failed", "interrupted"]
    reason: str | None = None
    wall_ms: int = 0
    report: dict[str, Any] | None = None
    configuration: dict[str, dict[str, Any]] | None = None


class RunRecord(RunSpec, frozen=True, kw_only=True):
    """One run, with everything that is needed to do it again, and how it ended."""

    ended: Ended = Ended(status="running")

    @classmethod
    def of(cls, spec: RunSpec, ended: Ended) -> RunRecord:
        """``spec`` and how its run ended."""
        return cls(**msgspec.structs.asdict(spec) | {"ended": ended})

    def spec(self) -> RunSpec:
        """The run without its end."""
        return RunSpec(**{name: getattr(self, name) for name in RunSpec.__struct_fields__})


def write_record(directory: Path, spec: RunSpec, ended: Ended) -> None:
    """Write ``run.json`` of the run in ``directory``."""
    write_json(directory / RUN_FILE, RunRecord.of(spec, ended))


def read_record(directory: Path) -> RunRecord:
    """Read ``run.json`` in ``directory``.

    Raises:
        ResultsError: it is missing or is not a run, has settings that this version does not know or refuses, or a cell
            whose runs would lie outside of their campaign.
    """
    record = _read(directory, RunRecord)
    if ".." in record.directory().parts or not record.directory().is_relative_to("runs"):
        raise ResultsError(
            f"{directory / RUN_FILE} cannot be read (its cell is a path that leads elsewhere); {_RESTORE}"
        )
    with understanding(directory / RUN_FILE, _RESTORE):
        record.chosen()
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
    content = read_file(path, _RESTORE)
    if content is None:
        raise NamedWronglyError(f"{directory} holds no {RUN_FILE}; name a run directory (results/.../runs/.../<seed>)")
    with understanding(path, _RESTORE):
        if bytes(msgspec.json.decode(content, type=_WorldAsWritten).world).startswith(b'"'):
            return msgspec.convert(upgraded(msgspec.json.decode(content)), kind)
        return msgspec.json.decode(content, type=kind)


def upgraded(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert a ``run.json`` of version 0.1.0 into that of this version.

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
