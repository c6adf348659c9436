"""A harness may die between any two of its actions: heal finds everything from what the journal holds then."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.records.journal import FILE_NAME
from harness.runs.run.healing import heal
from harness.worlds.hosts.processes import marked_with

pytestmark = pytest.mark.system
#: The limit of all deaths together.
LIMIT_S = 600.0

#: A little harness that opens a host with two frozen nodes, and dies at its Nth line of the journal. It imports once;
#: each line of its input (a directory, N, "before" or "after") is a death that a child plays. It prints how each ended.
HARNESS = """
import os, sys
from pathlib import Path
from harness.worlds.hosts import Launch
from harness.worlds.hosts import LoopbackHost
from harness.worlds.hosts import NamespaceHost
from harness.records.journal import FILE_NAME, Journal
host_class, written, write = globals()[sys.argv[1]], 0, Journal._write

def play(directory, dies_at, moment):
    def write_or_die(journal, line):
        global written
        written += 1
        if moment == "before" and written == dies_at:
            os.kill(os.getpid(), 9)
        write(journal, line)
        if moment == "after" and written == dies_at:
            os.kill(os.getpid(), 9)

    Journal._write = write_or_die
    host = host_class(Journal(directory / FILE_NAME))
    host.open([0, 100])
    command = (sys.executable, "-c", "import time; time.sleep(60)")
    for node in (0, 100):
        launch = Launch(node=node, command=command, environment={}, directory=directory, log=directory / "log")
        host.start(launch).pause()
    host.close()

for line in sys.stdin:
    directory, dies_at, moment = line.rsplit(maxsplit=2)
    child = os.fork()
    if not child:
        play(Path(directory), int(dies_at), moment)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@contextmanager
def player(host: str) -> Iterator[Callable[[Path, int, str], int]]:
    """Plays a death of the harness and says how it ended."""
    command = [sys.executable, "-c", HARNESS, host]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as harness:

        def play(directory: Path, dies_at: int, moment: str) -> int:
            print(directory, dies_at, moment, file=harness.stdin, flush=True)
            return int(harness.stdout.readline())

        limit = threading.Timer(LIMIT_S, os.killpg, (harness.pid, signal.SIGKILL))
        limit.start()
        try:
            yield play
        finally:
            limit.cancel()
            harness.stdin.close()


def deaths(directory: Path, host: str, step: int) -> Iterator[Path]:
    """Journals of harnesses that died before and after every ``step``-th line, until one lived to its end."""
    with player(host) as play:
        for dies_at in range(1, 100, step):
            for moment in ("before", "after"):
                run = directory / f"{dies_at}-{moment}"
                run.mkdir()
                ended = play(run, dies_at, moment)
                if ended == 0:
                    assert dies_at > 5, "it has a handful of actions at least"
                    return
                assert ended == -signal.SIGKILL
                yield run


def left_behind(journal: Path) -> list[object]:
    """The things that the journal speaks of and that still exist."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in journal.read_text().splitlines()]
    facts = [line["facts"] for line in lines if line.get("facts")]
    places = [
        Path(where) / fact["name"] for fact in facts if "name" in fact for where in ("/run/netns", "/sys/class/net")
    ]
    places += [Path(fact["path"]) for fact in facts if "path" in fact]
    processes = [who for token in {fact["token"] for fact in facts if "token" in fact} for who in marked_with(token)]
    return [path for path in places if path.exists()] + [who for who in processes if who.is_alive()]


def check_everywhere(directory: Path, host: str, step: int) -> None:
    for run in deaths(directory, host, step):
        heal(run)
        assert left_behind(run / FILE_NAME) == []
        assert heal(run) == [], "nothing is left for a second time"


def test_processes_and_directories(tmp_path: Path) -> None:
    check_everywhere(tmp_path, "LoopbackHost", step=1)


@pytest.mark.root
@pytest.mark.skipif(
    os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("nft")),
    reason="needs root and the commands ip and nft",
)
def test_namespaces_and_interfaces(tmp_path: Path) -> None:
    check_everywhere(tmp_path, "NamespaceHost", step=2)
