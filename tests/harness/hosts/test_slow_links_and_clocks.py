"""Rates in the kernel's queueing, and clocks that a library makes wrong."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.errors import HostError
from harness.hosts import clocks, shaping, tc
from harness.hosts.clocks import Clocks
from harness.hosts.namespaces import NamespaceHost
from harness.hosts.shaping import Shaper
from harness.worlds.contract import Observation
from harness.worlds.processes.shaping import rightly_timed
from nemesis.contract import CLIENTS, CONTROLLER, Link
from nemesis.journal import FILE_NAME, Journal

MISSING = [tool for tool in ("ip", "nft", "tc", "unshare") if shutil.which(tool) is None]
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or bool(MISSING), reason=f"needs root and commands; missing: {MISSING or 'root'}"
)
needs_library = pytest.mark.skipif(
    not any(Path(place).is_file() for place in clocks.PLACES), reason="needs libfaketime; install the package faketime"
)
LISTING = """class htb 1:10 root prio 0 rate 16Kbit ceil 16Kbit burst 3000b cburst 1600b
 Sent 2500 bytes 12 pkt (dropped 1, overlimits 7 requeues 0)
 backlog 0b 0p requeues 0

class htb 1:fff root prio 0 rate 10Gbit ceil 10Gbit burst 0b cburst 0b
 Sent 99 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
"""


def test_every_slow_target_has_a_class_of_its_own_and_the_rest_is_fast():
    lines = tc.rules("eth0", [0, CONTROLLER], {0: "10.77.1.1", CONTROLLER: "10.77.1.101"}).splitlines()
    assert [line for line in lines if "default" in line] == ["qdisc add dev eth0 root handle 1: htb default fff"]
    assert [line.split()[-3:] for line in lines if "10.77.1.1/32" in line] == [["10.77.1.1/32", "flowid", "1:10"]]
    assert [line.split()[-1] for line in lines if "10.77.1.101/32" in line] == ["1:74"]
    assert sum(f"rate {tc.RATE_KBIT}kbit" in line for line in lines) == 2


def test_counters_are_read_by_target():
    assert tc.seen(LISTING) == {0: {"bytes": 2500, "waits": 7}}
    assert tc.seen("") == {}


class Kernel:
    """Stands in for ``tc``: the classes of one interface, and the bytes that each let pass since it was made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.classes: dict[str, int] = {}
        monkeypatch.setattr(shaping, "_run", self._run)
        monkeypatch.setattr(shaping.subprocess, "run", lambda *_, **__: self.classes.clear())

    def _run(self, command, text=None):
        if text is not None:
            self.classes |= dict.fromkeys((line.split()[-1] for line in text.splitlines() if "flowid" in line), 0)
        return "".join(
            f"class htb {number} root\n Sent {sent} bytes 1 pkt (dropped 0, overlimits 1 requeues 0)\n"
            for number, sent in self.classes.items()
        )


def test_what_passed_is_counted_over_slow_links_that_overlap(monkeypatch):
    kernel = Kernel(monkeypatch)
    shaper = Shaper({0: shaping.Interface("", "eth0")}, {1: "10.77.1.2", 2: "10.77.1.3"})
    shaper.slow([Link(0, 1)])
    kernel.classes["1:11"] = 500
    assert set(shaper.slow([Link(0, 2)])["kbit"]) == {"0>2"}
    kernel.classes |= {"1:11": 30, "1:12": 7}
    assert shaper.quicken([Link(0, 2)]) == {"passed": {"0>2": {"bytes": 7, "waits": 1}}}
    kernel.classes["1:11"] = 2
    assert shaper.quicken([Link(0, 1)])["passed"]["0>1"]["bytes"] == 532
    shaper.slow([Link(0, 1)])
    assert shaper.quicken([Link(0, 1)])["passed"]["0>1"]["bytes"] == 0, "counted anew"


#: Answers a connection with so many bytes; run inside a namespace.
SERVE = """
import socket, sys
server = socket.create_server((sys.argv[1], 9000))
print("listening", flush=True)
connection, _ = server.accept()
connection.sendall(b"x" * 20_000)
connection.close()
"""


@pytest.mark.system
@pytest.mark.root
@needs_root
def test_a_slow_link_lets_little_through_and_is_fast_again(tmp_path):
    shaping.probe()
    journal = Journal(tmp_path / FILE_NAME)
    host = NamespaceHost(journal)
    try:
        host.open([0, 1])
        shaper = Shaper(host.interfaces(), host.addresses())
        assert shaper.slow([Link(0, CLIENTS), Link(1, 0)]) == {"kbit": {f"0>{CLIENTS}": 16, "1>0": 16}}
        slow_s = fetched_in_s(host)
        assert shaper.quicken([Link(1, 0)])["passed"]["1>0"]["bytes"] == 0
        passed = shaper.quicken([Link(0, CLIENTS)])["passed"][f"0>{CLIENTS}"]
        assert passed["waits"] > 0
        assert shaper.quicken([Link(0, CLIENTS)]) == {}
        assert fetched_in_s(host) < slow_s / 2
    finally:
        host.close()
        journal.close()


def fetched_in_s(host: NamespaceHost) -> float:
    """How long 20 kB take from node 0 to the harness."""
    address, namespace = host.address(0).host, host.interfaces()[0].namespace
    server = subprocess.Popen(
        ["ip", "netns", "exec", namespace, sys.executable, "-c", SERVE, address], stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        server.stdout.readline()
        began = time.monotonic()
        with socket.create_connection((address, 9000), timeout=60) as connection:
            while connection.recv(65536):
                pass
        return time.monotonic() - began
    finally:
        server.kill()
        server.wait()


#: Tells the time again and again, as a server would be asked for it.
TELL_TIME = """
import asyncio, time
async def tell():
    for _ in range(3_000):
        print(time.time(), flush=True)
        await asyncio.sleep(0.02)
asyncio.run(tell())
"""


@pytest.mark.system
@needs_library
def test_a_program_with_a_wrong_clock_reads_the_wrong_time_and_the_right_one_again(tmp_path):
    made = Clocks(tmp_path / "clocks")
    made.make()
    environment = os.environ | made.environment(3)
    child = subprocess.Popen([sys.executable, "-c", TELL_TIME], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None

        def wrong_by_s() -> float:
            return float(child.stdout.readline()) - time.time()

        def within_s(expected: float) -> bool:
            return any(abs(wrong_by_s() - expected) < 1 for _ in range(200))

        assert within_s(0)
        assert abs(made.set(3, 7_200_000)["offset_ms"] - 7_200_000) < 1_000
        assert within_s(7_200)
        made.set(3, 0)
        assert within_s(0)
    finally:
        child.kill()
        child.wait()


def test_what_a_node_with_a_wrong_clock_wrote_down_is_brought_back_to_its_time(tmp_path):
    (tmp_path / "1.steps").write_text("7200000\n0\n")
    told = [
        Observation(us, node, "isr", "t-0", {}) for us, node in ((7_203_000_000, 1), (4_000_000, 1), (5_000_000, 0))
    ]
    times = [(seen.node, seen.time_us) for seen in rightly_timed(told, tmp_path)]
    assert times == [(1, 3_000_000), (1, 4_000_000), (0, 5_000_000)]
    assert rightly_timed(told, tmp_path / "nowhere") == told


def test_without_the_library_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(clocks, "PLACES", (str(tmp_path / "nowhere.so"),))
    with pytest.raises(HostError, match="install the package faketime"):
        Clocks(tmp_path / "clocks").make()
