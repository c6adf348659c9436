"""Machines for tests: OpenSSH servers, each in a network namespace of its own, with keys made for this test."""

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from harness.plan import Machine
from nemesis.cluster import CONTROLLER

TOOLS = ("ip", "nft", "nsenter", "sshd", "ssh-keygen", "sudo")
#: The path with directories of servers that an ordinary user's lacks.
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
MISSING = [tool for tool in TOOLS if shutil.which(tool, path=PATH) is None]
NODES = (0, 1, 2, CONTROLLER)
START_LIMIT_S = 120.0
TURNS = itertools.count()

SSHD_CONFIG = """
ListenAddress {address}
HostKey {directory}/host_key
AuthorizedKeysFile {authorized}
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
Subsystem sftp internal-sftp
"""


@dataclass
class Farm:
    """Four machines and what the harness needs to reach them."""

    directory: Path
    name: str
    network: str
    fingerprints: dict[int, str] = field(default_factory=dict)
    servers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def known_hosts(self) -> Path:
        return self.directory / "known_hosts"

    @property
    def key(self) -> Path:
        return self.directory / "user_key"

    def address(self, node: int) -> str:
        return f"{self.network}.{node + 1}"

    def machine(self, node: int, **changes: object) -> Machine:
        words = {
            "node": node,
            "address": self.address(node),
            "user": "root",
            "key": str(self.key),
            "known_hosts": str(self.known_hosts),
            "directory": str(self.directory / f"machine-{node}"),
            # Both ways to the rights that rules need.
            "sudo": node == 1,
        }
        return Machine(**{**words, **changes})  # type: ignore[arg-type]

    def machines(self) -> tuple[Machine, ...]:
        return tuple(self.machine(node) for node in NODES)

    def tables(self, node: int) -> str:
        return run("ip", "netns", "exec", f"{self.name}{node}", "nft", "list", "tables")

    def make(self) -> None:
        hub, outside = f"{self.name}h", f"{self.name}r"
        run("ip", "netns", "add", hub)
        run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", hub, "link", "set", "bridge", "up")
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", "root", "netns", hub)
        run("ip", "-n", hub, "link", "set", "root", "master", "bridge", "up")
        run("ip", "address", "add", f"{self.network}.254/24", "dev", outside)
        run("ip", "link", "set", outside, "up")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key))
        for node in NODES:
            self._make_machine(hub, node)
        for node in NODES:
            self.wait_for_server(node)

    def _make_machine(self, hub: str, node: int) -> None:
        name, port = f"{self.name}{node}", f"port{node}"
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", hub)
        run("ip", "-n", hub, "link", "set", port, "master", "bridge", "up")
        run("ip", "-n", name, "address", "add", f"{self.address(node)}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        home = self.directory / f"sshd-{node}"
        home.mkdir()
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / "host_key"))
        public = (home / "host_key.pub").read_text().rsplit(" ", 1)[0]
        with self.known_hosts.open("a") as file:
            file.write(f"{self.address(node)} {public}\n")
        self.fingerprints[node] = run("ssh-keygen", "-lf", str(home / "host_key.pub")).split()[1]
        config = home / "sshd_config"
        config.write_text(SSHD_CONFIG.format(address=self.address(node), directory=home, authorized=f"{self.key}.pub"))
        self.start_server(node)

    def start_server(self, node: int) -> None:
        sshd = shutil.which("sshd", path=PATH)
        assert sshd is not None
        home = self.directory / f"sshd-{node}"
        command = ["nsenter", f"--net=/run/netns/{self.name}{node}", "--", sshd, "-D", "-e", "-f", home / "sshd_config"]
        with (home / "log").open("ab") as log:
            self.servers[node] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_for_server(self, node: int) -> None:
        limit = time.monotonic() + START_LIMIT_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.address(node), 22), 1) as connection:
                if connection.recv(4) == b"SSH-":
                    return
            assert time.monotonic() < limit, f"no SSH server on the machine of node {node}"
            time.sleep(0.02)

    def stop_server(self, node: int) -> None:
        """With everybody's sessions, as a machine that is cut off; what was detached lives on."""
        server = self.servers.pop(node)
        for process in psutil.Process(server.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # it may end by itself meanwhile
                process.kill()
        server.terminate()
        server.wait(START_LIMIT_S)

    def close(self) -> None:
        for node in list(self.servers):
            self.stop_server(node)
        for name in (*(f"{self.name}{node}" for node in NODES), f"{self.name}h"):
            with contextlib.suppress(subprocess.CalledProcessError):
                run("ip", "netns", "delete", name)


def run(*words: str) -> str:
    return subprocess.run(
        words, check=True, capture_output=True, text=True, timeout=START_LIMIT_S, env=os.environ | {"PATH": PATH}
    ).stdout


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """Real OpenSSH servers; without root or one of the programs, a skip that names what is missing."""
    if os.geteuid() != 0 or MISSING:
        pytest.skip(f"needs root and commands; missing: {MISSING or 'root'}")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd insists; a package's own service would make it
    directory = tmp_path_factory.mktemp("farm")
    turn = next(TURNS)  # the kernel takes its time to remove the last one's
    farm = Farm(
        directory, f"ackt{os.getpid() % 100_000}{'abcdefgh'[turn % 8]}", f"10.78.{(os.getpid() + 125 * turn) % 250}"
    )
    try:
        farm.make()
        yield farm
    finally:
        farm.close()
