"""Files to begin with: plans of each kind, and files for a team's continuous integration.

They are beside the packages in a clone (``plans/``, ``ci/``, ``examples/``, ``requirements.lock``) and inside
``harness`` in a wheel.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import harness
from harness.ground.errors import PlanError
from workloads import unknown_name

#: The kinds that most people begin with, each with a line for the help.
KINDS: Final = {
    "default": "Sixteen settings under kills, pauses and partitions.",
    "demo": "Two settings under kills, in two minutes.",
    "kafka": "Real Apache Kafka on this machine.",
    "existing": "A cluster that you have: planned moves only, nothing is killed.",
    "ssh": "Apache Kafka on machines of yours, over SSH.",
    "application": "A program of yours, which reads and writes, under faults.",
    "soak": "For every night: settings that must hold, under many families.",
    "ci": "Workflow files, a script and plans for continuous integration.",
    "client": "A client library of yours as a program, and its plan.",
}
_BRIDGE: Final = "Answer Bridge Call Client Consumer GroupMember Producer Transactions"


class Language(NamedTuple):
    """A language of client programs: where its files are, their names, what builds the program and what starts it."""

    folders: Mapping[str, Sequence[str]]
    build: str
    command: str

    @property
    def check(self) -> str:
        """The command to go on with."""
        return " && ".join(filter(None, (self.build, f"ackproof client check {self.command}")))


#: The languages of client programs. Each begins with a program that works.
LANGUAGES: Final = {
    "python": Language({"examples/clients/python": ("client.py", "client.toml")}, "", "python3 client.py"),
    "go": Language(
        {"examples/clients/franz-go": ("main.go", "protocol.go", "go.mod", "go.sum", "client.toml")},
        "go build -o client .",
        "./client",
    ),
    "javascript": Language(
        {"examples/clients/kafkajs": ("client.js", "package.json", "package-lock.json", "client.toml")},
        "npm ci",
        "node client.js",
    ),
    "java": Language(
        {
            "worlds/clients/java": [f"{name}.java" for name in _BRIDGE.split()],
            "examples/clients/java": ("client.toml",),
        },
        'javac -nowarn -cp "$KAFKA_HOME/libs/*" *.java',
        'java -cp "$KAFKA_HOME/libs/*:." Bridge',
    ),
}
#: The files of ``ci``: the path at the user's, and the path here.
CI_FILES: Final = {
    ".github/workflows/ackproof-pull-request.yml": "ci/github-pull-request.yml",
    ".github/workflows/ackproof-nightly.yml": "ci/github-nightly.yml",
    ".github/workflows/ackproof-releases.yml": "ci/github-releases.yml",
    "ackproof/run.sh": "ci/run.sh",
    "ackproof/Containerfile": "ci/Containerfile",
    "ackproof/Containerfile.dockerignore": "ci/Containerfile.dockerignore",
    "ackproof/requirements.lock": "requirements.lock",
    "ackproof/pull-request.toml": "plans/pull-request.toml",
    "ackproof/nightly.toml": "plans/soak.toml",
}
#: The first sentence of a text: a full stop within a file's name or a number does not end it.
_SENTENCE: Final = re.compile(r".+?[.?!](?=\s|$)")


def starter(kind: str, language: str = "") -> dict[str, Path]:
    """The files of a kind: by its path in the user's directory, the path of each here.

    In addition to :data:`KINDS`, every plan of the project is a kind: ``racks``, ``stories/S40``. The kind "client" is
    there in some languages.

    Raises:
        PlanError: there is no such kind; the sentence names the nearest.
    """
    if kind == "ci":
        return {to: _shipped(name) for to, name in CI_FILES.items()}
    if kind == "client":
        if language not in LANGUAGES:
            raise PlanError(unknown_name("language", language, LANGUAGES))
        folders = LANGUAGES[language].folders
        return {name: _shipped(f"{folder}/{name}") for folder, names in folders.items() for name in names}
    plans = plans_here()
    if kind not in plans:
        there_are = f"{', '.join(KINDS)}; all: ackproof init --list"
        raise PlanError(unknown_name("kind", kind, {**KINDS, **plans}, there_are))
    return {f"{kind.replace('/', '-')}.toml": plans[kind]}


def plans_here() -> dict[str, Path]:
    """Every plan of the project by its name, which is its path below ``plans/`` without the ending."""
    root = _shipped("plans")
    return {path.relative_to(root).with_suffix("").as_posix(): path for path in sorted(root.rglob("*.toml"))}


def heading(plan: Path) -> str:
    """The first sentence of a plan's file about itself."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), plan.read_text(encoding="utf-8").splitlines())
    about = " ".join(line.removeprefix("#").strip() for line in lines)
    sentence = _SENTENCE.match(about)
    return sentence[0] if sentence else about


def _shipped(name: str) -> Path:
    """The path of ``plans`` or another of these files: inside an installed package, beside it in a clone."""
    package = Path(harness.__file__).parent
    inside = package / name
    return inside if inside.exists() else package.parent / name
