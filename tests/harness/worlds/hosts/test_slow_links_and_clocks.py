"""Rates and delays in the kernel's queueing, and clocks that a library makes wrong."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.ground.errors import HostError
from harness.ground.observations import IsrChanged, Observation
from harness.records.journal import FILE_NAME, Journal
from harness.worlds.hosts import clocks
from harness.worlds.hosts import link_speed as slow
from harness.worlds.hosts.clocks import Clocks
from harness.worlds.hosts.link_speed import Shaper
from harness.worlds.hosts.namespaces import NamespaceHost
from harness.worlds.real.observation_times import rightly_timed
from nemesis.cluster import CLIENTS, CONTROLLER, Link
from tests.harness.needs import needs_root

on_namespaces = needs_root("ip", "nft", "tc", "unshare")
needs_library = pytest.mark.skipif(
    not any(Path(path).is_file() for path in clocks.LIBRARIES), reason="needs libfaketime; install the package faketime"
)
LISTING = """class htb 1:10 root prio 0 rate 16Kbit ceil 16Kbit burst 3000b cburst 1600b
 Sent 2500 bytes 12 pkt (dropped 1, overlimits 7 requeues 0)
 backlog 0b 0p requeues 0

class htb 1:fff root prio 0 rate 10Gbit ceil 10Gbit burst 0b cburst 0b
 Sent 99 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
"""


#: The lines of htb and pfifo are of iproute2 6.1; those of netem, in the form that its tc/q_netem.c prints. The last is
#: somebody else's.
QDISCS = """qdisc htb 1: root refcnt 2 r2q 10 default 0xfff direct_packets_stat 0 direct_qlen 1000
qdisc netem 10: parent 1:10 limit 1000 delay 200ms  50ms
qdisc netem 74: parent 1:74 limit 1000 delay 200ms  50ms seed 11386401599413554931
qdisc pfifo 11: parent 1:11 limit 1000p
qdisc netem 8001: dev eth1 root refcnt 2 limit 1000 delay 120ms
"""


def test_every_slow_target_has_a_class_of_its_own_and_the_rest_is_fast():
    lines = slow.rules("eth0", [0, CONTROLLER], {0: "10.77.1.1", CONTROLLER: "10.77.1.101"}, slow.FIFO).splitlines()
    assert [line for line in lines if "default" in line] == ["qdisc add dev eth0 root handle 1: htb default fff"]
    assert [line.split()[-3:] for line in lines if "10.77.1.1/32" in line] == [["10.77.1.1/32", "flowid", "1:10"]]
    assert [line.split()[-1] for line in lines if "10.77.1.101/32" in line] == ["1:74"]
    assert sum(f"rate {slow.RATE_KBIT}kbit" in line for line in lines) == 2


@pytest.mark.parametrize("leaf", [slow.LATE, slow.FIFO])
def test_every_slow_class_waits_in_a_leaf_of_its_own(leaf):
    lines = slow.rules("eth0", [0, CONTROLLER], {0: "10.77.1.1", CONTROLLER: "10.77.1.101"}, leaf).splitlines()
    assert [line for line in lines if line.endswith(leaf)] == [
        f"qdisc add dev eth0 parent 1:{own} handle {own}: {leaf}" for own in ("10", "74")
    ]


def test_counters_are_read_by_target():
    assert slow.counted(LISTING) == {0: {"bytes": 2500, "waits": 7}}
    assert slow.counted(LISTING.replace(" root ", " root leaf 10: ")) == {0: {"bytes": 2500, "waits": 7}}
    assert slow.counted("") == {}


def test_delays_are_read_by_target_and_only_where_the_kernel_has_them():
    assert slow.delays_ms(QDISCS) == {0: 200, CONTROLLER: 200}
    assert slow.delays_ms(QDISCS.replace("netem", "pfifo")) == {}
    assert slow.delays_ms("qdisc netem 10: parent 1:10 limit 1000 delay 200.0ms  50.0ms\n") == {0: 200}, (
        "older iproute2"
    )


class Kernel:
    """Stands in for ``tc``: the classes of one interface, and the bytes that each let pass since it was made.

    ``qdiscs`` is what it lists of queues.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, qdiscs: str = "") -> None:
        self.classes: dict[str, int] = {}
        self.qdiscs = qdiscs
        monkeypatch.setattr(slow, "_run", self._run)
        monkeypatch.setattr(slow, "attempt", lambda _: self.classes.clear())

    def _run(self, command, text=None):
        if text is not None:
            self.classes |= dict.fromkeys((line.split()[-1] for line in text.splitlines() if "flowid" in line), 0)
        if "qdisc" in command:
            return self.qdiscs
        return "".join(
            f"class htb {number} root\n Sent {sent} bytes 1 pkt (dropped 0, overlimits 1 requeues 0)\n"
            for number, sent in self.classes.items()
        )


def test_what_passed_is_counted_over_slow_links_that_overlap(monkeypatch):
    kernel = Kernel(monkeypatch)
    shaper = Shaper({0: slow.Interface("", "eth0")}, {1: "10.77.1.2", 2: "10.77.1.3"}, slow.FIFO)
    shaper.slow([Link(0, 1)])
    kernel.classes["1:11"] = 500
    assert set(shaper.slow([Link(0, 2)])["kbit"]) == {"0>2"}
    kernel.classes |= {"1:11": 30, "1:12": 7}
    assert shaper.restore([Link(0, 2)]) == {"passed": {"0>2": {"bytes": 7, "waits": 1}}}
    kernel.classes["1:11"] = 2
    assert shaper.restore([Link(0, 1)])["passed"]["0>1"]["bytes"] == 532
    shaper.slow([Link(0, 1)])
    assert shaper.restore([Link(0, 1)])["passed"]["0>1"]["bytes"] == 0, "counted anew"


def test_a_receipt_tells_of_a_delay_only_where_the_kernel_lists_it(monkeypatch):
    links = [Link(1, 0), Link(1, CONTROLLER)]
    addresses = {0: "10.77.1.1", CONTROLLER: "10.77.1.101"}
    rates = {"1>0": 16, f"1>{CONTROLLER}": 16}
    for listed, delays in ((QDISCS, {"1>0": 200, f"1>{CONTROLLER}": 200}), ("", None)):
        Kernel(monkeypatch, listed)
        evidence = Shaper({1: slow.Interface("", "eth0")}, addresses, slow.LATE).slow(links)
        assert evidence == {"kbit": rates} | ({"delay_ms": delays} if delays else {})


@pytest.mark.parametrize(("lacking", "leaf"), [((), slow.LATE), (("netem",), slow.FIFO)])
def test_links_are_late_where_the_kernel_can_and_only_slow_where_not(monkeypatch, lacking, leaf):
    monkeypatch.setattr(slow.shutil, "which", lambda tool: f"/sbin/{tool}")
    monkeypatch.setattr(slow, "_run", lambda _, text: refuse(text, lacking))
    assert slow.probe_slow_links() == leaf


def test_without_rates_there_are_no_slow_links(monkeypatch):
    monkeypatch.setattr(slow.shutil, "which", lambda tool: f"/sbin/{tool}")
    monkeypatch.setattr(slow, "_run", lambda _, text: refuse(text, ("htb",)))
    with pytest.raises(HostError, match="htb"):
        slow.probe_slow_links()


def refuse(text: str, lacking: tuple[str, ...]) -> None:
    """As a kernel without these."""
    for kind in lacking:
        if kind in text:
            raise HostError(f"{kind} is unknown")


#: The least time that 20 kB take at 16 kbit a second, of which the first 3 kB are for free.
LEAST_S = 8.0
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
@on_namespaces
def test_a_slow_link_lets_little_through_and_is_fast_again(tmp_path):
    leaf = slow.probe_slow_links()
    journal = Journal(tmp_path / FILE_NAME)
    host = NamespaceHost(journal)
    try:
        host.open([0, 1])
        shaper = host.shaper()
        names = (f"0>{CLIENTS}", "1>0")
        late = {"delay_ms": dict.fromkeys(names, 200)} if leaf == slow.LATE else {}
        assert shaper.slow([Link(0, CLIENTS), Link(1, 0)]) == {"kbit": dict.fromkeys(names, 16)} | late
        assert shaper._seen(0).keys() == {CLIENTS}
        assert fetched_in_s(host) > LEAST_S
        assert shaper.restore([Link(1, 0)])["passed"]["1>0"]["bytes"] == 0
        passed = shaper.restore([Link(0, CLIENTS)])["passed"][f"0>{CLIENTS}"]
        assert passed["waits"] > 0
        assert shaper.restore([Link(0, CLIENTS)]) == {}
        assert shaper._seen(0) == {}, "the kernel has no rule any more"
        assert fetched_in_s(host) > 0
    finally:
        host.close()
        journal.close()


@pytest.mark.system
@pytest.mark.root
@on_namespaces
def test_the_delay_is_refused_by_kernels_without_netem_only():
    asked = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", *slow.LATE.split()]
    done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode == 0) == (slow.probe_slow_links() == slow.LATE)
    assert done.returncode == 0 or "kind is unknown" in done.stderr, "its words were wrong, not the kernel lacking"


def fetched_in_s(host: NamespaceHost) -> float:
    """The time that 20 kB take from node 0 to the harness."""
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
    reported = [
        Observation(us, node, IsrChanged(partition="t-0"))
        for us, node in ((7_203_000_000, 1), (4_000_000, 1), (5_000_000, 0))
    ]
    times = [(seen.node, seen.time_us) for seen in rightly_timed(reported, tmp_path)]
    assert times == [(1, 3_000_000), (1, 4_000_000), (0, 5_000_000)]
    assert rightly_timed(reported, tmp_path / "nowhere") == reported


def test_without_the_library_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(clocks, "LIBRARIES", (str(tmp_path / "nowhere.so"),))
    with pytest.raises(HostError, match="install the package faketime"):
        Clocks(tmp_path / "clocks")
