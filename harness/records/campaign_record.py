"""``campaign.json``: the versions and machine of a campaign, its progress, and the time of its stages."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from harness.ground.machine.versions import MachineSize
from harness.records.files import CAMPAIGN_FILE, read_json, write_json


class WorldRuns(msgspec.Struct, kw_only=True):
    """The runs of one world: how many, and in real worlds where nodes live, the release, and the client's library.

    ``other_clients`` are the libraries that take turns with it, as a plan names them.
    """

    planned: int
    completed: int = 0
    failed: int = 0
    wall_ms: int = 0
    host: str | msgspec.UnsetType = msgspec.UNSET
    version: str | msgspec.UnsetType = msgspec.UNSET
    client: str | msgspec.UnsetType = msgspec.UNSET
    client_version: str | msgspec.UnsetType = msgspec.UNSET
    other_clients: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """A later command that went on with the campaign: when it began (UTC), and with which versions."""

    began: str
    command: str
    versions: dict[str, str]


class CampaignRecord(msgspec.Struct, kw_only=True):
    """A campaign: how it was made, and how far it came.

    ``status`` is "running", "completed", "interrupted" or "failed"; ``began`` is UTC. ``stages_ms`` is the wall time of
    each stage when it was last done, ``failures`` are the first few runs that failed, and why. ``cells`` is how many
    the plan has, 0 in a record of a version that did not count them. ``plan`` is the path of the plan's file as the
    command named it.
    """

    name: str
    seed: int
    status: str
    began: str
    command: str
    machine: MachineSize
    versions: dict[str, str]
    worlds: dict[str, WorldRuns]
    stages_ms: dict[str, int] = {}
    failures: dict[str, str] = {}
    continued: list[Continuation] = []
    cells: int = 0
    plan: str = ""


def write_campaign_record(directory: Path, record: CampaignRecord) -> None:
    """Write ``campaign.json`` in ``directory``."""
    write_json(directory / CAMPAIGN_FILE, record)


class _Planned(msgspec.Struct, frozen=True):
    cells: int = 0


def planned_cells(directory: Path) -> int:
    """Return the number of cells in the plan of the campaign in ``directory``; 0 if no record has it.

    Raises:
        ResultsError: as :func:`read_campaign_record`.
    """
    path = directory / CAMPAIGN_FILE
    return read_json(path, _Planned, "restore it, or remove it").cells if path.is_file() else 0


def read_campaign_record(directory: Path) -> CampaignRecord | None:
    """Read ``campaign.json`` in ``directory``; None without that file, as for a run made alone.

    Raises:
        ResultsError: the file cannot be read.
    """
    path = directory / CAMPAIGN_FILE
    return read_json(path, CampaignRecord, "restore it, or remove it") if os.path.lexists(path) else None
