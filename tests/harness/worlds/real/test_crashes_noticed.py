"""Ended processes that nobody ended, and those whose port was taken."""

from pathlib import Path

import pytest

from harness.ground.errors import HarnessError, PortError, StartError
from harness.ground.observations import NodeCrashed, Observation
from harness.worlds.contract import NodeCrash
from harness.worlds.hosts import Address, Launch, NodeState
from harness.worlds.real.nodes import CrashWatch, Nodes
from harness.worlds.real.observation_times import with_crashes


class Process:
    """A process whose end is written by hand."""

    def __init__(self) -> None:
        self.ended: str | None = None

    def exit(self) -> str | None:
        return self.ended

    def state(self) -> NodeState:
        return NodeState.RUNNING if self.ended is None else NodeState.DEAD


def watched() -> tuple[dict[int, Process], CrashWatch]:
    processes = {0: Process(), 1: Process(), 100: Process()}
    return processes, CrashWatch(processes, lambda node: f"words of {node}")  # type: ignore[arg-type]


def test_a_node_that_ends_by_itself_is_noticed_once_with_its_last_words() -> None:
    processes, crashes = watched()
    assert crashes.look(1) == ()
    processes[1].ended = "signal 11"
    assert crashes.look(5) == crashes.look(9) == (NodeCrash(5, 1, "signal 11", "words of 1"),)


def test_an_ordered_end_is_no_crash_and_the_next_process_is_watched_again() -> None:
    processes, crashes = watched()
    crashes.ordered(1, 2)
    processes[1].ended = "signal 9"
    assert crashes.look(3) == ()
    processes[1] = Process()
    processes[1].ended = "status 98"
    assert [crash.exit for crash in crashes.look(4)] == ["status 98"]


def test_a_crash_just_before_an_ordered_end_is_still_a_crash() -> None:
    processes, crashes = watched()
    processes[0].ended = "status 1"
    crashes.ordered(0, 7)
    assert [(crash.node, crash.time_us) for crash in crashes.look(8)] == [(0, 7)]


def test_a_restart_is_when_the_node_returned() -> None:
    processes, crashes = watched()
    processes[100].ended = "status 1"
    crashes.look(3)
    processes[100] = Process()
    assert [(crash.time_us, crash.returned_us) for crash in crashes.look(6)] == [(3, 6)]
    processes[100].ended = "status 2"
    assert [(crash.exit, crash.returned_us) for crash in crashes.look(8)] == [("status 1", 6), ("status 2", None)]


def test_a_crash_stands_among_what_the_nodes_told() -> None:
    (noticed,) = with_crashes([], [NodeCrash(5, 1, "signal 11", "words")])
    assert noticed == Observation(5, 1, NodeCrashed(exit="signal 11", words="words"))


#: The words of Kafka 4.3.1, whose exit code is 1 whatever it was.
TAKEN = (
    "org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:19092: Address already in use."
)


class DeadHost:
    """Every process that is started has ended, after it wrote ``words``."""

    def __init__(self, words: str) -> None:
        self.words = words

    def start(self, launch: Launch) -> Process:
        with launch.log.open("a") as log:
            log.write(f"{self.words}\n" + "shut down\n" * 20)
        process = Process()
        process.ended = "status 1"
        return process

    def address(self, node: int) -> Address:
        return Address("127.0.0.1", 19_092)


@pytest.mark.parametrize(
    ("words", "kind", "says"),
    [
        (TAKEN, PortError, "127.0.0.1:19092, the address of node 0, is in use"),
        ("no memory", StartError, "node 0 ended with status 1"),
    ],
)
def test_a_node_of_java_that_finds_its_port_taken_says_so_in_its_log(
    tmp_path: Path, words: str, kind: type[HarnessError], says: str
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "node-0.log").write_text("Address already in use, at an earlier start\n")

    def launch(nodes: Nodes, node: int) -> Launch:
        return Launch(node=node, command=(), environment={}, directory=tmp_path, log=nodes.log(node))

    nodes = Nodes(DeadHost(words), tmp_path, 1, 1, launch)  # type: ignore[arg-type]
    nodes.start(0)
    with pytest.raises(kind, match=says):
        nodes.check()
