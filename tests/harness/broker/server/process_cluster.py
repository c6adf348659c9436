"""A reference cluster of processes on loopback for tests: a controller and brokers, each in a directory of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.broker.server.codec import APIS
from harness.broker.server.codec.wire import decode, request_frame
from harness.ground.observations import Observation, from_lines
from harness.worlds.hosts import Ports

CONTROLLER = 100
LIMIT_S = 240.0
T = TypeVar("T")


def wait_for(condition: Callable[[], T], what: str, limit_s: float = LIMIT_S) -> T:
    """The condition's first true value; fails with ``what`` when the limit is over."""
    end = time.monotonic() + limit_s
    while not (value := condition()):
        assert time.monotonic() < end, f"after {limit_s} s still waiting until {what}"
        time.sleep(0.02)
    return value


class Cluster:
    """Starts with :meth:`start`, ends with :meth:`close`, which leaves no process behind."""

    def __init__(self, directory: Path, brokers: int = 3, **config: Any) -> None:
        self.directory = directory
        self.brokers = tuple(range(brokers))
        self._held = Ports()
        self.ports = {node: self._held.take("127.0.0.1").port for node in (CONTROLLER, *self.brokers)}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self._config = config

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self.ports[node]}" for node in self.brokers)

    def node_directory(self, node: int) -> Path:
        return self.directory / f"node-{node}"

    def start(self) -> Cluster:
        for node in (CONTROLLER, *self.brokers):
            self.start_node(node)
        wait_for(lambda: self.live_brokers() == set(self.brokers), "every broker is registered")
        return self

    def start_node(self, node: int) -> None:
        home = self.node_directory(node)
        home.mkdir(parents=True, exist_ok=True)
        config = {
            "role": "controller" if node == CONTROLLER else "broker",
            "node": node,
            "port": self.ports[node],
            "controller_port": self.ports[CONTROLLER],
            "directory": str(home / "data"),
            "control_socket": str(home / "control"),
            "trace": str(home / "trace.jsonl"),
            "max_lifetime_s": 3_600.0,
            **self._config,
        }
        (home / "config.json").write_text(json.dumps(config))
        with (home / "log").open("ab") as log:
            self.processes[node] = subprocess.Popen(
                [sys.executable, "-m", "harness.broker.server", str(home / "config.json")],
                stdout=log,
                stderr=log,
                cwd=Path(__file__).parents[3],
            )

    def control(self, node: int, **command: Any) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(LIMIT_S)
            client.connect(str(self.node_directory(node) / "control"))
            client.sendall(json.dumps(command).encode() + b"\n")
            with client.makefile("rb") as answer:
                return json.loads(answer.readline())

    def ask(self, node: int, key: int, **values: Any) -> Any:
        """The answer of one broker to a client's request, in the newest version that is served."""
        api = APIS[key]
        version = api.versions[1]
        with socket.create_connection(("127.0.0.1", self.ports[node]), timeout=LIMIT_S) as client:
            client.sendall(request_frame(api.request, values, version, 1, "test"))
            with client.makefile("rb") as answers:
                frame = answers.read(int.from_bytes(answers.read(4), "big"))
        return decode(api.response, memoryview(frame)[5 if api.response.flexible_version_q(version) else 4 :], version)

    def create(self, topic: str) -> None:
        """Make a topic of one log partition on three brokers, and wait for it."""
        wanted = {"name": topic, "num_partitions": 1, "replication_factor": 3, "assignments": [], "configs": []}
        [made] = self.ask(self.brokers[0], 19, topics=[wanted], timeout_ms=60_000, validate_only=False).topics
        assert made.error_code == 0, made
        self.wait_for_topic(topic, 1)

    def status(self, node: int) -> dict[str, Any]:
        return self.control(node, op="status")

    def live_brokers(self) -> set[int]:
        """Brokers that the controller calls unfenced."""
        try:
            brokers = self.status(CONTROLLER)["image"]["brokers"]
        except OSError:
            return set()
        return {int(node) for node, broker in brokers.items() if not broker["fenced"]}

    def partition(self, name: str) -> dict[str, Any]:
        """The controller's word about one partition, empty if there is none."""
        return self.status(CONTROLLER)["image"]["partitions"].get(name, {})

    def wait_for_topic(self, topic: str, partitions: int) -> None:
        """Until every partition has a leader and all its replicas in sync, and every live broker knows it."""

        def ready() -> bool:
            words = [self.partition(f"{topic}-{number}") for number in range(partitions)]
            informed = [
                f"{topic}-{partitions - 1}" in self.status(n)["image"]["partitions"] for n in self.live_brokers()
            ]
            return all(w and w["leader"] >= 0 and set(w["isr"]) == set(w["replicas"]) for w in words) and all(informed)

        wait_for(ready, f"{topic} is led and in sync")

    def cut(self, links: Sequence[tuple[int, int]]) -> None:
        for node in {node for link in links for node in link if node in self.processes}:
            assert self.control(node, op="cut", links=links)["ok"]

    def heal(self, links: Sequence[tuple[int, int]]) -> dict[str, Any]:
        held: dict[str, Any] = {}
        for node in {node for link in links for node in link if node in self.processes}:
            held[str(node)] = self.control(node, op="heal", links=links)["links"]
        return held

    def heal_all(self, node: int) -> None:
        """Undo every cut that a node knows of, whatever an earlier test left."""
        cut = wait_for(lambda: self.control_if_up(node), f"node {node} answers")["links"]
        links = [[int(end) for end in link.split(">")] for link in cut]
        assert self.control(node, op="heal", links=links)["ok"]

    def control_if_up(self, node: int) -> dict[str, Any]:
        try:
            return self.status(node)
        except OSError:
            return {}

    def kill(self, node: int) -> None:
        process = self.processes.pop(node)
        process.send_signal(signal.SIGKILL)
        assert process.wait(LIMIT_S) == -signal.SIGKILL

    def stop(self, node: int) -> int:
        process = self.processes.pop(node)
        process.terminate()
        return process.wait(LIMIT_S)

    def log(self, node: int) -> str:
        return (self.node_directory(node) / "log").read_text()

    def trace(self, node: int) -> list[Observation]:
        return list(from_lines((self.node_directory(node) / "trace.jsonl").read_bytes().splitlines()))

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
        for process in self.processes.values():
            process.wait(LIMIT_S)
        self.processes.clear()
        self._held.close()
