"""A program in Java's place that does what making an archive needs of a node, in a fraction of a second.

It listens at the ports of the properties that its last argument names, says that it serves once the file ``go`` is
beside ``bin``, and writes the archive at SIGTERM. Each start leaves a line in ``starts``.
"""

import re
import signal
import socket
import sys
import time
from pathlib import Path

HOME = Path(sys.argv[0]).parents[1]
LIMIT_S = 60.0


def main(words: list[str]) -> None:
    listeners = [line for line in Path(words[-1]).read_text().splitlines() if line.startswith("listeners=")]
    addresses = re.findall(r"([\d.]+):(\d+)", listeners[0])
    with (HOME / "starts").open("a") as starts:
        starts.write(f"{addresses}\n")
    (archive,) = (word.partition("=")[2] for word in words if word.startswith("-XX:ArchiveClassesAtExit="))
    try:
        held = [socket.create_server((host, int(port))) for host, port in addresses]
    except OSError as error:
        sys.exit(f"java.net.BindException: {error.strerror.partition(' (')[0]}")

    def end(*_: object) -> None:
        Path(archive).write_text(f"{len(held)} ports")
        sys.exit()

    signal.signal(signal.SIGTERM, end)
    deadline = time.monotonic() + LIMIT_S
    while not (HOME / "go").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    sys.stdout.write("Kafka Server started\n")
    sys.stdout.flush()
    time.sleep(LIMIT_S)


main(sys.argv[1:])
