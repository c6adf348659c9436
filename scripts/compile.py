#!/usr/bin/env python
"""Compiles what simulated runs and exhaustive search spend their time in, with mypyc, into build/compiled.

From the root of a clone (make compiled), where a C compiler is installed. Every command uses it from then on, until a
module is changed (harness/compiled.py); tests do not. `make wheel` packs it. It is used only where runs and searches
come to the same as with the source (scripts/compiled_probe.py). To test it:

    cd build/compiled && ../../.venv/bin/pytest -c ../../pyproject.toml --rootdir . -p no:cacheprovider tests/workloads

The source needs no changes for it; its copy has five. Classes are marked as ones that may be pickled, and inherited
from. Attributes of instances are not final, for a pickle could not set them. Methods are not marked as overriding,
which mypyc fails at. Structs of msgspec move to modules of their own, which stay interpreted, as mypyc does not
pass on the keywords of a class (``frozen``, ``gc``); so do enums, exceptions, and subclasses of numbers and of
collections. And classes are given the types of their fields, which mypyc does not keep, and exhaustive search reads.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from difflib import unified_diff
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

from harness.compiled import INDEX, PACKAGES, VARIABLE, built_from

COMPILED: Final = Path("build/compiled")
#: The files that the tests read beside the packages.
BESIDE: Final = ("tests", "docs", "plans", "results", "README.md")
#: By directory.
MODULES: Final = {
    "harness": "choices",
    "harness/explore": "brokers canonical_form controllers counted_facts events kept_nodes keys nodes normal_form "
    "path_facts rules search searched space wires",
    "harness/reference/core": "broker cleaner commit_rule controller effects election fetcher follower invariants log "
    "producers replica request_handler retention session",
    "harness/reference/core/planted": "answering cleaning controlling following in_sync leading storing",
    "harness/worlds/simulated": "batches clients cluster consumer direct_client disks invariants loop network "
    "excused_replicas network_client nodes producer replica_view steady wires",
    "workloads": "consumers generators instance producers replacement values",
}
#: Bases of classes that move to a module of their own, and bases that mypyc can compile.
_INTERPRETED: Final = {"msgspec.Struct", "AssertionError", "TypeError", "int", "tuple", "dict", "IntEnum", "StrEnum"}
_KNOWN: Final = {"Protocol", "NamedTuple"}
_MARK: Final = "@mypyc_attr(serializable=True, allow_interpreted_subclasses=True)"
#: Only mypyc reads the marks, and compiled modules do without them: where a wheel is installed there is no mypy.
_MARK_IMPORT: Final = (
    "try:",
    "    from mypy_extensions import mypyc_attr",
    "except ImportError:",
    "    pass",
)


def main() -> None:
    """Copy the packages, change the modules that are compiled, compile them."""
    shutil.rmtree(COMPILED, ignore_errors=True)
    source = built_from(Path.cwd())
    modules = copy_to(COMPILED)
    for beside in BESIDE:
        (COMPILED / beside).symlink_to(Path(beside).resolve())
    command = [sys.executable, "-m", "mypyc", f"--config-file={Path('pyproject.toml').resolve()}", *modules]
    environment = {**os.environ, "MYPYC_OPT_LEVEL": "1", "MYPYC_DEBUG_LEVEL": "0"}
    code = subprocess.run(command, cwd=COMPILED, env=environment, check=False).returncode  # noqa: S603
    if code == 0:
        index = {"built_from": source, "files": files_in(COMPILED, modules)}
        (COMPILED / INDEX).write_text(json.dumps(index, indent=1))
        code = _compare()
    sys.exit(code)


def _compare() -> int:
    """Have what was compiled do what its source does. Where that differs it is not used, and the exit code is 1."""
    source, compiled = _printed("source", "no"), _printed("compiled", "yes")
    if source == compiled and compiled[0] == "exit code 0":
        return 0
    (COMPILED / INDEX).unlink()
    difference = unified_diff(source, compiled, "source", "compiled", n=0, lineterm="")
    sys.stderr.write(
        "\n".join(["compiled modules do not do what their source does, and are not used:", *difference, ""])
    )
    return 1


def _printed(form: str, use: str) -> list[str]:
    command, environment = [sys.executable, "-m", "scripts.compiled_probe", form], {**os.environ, VARIABLE: use}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    return [f"exit code {done.returncode}", *done.stdout.splitlines()]


def files_in(directory: Path, modules: list[str]) -> dict[str, str]:
    """List what was compiled from ``modules`` and what it needs, by names of modules: files in ``directory``."""
    suffix = EXTENSION_SUFFIXES[0]
    compiled = [file.removesuffix(".py") + suffix for file in modules]
    (common,) = directory.glob(f"*__mypyc{suffix}")
    interpreted = [file.relative_to(directory).as_posix() for file in directory.rglob("*_interpreted.py")]
    files = [*compiled, common.name, *(file for file in interpreted if not file.startswith("build/"))]
    return {file.removesuffix(suffix).removesuffix(".py").replace("/", "."): file for file in files}


def copy_to(directory: Path) -> list[str]:
    """Copy the packages into the new ``directory``; the files in it that are changed, and are to be compiled."""
    for package in PACKAGES:
        shutil.copytree(package, directory / package, ignore=shutil.ignore_patterns("__pycache__"))
    modules = [f"{folder}/{name}.py" for folder, names in MODULES.items() for name in names.split()]
    for module in modules:
        _change(directory / module, module.removesuffix(".py").replace("/", "."))
    return modules


def _change(file: Path, name: str) -> None:
    text = re.sub(r"(self\.\w+): Final =", r"\1 =", file.read_text(encoding="utf-8"))
    text = re.sub(r"(self\.\w+): Final\[(.*)\] =", r"\1: \2 =", text)
    text = re.sub(r"^ +@override\n", "", text, flags=re.MULTILINE)
    lines, body = text.splitlines(), ast.parse(text).body
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom | ast.If)]
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    moving, interpreted = [], {*_INTERPRETED}
    for node in classes:
        if interpreted & set(_bases(node)):
            moving.append(node)
            interpreted.add(node.name)
    if moving:
        parts = [*imports, *_constants(body, moving), *moving]
        moved = ["# mypy: ignore-errors", *(line for node in parts for line in ["", *_lines_of(node, lines)])]
        file.with_name(f"{file.stem}_interpreted.py").write_text("\n".join(moved), encoding="utf-8")
    lines += [_fields(node) for node in classes if node not in moving and "Protocol" not in _bases(node)]
    for node in reversed(classes):
        begin = _begin(node)
        if node in moving:
            del lines[begin : node.end_lineno]
        elif not _KNOWN & set(_bases(node)):
            lines.insert(begin, _MARK)
    # Imports come before all classes, so their lines are where they were.
    end = max(node.end_lineno or 0 for node in imports)
    lines[end:end] = _MARK_IMPORT
    lines[end:end] = [f"from {name}_interpreted import {node.name} as {node.name}" for node in moving]
    file.write_text("\n".join(lines), encoding="utf-8")


def _constants(body: list[ast.stmt], classes: list[ast.ClassDef]) -> list[ast.AnnAssign]:
    """The constants of a module that ``classes`` of it use, and those that come before these for their values."""
    used, constants = _names(classes), list[ast.AnnAssign]()
    for node in reversed(body):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) in used:
            constants.insert(0, node)
            used |= _names([node])
    return constants


def _names(nodes: Sequence[ast.stmt]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def _fields(cls: ast.ClassDef) -> str:
    """The line that gives a class the types of its fields, as its source has them."""
    declared = [node for node in cls.body if isinstance(node, ast.AnnAssign)]
    types = {ast.unparse(node.target): ast.unparse(node.annotation) for node in declared}
    return f"setattr({cls.name}, '__annotations__', {types})"


def _bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).partition("[")[0] for base in node.bases]


def _lines_of(node: ast.stmt, lines: list[str]) -> list[str]:
    return lines[_begin(node) : node.end_lineno]


def _begin(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.ClassDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1


if __name__ == "__main__":
    main()
