"""A program that starts clusters at once, a process each, all at one address: ADDRESS DIRECTORY CLUSTERS NODES.

So it is in containers with one network and process ids of their own. Each cluster waits until its nodes answer, kills
one and starts it again, prints as JSON where they answer, or what went wrong, and stays until the input ends.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

from harness.records.journal import FILE_NAME, Journal
from harness.worlds.hosts import Launch, LocalProcess, LoopbackHost, local

LIMIT_S = 60.0
#: Listens at an address, and says to which cluster it belongs.
NODE = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    connection, _ = server.accept()
    with connection:
        connection.sendall(sys.argv[3].encode())
"""


def start(host: LoopbackHost, directory: Path, node: int) -> LocalProcess:
    own = host.address(node)
    command = (sys.executable, "-ISc", NODE, own.host, str(own.port), directory.name)
    return host.start(
        Launch(node=node, command=command, environment={}, directory=directory, log=directory / f"{node}.log")
    )


def wait_for_answer(host: LoopbackHost, directory: Path, node: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            with socket.create_connection(host.address(node), LIMIT_S) as connection:
                name = connection.recv(99, socket.MSG_WAITALL).decode()
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"node {node} of cluster {directory.name} does not answer") from error
            time.sleep(0.02)
        else:
            assert name == directory.name, f"node {node} of cluster {directory.name} is answered by cluster {name}"
            return


def cluster(directory: Path, nodes: int) -> None:
    directory.mkdir()
    host = LoopbackHost(Journal(directory / FILE_NAME))
    said: object
    try:
        host.open(range(nodes))
        first, *_ = [start(host, directory, node) for node in range(nodes)]
        for node in range(nodes):
            wait_for_answer(host, directory, node)
        first.kill()
        start(host, directory, 0)
        wait_for_answer(host, directory, 0)
        said = [host.address(node) for node in range(nodes)]
    except Exception as error:
        said = str(error)
    os.write(1, json.dumps(said).encode() + b"\n")
    sys.stdin.read()
    host.close()


def main(address: str, directory: Path, clusters: int, nodes: int) -> None:
    local.loopback_address = lambda *_: address
    for number in range(clusters):
        if os.fork() == 0:
            cluster(directory / str(number), nodes)
            os._exit(0)
    for _ in range(clusters):
        os.wait()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
