"""Writes values, names and reasons into messages: values as TOML has them, wrong names beside near ones."""

from __future__ import annotations

import difflib
import json
import math
import subprocess
from collections.abc import Mapping
from datetime import date, time
from typing import Final

#: Characters of a value that a message quotes.
QUOTED_MAX: Final = 60
#: As alike as this, from 0 to 1, a wrong name and the nearest right one must be for that one to be meant.
NEAR: Final = 0.5


def in_toml(value: object) -> str:
    """``value`` as TOML writes it, on one line, or as JSON does where TOML cannot, such as null."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{in_toml(str(key))} = {in_toml(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_toml, value))}]"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    # Strings, numbers and truth are the same in both, except one character that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def shown(value: object) -> str:
    """``value`` as a message quotes it: as TOML writes it, cut to the length of a message."""
    text = "a table" if isinstance(value, Mapping) else in_toml(value)
    return text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}..."


def spelled(value: object) -> str:
    """A setting's value as Kafka's files and command lines have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def reason_of(error: BaseException) -> str:
    """The reason of a failure in a message's words: no number of the system's errors, and nothing of Python."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it did not end within {error.timeout:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def unknown_name(kind: str, name: str, valid: Mapping[str, object], there_are: str = "") -> str:
    """A sentence that names the valid name nearest to ``name``, in any case; all names if no one is near.

    ``there_are`` names all in better words; given, it is always said.
    """
    spellings = {key.lower(): key for key in valid}
    near = difflib.get_close_matches(name.lower(), spellings, n=1, cutoff=NEAR)
    if not near:
        return f"unknown {kind} {shown(name)}; there are {there_are or ', '.join(valid)}"
    meant = f"unknown {kind} {shown(name)}; did you mean {shown(spellings[near[0]])}?"
    return f"{meant} (there are {there_are})" if there_are else meant
