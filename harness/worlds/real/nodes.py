"""Starts the nodes of a cluster, knows their files, and notices which of them crash.

A fault that ends a process says so first (:meth:`CrashWatch.ordered`), so that every other process that has ended did
so by itself. A look asks the operating system about child processes, which costs microseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from harness.ground.errors import PortError, StartError
from harness.worlds.contract import NodeCrash
from harness.worlds.hosts import ADDRESS_TAKEN, Host, Launch, NodeProcess, NodeState
from nemesis.cluster import CONTROLLER, Link

#: The exit status of a node whose address is taken (EADDRINUSE).
EXIT_PORT_TAKEN: Final = 98
#: The last lines of a dead node's log that are in the error.
LOG_LINES_SHOWN: Final = 5
_LOG_BYTES_READ: Final = 4_096


class Nodes:
    """The nodes on one host, with their files under a run directory: brokers from 0 on, and the controllers.

    ``brokers`` and ``controllers`` are their numbers; ``launch`` gives the start of a node, once its directory exists.
    """

    def __init__(
        self,
        host: Host,
        directory: Path,
        brokers: int,
        controllers: int,
        launch: Callable[[Nodes, int], Launch],
    ) -> None:
        self.brokers: Final = tuple(range(brokers))
        self.controllers: Final = tuple(range(CONTROLLER, CONTROLLER + controllers))
        self.all: Final = (*self.brokers, *self.controllers)
        self.host: Final = host
        self.directory: Final = directory
        self._launch = launch
        self._processes: dict[int, NodeProcess] = {}
        self._log_begins: dict[int, int] = {}
        self._starts: Counter[int] = Counter()
        #: More variables for the environment of a node.
        self.environment_of: Callable[[int], dict[str, str]] = lambda _: {}
        self.crashes: Final = CrashWatch(self._processes, self.last_words)

    def start(self, node: int) -> None:
        """Start a node on its old files, if it has any; it is not ready yet when this returns."""
        self.data(node).mkdir(parents=True, exist_ok=True)
        self.log(node).parent.mkdir(exist_ok=True)
        self._log_begins[node] = self.log(node).stat().st_size if self.log(node).exists() else 0
        launch = self._launch(self, node)
        environment = launch.environment | self.environment_of(node)
        self._processes[node] = self.host.start(msgspec.structs.replace(launch, environment=environment))
        self._starts[node] += 1

    def process(self, node: int) -> NodeProcess:
        """The newest process of a node."""
        return self._processes[node]

    def starts(self, node: int) -> int:
        """The number of times that a node was started."""
        return self._starts[node]

    def in_state(self, state: NodeState, nodes: Iterable[int]) -> tuple[int, ...]:
        """The nodes among ``nodes`` whose process is in this state now."""
        return tuple(node for node in nodes if self._processes[node].state() is state)

    def single_links(self, links: Collection[Link]) -> list[Link]:
        """These links between single nodes: CONTROLLER in a link means every controller."""
        these = {CONTROLLER: self.controllers}
        return sorted(
            Link(source, target)
            for link in set(links)
            for source in these.get(link.source, (link.source,))
            for target in these.get(link.target, (link.target,))
        )

    def data(self, node: int) -> Path:
        """The directory of a node's data."""
        return self.directory / "data" / str(node)

    def log(self, node: int) -> Path:
        """The file of a node's standard output and error."""
        return self.directory / "logs" / f"node-{node}.log"

    def log_begin(self, node: int) -> int:
        """The byte of a node's log at which its newest process began."""
        return self._log_begins[node]

    def check(self) -> None:
        """Raise if a node that should be starting has ended.

        Raises:
            PortError: its address was taken.
            StartError: it ended for another reason; the text holds the end of its log.
        """
        for node, process in self._processes.items():
            ended = process.exit()
            if ended is None:
                continue
            if ended == f"status {EXIT_PORT_TAKEN}" or self._says_address_taken(node):
                address = self.host.address(node)
                raise PortError(
                    f"{address.host}:{address.port}, the address of node {node}, is in use; stop the program that "
                    "uses it"
                )
            words = self.last_words(node)
            raise StartError(f"node {node} ended with {ended} while it started; see {self.log(node)}: {words}")

    def _says_address_taken(self, node: int) -> bool:
        """True if the log says that the address was taken, because Java's exit code does not."""
        try:
            return ADDRESS_TAKEN.encode() in self.log(node).read_bytes()[self._log_begins[node] :]
        except OSError:
            return False

    def last_words(self, node: int) -> str:
        """The last lines of a node's log in one line."""
        try:
            content = self.log(node).read_bytes()[-_LOG_BYTES_READ:]
        except OSError:
            return "it wrote no log"
        lines = [line.strip() for line in content.decode(errors="replace").splitlines() if line.strip()]
        return " | ".join(lines[-LOG_LINES_SHOWN:]) or "the log is empty"


#: The longest last words: they are in the history, and lines of Java are long.
WORDS_MAX: Final = 800


class CrashWatch:
    """Watches the newest process of every node in ``processes``, which its owner changes as nodes start.

    ``last_words`` gives the end of a node's log.
    """

    def __init__(self, processes: Mapping[int, NodeProcess], last_words: Callable[[int], str]) -> None:
        self._processes = processes
        self._last_words = last_words
        self._ordered: dict[int, NodeProcess] = {}
        self._open: dict[int, tuple[int, NodeProcess]] = {}
        self._crashes: list[NodeCrash] = []

    def ordered(self, node: int, now_us: int) -> None:
        """Note that the harness is about to end this node, and first notice if it has ended by itself."""
        self.look(now_us)
        if node in self._processes:
            self._ordered[node] = self._processes[node]

    def look(self, now_us: int) -> Sequence[NodeCrash]:
        """Every crash until now."""
        for node, process in self._processes.items():
            if node in self._open and self._open[node][1] is not process:
                index = self._open.pop(node)[0]
                self._crashes[index] = msgspec.structs.replace(self._crashes[index], returned_us=now_us)
            if node in self._open or self._ordered.get(node) is process:
                continue
            ended = process.exit()
            if ended is not None:
                self._open[node] = (len(self._crashes), process)
                self._crashes.append(NodeCrash(now_us, node, ended, self._last_words(node)[-WORDS_MAX:]))
        return tuple(self._crashes)
