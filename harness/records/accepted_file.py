"""``accepted.toml``, beside a plan and copied into its campaigns: the findings that a team accepts until a day."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from checkers import ANOMALIES, Acceptance, Outcome
from harness.ground.errors import NamedWronglyError, PlanError, ResultsError
from harness.plan import ACCEPTED_FILE, PlanKey, known_keys, record_of, tables_at
from harness.records.files import read_file, write_file
from workloads import in_toml, unknown_name

_HEAD: Final = """\
# Findings that are known. They are shown and counted, but until the day that they name they change no exit code.
# `ackproof accept` writes entries; you may edit and remove them.
"""


def accepted_text(directory: Path) -> str:
    """The text of ``accepted.toml`` in ``directory``, which was understood; "" without that file.

    Raises:
        PlanError: it cannot be read, or says something wrong; the sentence says what.
    """
    path = directory / ACCEPTED_FILE
    try:
        text = (read_file(path, "correct it, or remove it") or b"").decode("utf-8-sig")
    except ResultsError as error:
        raise PlanError(str(error)) from error
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: byte {error.start} is not UTF-8; write it again in UTF-8") from error
    parse_accepted(text, str(path))
    return text


def read_accepted(directory: Path) -> list[Acceptance]:
    """The entries of ``accepted.toml`` in ``directory``, none without that file; errors as :func:`accepted_text`."""
    return parse_accepted(accepted_text(directory), str(directory / ACCEPTED_FILE))


def parse_accepted(text: str, file: str) -> list[Acceptance]:
    """The entries that ``text`` writes; ``file`` names it in errors.

    Raises:
        PlanError: one sentence with the place in the text.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{file}: not valid TOML: {error}; correct it as docs/guides/accept.md shows") from error
    known_keys(content, ["accepted"], PlanKey(file))
    entries = [
        (here, record_of(Acceptance, table, here)) for here, table in tables_at(content, "accepted", PlanKey(file))
    ]
    for here, entry in entries:
        if not (entry.identity or entry.anomaly):
            raise here.wrong("names neither an identity nor an anomaly; write one of them")
        if entry.anomaly not in {"", Outcome.STALLED, *ANOMALIES}:
            raise (here / "anomaly").wrong(unknown_name("anomaly", entry.anomaly, ANOMALIES))
        for cell, (runs, of_all) in entry.shown.items():
            if not 0 <= runs <= of_all or not of_all:
                raise (here / "shown" / cell).wrong(
                    f"takes how many runs showed it, and of how many, not {runs}, {of_all}"
                )
    return [entry for _, entry in entries]


def accepted_identities(acceptances: Iterable[Acceptance], began: str) -> frozenset[str]:
    """The findings that are accepted by their identity on the day on which a night began, in some cell."""
    if not (lasting := [entry for entry in acceptances if entry.identity]):
        return frozenset()
    day = datetime.fromisoformat(began).date()
    return frozenset(entry.identity for entry in lasting if day <= entry.until)


def add_accepted(path: Path, entries: Iterable[Acceptance]) -> None:
    """Write these entries behind what is in the file ``path``.

    Raises:
        PlanError: what is in it cannot be read or understood.
        ResultsError: it cannot be written.
    """
    if path.name != ACCEPTED_FILE:
        raise NamedWronglyError(f"{path} would not be found beside a plan; name a file {ACCEPTED_FILE}")
    before = accepted_text(path.parent) or _HEAD
    blocks = ["\n".join(_block(entry)) for entry in entries]
    write_file(path, "\n".join([before.rstrip("\n") + "\n", *blocks, ""]).encode())


def _block(entry: Acceptance) -> Iterator[str]:
    yield "[[accepted]]"
    for name in entry.__struct_fields__:
        value = getattr(entry, name)
        if value or name in {"cells", "reason"}:
            yield f"{name} = {in_toml(value)}"
    yield ""
