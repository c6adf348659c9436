"""Properties are what Kafka's own loader makes of a file, and the encodings of files are told."""

from __future__ import annotations

import random
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

from harness.assess.properties_files import Entry, decoded, entries_in, properties_in
from harness.ground.errors import PlanError
from harness.ground.machine.java import java_program
from harness.worlds.clients import compiler_jars
from harness.worlds.kafka.installation import Installation

FILES: Final = 1000
PARTS: Final = (
    "acks", "retries", "a", "=", ":", " ", "\t", "\f", "\\", "\\\\", "\n", "\r", "\r\n", "#", "!", "1", "all",
    "\\u0041", "\\uD83D\\uDE00", "\xe9", "\\t", "\\n", "\\=", "\\ ", "\\\n", "\\\r\n  ", "# x\\\n", "\x0b", "\x85",
    "\xa0", "=1\n", "=all\r\n", "\n# old\n",
)  # fmt: skip
PROGRAM: Final = Path(__file__).with_name("LoadedProperties.java")


def written(seed: int) -> str:
    rng = random.Random(seed)
    parts = [*PARTS, "\\u00e"] if seed % 10 == 0 else PARTS
    return "".join(rng.choice(parts) for _ in range(rng.randrange(45)))


@pytest.mark.system
def test_a_thousand_files_are_read_as_kafka_loads_them(real_kafka: Installation, tmp_path: Path) -> None:
    texts = {str(seed): written(seed) for seed in range(FILES)}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    classes = ":".join(map(str, [*real_kafka.jars, *compiler_jars()]))
    program = ["-cp", classes, "org.codehaus.janino.SimpleCompiler", str(PROGRAM), "LoadedProperties", str(tmp_path)]
    ended = subprocess.run([java_program(), *program], capture_output=True, text=True, timeout=120, check=True)
    theirs: dict[str, dict[str, str] | None] = defaultdict(dict)
    for name, *pair in map(str.split, ended.stdout.splitlines()):
        loaded = theirs[name]
        if pair == ["refused"]:
            theirs[name] = None
        elif pair and loaded is not None:
            key, value = (bytes.fromhex(part[1:]).decode("utf-16-be", "replace") for part in pair)
            loaded |= {key: value} if key else {}
    assert theirs.keys() == texts.keys()
    for name, text in texts.items():
        try:
            ours = {entry.name: entry.value for entry in entries_in(text)}
        except ValueError:
            ours = None
        assert ours == theirs[name], repr(text)
    assert sum(len(own or ()) for own in theirs.values()) > FILES
    assert 0 < sum(own is None for own in theirs.values()) < FILES / 10


@pytest.mark.parametrize(
    "text",
    [
        "# in D:\\kafka\\\nacks=1\n",
        "! in D:\\kafka\\\r\nacks=1\r\n",
        "  \t# retries=5 \\\n\facks \t=\f 1\n",
        "acks\\\n  =\\\n  1\n",
        "acks\\\r\n\t:\\\r\n\t1",
        "\\u0061cks 1",
        "acks=0\racks=1\r",
        "client.id=a\\\\\nacks=1",
        "client.id=a\\\n\nacks=1",
        "client.id=\\\n# no comment\nacks=1",
    ],
)
def test_each_of_these_says_acks_1(text: str) -> None:
    assert properties_in(text)["acks"] == "1"


def test_an_entry_has_the_number_of_its_first_line() -> None:
    text = "# c\n\na=1\r\nb=\\\n  2\n! c\\\nc=3 \n"
    assert entries_in(text) == [Entry("a", "1", 3), Entry("b", "2", 4), Entry("c", "3 ", 7)]


def test_a_wrong_escape_is_refused_with_its_line() -> None:
    with pytest.raises(ValueError, match=r"line 2: \\u12 is no sign"):
        entries_in("a=1\nb=\\u12")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_the_encoding_of_a_file_is_told(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes("# Gr\xf6\xdfe\nacks=1\n".encode(encoding))
    assert decoded(file, "a file") == ("# Gr\xf6\xdfe\nacks=1\n", encoding)


def test_utf_16_is_told_in_either_order_and_without_its_mark_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\xfe\xff" + "acks=1".encode("utf-16-be"))
    assert decoded(file, "a file") == ("acks=1", "utf-16")
    file.write_bytes("acks=1".encode("utf-16-le"))
    with pytest.raises(PlanError, match="save it as UTF-8"):
        decoded(file, "a file")
