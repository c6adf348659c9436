"""Hatchling's hook of `make wheel`: what `make compiled` built lies inside of the package, and the wheel says for whom.

It is off by default: a wheel is of the source alone, and for every Python.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

from harness.compiled import INDEX, INSIDE, built_from


class CompiledWheel(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the compiled modules with their index."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Refuse what was built from another source: it would not be used."""
        root = Path(self.root)
        directory = root / "build" / "compiled"
        index = json.loads((directory / INDEX).read_bytes())
        if index["built_from"] != built_from(root):
            raise ValueError(f"{directory} was built from another source; run make compiled again")
        build_data["pure_python"], build_data["infer_tag"] = False, True
        for file in (INDEX, *index["files"].values()):
            build_data["force_include"][str(directory / file)] = f"harness/{INSIDE}/{file}"
