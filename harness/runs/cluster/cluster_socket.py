"""The socket over which a cluster is broken by hand: in its directory, one request and one answer a connection."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from threading import Thread
from typing import Any, Final

import msgspec

from harness.ground.errors import AckproofError, NamedWronglyError, PlanError
from harness.runs.cluster.by_hand import ClusterRequest
from harness.worlds.hosts import NodeCall
from nemesis.cluster import ClusterView
from nemesis.receipts import Receipt
from workloads import reason_of

SOCKET_FILE: Final = "cluster.sock"
_START_ONE: Final = "start one with `ackproof cluster up`, or name its directory with --in"
#: A request is a line; a longer one is cut off.
REQUEST_BYTES_MAX: Final = 4_096
#: The slowest of what is asked for waits for a node to end, or for a move to be confirmed.
ANSWER_LIMIT_S: Final = 60.0


class ClusterAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request: receipts, the cluster as it is, or why nothing was done (``refused``)."""

    receipts: list[Receipt] = []
    view: ClusterView | None = None
    refused: str = ""


@contextmanager
def served(
    directory: Path, post: Callable[[Callable[[], None]], None], answer: Callable[[ClusterRequest], ClusterAnswer]
) -> Iterator[None]:
    """Answer requests at the socket in ``directory``; ``post`` has ``answer`` called on the thread of the cluster."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            said: SimpleQueue[ClusterAnswer] = SimpleQueue()
            line = self.rfile.readline(REQUEST_BYTES_MAX)
            post(lambda: said.put(_answered(line, answer)))
            self.wfile.write(msgspec.json.encode(said.get(timeout=ANSWER_LIMIT_S), enc_hook=str) + b"\n")

    with _short(directory) as path:
        Path(path).unlink(missing_ok=True)
        with ThreadingUnixStreamServer(path, Handler) as server:
            server.daemon_threads = True
            Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
            try:
                yield
            finally:
                server.shutdown()
                Path(path).unlink(missing_ok=True)


def _answered(line: bytes, answer: Callable[[ClusterRequest], ClusterAnswer]) -> ClusterAnswer:
    try:
        return answer(msgspec.json.decode(line, type=ClusterRequest))
    except (msgspec.DecodeError, AckproofError) as error:
        return ClusterAnswer(refused=str(error))


def ask(directory: Path, request: ClusterRequest) -> ClusterAnswer:
    """Ask the cluster in ``directory``, and return its answer.

    Raises:
        NamedWronglyError: no cluster is up in it.
        PlanError: it refused.
    """
    try:
        with _short(directory) as path:
            given: dict[str, Any] = NodeCall(path, msgspec.to_builtins(request), ANSWER_LIMIT_S).answer()
    except OSError as error:
        raise NamedWronglyError(f"no cluster is up in {directory} ({reason_of(error)}); {_START_ONE}") from error
    converted = msgspec.convert(given, ClusterAnswer, strict=False)
    if converted.refused:
        raise PlanError(converted.refused)
    return converted


def running_cluster(results: Path) -> Path:
    """The one directory below ``results`` in which a cluster is up.

    Raises:
        NamedWronglyError: no cluster is up there, or more than one.
    """
    directories = [path.parent for path in sorted(results.glob(f"*/{SOCKET_FILE}")) if _listens(path.parent)]
    if not directories:
        raise NamedWronglyError(f"no cluster is up below {results}; {_START_ONE}")
    if len(directories) > 1:
        names = ", ".join(map(str, directories))
        raise NamedWronglyError(
            f"{len(directories)} clusters are up below {results}: {names}; name one of them with --in"
        )
    return directories[0]


def _listens(directory: Path) -> bool:
    try:
        ask(directory, ClusterRequest(op="show"))
    except NamedWronglyError:
        return False
    return True


@contextmanager
def _short(directory: Path) -> Iterator[str]:
    """A short path of the socket: that of a Unix socket has at most 107 bytes, and directories can be longer."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_FILE}"
    finally:
        os.close(descriptor)
