#!/usr/bin/env python
"""Writes harness/assess/setting_names.toml: the settings of clients, brokers and topics, as these say themselves.

From the root of a clone: .venv/bin/python scripts/setting-names.py. Each installed release of Kafka (ackproof kafka
install) prints its own names, by scripts/SettingNames.java, and the installed librdkafka its own table.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ctypes import CDLL, c_void_p
from pathlib import Path
from typing import Final

import confluent_kafka

from harness.worlds.kafka.installation import Installation, installed

INTO: Final = Path("harness/assess/setting_names.toml")
PROGRAM: Final = Path("scripts/SettingNames.java")
KINDS: Final = ("producer", "consumer", "topic", "broker")
HEAD: Final = """\
# The names of settings, as their owners say them; scripts/setting-names.py wrote this file, and how is said there.
# kafka: `first` and `last` are the oldest and the newest of the releases that were asked that have `names`.
# librdkafka: `both` are settings of producers and consumers. kafka-python says its own when it is asked.
"""
_LIMIT_S: Final = 300.0
_OF: Final = {"*": "both", "P": "producer", "C": "consumer"}


def names_of_kafka(release: Installation) -> set[tuple[str, str]]:
    """The kind and name of every setting that a release of Kafka has."""
    classes = ":".join(map(str, release.jars))
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", classes, str(PROGRAM)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=True)  # noqa: S603
    pairs = (line.split() for line in ended.stdout.splitlines())
    return {(kind, name) for kind, name in pairs}


def names_of_librdkafka() -> dict[str, list[str]]:
    """The names that the installed librdkafka prints in its table, by what they are for."""
    (file,) = Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka-*.so*")
    library, system = CDLL(str(file)), CDLL(None)
    system.fopen.restype = c_void_p
    with tempfile.NamedTemporaryFile() as table:
        stream = c_void_p(system.fopen(table.name.encode(), b"w"))
        library.rd_kafka_conf_properties_show(stream)
        system.fclose(stream)
        rows = re.findall(r"^(\S+) +\| +([CP*]) +\|", table.read().decode(), re.MULTILINE)
    return {kind: sorted({name for name, sign in rows if _OF[sign] == kind}) for kind in _OF.values()}


def by_releases(named: Mapping[str, Iterable[tuple[str, str]]]) -> Iterator[tuple[str, str, str, list[str]]]:
    """Kind, first and last release, and the names that these have, of the names of each release, oldest first."""
    having: dict[tuple[str, str], list[str]] = {}
    for release, pairs in named.items():
        for pair in pairs:
            having.setdefault(pair, []).append(release)
    order = list(named)
    together: dict[tuple[int, int, int], list[str]] = {}
    for (kind, name), releases in having.items():
        span = (KINDS.index(kind), order.index(releases[0]), order.index(releases[-1]))
        together.setdefault(span, []).append(name)
    for (kind, first, last), names in sorted(together.items()):
        yield KINDS[kind], order[first], order[last], sorted(names)


def written(names: Sequence[str]) -> str:
    """The names as an array of TOML in lines that are not too long."""
    lines = textwrap.wrap(", ".join(f'"{name}"' for name in names), 116, break_on_hyphens=False)
    return "\n".join(["[", *(f"    {line}" for line in lines), "]"])


def main() -> None:
    """Write the file."""
    named = {str(release.version): names_of_kafka(release) for release in installed()}
    parts = [HEAD + f'\nreleases = {written(list(named))}\nlibrdkafka_release = "{confluent_kafka.libversion()[0]}"\n']
    for kind, first, last, names in by_releases(named):
        parts.append(f'[[kafka]]\nkind = "{kind}"\nfirst = "{first}"\nlast = "{last}"\nnames = {written(names)}\n')
    entries = (f"{kind} = {written(names)}\n" for kind, names in names_of_librdkafka().items())
    parts.append("[librdkafka]\n" + "".join(entries))
    INTO.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
