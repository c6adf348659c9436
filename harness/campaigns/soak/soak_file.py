"""``soak.json`` and ``heartbeat.json``: what a soak was asked for, and how it goes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from harness.campaigns.soak.resources import Memory, bytes_of
from harness.ground.errors import NamedWronglyError
from harness.records.files import read_json, write_json

SOAK_FILE: Final = "soak.json"
HEARTBEAT_FILE: Final = "heartbeat.json"
#: The defaults of a soak.
DISK: Final = "5GB"
TRIES: Final = 3


class SoakRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request for a soak; it is resumed with the same, where nothing else is said.

    ``for_s`` are seconds of work, None: until a finding. ``tries`` is how often a finding of a real world is tried
    again, ``nights`` are the directories and stores of earlier nights, ``plan`` is the path of the plan's file.
    """

    name: str
    seed: int
    began: str
    command: str
    for_s: float | None = None
    until_finding: bool = False
    fail_fast: bool = False
    disk_bytes: int = bytes_of(DISK)
    memory_bytes: int | None = None
    tries: int = TRIES
    nights: tuple[str, ...] = ()
    plan: str = ""


class SoakHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a soak for watchers: replaced every few seconds while it lives.

    ``time`` is UTC; in JSON its name is ``at``. ``status`` is "running", "ending" or "ended". ``runs`` are judged,
    ``waiting`` performed and not yet judged, ``running`` are their places now. ``findings`` counts those that nothing
    permits, by identity.
    """

    time: str = msgspec.field(name="at")
    status: str
    elapsed_s: float
    left_s: float | None
    runs: int
    waiting: int
    running: tuple[str, ...]
    outcomes: dict[str, int]
    findings: dict[str, int]
    failures: tuple[str, ...]
    disk_bytes: int
    disk_limit_bytes: int
    memory: Memory


def write_request(directory: Path, asked: SoakRequest) -> None:
    """Write what the soak was asked for into ``soak.json``."""
    write_json(directory / SOAK_FILE, asked)


def read_request(directory: Path) -> SoakRequest:
    """Read what the soak in ``directory`` was asked for.

    Raises:
        NamedWronglyError: the directory holds no soak.
        ResultsError: it cannot be read.
    """
    path, advice = directory / SOAK_FILE, "name the directory of a soak, or begin one with --out"
    if not path.is_file():
        raise NamedWronglyError(f"{directory} holds no {SOAK_FILE}; {advice}")
    return read_json(path, SoakRequest, advice)


def read_heartbeat_s(directory: Path) -> float:
    """Seconds of work that the last heartbeat in ``directory`` tells of; 0 without a heartbeat."""
    path = directory / HEARTBEAT_FILE
    return read_json(path, SoakHeartbeat, "remove it").elapsed_s if path.is_file() else 0.0


def write_heartbeat(directory: Path, heartbeat: SoakHeartbeat) -> None:
    """Replace ``heartbeat.json`` in one step."""
    write_json(directory / HEARTBEAT_FILE, heartbeat)
