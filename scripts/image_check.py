"""Performs ci/Containerfile without a runner of containers: a linter reads it, and its steps run in a bare Debian.

make image-check, as root, with the package debootstrap: 46 minutes at a load of 50 to 80; 3 GB for temporary files.

The bare Debian has a Python of its own, in place of the image that the container file begins with; layers and the
isolation of a runner are not tried either. Then the finished tree checks its machine, makes README's loss, and does
what the image does by itself.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from dockerfile_parse import DockerfileParser  # type: ignore[import-untyped]

ROOT: Final = Path(__file__).parents[1]
CONTAINERFILE: Final = ROOT / "ci" / "Containerfile"
#: The Debian of Python's images, and what these have beside Python.
SUITE: Final = "trixie"
PACKAGES: Final = ("ca-certificates", "netbase", "tzdata", "python3", "python3-venv")
#: Authorities that this machine trusts beside Debian's, lent to the tree: it fetches through the same network.
TRUSTED: Final = Path("usr/local/share/ca-certificates")
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: After the steps, from the tree's own working directory: each must end with 0 and print this.
AFTERWARDS: Final = (
    ("/opt/ackproof/bin/ackproof doctor", "can run the default campaign"),
    ("cd /tmp && /opt/ackproof/bin/ackproof init demo", "demo.toml"),
    (
        "cd /tmp && /opt/ackproof/bin/ackproof run demo.toml --world simulated --settings acks=1",
        "permitted loss 1/1",
    ),
)


class ImageStep(NamedTuple):
    """A step of a container file: its instruction, and what stands behind it."""

    instruction: str
    value: str


def steps_of(containerfile: Path) -> list[ImageStep]:
    """The steps in their order, lines that go on joined, without comments.

    Raises:
        ValueError: a step is of a kind that :class:`Tree` does not perform.
    """
    parser = DockerfileParser(fileobj=containerfile.open("rb"))
    steps = [
        ImageStep(step["instruction"], step["value"]) for step in parser.structure if step["instruction"] != "COMMENT"
    ]
    if strange := sorted({step.instruction for step in steps} - Tree.KINDS):
        raise ValueError(f"{containerfile}: no way to perform {', '.join(strange)}")
    return steps


def lint(containerfile: Path) -> str:
    """The complaints of hadolint about a container file; "" without one."""
    linter = Path(sysconfig.get_path("scripts")) / "hadolint"
    return subprocess.run([linter, "--no-color", containerfile], capture_output=True, text=True, check=False).stdout


class Tree:
    """A bare root file system in which steps are performed as a runner of containers would, as far as chroot goes."""

    KINDS: Final = frozenset({"FROM", "ARG", "ENV", "COPY", "WORKDIR", "RUN", "ENTRYPOINT", "CMD"})

    def __init__(self, root: Path, context: Path) -> None:
        self._root, self._context = root, context
        self._variables: dict[str, str] = {}
        self._arguments: dict[str, str] = {}
        self._directory = "/"
        self._command: dict[str, list[str]] = {}

    def perform(self, step: ImageStep) -> None:
        """Do what ``step`` says.

        Raises:
            CalledProcessError: a program of it failed.
        """
        match step.instruction:
            case "FROM":
                self._begin()
            case "ARG":
                name, _, value = step.value.partition("=")
                self._arguments[name] = value
            case "ENV":
                self._variables |= dict(word.split("=", 1) for word in shlex.split(step.value))
            case "WORKDIR":
                self._directory = step.value
                self._inside(step.value).mkdir(parents=True, exist_ok=True)
            case "COPY":
                source, target = step.value.split()
                shutil.copytree(self._context / source, self._inside(target), dirs_exist_ok=True)
            case "RUN":
                self.run(step.value)
            case "ENTRYPOINT" | "CMD":
                self._command[step.instruction] = json.loads(step.value)

    def _inside(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def _begin(self) -> None:
        """A Debian that has little more than the image which the container file begins with."""
        included = f"--include={','.join(PACKAGES)}"
        made = ["unshare", "--mount", "debootstrap", "--variant=minbase", included, SUITE, str(self._root)]
        subprocess.run(made, check=True, stdout=sys.stderr)
        shutil.copytree("/" / TRUSTED, self._root / TRUSTED, dirs_exist_ok=True)
        self.run("update-ca-certificates")

    def run(self, line: str) -> str:
        """Perform a shell's ``line``, show what it prints, and answer with that. Nothing of it lives on."""
        inside = ["chroot", str(self._root), "/bin/sh", "-c", f"cd {shlex.quote(self._directory)} && {line}"]
        alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={self._root / 'proc'}"]
        printed = []
        with subprocess.Popen([*alone, *inside], env=self.environment, stdout=subprocess.PIPE, text=True) as process:
            for text in process.stdout or ():
                sys.stderr.write(text)
                printed.append(text)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, line)
        return "".join(printed)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a command's environment, without any of this machine's."""
        return {"PATH": PATH, "HOME": "/root", **self._arguments, **self._variables}

    @property
    def own_command(self) -> str:
        """The shell's line for what the image does by itself."""
        return shlex.join([*self._command["ENTRYPOINT"], *self._command["CMD"]])


@contextmanager
def build_context() -> Iterator[Path]:
    """The directory that `make image` gives to a runner: the files of `ackproof init ci`, and the newest wheel."""
    wheel = max((ROOT / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    program = Path(sysconfig.get_path("scripts")) / "ackproof"
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([program, "init", "ci"], cwd=name, check=True, stdout=subprocess.DEVNULL)
        shutil.copy(wheel, Path(name) / "ackproof")
        yield Path(name)


def timed(name: str, began: float) -> None:
    """Say how long a step took."""
    sys.stdout.write(f"{time.monotonic() - began:6.0f} s  {name[:100]}\n")
    sys.stdout.flush()


def main() -> int:
    """The exit code: 0 if the linter has nothing to say and every step and command did what it must."""
    if os.geteuid() or shutil.which("debootstrap") is None:
        sys.stderr.write("this makes a root file system: run it as root, with the package debootstrap installed\n")
        return 70
    if said := lint(CONTAINERFILE):
        sys.stdout.write(said)
        return 1
    steps, began = steps_of(CONTAINERFILE), time.monotonic()
    with build_context() as context, tempfile.TemporaryDirectory() as root:
        tree = Tree(Path(root), context)
        for step in steps:
            step_began = time.monotonic()
            tree.perform(step)
            timed(f"{step.instruction} {step.value}", step_began)
        for line, expected in (*AFTERWARDS, (tree.own_command, "")):
            step_began = time.monotonic()
            printed = tree.run(line)
            timed(line, step_began)
            if expected not in printed:
                sys.stdout.write(f"NOT AS EXPECTED: {expected!r} is not in what this prints\n")
                return 1
    timed("all", began)
    return 0


if __name__ == "__main__":
    sys.exit(main())
