"""Which ended processes nobody ended."""

from harness.hosts import NodeState
from harness.observations import NodeCrashed, Observation
from harness.worlds.contract import NodeDeath
from harness.worlds.processes.crashes import Deaths, with_deaths


class Process:
    """A process whose end is written by hand."""

    def __init__(self) -> None:
        self.ended: str | None = None

    def exit(self) -> str | None:
        return self.ended

    def state(self) -> NodeState:
        return NodeState.RUNNING if self.ended is None else NodeState.DEAD


def watched() -> tuple[dict[int, Process], Deaths]:
    processes = {0: Process(), 1: Process(), 100: Process()}
    return processes, Deaths(processes, lambda node: f"words of {node}")  # type: ignore[arg-type]


def test_a_node_that_ends_by_itself_is_noticed_once_with_its_last_words() -> None:
    processes, deaths = watched()
    assert deaths.look(1) == ()
    processes[1].ended = "signal 11"
    assert deaths.look(5) == deaths.look(9) == (NodeDeath(5, 1, "signal 11", "words of 1"),)


def test_an_ordered_end_is_no_death_and_the_next_process_is_watched_again() -> None:
    processes, deaths = watched()
    deaths.ordered(1, 2)
    processes[1].ended = "signal 9"
    assert deaths.look(3) == ()
    processes[1] = Process()
    processes[1].ended = "status 98"
    assert [death.exit for death in deaths.look(4)] == ["status 98"]


def test_a_crash_just_before_an_ordered_end_is_still_a_crash() -> None:
    processes, deaths = watched()
    processes[0].ended = "status 1"
    deaths.ordered(0, 7)
    assert [(death.node, death.time_us) for death in deaths.look(8)] == [(0, 7)]


def test_a_restart_is_when_the_node_returned() -> None:
    processes, deaths = watched()
    processes[100].ended = "status 1"
    deaths.look(3)
    processes[100] = Process()
    assert [(death.time_us, death.returned_us) for death in deaths.look(6)] == [(3, 6)]
    processes[100].ended = "status 2"
    assert [(death.exit, death.returned_us) for death in deaths.look(8)] == [("status 1", 6), ("status 2", None)]


def test_a_death_stands_among_what_the_nodes_told() -> None:
    (told,) = with_deaths([], [NodeDeath(5, 1, "signal 11", "words")])
    assert told == Observation(5, 1, NodeCrashed(exit="signal 11", words="words"))
