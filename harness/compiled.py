"""Modules as mypyc compiled them (scripts/compile.py), in the place of their sources where they were built from these.

All modules that were compiled take the place of their sources, or none: they know the layout of each other's objects.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

from typing_extensions import override

#: The environment variable that keeps the source in use, with the value "no".
VARIABLE: Final = "ACKPROOF_COMPILED"
#: Beside compiled modules: the source that they were built from, and their files by their names.
INDEX: Final = "compiled.json"
#: Their directory inside of the package, in a wheel that has them.
INSIDE: Final = "_compiled"
#: The packages that they are built from.
PACKAGES: Final = ("harness", "workloads", "nemesis", "checkers")
#: The module whose form says which is in use.
_ONE: Final = "harness.reference.core.replica"
_ROOT: Final = Path(__file__).resolve().parents[1]


class _Finder(MetaPathFinder):
    """Finds compiled modules by their names."""

    def __init__(self, directory: Path, files: Mapping[str, str]) -> None:
        self._directory, self._files = directory, files

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(fullname)
        return None if file is None else spec_from_file_location(fullname, self._directory / file)


def use_compiled(root: Path = _ROOT) -> bool:
    """Have modules imported in their compiled form from now on, if there is one of the source at ``root``."""
    for directory in (root / "build" / "compiled", root / "harness" / INSIDE):
        try:
            index = json.loads((directory / INDEX).read_bytes())
        except (OSError, ValueError):  # nothing was built, or not to its end
            continue
        files = index["files"]
        late = any(name in sys.modules for name in files)
        if not late and os.environ.get(VARIABLE) != "no" and index["built_from"] == built_from(root):
            sys.meta_path.insert(0, _Finder(directory, files))
            return True
    return False


def form_of_modules() -> str:
    """Say whether this process uses modules as they were "compiled", or their "source"."""
    spec = find_spec(_ONE)
    return "compiled" if spec and str(spec.origin).endswith(EXTENSION_SUFFIXES[0]) else "source"


def built_from(root: Path) -> str:
    """The digest of the source at ``root``, and of the Python that would import what is built from it."""
    digest = sha256(EXTENSION_SUFFIXES[0].encode())
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            if INSIDE not in file.parts:
                digest.update(file.relative_to(root).as_posix().encode() + b"\0")
                digest.update(file.read_bytes())
    return digest.hexdigest()
