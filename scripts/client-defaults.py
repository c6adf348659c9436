#!/usr/bin/env python
"""Writes harness/assess/client_defaults.toml: the defaults of client libraries by release, as their packages say them.

From the root of a clone: .venv/bin/python scripts/client-defaults.py DIRECTORY. Packages that DIRECTORY lacks are
fetched into it (350 MB): Kafka's own client by Maven, which scripts/ClientDefaults.java asks; librdkafka in the wheels
of confluent-kafka, which prints its own table; kafka-python as wheels, whose DEFAULT_CONFIG is read from the source.
"""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from ctypes import CDLL, RTLD_GLOBAL, c_void_p
from pathlib import Path
from typing import Final

from harness.assess.client_settings import ALIASES
from harness.assess.configuration import OF_CLIENTS
from harness.assess.setting_names import with_dots

INTO: Final = Path("harness/assess/client_defaults.toml")
PROGRAM: Final = Path("scripts/ClientDefaults.java")
HEAD: Final = """\
# The defaults of client libraries by release, as their packages say them; scripts/client-defaults.py wrote this file.
# The first release that was looked at has all of them, a later one those that it changed or added.
# enable.idempotence of java is what a producer does, which in 3.0.0 and 3.1.0 is not what its table says (KAFKA-13598).
"""
#: At least one on either side of each change.
JAVA: Final = (
    "0.10.2.2", "0.11.0.0", "0.11.0.3", "1.0.0", "1.0.2", "1.1.1", "2.0.1", "2.1.0", "2.8.2", "3.0.0", "3.0.1",
    "3.0.2", "3.1.0", "3.1.1", "3.1.2", "3.2.0", "3.9.2", "4.0.0", "4.3.1", "4.4.0",
)  # fmt: skip
#: Releases of confluent-kafka, whose wheels have librdkafka, by the Python and the systems of the wheel.
LIBRDKAFKA: Final = {
    ("36", "manylinux1_x86_64,manylinux2010_x86_64"): (
        "0.11.4", "0.11.5", "0.11.6", "1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.4.2", "1.5.0", "1.6.0", "1.6.1",
        "1.7.0",
    ),
    ("39", "manylinux2010_x86_64,manylinux2014_x86_64,manylinux_2_17_x86_64,manylinux_2_28_x86_64"): (
        "1.8.2", "1.9.0", "1.9.2", "2.0.2", "2.1.1", "2.2.0", "2.3.0", "2.4.0", "2.5.3", "2.6.1",
    ),
    ("311", "manylinux2014_x86_64,manylinux_2_17_x86_64,manylinux_2_28_x86_64"): (
        "2.8.2", "2.10.1", "2.11.1", "2.12.2", "2.13.2", "2.14.2", "2.15.1", "2.16.0",
    ),
}  # fmt: skip
KAFKA_PYTHON: Final = (
    "1.4.7", "2.0.2", "2.0.6", "2.1.0", "2.1.6", "2.2.0", "2.2.21", "2.3.0", "2.3.3", "3.0.0", "3.0.12",
)  # fmt: skip
_LIMIT_S: Final = 600.0
#: The settings that have no default, or whose default decides nothing.
_WITHOUT: Final = frozenset({"compression.type", "group.id", "transactional.id"})
_NAMES: Final = OF_CLIENTS - _WITHOUT


def java_defaults(release: str, directory: Path) -> dict[str, str]:
    """The defaults of a release of Kafka's own client."""
    for artifact in (f"org.apache.kafka:kafka-clients:{release}", "org.slf4j:slf4j-api:1.7.36"):
        _, name, version = artifact.split(":")
        if not (directory / f"{name}-{version}.jar").exists():
            _run("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={directory}")
    return defaults_printed(f"{directory}/kafka-clients-{release}.jar:{directory}/slf4j-api-1.7.36.jar")


def defaults_printed(classes: str) -> dict[str, str]:
    """The defaults that a class path with Kafka's own client says."""
    said = _run("java", "-XX:TieredStopAtLevel=1", "-cp", classes, str(PROGRAM), *sorted(_NAMES))
    lines = (line.partition(" ") for line in said.splitlines())
    return {name: value for name, _, value in lines if value}


def librdkafka_defaults(wheel: Path) -> tuple[str, dict[str, str]]:
    """The release of the librdkafka in a wheel of confluent-kafka, and its defaults."""
    with tempfile.TemporaryDirectory() as directory, zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory, [name for name in archive.namelist() if ".so" in name and "libs/" in name])
        return defaults_of_libraries(Path(directory))


def defaults_of_libraries(directory: Path) -> tuple[str, dict[str, str]]:
    """The release of the librdkafka in a directory, which has the libraries that it needs, too, and its defaults."""
    said = _run(sys.executable, __file__, "--table", str(directory))
    release, _, table = said.partition("\n")
    rows = ([cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.count("|") >= 4)
    # A row that is another name for a setting has no default of its own.
    own = {row[0]: row[3] for row in rows if not row[-1].startswith("Alias for")}
    return release, _normal({ALIASES.get(name, name): value for name, value in own.items()})


def table_of_librdkafka(directory: Path) -> str:
    """The release and the table that librdkafka in a directory prints. It is loaded into this process."""
    libraries = sorted(directory.rglob("*.so*"))
    (main,) = (file for file in libraries if file.name.startswith("librdkafka"))
    others = [file for file in libraries if file != main]
    for _ in others:  # each needs others of them, in no known order
        for file in tuple(others):
            try:
                CDLL(str(file), RTLD_GLOBAL)
            except OSError:
                continue
    library, system = CDLL(str(main)), CDLL(None)
    system.fopen.restype = c_void_p
    with tempfile.NamedTemporaryFile() as table:
        stream = c_void_p(system.fopen(table.name.encode(), b"w"))
        library.rd_kafka_conf_properties_show(stream)
        system.fclose(stream)
        number = int(library.rd_kafka_version())
        release = ".".join(str(number >> bits & 0xFF) for bits in (24, 16, 8))
        return f"{release}\n{table.read().decode()}"


def kafka_python_defaults(wheel: Path) -> dict[str, str]:
    """The defaults of a release of kafka-python, from its source: old releases cannot be imported any more."""
    defaults: dict[str, str] = {}
    with zipfile.ZipFile(wheel) as archive:
        names = [
            name for name in archive.namelist() if re.fullmatch(r"kafka/(producer/kafka|consumer/group)\.py", name)
        ]
        for name in sorted(names, reverse=True):  # producers first: of what both have, theirs counts
            tree = ast.parse(archive.read(name))
            for node in ast.walk(tree):
                match node:
                    case ast.Assign(targets=[ast.Name(id="DEFAULT_CONFIG")], value=ast.Dict() as table):
                        defaults = _of_dict(table) | defaults
    if "acks" not in defaults:
        raise ValueError(f"{wheel} has no defaults of producers: {sorted(defaults)}")
    return _normal(defaults)


def _of_dict(table: ast.Dict) -> dict[str, str]:
    pairs = ((key, value) for key, value in zip(table.keys, table.values, strict=True) if isinstance(key, ast.Constant))
    named = ((with_dots(str(key.value)), value) for key, value in pairs)
    return {name: _spelled(value) for name, value in named if name in _NAMES}


def _spelled(value: ast.expr) -> str:
    try:
        content = ast.literal_eval(value)
    except ValueError:
        return "2147483647" if ast.unparse(value) == "float('inf')" else ast.unparse(value)
    return "" if content is None else str(content).lower() if isinstance(content, bool) else str(content)


def _normal(named: Mapping[str, str]) -> dict[str, str]:
    """The values of settings that decide here, in one spelling."""
    kept = {name: value for name, value in named.items() if name in _NAMES and value}
    if kept.get("acks") == "-1":
        kept["acks"] = "all"
    if kept.get("auto.offset.reset") == "largest":
        kept["auto.offset.reset"] = "latest"
    return kept


def changes(by_release: Iterable[tuple[str, Mapping[str, str]]]) -> list[tuple[str, dict[str, str]]]:
    """The defaults of each release that are not those of the one before it. Raises ValueError where one goes away."""
    before: dict[str, str] = {}
    rows = []
    for release, now in by_release:
        if gone := before.keys() - now.keys():
            raise ValueError(f"{release} has no {', '.join(sorted(gone))} any more")
        rows.append((release, {name: value for name, value in sorted(now.items()) if before.get(name) != value}))
        before = dict(now)
    return rows


def _wheels(name: str, release: str, directory: Path, options: Iterable[str]) -> Path:
    kept = f"{name.replace('-', '_')}-{release}-*.whl"
    if not list(directory.glob(kept)):
        command = (
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary=:all:",
            "-d",
            str(directory),
        )
        _run(*command, *options, f"{name}=={release}")
    (wheel,) = directory.glob(kept)
    return wheel


def _confluent(directory: Path) -> Iterable[Path]:
    for (python, systems), releases in LIBRDKAFKA.items():
        platforms = itertools.chain.from_iterable(("--platform", system) for system in systems.split(","))
        abi = f"cp{python}m" if python < "38" and len(python) == 2 else f"cp{python}"
        options = ["--python-version", python, "--implementation", "cp", "--abi", abi, *platforms]
        yield from (_wheels("confluent-kafka", release, directory, options) for release in releases)


def _run(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)  # noqa: S603
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr[-2000:]}")
    return ended.stdout


def written(library: str, rows: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """The rows as TOML."""
    parts = []
    for release, defaults in rows:
        lines = "".join(f'"{name}" = "{value}"\n' for name, value in defaults.items())
        table = f"[{library}.defaults]\n{lines}" if lines else ""
        parts.append(f'[[{library}]]\nrelease = "{release}"\n{table}')
    return "\n".join(parts)


def main() -> None:
    """Write the file."""
    match sys.argv[1:]:
        case ["--table", directory]:
            print(table_of_librdkafka(Path(directory)), end="")  # noqa: T201
        case [name]:
            directory = Path(name)
            java = [(release, java_defaults(release, directory)) for release in JAVA]
            native = [librdkafka_defaults(wheel) for wheel in _confluent(directory)]
            python = [
                (each, kafka_python_defaults(_wheels("kafka-python", each, directory, ()))) for each in KAFKA_PYTHON
            ]
            tables = {"java": java, "librdkafka": native, "kafka-python": python}
            INTO.write_text("\n".join([HEAD, *(written(own, changes(rows)) for own, rows in tables.items())]))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
