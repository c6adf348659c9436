"""Examines this machine: what is there, what each thing is for, and how to get what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import psutil

from harness.ground.errors import HarnessError
from harness.ground.machine.java import HOW, usable_java
from harness.ground.machine.versions import cores, versions
from harness.worlds.clients import CLIENTS, JAVA, compiler_jars
from harness.worlds.hosts import clocks, disk_speed, link_speed
from harness.worlds.kafka.installation import installed
from harness.worlds.kafka.java_client import SINCE as CLIENT_SINCE

#: A default campaign leaves about this much (measured with plans/default.toml), with as much again for Spark.
DISK_MIN_BYTES: Final = 2 * 2**30
#: Three clusters of four Python processes beside a Spark of 1 GiB.
MEMORY_MIN_BYTES: Final = 3 * 2**30
PROGRAM_LIMIT_S: Final = 10.0
#: The finding of :func:`harness.worlds.hosts.link_speed.probe_slow_links`, in words.
_KINDS_OF_SLOW: Final = {
    link_speed.LATE: "a low rate and a delay (tc with htb, u32 and netem)",
    link_speed.FIFO: "a low rate without a delay (tc with htb and u32; the kernel lacks netem)",
}


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked for. ``needed`` things must be there; the others open a world, a host or a test."""

    name: str
    good: bool
    state: str = msgspec.field(name="found")
    purpose: str
    how: str
    needed: bool = False


def examine(directory: Path) -> list[Check]:
    """Every check, the needed ones first; ``directory`` is where results will be written."""
    here = [_python(), _java(), _disk(directory), _memory(), _cores(), *_client_libraries(), _java_client()]
    return [*here, *_programs(), _root(), _namespaces(), _slow_disks(), _slow_links(), _wrong_clocks(), _kafka()]


def _python() -> Check:
    version, how = sys.version.split()[0], "install python3 of a current Debian or Ubuntu"
    return Check("Python 3.11 or later", sys.version_info >= (3, 11), version, "everything", how, needed=True)


def _java() -> Check:
    good, state = _tried(usable_java)
    if not good:
        state = state.partition(": ")[0]  # ``how`` says what to do about it
    return Check("Java 17 or later", good, state, "checking with PySpark", HOW, needed=True)


def _disk(directory: Path) -> Check:
    parent = next(path for path in [directory.resolve(), *directory.resolve().parents] if path.exists())
    free, writable = shutil.disk_usage(parent).free, os.access(parent, os.W_OK)
    state = f"{free / 2**30:.1f} GiB free at {parent}" + ("" if writable else ", not writable")
    how = f"make {DISK_MIN_BYTES / 2**30:.0f} GiB free, or write elsewhere with --out"
    good = free >= DISK_MIN_BYTES and writable
    return Check("disk", good, state, "results of a default campaign", how, needed=True)


def _memory() -> Check:
    memory = psutil.virtual_memory()
    state = f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB available"
    how = "end other programs, or lower `parallel` in the plan"
    return Check("memory", memory.available >= MEMORY_MIN_BYTES, state, "three clusters at a time, then Spark", how)


def _cores() -> Check:
    purpose, how = "the default campaign within six minutes", "it works with one core, more slowly"
    return Check("cores", cores() >= 2, str(cores()), purpose, how)


def _client_libraries() -> list[Check]:
    installed_versions = versions()
    return [
        Check(name, not library.unfit, installed_versions[name], f'client = "{name}"', library.unfit)
        for name, library in CLIENTS.items()
        if name != JAVA
    ]


def _java_client() -> Check:
    releases = ", ".join(str(release.version) for release in installed() if release.version >= CLIENT_SINCE)
    good = bool(releases) and bool(compiler_jars())
    state = f"of {releases}" if good else "no release" if not releases else "PySpark has no compiler (Janino)"
    return Check("Kafka's Java client", good, state, f'client = "{JAVA}"', "ackproof kafka install")


def _programs() -> list[Check]:
    wanted = [
        ("ip", "iproute2", "network namespaces as hosts"),
        ("nft", "nftables", "network namespaces as hosts"),
        ("mkfs.ext4", "e2fsprogs", "disks of the brokers' own: lost power, full, slow"),
        ("ssh", "openssh-client", "reaching other machines by hand"),
        ("mvn", "maven", "fetching Apache Kafka"),
        ("kcat", "kcat", "tests with a third client"),
    ]
    return [_program(*row) for row in wanted]


def _program(name: str, package: str, purpose: str) -> Check:
    # Debian keeps administration programs out of an ordinary user's path.
    state = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return Check(name, state is not None, state or "missing", purpose, f"install the package {package}")


def _root() -> Check:
    purpose = "network namespaces as hosts (loopback needs no rights)"
    return Check("root", os.geteuid() == 0, f"user id {os.geteuid()}", purpose, "run with sudo")


def _namespaces() -> Check:
    name = f"ackproof-doctor-{os.getpid()}"
    good = _works("ip", "netns", "add", name) and _works("ip", "netns", "exec", name, "nft", "list", "ruleset")
    _works("ip", "netns", "delete", name)
    state = "can be made and filtered" if good else "cannot be made"
    purpose = 'host = "namespaces": own addresses and real packet loss'
    how = "be root, outside of a container without CAP_SYS_ADMIN and CAP_NET_ADMIN"
    return Check("network namespaces", good, state, purpose, how)


def _slow_disks() -> Check:
    how = "mount control groups with the controller blkio (version 1) or io (version 2)"
    return Check(
        "slow disks", *_tried(lambda: str(disk_speed.find_limit())), "the fault family slow-disk, as root", how
    )


def _slow_links() -> Check:
    how = "install the package iproute2; the kernel needs sch_htb and cls_u32"
    state = _tried(lambda: _KINDS_OF_SLOW[link_speed.probe_slow_links()])
    return Check("slow links", *state, "the fault family slow-link, as root", how)


def _wrong_clocks() -> Check:
    library = clocks.faketime_library()
    state = library or "libfaketime is missing"
    return Check("wrong clocks", library is not None, state, "the fault family clock", "install the package faketime")


def _kafka() -> Check:
    releases = ", ".join(str(release.version) for release in installed())
    return Check("Apache Kafka", bool(releases), releases or "none", "the world kafka", "ackproof kafka install")


def _tried(probe: Callable[[], str | None]) -> tuple[bool, str]:
    """Try a probe: True with what it says (or ""), False with the reason."""
    try:
        return True, probe() or ""
    except HarnessError as error:
        return False, str(error)


def _works(*command: str) -> bool:
    environment = os.environ | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    try:
        done = subprocess.run(command, capture_output=True, timeout=PROGRAM_LIMIT_S, check=False, env=environment)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
