"""Programs that listen in the namespace of node 0, and lines of their logs that tests wait for."""

import sys
import time
from pathlib import Path

from harness.worlds.hosts.contract import Launch
from harness.worlds.hosts.namespaces import NamespaceHost

LIMIT_S = 120.0


def start_listener(host: NamespaceHost, directory: Path, program: str) -> Path:
    """The log of a Python ``program`` that is given its address and port, and prints "listening" once it does."""
    address, log = host.address(0), directory / "0.log"
    command = (sys.executable, "-c", program, address.host, str(address.port))
    host.start(Launch(node=0, command=command, environment={}, directory=directory, log=log))
    wait_for(log, "listening")
    return log


def wait_for(log: Path, line: str) -> None:
    """Return when the log has this line; fail with all of it when it has not in time."""
    limit = time.monotonic() + LIMIT_S
    while line not in (lines := log.read_text().splitlines() if log.exists() else []):
        assert time.monotonic() < limit, lines
        time.sleep(0.02)
