"""An operator's own commands, done by a script to processes of this machine; some fail, hang, lie, or are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from harness.ground.errors import NotUndoneError, PlanError
from harness.plan import parse_plan
from harness.plan.operator_commands import OperatorCommands
from harness.records.journal import Journal, not_undone
from harness.runs.run import heal_all
from harness.worlds.hosts import CommandedNodes
from harness.worlds.hosts.operator_commands import CommandEnd, call
from nemesis.cluster import CLIENTS, CONTROLLER, Link
from tests.waiting import LIMIT_S, wait_until

#: A broker is a process that sleeps. `is` looks at it in /proc, where a zombie is dead.
SCRIPT = """#!/bin/sh
cd "$(dirname "$0")"; pid=$(cat "$2.pid" 2>/dev/null)
state() { sed 's/.*) //; s/ .*//' "/proc/$pid/stat" 2>/dev/null || echo X; }
case "$1" in
  start) setsid sleep 1000 >/dev/null 2>&1 & echo $! >"$2.pid";;
  kill) kill -KILL "$pid";;
  stop) kill -TERM "$pid";;
  pause) kill -STOP "$pid";;
  resume) kill -CONT "$pid";;
  cut) touch "$2.$3.cut";;
  heal) rm -f "$2.$3.cut";;
  restart_all) for name in a b c; do "$0" is dead $name "" && "$0" start $name; done; true;;
esac
case "$1$2" in
  isup) pid=$(cat "$3.pid"); case $(state) in [ZXT]) exit 1;; esac;;
  isdead) pid=$(cat "$3.pid"); case $(state) in [ZX]) ;; *) exit 1;; esac;;
  ispaused) pid=$(cat "$3.pid"); [ "$(state)" = T ];;
  iscut) [ -e "$3.$4.cut" ];;
  ishealed) [ ! -e "$3.$4.cut" ];;
esac
"""
ACTS = {
    "kill": ("kill {node}", "is dead {node}"),
    "stop": ("stop {node}", "is dead {node}"),
    "start": ("start {node}", "is up {node}"),
    "pause": ("pause {node}", "is paused {node}"),
    "resume": ("resume {node}", "is up {node}"),
    "cut": ("cut {node} {peer}", "is cut {node} {peer}"),
    "heal": ("heal {node} {peer}", "is healed {node} {peer}"),
    "restart_all": ("restart_all", "is up a"),
}


class Cluster:
    """Three sleeping brokers, and the commands that break them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.script = directory / "node.sh"
        self.script.write_text(SCRIPT)
        self.script.chmod(0o755)
        self.journal = Journal(directory / "journal.jsonl")
        self._long_s = 10_000_000 + os.getpid()
        for name in "abc":
            self.do("start", name)

    def do(self, *words: str) -> int:
        return subprocess.run([self.script, *words], check=False, timeout=LIMIT_S).returncode

    def plan(
        self, *, limit_s: float = 20.0, nodes: str = '0 = "a", 1 = "b", 2 = "c"', **changes: tuple[str, str]
    ) -> str:
        acts = ACTS | changes
        lines = [
            f'{act} = {{ run = "{self._words(run)}", observe = "{self._words(observe)}" }}'
            for act, (run, observe) in acts.items()
            if run
        ]
        return "\n".join(
            [
                'families = ["kill"]',
                "[worlds.kafka]",
                'host = "commands"',
                'bootstrap = ["127.0.0.1:1"]',
                "[worlds.kafka.commands]",
                f"nodes = {{ {nodes} }}",
                f"limit_s = {limit_s}",
                *lines,
            ]
        )

    def _words(self, words: str) -> str:
        return words if words.startswith("sh ") else f"{self.script} {words}"

    def commands(self, **changes) -> OperatorCommands:
        (world,) = parse_plan(self.plan(**changes), "p.toml").worlds
        return world.world.commands

    def nodes(self, **changes) -> CommandedNodes:
        return CommandedNodes(self.commands(**changes), self.journal)

    def left(self) -> list[str]:
        return [undo.facts["act"] for undo in not_undone(self.journal.path)]

    def wait_long(self) -> str:
        """A command that ends long after the test, and is known by its words: nobody else waits for as long."""
        return f"sleep {self._long_s}"

    def waiting(self) -> list[list[str]]:
        """The words of the processes that :meth:`wait_long`, and of shells that were told to."""
        every = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
        return [words for words in every if any(str(self._long_s) in word for word in words)]

    def is_(self, what: str, *names: str) -> bool:
        return self.do("is", what, *names) == 0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.journal.close()
    for file in tmp_path.glob("*.pid"):
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(file.read_text()), signal.SIGKILL)


@pytest.mark.parametrize(
    ("act", "undo", "shows"), [("kill", "restart", "dead"), ("stop", "restart", "dead"), ("pause", "resume", "paused")]
)
def test_an_act_is_journaled_observed_and_undone(cluster: Cluster, act: str, undo: str, shows: str) -> None:
    nodes = cluster.nodes()
    evidence = getattr(nodes, act)(1)
    assert evidence["state"] == f"{act} observed"
    assert cluster.is_(shows, "b")
    assert cluster.is_("up", "a")
    assert cluster.left() == [act]
    assert getattr(nodes, act)(1) == {}  # safe to repeat
    assert getattr(nodes, undo)(1)["state"].endswith("observed")
    assert (cluster.is_("up", "b"), cluster.left()) == (True, [])
    assert getattr(nodes, undo)(1) == {}


def test_links_are_cut_by_their_direction_and_those_of_others_are_left_alone(cluster: Cluster) -> None:
    nodes = cluster.nodes()
    links = [Link(0, 1), Link(1, 0), Link(0, CLIENTS), Link(CONTROLLER, 0)]
    assert nodes.cut(links) == {"filtered": ["0>1", "1>0"]}
    assert cluster.is_("cut", "a", "b")
    assert cluster.is_("healed", "a", "c")
    assert nodes.heal(links) == {"filtered": ["0>1", "1>0"]}
    assert (cluster.is_("healed", "a", "b"), cluster.left()) == (True, [])


def test_a_command_that_isolates_a_node_is_for_nodes_that_lose_every_link(cluster: Cluster) -> None:
    nodes = cluster.nodes(cut=("cut {node}", "is cut {node}"), heal=("heal {node}", "is healed {node}"))
    alone = [Link(*pair) for pair in ((0, 1), (1, 0), (0, 2), (2, 0))]
    assert nodes.cut(alone[:2]) == {}
    assert nodes.cut(alone) == {"filtered": ["a"]}
    assert nodes.heal(alone) == {"filtered": ["a"]}


def test_an_observation_that_contradicts_the_command_is_no_effect(cluster: Cluster) -> None:
    lying = cluster.nodes(limit_s=3.0, kill=("is up {node}", "is dead {node}"))  # exit code 0, and nothing is done
    evidence = lying.kill(0)
    assert evidence["refused"].startswith("kill: exit code 0, and the observation contradicts it")
    assert cluster.left() == ["kill"]  # it may show yet
    lying.close()
    assert (cluster.is_("up", "a"), cluster.left()) == (True, [])


def test_a_command_that_fails_and_took_effect_is_believed_by_what_was_observed(cluster: Cluster) -> None:
    failing = cluster.nodes(kill=(f"sh -c '{cluster.script} kill {{node}}; echo no rights; exit 7'", "is dead {node}"))
    evidence = failing.kill(0)
    assert (evidence["state"], evidence["words"]) == ("kill observed", "kill: exit code 7 (no rights)")
    failing.close()
    assert (cluster.is_("up", "a"), cluster.left()) == (True, [])


def test_a_command_that_fails_has_no_effect_and_says_why(cluster: Cluster) -> None:
    failing = cluster.nodes(limit_s=3.0, kill=("sh -c 'echo no rights >&2; exit 7'", "is dead {node}"))
    assert failing.kill(0)["refused"].startswith("kill: exit code 7 (no rights), and the observation contradicts it")
    missing = cluster.nodes(limit_s=3.0, stop=("sh -c 'exec /no/such/program'", "is dead {node}"))
    assert "exit code 127" in missing.stop(1)["refused"]


def test_what_cannot_be_observed_is_not_confirmed(cluster: Cluster) -> None:
    blind = cluster.nodes(limit_s=3.0, kill=("kill {node}", "sh -c 'echo no route; exit 3'"))
    assert blind.kill(0)["unconfirmed"] == "kill: exit code 0, and it could not be observed (no route)"
    hung = cluster.nodes(limit_s=3.0, stop=("stop {node}", "sh -c 'sleep 60'"))
    assert "no end within" in hung.stop(1)["unconfirmed"]


def test_a_command_that_hangs_is_ended_with_what_it_started(cluster: Cluster) -> None:
    late = f"sh -c '{cluster.wait_long()}; {cluster.script} kill {{node}}'"
    hanging = cluster.nodes(limit_s=3.0, kill=(late, "is dead {node}"))
    assert "no exit code (no end within 3 s)" in hanging.kill(0)["refused"]
    wait_until(lambda: cluster.waiting() == [], "the command and its wait are gone")
    assert cluster.is_("up", "a")


def test_what_an_undo_does_not_mend_stays_in_the_journal_until_heal_can(cluster: Cluster) -> None:
    broken = cluster.nodes(limit_s=3.0, start=("is dead {node}", "is up {node}"), restart_all=("", ""))
    assert broken.kill(0)["state"] == "kill observed"
    assert "contradicts" in broken.restart(0)["refused"]
    with pytest.raises(NotUndoneError, match="kill of a: undo: exit code 0, and the observation contradicts"):
        broken.close()
    assert cluster.left() == ["kill"]
    assert heal_all(cluster.directory).remaining
    cluster.do("start", "a")  # by hand
    healed = heal_all(cluster.directory)
    assert (healed.undone, healed.remaining, cluster.left()) == ([], [], [])


def test_where_an_undo_does_not_help_everything_is_restarted(cluster: Cluster) -> None:
    broken = cluster.nodes(limit_s=3.0, start=("is dead {node}", "is up {node}"))
    broken.kill(0)
    broken.close()
    assert (cluster.is_("up", "a"), cluster.left()) == (True, [])


KILLED_HALF_WAY = """
import sys
from pathlib import Path
from harness.worlds.hosts import CommandedNodes
from harness.plan import parse_plan
from harness.records.journal import Journal
commands = parse_plan(Path(sys.argv[1]).read_text(), "p.toml").worlds[0].world.commands
CommandedNodes(commands, Journal(Path(sys.argv[2]))).kill(0)
"""


@pytest.mark.parametrize("after_the_act", [False, True])
def test_a_harness_that_is_killed_half_way_is_healed(cluster: Cluster, after_the_act: bool) -> None:
    do, wait = f"{cluster.script} kill {{node}}", f"touch {cluster.directory}/waits; {cluster.wait_long()}"
    words = f"sh -c '{do}; {wait}'" if after_the_act else f"sh -c '{wait}; {do}'"
    (cluster.directory / "p.toml").write_text(cluster.plan(limit_s=20.0, kill=(words, "is dead {node}")))
    cluster.journal.close()
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED_HALF_WAY, cluster.directory / "p.toml", cluster.journal.path],
        cwd=Path(__file__).parents[4],
    )
    wait_until((cluster.directory / "waits").exists, "the command waits")
    child.kill()
    child.wait(LIMIT_S)
    assert cluster.left() == ["kill"]
    healed = heal_all(cluster.directory)
    assert healed.remaining == []
    assert healed.undone == (["operator-command kill of a"] if after_the_act else [])
    wait_until(lambda: cluster.waiting() == [], "the command that was under way is gone too")
    assert (cluster.is_("up", "a"), cluster.left()) == (True, [])


def test_the_name_of_a_node_is_one_word_and_no_shell_reads_it(cluster: Cluster) -> None:
    name = "a b; touch evil"
    seen: list[tuple[str, ...]] = []
    commands = cluster.commands(nodes=f'0 = "{name}", 1 = "b"')

    def show(words: tuple[str, ...], limit_s: float, token: str) -> CommandEnd:
        seen.append(words)
        return CommandEnd(0, "")

    CommandedNodes(commands, cluster.journal, show).kill(0)
    assert seen[0] == (str(cluster.script), "kill", name)
    assert call(("echo", name), 5.0).words == name
    assert CommandedNodes(commands, cluster.journal, show).kill(7)["refused"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": ("", "")}, "kill: nothing undoes it; add start = "),
        ({"resume": ("", "")}, "pause: nothing undoes it; add resume = "),
        ({"heal": ("heal {node}", "is healed {node}")}, "cut and heal must both name {peer}"),
        ({"nodes": '0 = ""'}, "name each broker by its id"),
        ({"kill": ("sh -c 'x", "true")}, "these are not the words of a command"),
        ({"limit_s": 0.0}, "the least is 0.1"),
    ],
)
def test_commands_that_cannot_be_undone_or_understood_are_refused(cluster: Cluster, changes, message: str) -> None:
    with pytest.raises(PlanError, match=r"worlds\.kafka\.commands") as error:
        cluster.commands(**changes)
    assert message in str(error.value)


def test_commands_are_for_their_own_host_and_each_act_is_observed(cluster: Cluster) -> None:
    text = cluster.plan()
    with pytest.raises(PlanError, match='commands are for host = "commands"'):
        parse_plan(text.replace('host = "commands"', 'host = "existing"'), "p.toml")
    blind = text.replace(f', observe = "{cluster.script} is dead {{node}}"', "", 1)
    with pytest.raises(PlanError, match="observe is missing"):
        parse_plan(blind, "p.toml")
